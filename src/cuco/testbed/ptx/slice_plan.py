"""What a slice of one function leaves out, as the function writer asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cuco.testbed.ptx.model import Instruction

if TYPE_CHECKING:
    from cuco.testbed.ptx.blocks import Block
    from cuco.testbed.ptx.emitter import Emitter


@dataclass
class Plan:
    """`kept` are the instructions to execute; `closed` maps the header of a loop that is only counted to its code."""

    kept: set[int] = field(default_factory=set)

    def keeps(self, i: Instruction) -> bool:
        return id(i) in self.kept

    def replaces(self, block: Block) -> bool:
        return False

    def code(self, e: Emitter, block: Block) -> list[str]:
        return []
