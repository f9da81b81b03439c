"""How long NCCL's host collectives take alone: ring schedules over the busiest port, by protocol and size.

For a ring of n ranks over d NVLink domains, a collective of S bytes in all moves ``share * S`` bytes over
every rank's NVLink port and, across domains, the same bytes through the NICs of a domain together (NCCL runs
one ring per NIC). It takes base + hops * step + bytes / rate with the protocol that is fastest at that size;
the constants are the machine file's, fitted to published curves (docs/machines.md). NVLS, CollNet and trees
are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuco.testbed.vtime.machine import Machine, Protocol

#: collective -> (share of S on each port, ring traversals) for n ranks; S as in ``total_bytes``.
_SHARES = {
    "AllGather": (1.0, 1),
    "ReduceScatter": (1.0, 1),
    "AllReduce": (2.0, 2),
    "Broadcast": (None, 1),
    "Reduce": (None, 1),
}


@dataclass(frozen=True)
class Plan:
    """One collective as NCCL would run it: time alone, protocol, bytes on each NVLink port and NIC,
    channels."""

    us: float
    protocol: str
    nvlink_bytes: float
    nic_bytes: float
    channels: int


def total_bytes(collective: str, bytes_per_rank: float, ranks: int) -> float:
    """nccl-tests' message size S of a call with that many bytes in its count argument.

    AllGather, Gather, Scatter and AlltoAll count one rank's piece, ReduceScatter the piece received."""
    if collective in ("AllGather", "ReduceScatter", "Gather", "Scatter", "AlltoAll"):
        return bytes_per_rank * ranks
    return bytes_per_rank


def plan(machine: Machine, collective: str, bytes_per_rank: float, members: Sequence[int]) -> Plan:
    """The plan of a collective among these ranks. ``bytes_per_rank``: count argument times element size."""
    ranks = len(members)
    size = total_bytes(collective, bytes_per_rank, ranks)
    channels = channel_count(machine, size)
    if ranks < 2:
        return Plan(machine.host.kernel_gap_us, "local", 0.0, 0.0, 1)
    if collective in ("AlltoAll", "Gather", "Scatter"):
        return _exchange(machine, collective, size, members, channels)
    share, passes = _SHARES[collective]
    moved = size if share is None else size * share * (ranks - 1) / ranks
    domains = _domains(machine, members)
    nics = min(len(items) for items in domains.values())
    crossing = len(domains) if len(domains) > 1 else 0
    hops = passes * (ranks - 1)
    far = passes * crossing
    best: tuple[float, str] | None = None
    for index, protocol in enumerate(machine.nccl.nvlink):
        us = _ring_us(machine, index, protocol, hops, far, moved, nics if crossing else 0, ranks > crossing)
        if best is None or us < best[0]:
            best = (us, protocol.name)
    assert best is not None
    on_nvlink = moved if ranks > crossing else 0.0
    return Plan(best[0], best[1], on_nvlink, moved / nics if crossing else 0.0, channels)


def _ring_us(
    machine: Machine, index: int, near: Protocol, hops: int, far: int, moved: float, nics: int, nvlink: bool
) -> float:
    us = near.base_us + max(0, hops - far) * near.step_us
    rate = near.gbs if nvlink else float("inf")
    if nics:
        wide = machine.nccl.nic[min(index, len(machine.nccl.nic) - 1)]
        us += far * wide.step_us
        rate = min(rate, wide.gbs * nics)
    return us + moved / (rate * 1e3)


def _exchange(machine: Machine, collective: str, size: float, members: Sequence[int], channels: int) -> Plan:
    """All-to-all, gather and scatter: sends and receives of every pair at once."""
    ranks = len(members)
    piece = size / ranks
    if collective == "AlltoAll":
        piece /= ranks
    domains = _domains(machine, members)
    local = min(len(items) for items in domains.values()) - 1
    away = ranks - 1 - local
    times = [pair_us(machine, piece * local, near=True)] if local else []
    times += [pair_us(machine, piece * away, near=False)] if away else []
    return Plan(max(times), "p2p", piece * local, piece * away, channels)


def pair_us(machine: Machine, size: float, *, near: bool) -> float:
    """A send and its receive, alone: microseconds for ``size`` bytes inside (near) or across a domain."""
    protocols = machine.nccl.p2p_nvlink if near else machine.nccl.p2p_nic
    return min(item.base_us + item.step_us + size / (item.gbs * 1e3) for item in protocols)


def channel_count(machine: Machine, size: float) -> int:
    """Channels (CTAs) NCCL uses for a message of that many bytes."""
    fitting = [rule.channels for rule in machine.nccl.channels if rule.from_bytes <= size]
    return max(fitting, default=machine.nccl.channels[0].channels)


def _domains(machine: Machine, members: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for rank in members:
        found.setdefault(machine.domain(rank), []).append(rank)
    return found
