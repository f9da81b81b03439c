"""What must be executed for control flow, synchronisation and remote traffic to be those of the full
program.

Two sets grow together. Needed registers: those that decide a branch, a guard, a synchronising operation or
an address that is not known to be local, and everything they are computed from. Tainted registers: those
computed from values the slice does not produce (data loads, matrix results). A register in both is the
reason why a kernel cannot be sliced.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cuco.testbed.ptx.access import access_of, is_announced, is_strong, space_of
from cuco.testbed.ptx.blocks import Block
from cuco.testbed.ptx.model import Addr, Function, Instruction, Operand, Sym
from cuco.testbed.ptx.slice_flow import Base, Flow, overlapping
from cuco.testbed.ptx.table import flatten, lookup, reads, writes

BUILTINS = ("vprintf", "malloc", "free", "__assertfail")
_LOCAL = ("param", "shared", "local", "global", "constant", "parameter")


class Refusal(Exception):
    """The kernel cannot be sliced; the message says why."""


def place(i: Instruction) -> str:
    """Where an instruction is, for a reason: source line if known, else PTX line."""
    if i.loc.line:
        return f"{i.loc.file.rsplit('/', 1)[-1]}:{i.loc.line}"
    return f"PTX line {i.line}"


@dataclass
class Needs:
    """The result of the analysis."""

    kept: set[int] = field(default_factory=set)
    checked: set[int] = field(default_factory=set)
    control: list[Instruction] = field(default_factory=list)
    """Kept loads from global, shared or local memory."""
    guards: dict[int, bool] = field(default_factory=dict)
    """Parameter offsets of pointers through which accesses are dropped -> whether any of them is a store."""
    spoiled: int = 0
    """Bit 0: shared memory misses dropped stores; bit 1: local memory does."""


class NeedAnalysis:
    def __init__(self, function: Function, blocks: list[Block], flow: Flow) -> None:
        self.f = function
        self.blocks = blocks
        self.flow = flow
        self.needs = Needs()
        self.instructions = [i for b in blocks for i in b.instructions]
        self._needed: dict[str, tuple[str, Instruction]] = {}
        """Register -> (what for, the instruction that wants it)."""
        self._todo: list[str] = []
        self._carry = False
        self._writers = [i for i in self.instructions if self._writes_memory(i)]
        self._garbled: set[int] = set()
        """Atomics that run on values the slice does not produce."""

    def run(self) -> Needs:
        """Raises Refusal."""
        for i in self.instructions:
            self._root(i)
        self._propagate()
        while True:
            tainted = self._taint()
            stores = [i for i in self._writers if self._is_plain_store(i, tainted)]
            for i in stores:
                self.needs.checked.discard(id(i))
                self._keep(i, "a store", reads(i))
            self._check_atomics(tainted)
            if not self._propagate() and not stores:
                break
        self._check_memory()
        self._check_reals()
        self._guards()
        return self.needs

    # -------------------- roots
    def _keep(self, i: Instruction, why: str, registers: list[str]) -> None:
        self.needs.kept.add(id(i))
        for name in registers:
            if name not in self._needed:
                self._needed[name] = (why, i)
                self._todo.append(name)

    def _root(self, i: Instruction) -> None:
        entry = lookup(i)
        if entry is None:
            self._keep(i, "an unsupported instruction", reads(i))
            return
        if i.guard is not None:
            self._need([i.guard.name], "a predicate", i)
        kind = entry.kind
        if kind == "control":
            self._keep(i, "a branch", reads(i))
        elif kind == "call":
            self._call(i)
        elif kind in ("barrier", "mbarrier", "fence", "effect") or (kind == "warp" and not writes(i)):
            self._keep(i, f"a {i.name} operation", reads(i))
        elif kind == "atomic":
            self._keep(i, "an atomic operation", self._address_registers(i))
        elif kind in ("load", "store") and (is_strong(i) or is_announced(i)):
            self._keep(i, "a synchronising access", reads(i))
        elif kind in ("load", "store"):
            self._access(i, i.operands[1] if kind == "load" else i.operands[0])
        elif kind == "async":
            self._async(i)
        elif i.name == "wmma" and i.parts[1] in ("load", "store"):
            address = i.operands[1 if i.parts[1] == "load" else 0]
            if self.flow.address(i, address).kind not in _LOCAL:
                raise Refusal(f"{place(i)} moves a fragment through an address that may be remote")

    def _need(self, registers: list[str], why: str, i: Instruction) -> None:
        for name in registers:
            if name not in self._needed:
                self._needed[name] = (why, i)
                self._todo.append(name)

    def _call(self, i: Instruction) -> None:
        target = i.call
        assert target is not None
        name = target.callee.name if isinstance(target.callee, Sym) else "a function pointer"
        if name not in BUILTINS:
            raise Refusal(f"{place(i)} calls {name}, which is not inlined")
        self._keep(i, "a call", reads(i))
        arguments = set(target.arguments)
        for store in self.instructions:
            base = self.flow.address(store, store.operands[0]) if store.name == "st" else None
            if base is not None and base.kind == "local" and base.root in arguments:
                self._keep(store, "an argument", [])

    def _access(self, i: Instruction, address: Operand) -> None:
        """A weak access: nothing to do where it is local, its remote check where that is not known."""
        if access_of(i).space not in ("", "global"):
            return
        if self.flow.address(i, address).kind not in _LOCAL:
            self.needs.checked.add(id(i))
            self._need([r for r in self._address_registers(i)], "an address that may be remote", i)

    def _async(self, i: Instruction) -> None:
        if i.has("bulk", "mbarrier"):
            self._keep(i, "an asynchronous copy that signals", reads(i))
        elif i.has("ca", "cg") and self.flow.address(i, i.operands[1], "global").kind not in _LOCAL:
            self.needs.checked.add(id(i))
            source = i.operands[1]
            self._need(_registers(source), "an address that may be remote", i)

    def _address_registers(self, i: Instruction) -> list[str]:
        return [r for o in i.operands for r in _registers(o, addresses_only=True)]

    # -------------------- backwards
    def _propagate(self) -> bool:
        """Keep what the needed registers are computed from; whether there was anything to do."""
        worked = bool(self._todo)
        while self._todo:
            name = self._todo.pop()
            for i in self.flow.defs.get(name, []):
                if id(i) not in self.needs.kept:
                    self._define(i, name)
        return worked

    def _define(self, i: Instruction, name: str) -> None:
        why, user = self._needed[name]
        entry = lookup(i)
        kind = entry.kind if entry else "effect"
        if kind in ("pure", "special"):
            self._keep(i, why, reads(i))
        elif kind == "carry":
            self._keep_carry_chain(why)
        elif kind == "load":
            self.needs.checked.discard(id(i))
            self._keep(i, why, reads(i))
            if access_of(i).space not in ("param", "const"):
                self.needs.control.append(i)
                self._need_stores(i, why, user)
        elif kind == "warp":
            self._keep(i, why, reads(i))
        elif kind == "matrix":
            raise Refusal(f"a computed value ({place(i)}) reaches {why} at {place(user)}")
        else:
            self._keep(i, why, reads(i))

    def _need_stores(self, load: Instruction, why: str, user: Instruction) -> None:
        """What a control load may read must have been stored: the slice goes backwards through memory."""
        where, size = self.flow.address(load, load.operands[1]), access_of(load).bytes
        for store in self._writers:
            if not self._may_meet(where, size, *self._written(store)):
                continue
            if store.name == "st":
                self.needs.checked.discard(id(store))
                self._keep(store, why, reads(store))
            elif store.name not in ("atom", "red"):
                raise Refusal(_through_memory(store, load, why, user))

    def _keep_carry_chain(self, why: str) -> None:
        if self._carry:
            return
        self._carry = True
        for i in self.instructions:
            entry = lookup(i)
            if entry is not None and entry.kind == "carry":
                self._keep(i, why, reads(i))

    # -------------------- forwards
    def _taint(self) -> set[str]:
        """Registers whose values a slice does not produce, were every other instruction executed."""
        tainted: set[str] = set()
        changed = True
        while changed:
            changed = False
            for i in self.instructions:
                if id(i) in self.needs.kept or not self._spoils(i, tainted):
                    continue
                for name in writes(i):
                    if name not in tainted:
                        tainted.add(name)
                        changed = True
        return tainted

    def _spoils(self, i: Instruction, tainted: set[str]) -> bool:
        entry = lookup(i)
        if entry is None or entry.kind in ("matrix", "async"):
            return True
        if entry.kind == "load":
            return self._loads_taint(i, tainted)
        return any(name in tainted for name in reads(i))

    def _is_update(self, store: Instruction, tainted: set[str]) -> bool:
        """A scalar integer store back to where its value came from (`++count`): state, not data."""
        if store.name != "st" or store.type[:1] not in ("u", "s", "b") or access_of(store).lanes != 1:
            return False
        target = store.operands[0]
        known = not any(name in tainted for name in self._address_registers(store))
        todo, seen = [n for n in reads(store) if n in tainted], set[str]()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for i in self.flow.defs.get(name, []):
                if i.name == "ld":
                    if i.operands[1] != target or space_of(i) != space_of(store):
                        return False
                    if not known and id(i) not in self.needs.kept:  # a load that stays has its address
                        return False
                elif _kind(i) != "pure" or _is_floating(i):
                    return False
                todo += [n for n in reads(i) if n in tainted and i.name != "ld"]
        return True

    def _loads_taint(self, i: Instruction, tainted: set[str]) -> bool:
        """Global data is not produced; shared and local memory hold what was stored there."""
        where = self.flow.address(i, i.operands[1])
        if access_of(i).space in ("param", "const") or where.kind in ("parameter", "constant"):
            return False
        if where.kind not in ("shared", "local"):
            return True
        return any(
            self._may_meet(where, access_of(i).bytes, *self._written(w))
            for w in self._writers
            if id(w) not in self.needs.kept and self._stores_taint(w, tainted)
        )

    def _stores_taint(self, i: Instruction, tainted: set[str]) -> bool:
        entry = lookup(i)
        if i.name != "st" and (entry is None or entry.kind != "atomic"):
            return True  # asynchronous and matrix moves
        return any(name in tainted for name in reads(i))

    def _is_plain_store(self, i: Instruction, tainted: set[str]) -> bool:
        """A weak store of a value that the slice can produce: it stays, so that control may read it again."""
        if i.name != "st" or id(i) in self.needs.kept:
            return False
        return not any(name in tainted for name in reads(i)) or self._is_update(i, tainted)

    # -------------------- memory
    def _check_memory(self) -> None:
        """A control load must not read what a dropped store would have written, or an atomic made of
        tainted values.
        """
        dropped = [i for i in self._writers if id(i) not in self.needs.kept or id(i) in self._garbled]
        for load in self.needs.control:
            where, size = self.flow.address(load, load.operands[1]), access_of(load).bytes
            for store in dropped:
                if self._may_meet(where, size, *self._written(store)):
                    why, user = self._reason_of(load)
                    raise Refusal(_through_memory(store, load, why, user))
        kinds = {self._written(i)[0].kind for i in dropped}
        self.needs.spoiled = (1 if "shared" in kinds else 0) | (2 if "local" in kinds else 0)

    def _check_reals(self) -> None:
        """Numbers in memory are data: one that decides control makes the control depend on data."""
        origin: dict[str, Instruction] = {n: load for load in self.needs.control for n in writes(load)}
        pending = [i for i in self.instructions if id(i) in self.needs.kept and _kind(i) == "pure"]
        changed = True
        while changed:
            changed = False
            for i in pending:
                source = next((origin[n] for n in reads(i) if n in origin), None)
                if source is None:
                    continue
                if _is_floating(i):
                    why, user = next(
                        (self._needed[n] for n in writes(i) if n in self._needed), ("control", i)
                    )
                    raise Refusal(
                        f"a computed value (loaded at {place(source)}) reaches {why} at {place(user)}"
                    )
                for n in writes(i):
                    if n not in origin:
                        origin[n] = source
                        changed = True

    def _reason_of(self, load: Instruction) -> tuple[str, Instruction]:
        return next((self._needed[n] for n in writes(load) if n in self._needed), ("control", load))

    def _writes_memory(self, i: Instruction) -> bool:
        if i.name in ("st", "stmatrix", "atom", "red") or (i.name == "wmma" and i.parts[1] == "store"):
            return True
        return i.name == "cp" and i.has("ca", "cg")

    def _written(self, i: Instruction) -> tuple[Base, int]:
        if i.name in ("cp", "stmatrix"):
            base = self.flow.address(i, i.operands[0], "shared")
            return Base("shared", base.root if base.kind == "shared" else "", None), 1 << 30
        base = self.flow.address(i, i.operands[1 if i.name == "atom" else 0])
        if i.name == "wmma":
            return Base(base.kind, base.root, None), 1 << 30
        return base, access_of(i).bytes

    @staticmethod
    def _may_meet(load: Base, load_size: int, store: Base, store_size: int) -> bool:
        """Loads through pointers of unknown origin are checked at run time (emu_control_read), like those
        through parameters; here only what is certain from the text.
        """
        if load.kind != store.kind:
            return False
        if load.kind in ("shared", "local", "global"):
            return overlapping(load, load_size, store, store_size)
        return load.kind == "param" and load.root == store.root

    def _check_atomics(self, tainted: set[str]) -> None:
        """Atomics stay, but those on computed values leave something that control must not read."""
        for i in self.instructions:
            entry = lookup(i)
            if entry is None or entry.kind != "atomic":
                continue
            values = [n for n in reads(i) if n not in self._address_registers(i)]
            if any(n in tainted for n in values):
                self._garbled.add(id(i))
                if any(n in self._needed for n in writes(i)):
                    raise Refusal(f"the result of an atomic on computed values reaches control at {place(i)}")
                if self._written(i)[0].kind not in _LOCAL and not _is_floating(i):
                    raise Refusal(f"a computed value reaches an atomic of unknown address at {place(i)}")
            self._need([n for n in values if n not in tainted], "an atomic operation", i)

    def _guards(self) -> None:
        for i in self.instructions:
            if id(i) in self._garbled:
                base, _ = self._written(i)
                if base.kind == "param" and isinstance(base.root, int):
                    self.needs.guards[base.root] = True
            if id(i) in self.needs.kept or id(i) in self.needs.checked:
                continue
            for operand, writing in _accesses(i):
                base = self.flow.address(i, operand, "global")
                if base.kind == "param" and isinstance(base.root, int):
                    self.needs.guards[base.root] = self.needs.guards.get(base.root, False) or writing


def _through_memory(store: Instruction, load: Instruction, why: str, user: Instruction) -> str:
    where = f"stored at {place(store)}, loaded at {place(load)}"
    return f"a computed value ({where}) reaches {why} at {place(user)}"


_FLOATING = ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")


def _is_floating(i: Instruction) -> bool:
    """Whether an instruction works on floating-point numbers (moves and selections do not)."""
    return i.name not in ("mov", "selp") and any(p in _FLOATING for p in i.parts)


def _kind(i: Instruction) -> str:
    entry = lookup(i)
    return entry.kind if entry else ""


def _accesses(i: Instruction) -> list[tuple[Operand, bool]]:
    """Memory operands in global or generic space that an instruction would touch, and whether it writes
    them.
    """
    if i.name in ("ld", "ldu") and access_of(i).space in ("", "global"):
        return [(i.operands[1], False)]
    if i.name == "st" and access_of(i).space in ("", "global"):
        return [(i.operands[0], True)]
    if i.name == "cp" and i.has("ca", "cg"):
        return [(i.operands[1], False)]
    if i.name == "wmma" and i.parts[1] in ("load", "store"):
        return [(i.operands[1 if i.parts[1] == "load" else 0], i.parts[1] == "store")]
    return []


def _registers(operand: Operand, addresses_only: bool = False) -> list[str]:
    if addresses_only and not isinstance(operand, Addr):
        return []
    return [r.name for r in flatten(operand) if not r.special]
