"""CUDA streams of one rank in virtual time: in order, joined by events, feeding the GPU and the copy
engines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuco.testbed.vtime.collectives import Collectives, Group
from cuco.testbed.vtime.cost import CostModel
from cuco.testbed.vtime.events import EventQueue
from cuco.testbed.vtime.gpu import Gpu, Grid, Need
from cuco.testbed.vtime.links import Network
from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.timing import Interval
from cuco.testbed.vtime.trace import Kernel, Trace, TraceError

#: NCCL's kernels run at the stream's priority; streams without one have CUDA's default.
DEFAULT_PRIORITY = 0


@dataclass(slots=True)
class Item:
    """Work in a stream: what, when the host submitted it, in which step."""

    op: str
    args: dict[str, Any]
    submitted: float
    step: int | None
    group: Group | None = None


@dataclass(slots=True)
class StepSpan:
    """When a rank's stream work of a step began and ended."""

    first: float = -1.0
    last: float = -1.0


@dataclass
class Device:
    """Everything a rank's streams share."""

    rank: int
    events: EventQueue
    machine: Machine
    trace: Trace
    costs: CostModel
    gpu: Gpu
    network: Network
    collectives: Collectives
    spans: dict[int, StepSpan] = field(default_factory=dict)
    recorded: dict[tuple[int, int], float] = field(default_factory=dict)
    waiting: dict[tuple[int, int], list[Callable[[], None]]] = field(default_factory=dict)
    copy_free: dict[str, float] = field(default_factory=dict)
    hide_nccl: bool = False
    hide_memory: bool = False

    def record(self, event: int, version: int) -> None:
        """An event's record reached the head of its stream."""
        self.recorded[(event, version)] = self.events.now
        for call in self.waiting.pop((event, version), []):
            call()

    def touch(self, step: int | None, start: float, end: float) -> None:
        """Stream work of a step ran."""
        if step is None:
            return
        span = self.spans.setdefault(step, StepSpan())
        span.first = start if span.first < 0 else min(span.first, start)
        span.last = max(span.last, end)


class Stream:
    """One stream."""

    def __init__(self, device: Device, number: int) -> None:
        self.device = device
        self.number = number
        self.intervals: list[Interval] = []
        self._items: deque[Item] = deque()
        self._busy = False
        self._ready = 0.0  # when the next operation's predecessors were over, gaps included
        self._idle: list[Callable[[], None]] = []
        self.priority = DEFAULT_PRIORITY

    def push(self, item: Item) -> None:
        """The host submitted work."""
        self._items.append(item)
        self._advance()

    def when_idle(self, call: Callable[[], None]) -> bool:
        """Calls back when the stream has drained; True if it has already (no call then)."""
        if not self._busy and not self._items:
            return True
        self._idle.append(call)
        return False

    def describe(self) -> str | None:
        """What the stream is stuck at, if anything."""
        if self._busy or self._items:
            head = self._items[0].op if self._items else "its current work"
            state = "busy" if self._busy else "held"
            return f"rank {self.device.rank} stream {self.number} is {state} before {head}"
        return None

    def _advance(self) -> None:
        if self._busy or not self._items:
            if not self._busy and self._idle:
                calls, self._idle = self._idle, []
                for call in calls:
                    call()
            return
        item = self._items.popleft()
        self._busy = True
        starters = {
            "launch": self._launch, "nccl": self._nccl, "memcpy": self._memcpy, "memset": self._memset,
            "host_fn": self._host_fn, "record": self._record, "wait_event": self._wait_event,
        }  # fmt: skip
        starter = starters.get(item.op)
        if starter is None:
            raise TraceError(f"unknown stream operation '{item.op}'")
        starter(item)

    def _over(self, item: Item, start: float, label: str, gap: float) -> None:
        now = self.device.events.now
        self.device.touch(item.step, start, now)
        if label and now > start:
            self.intervals.append(Interval(start, now, label))
        self._busy = False
        self._ready = now + gap
        self._advance()

    def _begin(self, item: Item, latency: float) -> float:
        return max(self.device.events.now, item.submitted + latency, self._ready)

    def _launch(self, item: Item) -> None:
        device = self.device
        launch = device.trace.launches[item.args["id"]]
        if device.costs.silent(launch):
            device.events.at(device.events.now, self._over, item, device.events.now, "", 0.0)
            return
        self.priority = launch.priority
        kernel = device.trace.kernels.get(launch.kernel) or Kernel(launch.kernel, f"kernel {launch.kernel}")
        rows = device.trace.ctas.get(launch.id, [])
        rows = rows + [()] * (launch.ctas - len(rows))
        programs = [device.costs.program(launch, phases) for phases in rows]
        need = Need.of(device.machine, launch.threads, kernel.registers, kernel.shared + launch.shared)
        grid = Grid(kernel.name, launch.priority, need, launch.ctas, programs, lambda: None)
        start = self._begin(item, device.machine.host.launch_latency_us)
        grid.on_done = lambda: self._over(item, start, kernel.name, device.machine.host.kernel_gap_us)
        device.events.at(start, device.gpu.submit, grid)

    def _nccl(self, item: Item) -> None:
        device = self.device
        group = item.group
        assert group is not None
        if device.hide_nccl:
            device.events.at(device.events.now, self._over, item, device.events.now, "", 0.0)
            return
        settings = device.machine.nccl
        need = Need.of(
            device.machine,
            settings.channel_threads,
            settings.channel_registers,
            settings.channel_shared_bytes,
        )
        channels = device.collectives.channels(group)
        priority = int(item.args.get("priority", self.priority) or 0)
        grid = Grid(group.label, priority, need, channels, None, lambda: None)
        start = self._begin(item, device.machine.host.launch_latency_us)
        grid.on_resident = lambda: device.collectives.arrive(group)
        grid.on_done = lambda: self._over(item, start, group.label, device.machine.host.kernel_gap_us)
        group.on_done = lambda: device.gpu.release(grid)
        device.events.at(start, device.gpu.submit, grid)

    def _memcpy(self, item: Item) -> None:
        device, host = self.device, self.device.machine.host
        size = float(item.args.get("bytes", 0))
        peer = item.args.get("peer")
        start = self._begin(item, host.launch_latency_us)
        if peer is not None and int(peer) != device.rank:
            if device.hide_nccl:
                device.events.at(device.events.now, self._over, item, device.events.now, "", 0.0)
                return
            device.events.at(start + host.copy_engine_us, self._copy_peer, item, start, int(peer), size)
            return
        kind = str(item.args.get("kind", "d2d")).lower()
        local = "h" not in kind.replace("dtod", "d2d").replace("to", "2")
        rate = device.machine.memory.hbm_gbs / 2 if local else device.machine.memory.pcie_gbs
        self._copy_local(item, start, kind, 0.0 if device.hide_memory else size / (rate * 1e3))

    def _copy_peer(self, item: Item, start: float, peer: int, size: float) -> None:
        self.device.network.send(
            self.device.rank, peer, size, on_arrived=lambda: self._over(item, start, "memcpy peer", 0.0)
        )

    def _copy_local(self, item: Item, start: float, kind: str, us: float) -> None:
        device = self.device
        begin = max(start, device.copy_free.get(kind, 0.0))
        end = begin + device.machine.host.copy_engine_us + us
        device.copy_free[kind] = end
        device.events.at(end, self._over, item, begin, f"memcpy {kind}", device.machine.host.kernel_gap_us)

    def _memset(self, item: Item) -> None:
        device = self.device
        size = 0.0 if device.hide_memory else float(item.args.get("bytes", 0))
        start = self._begin(item, device.machine.host.launch_latency_us)
        end = start + device.machine.host.copy_engine_us + size / (device.machine.memory.hbm_gbs * 1e3)
        device.events.at(end, self._over, item, start, "memset", device.machine.host.kernel_gap_us)

    def _host_fn(self, item: Item) -> None:
        start = self._begin(item, 0.0)
        self.device.events.at(
            start + self.device.machine.host.host_fn_us, self._over, item, start, "host function", 0.0
        )

    def _record(self, item: Item) -> None:
        """An event completes as soon as what is before it has: the gap only delays the next kernel."""
        device = self.device
        device.record(int(item.args["event"]), int(item.args.get("ver", 0)))
        ready = self._ready
        self._busy = False
        self._ready = ready
        self._advance()

    def _wait_event(self, item: Item) -> None:
        device = self.device
        key = (int(item.args["event"]), int(item.args.get("ver", 0)))
        if key[1] == 0 or key in device.recorded:
            self._joined(device.recorded.get(key, 0.0))
        else:
            device.waiting.setdefault(key, []).append(lambda: self._joined(device.events.now))

    def _joined(self, recorded: float) -> None:
        self._ready = max(self._ready, recorded + self.device.machine.host.cross_stream_us)
        self._busy = False
        self._advance()
