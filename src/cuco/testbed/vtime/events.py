"""The event queue of a replay: time in microseconds, ties broken by order of scheduling, so that replays
repeat."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class EventQueue:
    """Runs scheduled calls in time order."""

    __slots__ = ("_heap", "_sequence", "now", "processed")

    def __init__(self) -> None:
        self.now = 0.0
        self.processed = 0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0

    def at(self, time: float, call: Callable[..., None], *args: Any) -> None:
        """Schedules a call; a time in the past means now."""
        self._sequence += 1
        heapq.heappush(self._heap, (time if time > self.now else self.now, self._sequence, call, args))

    def after(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        """Schedules a call ``delay`` us from now."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now + delay, self._sequence, call, args))

    def run(self) -> float:
        """Runs until nothing is scheduled; returns the time of the last event."""
        heap = self._heap
        pop = heapq.heappop
        count = 0
        while heap:
            self.now, _, call, args = pop(heap)
            call(*args)
            count += 1
        self.processed += count
        return self.now
