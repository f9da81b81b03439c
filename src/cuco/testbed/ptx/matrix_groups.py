"""Runs of neighbouring matrix instructions, executed in one rendezvous of the warp instead of one each.

A rendezvous costs far more than a multiply, so independent register arithmetic that stands between two matrix
instructions is moved in front of the group where data flow allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cuco.testbed.ptx.emitter import Emitter, convert
from cuco.testbed.ptx.model import SIZES, Addr, Instruction, Operand, Reg
from cuco.testbed.ptx.ops_matrix import MatrixCall, matrix_call
from cuco.testbed.ptx.special import VARYING
from cuco.testbed.ptx.table import Unsupported, lookup, reads, writes


@dataclass(eq=False)
class Group:
    """Matrix instructions that share one warp_call."""

    instructions: list[Instruction] = field(default_factory=list)
    calls: list[MatrixCall] = field(default_factory=list)


def is_groupable(i: Instruction) -> bool:
    entry = lookup(i)
    if entry is None or entry.kind != "matrix" or i.guard is not None:
        return False
    return not (i.name == "wmma" and i.parts[1] in ("load", "store"))


def _is_movable(i: Instruction, used: set[str], made: set[str]) -> bool:
    entry = lookup(i)
    if entry is None or entry.kind != "pure" or i.guard is not None:
        return False
    if any(isinstance(o, Reg) and o.name in VARYING for o in i.operands):
        return False
    return not (set(reads(i)) & made or set(writes(i)) & (used | made))


def schedule(instructions: list[Instruction]) -> list[Instruction | Group]:
    """The instructions of a block in an order of equal meaning, matrix runs gathered into groups."""
    result: list[Instruction | Group] = []
    position = 0
    while position < len(instructions):
        first = instructions[position]
        if not is_groupable(first):
            result.append(first)
            position += 1
            continue
        group, moved, position = _gather(instructions, position)
        result += moved
        result.append(group if group.calls else first)
    return result


def _gather(instructions: list[Instruction], position: int) -> tuple[Group, list[Instruction], int]:
    """A group that starts at `position`, what moves in front of it, and where scanning goes on."""
    group = Group()
    moved: list[Instruction] = []
    pending: list[Instruction] = []
    used: set[str] = set()
    made: set[str] = set()
    end = position
    for n in range(position, len(instructions)):
        i = instructions[n]
        if is_groupable(i):
            try:
                call = matrix_call(i)
            except Unsupported:
                break
            address = call.address
            if isinstance(address, Addr) and isinstance(address.base, Reg) and address.base.name in made:
                break
            group.instructions.append(i)
            group.calls.append(call)
            used |= set(reads(i))
            made |= set(writes(i))
            moved += pending
            pending, end = [], n + 1
        elif _is_movable(i, used, made):
            pending.append(i)
        else:
            break
    if not group.calls:
        return group, [], position + 1
    return group, moved, end


class _Words:
    """Assigns 32-bit words of the lane's argument to registers and constants. Words 0-2: the thread and the
    site.
    """

    def __init__(self) -> None:
        self.count = 4
        self.registers: dict[str, int] = {}
        self.fill: list[str] = []

    def place(self, size: int) -> int:
        words = max(1, size // 4)
        self.count += self.count % words
        start = self.count
        self.count += words
        return start

    def source(self, e: Emitter, operand: Operand, kind: str) -> int:
        if isinstance(operand, Reg) and operand.name in self.registers:
            return self.registers[operand.name]
        word = self.place(SIZES[kind])
        if isinstance(operand, Reg):
            self.registers[operand.name] = word
        value = e.read(operand, kind)
        whole = {"f32": ("float", "uint32_t"), "f64": ("double", "uint64_t")}.get(kind)
        self.fill.append(_put(word, convert(value, *whole) if whole else value, SIZES[kind]))
        return word

    def result(self, operand: Operand, kind: str) -> int:
        if isinstance(operand, Reg) and operand.name in self.registers:
            return self.registers[operand.name]
        word = self.place(SIZES[kind])
        if isinstance(operand, Reg):
            self.registers[operand.name] = word
        return word


def _put(word: int, value: str, size: int) -> str:
    return f"w_[{word}] = {value};" if size == 4 else f"emu_write<uint64_t>(uint64_t(w_ + {word}), {value});"


def write_group(e: Emitter, group: Group, number: int) -> tuple[str, str]:
    """(callback definition, statement) of a group."""
    words = _Words()
    body, results, hooks = [], {}, []
    for call, i in zip(group.calls, group.instructions, strict=True):
        index: list[int] = []
        if call.address is not None:
            address = e.address(call.address, call.space or "")
            word = words.place(8)
            words.fill.append(_put(word, address, 8))
            index += [word, word + 1]
            hooks.append(_hook(e, i, call, address))
        index += [words.source(e, operand, kind) for operand, kind in call.sources]
        for operand, kind in call.results:
            index.append(words.result(operand, kind))
            if isinstance(operand, Reg):
                results[operand.name] = (operand, kind)
        numbers = ", ".join(str(x) for x in index)
        body.append(f"{{ static const uint16_t i_[] = {{{numbers}}}; {call.function}(a_, i_); }}")
    stores = []
    for operand, kind in results.values():
        word = words.registers[operand.name]
        ctype = {"f32": "float", "f64": "double"}.get(kind, "uint32_t")
        stores.append(e.write(operand, f"emu_read<{ctype}>(uint64_t(w_ + {word}))", kind))
    name = f"G_{number}"
    parameters = "void* const a_[32], uint32_t lanes_"
    callback = f"static void {name}({parameters}) {{ isa_full_warp(a_, lanes_); {' '.join(body)} }}"
    site = e.site(group.instructions[0])
    statement = (
        f"{{ alignas(16) uint32_t w_[{words.count}]; {' '.join(hooks)} "
        f"emu_write<EmuThread*>(uint64_t(w_), T_); w_[2] = {site}; {' '.join(words.fill)} "
        f"emu_warp_call(T_, {name}, w_, 0xffffffffu, {site}); {' '.join(stores)} }}"
    )
    return callback, statement


def _hook(e: Emitter, i: Instruction, call: MatrixCall, address: str) -> str:
    """The rows that ldmatrix and stmatrix touch: 16 bytes at the addresses of the first 8, 16 or 32 lanes."""
    lanes = 8 * next(int(p[1:]) for p in i.parts if p in ("x1", "x2", "x4"))
    kind = "EMU_READ" if i.name == "ldmatrix" else "EMU_WRITE"
    macro = "HOOK_S" if call.space == "shared" else "HOOK_G"
    return f"if (T_->lane < {lanes}) {{ {macro}({address}, 16, {kind}, {e.site(i)}); }}"
