"""Device-initiated network operations (GIN through NCCL's CPU proxy) in virtual time.

A rank's proxy takes one descriptor after another. Operations of one queue pair (source, context, destination)
leave in order, one at a time; different queue pairs share the NIC. A signal follows its own put (weak) or
every earlier put of its queue pair (strong); the local counter and the descriptor's completion follow the
acknowledgement. A get moves its bytes from the destination back; a flush completes when all earlier
operations of its context have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cuco.testbed.vtime.events import EventQueue
from cuco.testbed.vtime.links import Network
from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.trace import NicOp, TraceError
from cuco.testbed.vtime.words import Words

Pair = tuple[int, int, int]


class _Queue:
    """One queue pair."""

    __slots__ = ("busy", "landed", "posted", "strong", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[NicOp, int]] = deque()
        self.busy = False
        self.posted = 0
        self.landed: set[int] = set()
        self.strong: list[tuple[int, Callable[[], None]]] = []


class Nic:
    """The NICs and proxies of all ranks."""

    def __init__(
        self, events: EventQueue, machine: Machine, network: Network, words: Words, ops: dict[int, NicOp]
    ) -> None:
        self._events = events
        self._machine = machine
        self._network = network
        self._words = words
        self._ops = ops
        self._proxy_free: dict[int, float] = {}
        self._queues: dict[Pair, _Queue] = {}
        self._outstanding: dict[tuple[int, int], set[int]] = {}
        self._flushes: list[tuple[NicOp, set[int]]] = []
        self.spans: dict[int, list[tuple[float, float, str]]] = {}

    def post(self, op_id: int) -> None:
        """A thread posted the operation now."""
        op = self._ops.get(op_id)
        if op is None:
            raise TraceError(f"the trace posts network operation {op_id} but does not describe it")
        gin = self._machine.gin
        start = max(self._events.now + gin.proxy_pickup_us, self._proxy_free.get(op.src, 0.0))
        end = start + gin.proxy_us_per_descriptor
        self._proxy_free[op.src] = end
        self.spans.setdefault(op.src, []).append((start, end, f"{op.kind} to {op.dst}"))
        if op.kind == "flush":
            earlier = set(self._outstanding.get((op.src, op.ctx), ()))
            self._events.at(end, self._flush, op, earlier)
            return
        self._outstanding.setdefault((op.src, op.ctx), set()).add(op.id)
        self._events.at(end, self._issue, op)

    def pending(self) -> list[str]:
        """Operations that have not completed."""
        return [
            f"rank {rank} context {ctx}: {len(ops)} network operations in flight"
            for (rank, ctx), ops in sorted(self._outstanding.items())
            if ops
        ]

    def _issue(self, op: NicOp) -> None:
        queue = self._queues.setdefault((op.src, op.ctx, op.dst), _Queue())
        queue.waiting.append((op, queue.posted))
        queue.posted += 1
        self._next(queue)

    def _next(self, queue: _Queue) -> None:
        if queue.busy or not queue.waiting:
            return
        queue.busy = True
        op, number = queue.waiting.popleft()
        if op.kind == "get":
            out, _ = self._network.ports(op.src, op.dst, True)
            self._events.after(out.latency, self._answer, queue, op, number)
            return
        self._network.send(
            op.src, op.dst, op.bytes, nic=True,
            on_sent=lambda: self._sent(queue), on_arrived=lambda: self._landed(queue, op, number),
        )  # fmt: skip

    def _answer(self, queue: _Queue, op: NicOp, number: int) -> None:
        self._network.send(
            op.dst, op.src, op.bytes, nic=True, on_arrived=lambda: self._got(queue, op, number)
        )
        self._sent(queue)

    def _got(self, queue: _Queue, op: NicOp, number: int) -> None:
        queue.landed.add(number)
        self._complete(op)

    def _sent(self, queue: _Queue) -> None:
        queue.busy = False
        self._next(queue)

    def _landed(self, queue: _Queue, op: NicOp, number: int) -> None:
        queue.landed.add(number)
        if op.signal is not None:
            word, delta = op.signal
            if op.strong:
                queue.strong.append((number, lambda: self._words.add(word, delta)))
            else:
                self._words.add(word, delta)
        if queue.strong:
            self._strong(queue)
        self._events.after(self._machine.gin.completion_us, self._complete, op)

    def _strong(self, queue: _Queue) -> None:
        ready = [item for item in queue.strong if all(index in queue.landed for index in range(item[0]))]
        queue.strong = [item for item in queue.strong if item not in ready]
        for _, call in sorted(ready, key=lambda item: item[0]):
            call()

    def _complete(self, op: NicOp) -> None:
        self._outstanding[(op.src, op.ctx)].discard(op.id)
        self._finish(op)
        still: list[tuple[NicOp, set[int]]] = []
        for flush, earlier in self._flushes:
            earlier.discard(op.id)
            if earlier:
                still.append((flush, earlier))
            else:
                self._finish(flush)
        self._flushes = still

    def _finish(self, op: NicOp) -> None:
        for target in (op.counter, op.done):
            if target is not None:
                self._words.add(*target)

    def _flush(self, op: NicOp, earlier: set[int]) -> None:
        left = earlier & self._outstanding.get((op.src, op.ctx), set())
        if left:
            self._flushes.append((op, left))
        else:
            self._finish(op)
