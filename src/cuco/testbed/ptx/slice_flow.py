"""Def-use chains of one function, and where addresses come from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cuco.testbed.ptx.access import access_of, space_of
from cuco.testbed.ptx.layout import Layout
from cuco.testbed.ptx.model import SIZES, Addr, FloatImm, Function, Imm, Instruction, Operand, Reg, Sym, Vec
from cuco.testbed.ptx.table import lookup, writes


@dataclass(frozen=True)
class Base:
    """What a value points into. kind: int (no pointer), param, shared, local, global, constant, unknown, or
    none (nothing known yet, inside a cycle). `offset` is the constant distance from the root, None if it
    varies.
    """

    kind: str
    root: str | int = ""
    offset: int | None = None

    def moved(self, delta: int | None) -> Base:
        if self.offset is None or delta is None:
            return replace(self, offset=None)
        return replace(self, offset=self.offset + delta)


INT = Base("int")
UNKNOWN = Base("unknown")
NONE = Base("none")


def join(a: Base, b: Base) -> Base:
    """What a value is that may be either."""
    if a.kind == "none" or a == b:
        return b
    if b.kind == "none":
        return a
    if a.kind == b.kind and a.root == b.root:
        return replace(a, offset=None)
    return UNKNOWN


class Flow:
    """Definitions of registers and provenance of addresses."""

    def __init__(self, function: Function, layout: Layout) -> None:
        self.f = function
        self.layout = layout
        self.defs: dict[str, list[Instruction]] = {}
        self.params = (
            dict((p.name, offset) for p, offset in layout.parameters(function)) if function.entry else {}
        )
        for i in function.instructions():
            for name in writes(i):
                self.defs.setdefault(name, []).append(i)
        self._bases: dict[str, Base] = {}
        self._settle()

    def _settle(self) -> None:
        """Provenance of all registers, by repetition until nothing changes: a register's bases only grow."""
        pending = [(i, name) for i in self.f.instructions() for name in writes(i)]
        changed = True
        while changed:
            changed = False
            for i, name in pending:
                old = self._bases.get(name, NONE)
                new = join(old, self._defined(i, name))
                if new != old:
                    self._bases[name] = new
                    changed = True

    # -------------------- provenance
    def address(self, i: Instruction, operand: Operand, space: str | None = None) -> Base:
        """The base of a memory operand in a state space (by default the instruction's), which is the last
        resort.
        """
        space = space_of(i) if space is None else space
        if not isinstance(operand, Addr):
            return UNKNOWN
        if isinstance(operand.base, Reg):
            found = self.register(operand.base.name).moved(operand.offset)
        elif isinstance(operand.base, Sym):
            found = self._symbol(operand.base.name, operand.offset)
        else:
            found = UNKNOWN
        if found.kind in ("unknown", "int", "none", "param"):
            if space in ("shared", "local"):
                return Base(space, "", None)  # somewhere in that space
            if found.kind != "param":
                return UNKNOWN
        return found

    def register(self, name: str) -> Base:
        """The base of a register's value, over all its definitions."""
        return self._bases.get(name, NONE)

    def _operand(self, operand: Operand) -> Base:
        if isinstance(operand, Reg):
            return INT if operand.special else self.register(operand.name)
        if isinstance(operand, (Imm, FloatImm)):
            return INT
        if isinstance(operand, Sym):
            return self._symbol(operand.name, operand.offset)
        if isinstance(operand, Vec):
            parts = [self._operand(x) for x in operand.items]
            return INT if all(p.kind == "int" for p in parts) else UNKNOWN
        return UNKNOWN

    def _symbol(self, name: str, offset: int) -> Base:
        if name in self.params:
            return Base("parameter", name, offset)
        local = self.f.variables.get(name)
        if local is not None and local.space in ("local", "param"):
            return Base("local", name, offset)
        if self.layout.shared_offset(self.f, name) is not None:
            return Base("shared", name, offset)
        index = self.layout.global_index(self.f, name)
        if index is not None:
            constant = self.layout.globals[index][1].space == "const"
            return Base("constant" if constant else "global", name, offset)
        return UNKNOWN

    def _defined(self, i: Instruction, name: str) -> Base:
        entry = lookup(i)
        if entry is None:
            return UNKNOWN
        if entry.kind == "load":
            return self._loaded(i, name)
        if entry.kind not in ("pure", "carry"):
            return INT if SIZES.get(self.f.registers.get(name, ""), 8) < 8 else UNKNOWN
        sources = [self._operand(o) for o in i.operands[entry.dests :]]
        if i.name in ("mov", "cvta", "cvt"):
            return sources[0]
        if i.name in ("add", "sub") and i.parts[-1] not in ("f32", "f64"):
            return self._sum(i, sources)
        if i.name == "mad":
            return self._pointer_plus(sources[2], sources[:2])
        if i.name in ("and", "or", "xor", "min", "max"):
            return self._pointer_plus(sources[0], sources[1:], sources[1], sources[:1])
        if i.name == "selp":
            return join(sources[0], sources[1])
        return INT if all(s.kind in ("int", "none", "param") for s in sources) else UNKNOWN

    def _sum(self, i: Instruction, sources: list[Base]) -> Base:
        a, b = sources[0], sources[1]
        sign = -1 if i.name == "sub" else 1
        second = i.operands[2]
        if a.kind != "int" and b.kind == "int":
            return a.moved(sign * second.value if isinstance(second, Imm) else None)
        if a.kind == "int" and b.kind != "int" and sign > 0:
            first = i.operands[1]
            return b.moved(first.value if isinstance(first, Imm) else None)
        if a.kind == "int" and b.kind == "int":
            return INT
        if "none" in (a.kind, b.kind):
            return NONE
        if sign < 0 and a.kind == b.kind:
            return INT
        return UNKNOWN

    def _pointer_plus(
        self, pointer: Base, others: list[Base], other: Base | None = None, rest: list[Base] | None = None
    ) -> Base:
        """A pointer combined with integers keeps its root, in either order if a second choice is given."""
        plain = ("int", "none")
        if all(o.kind in plain for o in others):
            return pointer if pointer.kind in plain else pointer.moved(None)
        if other is not None and rest is not None and all(o.kind in plain for o in rest):
            return other.moved(None)
        # Parameters that are integers look like pointers until they are multiplied: a product is an integer.
        if pointer.kind == "int" and all(o.kind in (*plain, "param") for o in others):
            return INT
        return UNKNOWN

    def _loaded(self, i: Instruction, name: str) -> Base:
        source = i.operands[1]
        access = access_of(i)
        if access.space == "param":
            if SIZES[access.kind] < 8:
                return INT
            where = self.address(i, source, "param")
            if where.kind != "parameter" or where.offset is None or where.root not in self.params:
                return UNKNOWN
            lane = self._lane(i, name) * SIZES[access.kind]
            return Base("param", self.params[str(where.root)] + where.offset + lane, 0)
        return INT if SIZES[access.kind] < 8 else UNKNOWN

    def _lane(self, i: Instruction, name: str) -> int:
        target = i.operands[0]
        if isinstance(target, Vec):
            for n, item in enumerate(target.items):
                if isinstance(item, Reg) and item.name == name:
                    return n
        return 0


def overlapping(a: Base, a_size: int, b: Base, b_size: int) -> bool:
    """Whether two accesses of the same space may touch the same bytes."""
    if a.root == "" or b.root == "":
        return True
    if a.root != b.root:
        return False
    if a.offset is None or b.offset is None:
        return True
    return a.offset < b.offset + b_size and b.offset < a.offset + a_size


__all__ = ["INT", "NONE", "UNKNOWN", "Base", "Flow", "join", "overlapping"]
