"""Host-driven NCCL in virtual time: an operation starts when every member's channels have their slots.

Each rank's call (or group of calls, which is one launch) is a grid of channel CTAs that hold slots on its
GPU. A collective runs from when the last member is resident for the time of ``nccl.plan``, or longer where
its bytes have to share a port. Sends and receives pair up by order per communicator, source and destination.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuco.testbed.vtime import nccl
from cuco.testbed.vtime.events import EventQueue
from cuco.testbed.vtime.links import Network
from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.trace import HostOp, TraceError

Key = tuple[Any, ...]
NAMES = (
    *("AllGather", "AllReduce", "ReduceScatter", "Broadcast", "Reduce"),
    *("AlltoAll", "Gather", "Scatter", "Send", "Recv"),
)


@dataclass(frozen=True, slots=True)
class Element:
    """One NCCL call of a rank: the key it meets its peers by."""

    key: Key
    label: str
    bytes: float


@dataclass
class Group:
    """The calls of a rank that run as one launch."""

    rank: int
    elements: list[Element]
    on_done: Callable[[], None] | None = None
    left: int = 0

    @property
    def label(self) -> str:
        """For timelines."""
        names = sorted({element.label for element in self.elements})
        return "nccl " + "+".join(names)


@dataclass
class _Meeting:
    """A collective, or a send and its receive: who takes part and who is there."""

    key: Key
    collective: str
    members: list[int]
    bytes: float = 0.0
    present: list[Group] = field(default_factory=list)


class Collectives:
    """Matches NCCL calls across ranks and times them."""

    def __init__(self, events: EventQueue, machine: Machine, network: Network, ranks: int) -> None:
        self._ranks = ranks
        self._events = events
        self._machine = machine
        self._network = network
        self._meetings: dict[Key, _Meeting] = {}
        self._pairs: dict[tuple[Any, int, int, str], int] = defaultdict(int)

    def element(self, rank: int, op: HostOp) -> Element:
        """Registers a rank's call; calls must be registered in each rank's program order."""
        args = op.args
        name = _canonical(str(args["coll"]))
        size = float(args.get("bytes", 0))
        comm = args.get("comm")
        ranks = [int(member) for member in args.get("ranks") or range(self._ranks)]
        if name in ("Send", "Recv"):
            peer = ranks[int(args["peer"])]
            source, target = (rank, peer) if name == "Send" else (peer, rank)
            count = self._pairs[(comm, source, target, name)]
            self._pairs[(comm, source, target, name)] += 1
            key: Key = ("pair", comm, source, target, count)
            meeting = self._meetings.setdefault(key, _Meeting(key, "pair", [source, target]))
        else:
            key = ("all", comm, args.get("seq"))
            meeting = self._meetings.setdefault(key, _Meeting(key, name, ranks))
            if meeting.collective != name:
                raise TraceError(
                    f"collective {args.get('seq')}: {name} on rank {rank} meets {meeting.collective}"
                )
        meeting.bytes = max(meeting.bytes, size)
        return Element(key, name, size)

    def channels(self, group: Group) -> int:
        """CTAs the launch of that group takes on its GPU."""
        sizes = 0.0
        for element in group.elements:
            meeting = self._meetings[element.key]
            ranks = max(1, len(meeting.members))
            sizes += (
                meeting.bytes
                if meeting.collective == "pair"
                else nccl.total_bytes(meeting.collective, meeting.bytes, ranks)
            )
        return nccl.channel_count(self._machine, sizes)

    def arrive(self, group: Group) -> None:
        """All channels of a rank's launch are resident."""
        group.left = len(group.elements)
        for element in group.elements:
            meeting = self._meetings[element.key]
            meeting.present.append(group)
            if len(meeting.present) == len(meeting.members):
                self._start(meeting)

    def pending(self) -> list[str]:
        """Collectives some members of which have not arrived."""
        return [
            f"{item.collective} {item.key[1:]}: ranks {sorted(group.rank for group in item.present)} "
            f"of {sorted(item.members)}"
            for item in self._meetings.values()
            if item.present and len(item.present) < len(item.members)
        ]

    def _start(self, meeting: _Meeting) -> None:
        if meeting.collective == "pair":
            source, target = meeting.members
            near = self._machine.same_domain(source, target)
            us = 0.0 if source == target else nccl.pair_us(self._machine, meeting.bytes, near=near)
            flows = [] if source == target else [(source, target, meeting.bytes)]
        else:
            members = sorted(meeting.members)
            plan = nccl.plan(self._machine, meeting.collective, meeting.bytes, members)
            us = plan.us
            flows = _ring(self._machine, members, plan)
        left = [1 + len(flows)]

        def part_over() -> None:
            left[0] -= 1
            if left[0] == 0:
                for group in meeting.present:
                    self._element_done(group)

        self._events.after(us, part_over)
        for source, target, size in flows:
            self._network.send(source, target, size, on_arrived=part_over)

    def _element_done(self, group: Group) -> None:
        group.left -= 1
        if group.left == 0 and group.on_done is not None:
            group.on_done()


def _ring(machine: Machine, members: Sequence[int], plan: nccl.Plan) -> list[tuple[int, int, float]]:
    """The bytes a collective puts on the ports: to the next member inside the domain, and to the next
    domain."""
    domains: dict[int, list[int]] = {}
    for rank in members:
        domains.setdefault(machine.domain(rank), []).append(rank)
    flows: list[tuple[int, int, float]] = []
    order = sorted(domains)
    for at, domain in enumerate(order):
        local = domains[domain]
        if plan.nvlink_bytes and len(local) > 1:
            flows += [(rank, local[(i + 1) % len(local)], plan.nvlink_bytes) for i, rank in enumerate(local)]
        if plan.nic_bytes and len(order) > 1:
            away = domains[order[(at + 1) % len(order)]]
            flows += [(rank, away[i % len(away)], plan.nic_bytes) for i, rank in enumerate(local)]
    return flows


def _canonical(name: str) -> str:
    """A collective's name without prefix, aliases resolved."""
    name = name.removeprefix("nccl")
    known = {item.lower(): item for item in NAMES}
    known["bcast"] = "Broadcast"
    plain = name.replace("_", "").lower()
    if plain not in known:
        raise TraceError(f"unknown NCCL call '{name}' in the trace")
    return known[plain]
