"""Synchronisation words in virtual time.

An add-type word carries a modelled count and a wait ends when the count reaches its value. A store-type word
carries versions: a wait for version v ends when v, or a later one, is visible. Which store a wait reads from
was settled by the run; here only *when* it becomes visible is computed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

Resume = Callable[[], None]


class Words:
    """Counts, versions and waiters of all words."""

    def __init__(self) -> None:
        self._count: dict[int, float] = {}
        self._version: dict[int, int] = {}
        self._waiting_count: dict[int, list[tuple[float, int, Resume]]] = {}
        self._waiting_version: dict[int, list[tuple[int, int, Resume]]] = {}
        self._order = 0

    def add(self, word: int, delta: float) -> None:
        """An add becomes visible now."""
        value = self._count[word] = self._count.get(word, 0) + delta
        waiting = self._waiting_count.get(word)
        while waiting and waiting[0][0] <= value:
            heapq.heappop(waiting)[2]()

    def store(self, word: int, version: int) -> None:
        """A store becomes visible now; an older version that arrives late changes nothing."""
        if version <= self._version.get(word, 0):
            return
        self._version[word] = version
        waiting = self._waiting_version.get(word)
        while waiting and waiting[0][0] <= version:
            heapq.heappop(waiting)[2]()

    def wait(self, word: int, kind: str, value: float, resume: Resume) -> bool:
        """Registers a wait; True if it is over at once, and ``resume`` is then not called."""
        self._order += 1
        if kind == "ge":
            if self._count.get(word, 0) >= value:
                return True
            heapq.heappush(self._waiting_count.setdefault(word, []), (value, self._order, resume))
            return False
        version = int(value)
        if version <= self._version.get(word, 0):
            return True
        heapq.heappush(self._waiting_version.setdefault(word, []), (version, self._order, resume))
        return False

    def unmet(self) -> list[tuple[int, str, float, float]]:
        """Waits that never ended: (word, kind, has, wants)."""
        counts = [
            (word, "ge", self._count.get(word, 0.0), item[0])
            for word, items in self._waiting_count.items()
            for item in items
        ]
        versions = [
            (word, "ver", float(self._version.get(word, 0)), float(item[0]))
            for word, items in self._waiting_version.items()
            for item in items
        ]
        return counts + versions
