"""Loops of which nothing but counting is left: they are run once per distinct input and then remembered.

Such a region is a natural loop (outermost ones first) whose kept instructions are functions of registers
alone. Its effect on the counters and on the registers that leave it then depends only on the registers that
enter it, and those are the same for most threads: a table of inputs already seen replaces the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cuco.testbed.ptx.access import access_of
from cuco.testbed.ptx.blocks import Block
from cuco.testbed.ptx.model import Imm, Instruction, Operand, Pair, Reg, Vec
from cuco.testbed.ptx.slice_plan import Plan
from cuco.testbed.ptx.special import VARYING
from cuco.testbed.ptx.table import lookup, reads, writes


@dataclass
class Region:
    """A counted loop. Block numbers are positions in the function's list."""

    header: int
    blocks: list[int]
    exits: list[int]
    inputs: list[str] = field(default_factory=list)
    """Registers that enter."""
    outputs: list[str] = field(default_factory=list)
    """Registers that leave."""
    special: list[str] = field(default_factory=list)
    """Special registers read inside."""
    parameters: list[Instruction] = field(default_factory=list)
    """Loads of kernel parameters inside."""
    barriers: list[Instruction] = field(default_factory=list)
    """Barriers inside: one of them is executed after the loop if any was reached."""


def dominators(blocks: list[Block]) -> list[set[int]]:
    """For each block, the blocks on every path from the entry to it; unreachable ones get all."""
    everything = set(range(len(blocks)))
    result = [set(everything) for _ in blocks]
    result[0] = {0}
    before: list[list[int]] = [[] for _ in blocks]
    for b in blocks:
        for s in b.successors:
            before[s].append(b.index)
    changed = True
    while changed:
        changed = False
        for b in blocks[1:]:
            sets = [result[p] for p in before[b.index]]
            new = (set.intersection(*sets) if sets else set()) | {b.index}
            if new != result[b.index]:
                result[b.index] = new
                changed = True
    return result


def natural_loops(blocks: list[Block]) -> list[tuple[int, set[int]]]:
    """(header, blocks) of every natural loop, loops with one header merged, largest first."""
    dominated = dominators(blocks)
    before: dict[int, list[int]] = {}
    for b in blocks:
        for s in b.successors:
            before.setdefault(s, []).append(b.index)
    loops: dict[int, set[int]] = {}
    for b in blocks:
        for header in b.successors:
            if header not in dominated[b.index]:
                continue
            body, todo = {header}, [b.index]
            while todo:
                n = todo.pop()
                if n not in body:
                    body.add(n)
                    todo += before.get(n, [])
            loops.setdefault(header, set()).update(body)
    return sorted(loops.items(), key=lambda item: -len(item[1]))


def _specials(operand: Operand) -> list[str]:
    if isinstance(operand, Reg):
        return [operand.name] if operand.special else []
    if isinstance(operand, Vec):
        return [s for x in operand.items for s in _specials(x)]
    if isinstance(operand, Pair):
        return _specials(operand.first) + _specials(operand.second)
    return []


_IMPURE = ("isspacep", "mapa", "getctarank", "stacksave", "createpolicy")


class RegionFinder:
    def __init__(self, blocks: list[Block], plan: Plan) -> None:
        self.blocks = blocks
        self.plan = plan

    def find(self) -> list[Region]:
        """Disjoint regions, outermost first."""
        taken: set[int] = set()
        regions = []
        for header, body in natural_loops(self.blocks):
            if body & taken:
                continue
            region = self._region(header, sorted(body))
            if region is not None:
                regions.append(region)
                taken |= body
        return regions

    def _region(self, header: int, body: list[int]) -> Region | None:
        inside = set(body)
        if self._entered_elsewhere(header, inside):
            return None
        exits = sorted({s for n in body for s in self.blocks[n].successors if s not in inside})
        region = Region(header, body, exits)
        for n in body:
            for i in self.blocks[n].instructions:
                if i.name in ("ret", "exit", "brx"):
                    return None
                if self.plan.runs(i) and not self._admit(region, i):
                    return None
        self._interface(region)
        return region

    def _entered_elsewhere(self, header: int, inside: set[int]) -> bool:
        """Whether a block outside jumps into the middle (irreducible flow)."""
        return any(
            s in inside and s != header for b in self.blocks if b.index not in inside for s in b.successors
        )

    def _admit(self, region: Region, i: Instruction) -> bool:
        """Whether a kept instruction may be part of a region; records what it takes from outside."""
        entry = lookup(i)
        if entry is None or id(i) in self.plan.checked:
            return False
        if i.name == "bra":
            return True
        if entry.kind == "load" and access_of(i).space == "param":
            region.parameters.append(i)
            return i.guard is None and not isinstance(i.operands[0], Vec)
        if entry.kind == "barrier" or (i.name == "bar" and i.parts[1] == "warp"):
            region.barriers.append(i)
            return _is_whole(i)
        if entry.kind != "pure" or i.name in _IMPURE:
            return False
        found = [s for o in i.operands for s in _specials(o)]
        region.special += [s for s in found if s not in region.special]
        return not any(s in VARYING for s in found)

    def _interface(self, region: Region) -> None:
        inside = set(region.blocks)
        here = [i for n in region.blocks for i in self.blocks[n].instructions]
        there = [i for b in self.blocks if b.index not in inside for i in b.instructions]
        read = {r for i in here for r in self._reads(i)}
        written = {w for i in here if self.plan.keeps(i) for w in writes(i)}
        outside_defs = {w for i in there if self.plan.keeps(i) for w in writes(i)}
        region.inputs = sorted(r for r in read if r in outside_defs or r not in written)
        read_outside = {r for i in there for r in self._reads(i)}
        region.outputs = sorted(w for w in written if w in read_outside)
        # A register that leaves may also pass through unchanged on paths that do not write it.
        region.inputs = sorted({*region.inputs, *region.outputs})

    def _reads(self, i: Instruction) -> list[str]:
        """Registers read by what is executed of an instruction: its guard always (guarded blocks are
        counted).
        """
        if self.plan.runs(i):
            return reads(i)
        return [i.guard.name] if i.guard is not None else []


def _is_whole(i: Instruction) -> bool:
    """bar.sync 0 of all threads, or a __syncwarp with a constant mask, without a guard."""
    if i.guard is not None or len(i.operands) != 1 or not isinstance(i.operands[0], Imm):
        return False
    if i.parts[1] == "warp":
        return True
    return i.has("sync") and not i.has("red", "arrive", "cluster") and i.operands[0].value == 0
