"""Processor sharing: how fast the CTAs on an SM, and the SMs of a GPU, progress when they want the same
thing.

On an SM the pipes' loads (each CTA's share of a pipe, summed) are joined by the same norm that joins one
CTA's demands (``cost``): two equal CTAs take twice as long, two that use different pipes less. All CTAs of an
SM slow down alike. The GPU's L2 and HBM are shared max-min fairly by all CTAs: with shares r_i wanted and
more wanted than there is, a water level w solves sum(min(r_i, w)) = 1, and a CTA slows down by r_i / w, so
that light users are not slowed by heavy ones. A CTA is as slow as the worst of these; no resource is ever
used beyond its rate, and a CTA alone runs at full speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cuco.testbed.vtime.cost import PIPES, Cost
from cuco.testbed.vtime.events import EventQueue

#: The GPU-wide level is applied to running CTAs when it has moved by this much: exact enough, and cheap.
LEVEL_STEP = 0.02
#: Work that would end within this many us is over: far above the rounding of long replays.
RESOLUTION = 1e-6


def water_level(wanted: list[tuple[float, int]]) -> float:
    """The level w with sum(count * min(share, w)) = 1; infinity where not more than 1 is wanted."""
    if sum(share * count for share, count in wanted) <= 1.0 + 1e-12:
        return math.inf
    left = 1.0
    users = sum(count for _, count in wanted)
    for share, count in sorted(wanted):
        if share * users >= left:
            return left / users
        left -= share * count
        users -= count
    return math.inf


class Job:
    """Work of one CTA on an SM; ``left`` is the share of it still to do."""

    __slots__ = ("cost", "done", "left", "slow")

    def __init__(self, cost: Cost, done: Callable[[], None]) -> None:
        self.cost = cost
        self.left = 1.0
        self.slow = 1.0
        self.done = done

    def remaining(self) -> float:
        """Microseconds to its end at the present speed."""
        return self.left * self.cost.alone * self.slow


class Fabric:
    """A GPU's L2 and HBM, shared by its SMs."""

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._users: dict[int, tuple[Cost, int]] = {}
        self.cores: list[Core] = []
        self.l2_level = math.inf
        self.hbm_level = math.inf
        self._pending = False

    def change(self, cost: Cost, delta: int) -> None:
        """A job with that cost started (+1) or ended (-1)."""
        if cost.l2 == 0.0 and cost.hbm == 0.0:
            return
        count = self._users[cost.id][1] + delta if cost.id in self._users else delta
        if count:
            self._users[cost.id] = (cost, count)
        else:
            del self._users[cost.id]
        if not self._pending:
            self._pending = True
            self._events.at(self._events.now, self._rebalance)

    def slow(self, cost: Cost) -> float:
        """How much the shared memory slows that work down."""
        return max(1.0, cost.l2 / self.l2_level, cost.hbm / self.hbm_level)

    def _rebalance(self) -> None:
        self._pending = False
        l2 = water_level([(cost.l2, count) for cost, count in self._users.values() if cost.l2])
        hbm = water_level([(cost.hbm, count) for cost, count in self._users.values() if cost.hbm])
        if _near(l2, self.l2_level) and _near(hbm, self.hbm_level):
            return
        self.l2_level, self.hbm_level = l2, hbm
        for core in self.cores:
            core.refresh()


def _near(a: float, b: float) -> bool:
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= LEVEL_STEP * b


class Core:
    """The running work of one SM."""

    __slots__ = ("_events", "_fabric", "_memo", "_norm", "_stamp", "_updated", "jobs")

    def __init__(
        self, events: EventQueue, fabric: Fabric, norm: float, memo: dict[tuple[int, ...], float]
    ) -> None:
        self._norm = norm
        self._events = events
        self._fabric = fabric
        self._memo = memo
        self._stamp = 0
        self._updated = 0.0
        self.jobs: list[Job] = []
        fabric.cores.append(self)

    def start(self, cost: Cost, done: Callable[[], None]) -> None:
        """Starts work now; ``done`` is called when it is finished."""
        self._advance()
        self.jobs.append(Job(cost, done))
        self._fabric.change(cost, +1)
        self._plan()

    def refresh(self) -> None:
        """The GPU-wide levels changed."""
        if self.jobs:
            self._advance()
            self._plan()

    def slow(self, cost: Cost) -> float:
        """How much slower than alone work of that cost runs here at the moment."""
        for job in self.jobs:
            if job.cost is cost:
                return job.slow
        return 1.0

    def _advance(self) -> None:
        passed = self._events.now - self._updated
        self._updated = self._events.now
        if passed > 0:
            for job in self.jobs:
                job.left -= passed / (job.cost.alone * job.slow)

    def _plan(self) -> None:
        """Recomputes speeds and schedules the next completion."""
        self._stamp += 1
        if not self.jobs:
            return
        pipes = self._slowdown()
        first = math.inf
        for job in self.jobs:
            job.slow = max(pipes, self._fabric.slow(job.cost))
            end = job.remaining()
            if end < first:
                first = end
        self._events.after(max(0.0, first), self._finish, self._stamp)

    def _slowdown(self) -> float:
        if len(self.jobs) == 1:
            return 1.0
        key = tuple(sorted(job.cost.id for job in self.jobs))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = _pipe_slowdown([job.cost for job in self.jobs], self._norm)
        return found

    def _finish(self, stamp: int) -> None:
        if stamp != self._stamp:
            return
        self._advance()
        over = [job for job in self.jobs if job.remaining() <= RESOLUTION]
        self.jobs = [job for job in self.jobs if job.remaining() > RESOLUTION]
        for job in over:
            self._fabric.change(job.cost, -1)
        self._plan()
        for job in over:
            job.done()


def _pipe_slowdown(costs: list[Cost], norm: float) -> float:
    loads = [0.0] * len(PIPES)
    for cost in costs:
        for pipe, share in cost.pipes:
            loads[pipe] += share
    together: float = sum(load**norm for load in loads) ** (1 / norm)
    return max(1.0, together)
