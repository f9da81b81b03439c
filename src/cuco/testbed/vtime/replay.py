"""Replays a trace on a machine: a discrete-event simulation of hosts, streams, SMs, links, NICs and NCCL.

Deterministic: the same trace and machine give the same times. Nothing of a run's own schedule enters, only
what it did and which synchronisation each wait read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuco.testbed.vtime.collectives import Collectives
from cuco.testbed.vtime.cost import CostModel, Part
from cuco.testbed.vtime.events import EventQueue
from cuco.testbed.vtime.gpu import Gpu
from cuco.testbed.vtime.host import Barriers, HostThread
from cuco.testbed.vtime.links import Network
from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.nic import Nic
from cuco.testbed.vtime.streams import Device
from cuco.testbed.vtime.timing import Interval, Lane, Occupancy, PortUse, StepTime, Timeline, Timing
from cuco.testbed.vtime.trace import Trace, TraceError, read_trace
from cuco.testbed.vtime.words import Words


def replay(
    trace: str | Path | Trace,
    machine: Machine,
    *,
    part: Part = "all",
    footprint: Sequence[float] | None = None,
) -> Timing:
    """Times of a trace (a path or a Trace) on a machine, in microseconds.

    ``part`` keeps everything, only the computation (no remote traffic, waits, network or NCCL operations), or
    only the communication (phases without it take no time). ``footprint``: per rank, the most unique bytes
    that a launch can touch, for launches that do not say (see ``cost``). TraceError where the trace does not
    follow the schema or the replay cannot end."""
    data = trace if isinstance(trace, Trace) else read_trace(trace)
    return _Replay(data, machine, part, footprint).run()


class _Replay:
    """The parts of one replay."""

    def __init__(self, trace: Trace, machine: Machine, part: Part, footprint: Sequence[float] | None) -> None:
        machine = machine.placed(trace.lsa_team)
        self.trace = trace
        self.machine = machine
        self.events = EventQueue()
        self.words = Words()
        self.network = Network(self.events, machine, trace.ranks)
        self.nic = Nic(self.events, machine, self.network, self.words, trace.nic)
        self.collectives = Collectives(self.events, machine, self.network, trace.ranks)
        self.barriers = Barriers(trace.ranks)
        costs = CostModel(trace, machine, part, footprint)
        self.gpus = [
            Gpu(rank, self.events, machine, self.network, self.nic, self.words, trace.words)
            for rank in range(trace.ranks)
        ]
        self.hosts: list[HostThread] = []
        for rank in range(trace.ranks):
            device = Device(
                rank, self.events, machine, trace, costs, self.gpus[rank], self.network, self.collectives,
                hide_nccl=part == "compute", hide_memory=part == "communication",
            )  # fmt: skip
            self.hosts.append(HostThread(device, trace.hosts[rank], self.barriers))

    def run(self) -> Timing:
        for host in self.hosts:
            self.events.at(0.0, host.run)
        total = self.events.run()
        self._check()
        return Timing(
            machine=self.machine.name,
            steps=self._steps(),
            total_us=total,
            events=self.events.processed,
            ports=self._ports(),
            timeline=self._timeline(),
        )

    def _check(self) -> None:
        """A replay ends with everything done; else it names what is stuck."""
        stuck = [host.describe() for host in self.hosts if not host.finished]
        stuck += [
            text for host in self.hosts for stream in host.streams.values() if (text := stream.describe())
        ]
        if not stuck:
            return
        why = [text for gpu in self.gpus for text in sorted(gpu.waiting.values())]
        why += [f"rank {gpu.rank}: no slot for {text}" for gpu in self.gpus for text in gpu.pending()]
        why += self.collectives.pending() + self.nic.pending() + self.barriers.pending()
        shown = "; ".join((why or stuck)[:4])
        raise TraceError(
            f"the replay of the trace on {self.machine.name} cannot end ({len(why or stuck)} waits): {shown}"
        )

    def _steps(self) -> tuple[StepTime, ...]:
        numbers = sorted({step for host in self.hosts for step in host.begins})
        found = []
        for step in numbers:
            begins = [host.begins[step] for host in self.hosts if step in host.begins]
            start = min(begins)
            us, device, host_us = [], [], []
            for host in self.hosts:
                span = host.device.spans.get(step)
                last = span.last if span else host.begins.get(step, start)
                first = span.first if span else last
                us.append(last - start)
                device.append(last - first)
                host_us.append(max(last, host.ends.get(step, last)) - host.begins.get(step, start))
            found.append(StepTime(step, tuple(us), tuple(device), tuple(host_us), (start, start + max(us))))
        return tuple(found)

    def _ports(self) -> tuple[PortUse, ...]:
        found = []
        for name, ends in (("nvlink", self.network.nvlink), ("nic", self.network.nic)):
            for end in ends:
                for way, size, spans in (
                    ("egress", end.egress_bytes, end.egress_spans),
                    ("ingress", end.ingress_bytes, end.ingress_spans),
                ):
                    busy = sum(stop - start for start, stop in spans)
                    found.append(PortUse(end.rank, f"{name}-{way}", size, busy))
        return tuple(found)

    def _timeline(self) -> Timeline:
        lanes: list[Lane] = []
        for host in self.hosts:
            rank = host.device.rank
            lanes.append(Lane(rank, "host", "host", tuple(host.intervals)))
            for number in sorted(host.streams):
                stream = host.streams[number]
                if stream.intervals:
                    lanes.append(Lane(rank, "stream", f"stream {number}", tuple(stream.intervals)))
            for name, prefix, end in (
                ("NVLink", "", self.network.nvlink[rank]),
                ("NIC", "nic-", self.network.nic[rank]),
            ):
                for way, spans in (("egress", end.egress_spans), ("ingress", end.ingress_spans)):
                    if spans:
                        busy = tuple(Interval(start, stop, "") for start, stop in spans)
                        title = f"{name} {'out' if way == 'egress' else 'in'}"
                        lanes.append(Lane(rank, prefix + way, title, busy))
            if spans_of_proxy := self.nic.spans.get(rank):
                lanes.append(
                    Lane(rank, "proxy", "GIN proxy", tuple(Interval(*item) for item in spans_of_proxy))
                )
        occupancy = tuple(Occupancy(gpu.rank, tuple(gpu.occupancy)) for gpu in self.gpus)
        return Timeline(tuple(lanes), occupancy)
