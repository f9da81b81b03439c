"""One PTX function -> one C++ function, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cuco.testbed.ptx.blocks import Block, split
from cuco.testbed.ptx.emitter import Emitter, identifier, storage, variable
from cuco.testbed.ptx.layout import Layout
from cuco.testbed.ptx.matrix_groups import Group, schedule, write_group
from cuco.testbed.ptx.model import Function, Instruction, Loc
from cuco.testbed.ptx.ops_control import label
from cuco.testbed.ptx.ops_memory import control_check, remote_check
from cuco.testbed.ptx.slice_plan import Plan
from cuco.testbed.ptx.slice_write import RegionWriter
from cuco.testbed.ptx.table import Unsupported, lookup


@dataclass(frozen=True)
class UnsupportedUse:
    """An instruction that stops the run if it is reached."""

    text: str
    reason: str
    ptx_line: int
    file: str
    line: int


@dataclass
class Written:
    """C++ of one function."""

    declaration: str
    definition: str
    unsupported: list[UnsupportedUse] = field(default_factory=list)


class FunctionWriter:
    """Writes `function`; `blocks` carry module-wide numbers, `plan` says what a slice leaves out."""

    def __init__(
        self,
        function: Function,
        blocks: list[Block],
        layout: Layout,
        site: Callable[[Instruction], int],
        next_group: Callable[[], int],
        plan: Plan | None,
    ) -> None:
        self.f = function
        self.blocks = blocks
        self.e = Emitter(function, layout, site)
        self.next_group = next_group
        self.plan = plan
        self.callbacks: list[str] = []
        self.unsupported: list[UnsupportedUse] = []
        self._lines: list[str] = []
        self._loc: Loc | None = None

    def write(self) -> Written:
        signature = self.signature()
        for block in self.blocks:
            self._block(block)
        head = [signature + " {", "EMU_BEGIN", *self._declarations()]
        cluster = self.f.cluster
        if max(cluster, default=0) > 1:
            head.append('emu_trap(T_, 0, "thread block clusters of more than one block are not supported");')
        text = "\n".join([*self.callbacks, *head, *self._lines, "}"])
        return Written(signature + ";", text, self.unsupported)

    def signature(self) -> str:
        name = identifier(self.f.name)
        if self.f.entry:
            return f"static void K_{name}(EmuThread* T_, const char* P_)"
        returns = variable(self.f.returns[0].name) if self.f.returns else "R_"
        parameters = "".join(f", char* {variable(p.name)}" for p in self.f.params)
        return f"static void F_{name}(EmuThread* T_, char* {returns}{parameters})"

    def _declarations(self) -> list[str]:
        by_type: dict[str, list[str]] = {}
        for name, kind in self.f.registers.items():
            by_type.setdefault(storage(kind), []).append(f"{variable(name)} = 0")
        lines = [f"{ctype} {', '.join(names)};" for ctype, names in by_type.items()]
        for name, v in self.f.variables.items():
            if v.space in ("local", "param"):
                lines.append(f"alignas({max(v.align, 16)}) char {variable(name)}[{max(v.bytes, 1)}];")
        return lines

    # -------------------- blocks
    def _block(self, block: Block) -> None:
        self._loc = None
        if self.plan is not None and self._sliced(block, self.plan):
            return
        self._lines += [f"{label(name)}:;" for name in block.labels]
        if not block.instructions:
            return
        instructions = block.instructions
        if self.plan is not None:
            instructions = [i for i in instructions if self.plan.runs(i)]
        count = f"BB({block.id}, {block.weight});"
        if block.guarded:
            self._guarded(block, instructions, count)
            return
        self._emit(count, block.instructions[0].loc)
        for item in schedule(instructions):
            if isinstance(item, Group):
                self._group(item)
            else:
                self._emit(self._statement(item), item.loc)

    def _sliced(self, block: Block, plan: Plan) -> bool:
        """Labels and counted loops of a slice; whether the block is done with that."""
        if block.index in plan.entry_labels():
            self._lines.append(f"BX_{block.index}:;")
        if not plan.replaces(block):
            return False
        region = plan.regions.get(block.index)
        if region is not None:
            self._lines += [f"{label(name)}:;" for name in block.labels]
            writer = RegionWriter(self.e, self.blocks, region, plan, self._statement, self.next_group())
            definition, use = writer.write()
            self.callbacks.append(definition)
            self._lines += [line for line in use if line]
        return True

    def _guarded(self, block: Block, instructions: list[Instruction], count: str) -> None:
        guard = block.instructions[0].guard
        assert guard is not None
        inner = " ".join(self._plain(i) for i in instructions)
        self._emit(f"if ({self.e.read(guard, 'pred')}) {{ {count} {inner} }}", block.instructions[0].loc)

    def _statement(self, i: Instruction) -> str:
        code = self._plain(i)
        return f"if ({self.e.read(i.guard, 'pred')}) {{ {code} }}" if i.guard is not None else code

    def _plain(self, i: Instruction) -> str:
        entry = lookup(i)
        self.e.current = i
        try:
            if entry is None:
                raise Unsupported(f"opcode {i.op}")
            if self.plan is not None and id(i) in self.plan.checked:
                return remote_check(self.e, i)
            code = entry.emit(self.e, i)
            if self.plan is not None and id(i) in self.plan.control:
                code = control_check(self.e, i, self.plan.spoiled) + code
            return code
        except Unsupported as error:
            self._refuse(i, str(error))
        except (IndexError, KeyError, StopIteration, ValueError) as error:
            # An operand shape no entry foresaw: the same verdict, never a wrong translation.
            self._refuse(i, f"form of {i.op} ({type(error).__name__})")
        return f"emu_unsupported(T_, {self.e.site(i)});"

    def _refuse(self, i: Instruction, reason: str) -> None:
        self.unsupported.append(UnsupportedUse(i.text, reason, i.line, i.loc.file, i.loc.line))

    def _group(self, group: Group) -> None:
        self.e.current = group.instructions[0]
        callback, statement = write_group(self.e, group, self.next_group())
        self.callbacks.append(callback)
        self._emit(statement, group.instructions[0].loc)

    # -------------------- text
    def _emit(self, code: str, loc: Loc) -> None:
        """Append a statement under the source line it comes from; neighbours of one line share a line."""
        if not code:
            return
        if self._loc is not None and (loc.file, loc.line) == (self._loc.file, self._loc.line):
            self._lines[-1] += " " + code
            return
        if loc.line:
            self._lines.append(f'#line {loc.line} "{loc.file}"')
        self._lines.append(code)
        self._loc = loc


def number_blocks(functions: list[Function]) -> tuple[dict[str, list[Block]], list[Block]]:
    """Blocks of every function, those with instructions numbered consecutively through the module."""
    by_function: dict[str, list[Block]] = {}
    counted: list[Block] = []
    for f in functions:
        blocks = split(f)
        for block in blocks:
            if block.instructions:
                block.id = len(counted)
                counted.append(block)
        by_function[f.name] = blocks
    return by_function, counted
