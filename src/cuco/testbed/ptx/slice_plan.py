"""What a slice of one function leaves out, as the function writer asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuco.testbed.ptx.model import Instruction

if TYPE_CHECKING:
    from cuco.testbed.ptx.blocks import Block
    from cuco.testbed.ptx.slice_regions import Region


@dataclass
class Plan:
    """`kept` are executed as they are; `checked` are memory accesses of which only the remote check is
    executed; `control` are kept loads from memory whose value decides control. The rest is counted, not
    executed.
    """

    kept: set[int] = field(default_factory=set)
    checked: set[int] = field(default_factory=set)
    control: set[int] = field(default_factory=set)
    spoiled: int = 0
    """Bit 0: shared memory misses dropped stores; bit 1: local memory does."""
    regions: dict[int, Region] = field(default_factory=dict)
    """Loops that are counted as a whole, by the index of their header block."""
    inside: set[int] = field(default_factory=set)
    """Indices of all blocks of those loops."""

    def keeps(self, i: Instruction) -> bool:
        return id(i) in self.kept

    def runs(self, i: Instruction) -> bool:
        """Whether anything of the instruction is executed."""
        return id(i) in self.kept or id(i) in self.checked

    def replaces(self, block: Block) -> bool:
        return block.index in self.inside

    def entry_labels(self) -> set[int]:
        """Blocks that a counted loop jumps to when it is done: they need labels."""
        return {target for region in self.regions.values() for target in region.exits}
