"""A producer of an exchange: the user's kernel that writes what is sent, where it stands, and its map of
bytes."""

from __future__ import annotations

from dataclasses import dataclass

from cuco.propose.builtin.config import ProducerMap
from cuco.propose.protocol import ProposalRefused
from cuco.space.dimensions import Placement


@dataclass(frozen=True)
class Producer:
    """``file`` and ``offset`` of the launch that produces; ``bytes`` sent per transfer at the optimised size.

    ``one_source``: every transfer of the exchange sends the same bytes, so whoever finishes a chunk can send
    it to all. ``flat_block``: the thread block is one-dimensional (NCCL's cooperative groups count
    threadIdx.x only). ``movable``: the body's callees do not read blockIdx or gridDim, so it may run behind
    other CTAs of one launch."""

    kernel: str
    file: str
    offset: int
    map: ProducerMap
    bytes: int
    one_source: bool
    flat_block: bool
    movable: bool

    def allows(self, placement: Placement) -> bool:
        """Whether the construction can overlap this producer so."""
        return not self._obstacle(placement)

    def require(self, placement: Placement) -> None:
        """Raises ProposalRefused, with what would help, where the producer cannot be overlapped so."""
        if obstacle := self._obstacle(placement):
            reason, fix = obstacle
            raise ProposalRefused(f"{self.kernel} does not fit {placement}: {reason}", fix=fix)

    def _obstacle(self, placement: Placement) -> tuple[str, str] | None:
        if placement is not Placement.PIPELINED and not self.flat_block:
            return (
                "its thread blocks have several dimensions, and NCCL's cooperative groups count threadIdx.x",
                f"Launch {self.kernel} with one-dimensional thread blocks, or use Pipelined",
            )
        if placement is Placement.PERSISTENT and not self.movable:
            return (
                "a function that it calls reads blockIdx or gridDim, which mean something else in one launch",
                "Pass the function the values as parameters, or use Pipelined",
            )
        if placement is Placement.TILE_FUSED and not self.one_source:
            return (
                "its transfers send different bytes, so no thread block finishes a chunk for all of them",
                "Use Pipelined or Persistent",
            )
        return None
