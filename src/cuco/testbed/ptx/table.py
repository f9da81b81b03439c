"""The op table: one entry per opcode family. `ops_*.py` fill it; the emitter, the cost classes and the
slice read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cuco.testbed.ptx.model import Addr, Instruction, Operand, Pair, Reg, Vec

if TYPE_CHECKING:
    from cuco.testbed.ptx.emitter import Emitter

Kind = Literal[
    "pure",  # registers to registers, no other effect
    "carry",  # also reads or writes the condition code
    "special",  # reads something that changes (clock)
    "load",
    "store",
    "atomic",
    "fence",
    "barrier",  # block-wide
    "mbarrier",
    "warp",  # rendezvous of a warp, results from other lanes
    "matrix",  # warp-wide multiply or fragment move
    "async",  # asynchronous copies and their groups
    "control",
    "call",
    "hint",  # no effect on any result
    "effect",  # printf, sleep, trap: must stay
]
EmitFn = Callable[["Emitter", Instruction], str]


class Unsupported(Exception):
    """This form of the instruction is not implemented; the message says what."""


@dataclass(frozen=True)
class Op:
    """How one opcode family behaves and how it is written in C++."""

    name: str
    kind: Kind
    dests: int
    """How many leading operands are written."""
    emit: EmitFn


OPS: dict[str, Op] = {}


def op(*names: str, kind: Kind = "pure", dests: int = 1) -> Callable[[EmitFn], EmitFn]:
    """Register the emitter of opcode families; a name may have several parts (`cp.async.bulk`)."""

    def register(emit: EmitFn) -> EmitFn:
        for name in names:
            if name in OPS:
                raise ValueError(f"opcode family {name} registered twice")
            OPS[name] = Op(name, kind, dests, emit)
        return emit

    return register


def lookup(instruction: Instruction) -> Op | None:
    """The most specific entry for an instruction, or None."""
    for n in range(min(4, len(instruction.parts)), 0, -1):
        found = OPS.get(".".join(instruction.parts[:n]))
        if found is not None:
            return found
    return None


def flatten(operand: Operand) -> list[Reg]:
    """All registers of an operand, in order."""
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Vec):
        return [r for item in operand.items for r in flatten(item)]
    if isinstance(operand, Pair):
        return flatten(operand.first) + flatten(operand.second)
    if isinstance(operand, Addr) and isinstance(operand.base, Reg):
        return [operand.base]
    return []


def writes(instruction: Instruction) -> list[str]:
    """Names of the registers an instruction writes."""
    if instruction.written is None:
        instruction.written = _writes(instruction)
    return instruction.written


def reads(instruction: Instruction) -> list[str]:
    """Names of the registers an instruction reads, its guard and indirect callee included."""
    if instruction.read is None:
        instruction.read = _reads(instruction)
    return instruction.read


def _writes(instruction: Instruction) -> list[str]:
    entry = lookup(instruction)
    count = entry.dests if entry else 1
    if instruction.name == "call" or (entry is None and not instruction.operands):
        return []
    found = [r for o in instruction.operands[:count] for r in flatten(o) if not isinstance(o, Addr)]
    return [r.name for r in found if not r.special]


def _reads(instruction: Instruction) -> list[str]:
    entry = lookup(instruction)
    count = entry.dests if entry else 1
    found = [r for o in instruction.operands[count:] for r in flatten(o)]
    found += [r for o in instruction.operands[:count] if isinstance(o, Addr) for r in flatten(o)]
    if instruction.guard is not None:
        found.append(instruction.guard)
    if instruction.call is not None and isinstance(instruction.call.callee, Reg):
        found.append(instruction.call.callee)
    return [r.name for r in found if not r.special]
