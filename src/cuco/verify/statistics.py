"""Intervals for times and for ratios of times: a bootstrap that resamples processes, not steps.

Steps of one process share its clocks, its placement and its allocations, so they are not independent; whole
processes are drawn, and steps within them. Modelled times have no spread: their interval is a point, and says
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cuco.errors import UsageError

#: Least processes for an interval that may be believed.
LEAST_PROCESSES = 5
DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval. ``degenerate``: a point, because the times are modelled."""

    value: float
    low: float
    high: float
    processes: int
    degenerate: bool = False

    @property
    def note(self) -> str:
        """What a reader must know about it; empty if nothing."""
        if self.degenerate:
            return "modelled: repeats give the same time, so the interval is a point"
        if self.processes < LEAST_PROCESSES:
            return f"only {self.processes} processes: the interval is too narrow to be believed"
        return ""

    def excludes(self, value: float) -> bool:
        """Whether the value lies outside the interval."""
        return value < self.low or value > self.high


def modelled(value: float) -> Interval:
    """The interval of a modelled time."""
    return Interval(value, value, value, 1, degenerate=True)


def median_interval(processes: Sequence[Sequence[float]], seed: int = 0, draws: int = DRAWS) -> Interval:
    """The median step time over processes (each a sequence of step times) and its bootstrap interval."""
    groups = _checked(processes)
    rng = np.random.default_rng(seed)
    found = np.array([_median(groups, rng) for _ in range(draws)])
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(float(np.median(np.concatenate(groups))), float(low), float(high), len(groups))


def ratio_interval(
    baseline: Sequence[Sequence[float]],
    candidate: Sequence[Sequence[float]],
    seed: int = 0,
    draws: int = DRAWS,
) -> Interval:
    """Speed-up, baseline over candidate (medians), with the interval of the ratio itself.

    Processes of both are drawn together where their numbers agree (runs that were interleaved share
    conditions), else apart.
    """
    ours, theirs = _checked(candidate), _checked(baseline)
    rng = np.random.default_rng(seed)
    paired = len(ours) == len(theirs)
    found = np.empty(draws)
    for index in range(draws):
        chosen = rng.integers(0, len(ours), len(ours))
        other = chosen if paired else rng.integers(0, len(theirs), len(theirs))
        top = np.median(np.concatenate([_resample(theirs[i], rng) for i in other]))
        found[index] = top / np.median(np.concatenate([_resample(ours[i], rng) for i in chosen]))
    low, high = np.quantile(found, [0.025, 0.975])
    value = float(np.median(np.concatenate(theirs)) / np.median(np.concatenate(ours)))
    return Interval(value, float(low), float(high), min(len(ours), len(theirs)))


def _checked(processes: Sequence[Sequence[float]]) -> list[npt.NDArray[np.float64]]:
    groups = [np.asarray(steps, dtype=np.float64) for steps in processes if len(steps)]
    if not groups or any(not np.all(np.isfinite(group)) or np.any(group <= 0) for group in groups):
        raise UsageError("an interval needs positive, finite step times of at least one process")
    return groups


def _median(groups: list[npt.NDArray[np.float64]], rng: np.random.Generator) -> float:
    chosen = rng.integers(0, len(groups), len(groups))
    return float(np.median(np.concatenate([_resample(groups[i], rng) for i in chosen])))


def _resample(group: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    drawn: npt.NDArray[np.float64] = group[rng.integers(0, len(group), len(group))]
    return drawn
