"""A producer of an exchange: the user's kernel that writes what is sent, where it stands, and its map of
bytes."""

from __future__ import annotations

from dataclasses import dataclass

from cuco.propose.builtin.config import ProducerMap
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
        if placement is Placement.PERSISTENT:
            return self.flat_block and self.movable
        if placement is Placement.TILE_FUSED:
            return self.flat_block and self.one_source
        return placement is Placement.PIPELINED
