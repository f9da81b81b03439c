"""Host threads in virtual time: one per rank, paying for every call, blocking where the program blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from cuco.testbed.vtime.collectives import NAMES, Group
from cuco.testbed.vtime.streams import Device, Item, Stream
from cuco.testbed.vtime.timing import Interval
from cuco.testbed.vtime.trace import HostOp, TraceError

#: Names of the marks around a step.
BEGIN = ("begin", "start", "step_begin", "launch_begin")
END = ("end", "stop", "step_end", "launch_end")


class Barriers:
    """The driver's barriers across ranks: everyone leaves when the last one has come."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._waiting: dict[object, list[Callable[[], None]]] = defaultdict(list)

    def arrive(self, barrier: object, resume: Callable[[], None]) -> None:
        """One rank is at the barrier."""
        waiting = self._waiting[barrier]
        waiting.append(resume)
        if len(waiting) == self._ranks:
            del self._waiting[barrier]
            for call in waiting:
                call()

    def pending(self) -> list[str]:
        """Barriers somebody still waits at."""
        return [
            f"barrier {key}: {len(calls)} of {self._ranks} ranks"
            for key, calls in self._waiting.items()
            if calls
        ]


class HostThread:
    """The host thread of one rank."""

    def __init__(self, device: Device, ops: list[HostOp], barriers: Barriers) -> None:
        self.device = device
        self.begins: dict[int, float] = {}
        self.ends: dict[int, float] = {}
        self.intervals: list[Interval] = []
        self.streams: dict[int, Stream] = {}
        self._ops = ops
        self._at = 0
        self._step: int | None = None
        self._in_graph = False  # what a launched graph does costs the host nothing more
        self._barriers = barriers
        self._barrier_uses: dict[object, int] = defaultdict(int)
        self._groups = _groups(device, ops)

    @property
    def finished(self) -> bool:
        """Whether the program ran to its end."""
        return self._at >= len(self._ops)

    def describe(self) -> str:
        """Where the program is."""
        return f"rank {self.device.rank} host is at operation {self._at - 1}: {self._ops[self._at - 1].op}"

    def run(self) -> None:
        """Continues with the next operation."""
        events = self.device.events
        while self._at < len(self._ops):
            index = self._at
            op = self._ops[index]
            self._at += 1
            if op.op == "mark":
                self._mark(op)
                continue
            if self._blocks(op):
                return
            cost = self._cost(op, index)
            if cost > 0:
                self.intervals.append(Interval(events.now, events.now + cost, _label(op)))
                events.after(cost, self._submit, op, index)
                return
            self._do(op, index)

    def stream(self, number: int) -> Stream:
        """A stream of this rank, made on first use."""
        found = self.streams.get(number)
        if found is None:
            found = self.streams[number] = Stream(self.device, number)
        return found

    def _submit(self, op: HostOp, index: int) -> None:
        self._do(op, index)
        self.run()

    def _do(self, op: HostOp, index: int) -> None:
        if op.op in ("api", "graph", "graph_end"):
            self._in_graph = op.op == "graph" or (self._in_graph and op.op == "api")
            return
        item = Item(op.op, op.args, self.device.events.now, self._step)
        if op.op == "nccl":
            group = self._groups.get(index)
            if group is None:
                return  # an earlier member of a group: it runs with the group's last call
            item.group = group
        self.stream(op.stream).push(item)

    def _cost(self, op: HostOp, index: int) -> float:
        host = self.device.machine.host
        if op.op == "nccl":
            group = self._groups.get(index)
            closing = host.nccl_group_us if group is not None and len(group.elements) > 1 else 0.0
            return 0.0 if self._in_graph else host.nccl_call_us + closing
        costs = {
            "launch": host.launch_us, "graph": host.launch_us, "graph_end": 0.0,
            "record": host.event_record_us, "wait_event": host.stream_wait_us,
            "memcpy": host.memcpy_us, "memset": host.memcpy_us, "host_fn": host.api_us, "api": host.api_us,
        }  # fmt: skip
        if op.op == "api" and op.args.get("name") in NAMES:
            return 0.0  # the collective's own record follows and has the cost
        if op.op not in costs:
            raise TraceError(f"unknown host operation '{op.op}' on rank {self.device.rank}")
        # "implicit" events stand for order that the program did not have to ask for (default streams).
        return 0.0 if self._in_graph or op.args.get("implicit") else costs[op.op]

    def _mark(self, op: HostOp) -> None:
        name = str(op.args.get("name", "")).lower()
        step = int(op.args.get("step", 0))
        if name in BEGIN:
            self.begins[step] = self.device.events.now
            self._step = step
        elif name in END:
            self.ends[step] = self.device.events.now
            self._step = None

    def _blocks(self, op: HostOp) -> bool:
        """Handles blocking operations; True if the thread will be resumed later."""
        if op.op == "barrier":
            number = op.args.get("id", 0)
            use = self._barrier_uses[number]
            self._barrier_uses[number] += 1
            self._barriers.arrive((number, use), self.run_later)
            return True
        if op.op == "event_sync":
            key = (int(op.args["event"]), int(op.args.get("ver", 0)))
            if key[1] == 0 or key in self.device.recorded:
                self._resume()
            else:
                self.device.waiting.setdefault(key, []).append(self._resume)
            return True
        if op.op in ("stream_sync", "device_sync"):
            streams = [self.stream(op.stream)] if op.op == "stream_sync" else list(self.streams.values())
            left = [1]

            def drained() -> None:
                left[0] -= 1
                if left[0] == 0:
                    self._resume()

            for stream in streams:
                if not stream.when_idle(drained):
                    left[0] += 1
            drained()
            return True
        return False

    def run_later(self) -> None:
        """Resumes at the current time."""
        self.device.events.at(self.device.events.now, self.run)

    def _resume(self) -> None:
        self.device.events.after(self.device.machine.host.sync_us, self.run)


def _label(op: HostOp) -> str:
    return str(op.args.get("name") or op.args.get("coll") or op.op)


def _groups(device: Device, ops: list[HostOp]) -> dict[int, Group]:
    """NCCL launches of a rank, keyed by the index of the call that starts them (the last of a group)."""
    found: dict[int, Group] = {}
    open_group: tuple[object, list[int]] | None = None
    for index, op in enumerate(ops):
        if op.op != "nccl":
            continue
        group = op.args.get("group")
        if open_group is not None and group is not None and open_group[0] == group:
            open_group[1].append(index)
            continue
        if open_group is not None:
            _close(device, ops, open_group[1], found)
        open_group = (group, [index])
    if open_group is not None:
        _close(device, ops, open_group[1], found)
    return found


def _close(device: Device, ops: list[HostOp], members: list[int], found: dict[int, Group]) -> None:
    elements = [device.collectives.element(device.rank, ops[index]) for index in members]
    found[members[-1]] = Group(device.rank, elements)
