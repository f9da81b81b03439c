"""Basic blocks of a function: the unit of counting, of progress and of the slice.

A block ends at a label, after a branch, and after every operation that synchronises, so that counts fall on
the right side of a barrier and events get distinct positions. A guarded instruction that is no branch is a
block of its own, executed only when its guard holds: counts are exact without counting lanes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cuco.testbed.ptx.access import is_announced, is_strong
from cuco.testbed.ptx.classes import classes_of, weight_of
from cuco.testbed.ptx.model import Function, Instruction, Label, Sym, Vec
from cuco.testbed.ptx.table import lookup

_TERMINATORS = ("bra", "brx", "ret", "exit", "trap")


@dataclass(eq=False)
class Block:
    """A straight run of instructions. `guarded` blocks hold one instruction with a guard."""

    index: int
    """Position in the function's list of blocks."""
    labels: list[str] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    guarded: bool = False
    successors: list[int] = field(default_factory=list)
    id: int = -1
    """Number in the module's counters."""

    @property
    def classes(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for i in self.instructions:
            total.update(classes_of(i))
        return total

    @property
    def weight(self) -> int:
        return sum(weight_of(i) for i in self.instructions)


def is_terminator(i: Instruction) -> bool:
    return i.name in _TERMINATORS


def is_synchronising(i: Instruction) -> bool:
    """Whether a new block starts after this instruction."""
    entry = lookup(i)
    if entry is None:
        return False
    if entry.kind in ("load", "store"):
        return is_strong(i) or is_announced(i)
    return entry.kind in ("atomic", "fence", "barrier", "mbarrier", "call")


def split(function: Function) -> list[Block]:
    """The blocks of a function in text order, with their successors. Block 0 is the entry."""
    blocks = [Block(0)]

    def fresh() -> Block:
        if blocks[-1].instructions or blocks[-1].guarded:
            blocks.append(Block(len(blocks)))
        return blocks[-1]

    for statement in function.body:
        if isinstance(statement, Label):
            fresh().labels.append(statement.name)
            continue
        guarded = statement.guard is not None and statement.name not in ("bra", "ret", "exit")
        if guarded:
            blocks.append(Block(len(blocks), guarded=True))
        blocks[-1].instructions.append(statement)
        if guarded or is_terminator(statement) or is_synchronising(statement):
            blocks.append(Block(len(blocks)))
    _connect(function, blocks)
    return blocks


def _connect(function: Function, blocks: list[Block]) -> None:
    at = {name: b.index for b in blocks for name in b.labels}
    for b in blocks:
        last = b.instructions[-1] if b.instructions else None
        following = b.index + 1
        if last is not None and is_terminator(last) and not b.guarded:
            b.successors += targets(function, last, at)
            if last.guard is None:
                continue
        if following < len(blocks):
            b.successors.append(following)
            if blocks[following].guarded and following + 1 < len(blocks):
                b.successors.append(following + 1)


def targets(function: Function, i: Instruction, at: dict[str, int]) -> list[int]:
    """Blocks that a branch names."""
    if i.name == "bra" and i.operands and isinstance(i.operands[0], Sym):
        return [at[i.operands[0].name]] if i.operands[0].name in at else []
    if i.name == "brx" and len(i.operands) > 1:
        table = i.operands[1]
        if isinstance(table, Sym):
            return [at[t] for t in function.tables.get(table.name, []) if t in at]
        if isinstance(table, Vec):
            return [at[t.name] for t in table.items if isinstance(t, Sym) and t.name in at]
    return []
