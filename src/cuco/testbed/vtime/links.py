"""Ports and transfers: NVLink and NIC, egress and ingress, with latency, message rate and fair turns.

A transfer is cut into quanta. The sender's egress serves its transfers in turn, one quantum each (so several
CTAs that store at once share the port as they do on hardware); a quantum reaches the receiver ``latency``
after it left and passes the receiver's ingress in order of arrival. A lone transfer of n bytes thus takes n /
rate + latency, whatever the quantum, and no port is ever busy for longer than its bytes over its rate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cuco.testbed.vtime.events import EventQueue
from cuco.testbed.vtime.machine import Machine, Port

Done = Callable[[], None]
Span = tuple[float, float]

#: A transfer takes at most this many turns at its port; more and smaller turns only make replays slower.
TURNS = 32
MIN_QUANTUM = 16384.0


class Transfer:
    """Bytes on their way from one rank to another."""

    __slots__ = ("arrived", "dst", "left", "milestones", "on_arrived", "on_sent", "quantum", "size")

    def __init__(self, dst: LinkEnd, size: float, on_sent: Done | None, on_arrived: Done | None) -> None:
        self.dst = dst
        self.size = size
        self.left = size
        self.arrived = 0.0
        self.quantum = max(MIN_QUANTUM, size / TURNS)
        self.on_sent = on_sent
        self.on_arrived = on_arrived
        self.milestones: list[tuple[float, Done]] = []

    def when_arrived(self, amount: float, call: Done) -> bool:
        """Calls back when that many bytes have arrived; True if they have already (no call then)."""
        if self.arrived >= min(amount, self.size) - 1e-6:
            return True
        self.milestones.append((min(amount, self.size), call))
        return False


class LinkEnd:
    """One rank's port of one kind, both directions."""

    __slots__ = (
        *("rank", "rate", "latency", "message_gap", "queue", "idle", "ingress_free"),
        *("egress_bytes", "ingress_bytes", "egress_spans", "ingress_spans"),
    )

    def __init__(self, rank: int, port: Port) -> None:
        self.rank = rank
        self.rate = port.gbs * 1e3  # bytes per us
        self.latency = port.latency_us
        self.message_gap = 1.0 / port.messages_per_us
        self.queue: deque[Transfer] = deque()
        self.idle = True
        self.ingress_free = 0.0
        self.egress_bytes = 0.0
        self.ingress_bytes = 0.0
        self.egress_spans: list[Span] = []
        self.ingress_spans: list[Span] = []


class Network:
    """All ports of a machine with ``ranks`` ranks."""

    def __init__(self, events: EventQueue, machine: Machine, ranks: int) -> None:
        self._events = events
        self._machine = machine
        self.nvlink = [LinkEnd(rank, machine.nvlink) for rank in range(ranks)]
        self.nic = [LinkEnd(rank, machine.nic) for rank in range(ranks)]

    def ports(self, src: int, dst: int, nic: bool | None = None) -> tuple[LinkEnd, LinkEnd]:
        """The sender's and the receiver's port: NVLink inside a domain unless ``nic``."""
        use_nic = not self._machine.same_domain(src, dst) if nic is None else nic
        ends = self.nic if use_nic else self.nvlink
        return ends[src], ends[dst]

    def send(
        self, src: int, dst: int, size: float, *, nic: bool | None = None,
        on_sent: Done | None = None, on_arrived: Done | None = None,
    ) -> Transfer:  # fmt: skip
        """Queues a transfer now."""
        out, into = self.ports(src, dst, nic)
        transfer = Transfer(into, size, on_sent, on_arrived)
        out.queue.append(transfer)
        if out.idle:
            out.idle = False
            self._serve(out)
        return transfer

    def _serve(self, port: LinkEnd) -> None:
        transfer = port.queue.popleft()
        amount = min(transfer.quantum, transfer.left)
        first = transfer.left == transfer.size
        duration = max(amount / port.rate, port.message_gap) if first else amount / port.rate
        start = self._events.now
        port.egress_bytes += amount
        _extend(port.egress_spans, start, start + duration)
        self._events.after(duration, self._left, port, transfer, amount)

    def _left(self, port: LinkEnd, transfer: Transfer, amount: float) -> None:
        events = self._events
        transfer.left -= amount
        into = transfer.dst
        passing = amount / into.rate
        arrival = max(events.now + port.latency, into.ingress_free + passing)
        into.ingress_free = arrival
        into.ingress_bytes += amount
        _extend(into.ingress_spans, arrival - passing, arrival)
        events.at(arrival, self._arrive, transfer, amount)
        if transfer.left > 1e-9:
            port.queue.append(transfer)
        elif transfer.on_sent is not None:
            transfer.on_sent()
        if port.queue:
            self._serve(port)
        else:
            port.idle = True

    def _arrive(self, transfer: Transfer, amount: float) -> None:
        transfer.arrived += amount
        if transfer.milestones:
            reached = [item for item in transfer.milestones if item[0] <= transfer.arrived + 1e-6]
            transfer.milestones = [item for item in transfer.milestones if item[0] > transfer.arrived + 1e-6]
            for _, call in reached:
                call()
        if transfer.arrived >= transfer.size - 1e-6 and transfer.on_arrived is not None:
            done, transfer.on_arrived = transfer.on_arrived, None
            done()


def _extend(spans: list[Span], start: float, end: float) -> None:
    """Adds a busy interval, joining it to the last one where they touch."""
    if spans and start <= spans[-1][1] + 1e-9:
        spans[-1] = (spans[-1][0], max(spans[-1][1], end))
    else:
        spans.append((start, end))
