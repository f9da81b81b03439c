"""Which thread blocks of a producer complete which bytes of a buffer that is sent: found from traces, then
proved again.

The emulator's traced runs tell which bytes every CTA writes. ``fit_map`` looks for the finest formula of the
form "CTA index i along one axis writes only inside [i * unit, (i + 1) * unit)" that holds in *every* sample:
at least two sizes to find it and a third, and a second data set, to confirm it. Where none holds (grouped
rasterisation, data-dependent writes), there is no map and the edge stays Deferred or StreamSplit.
(FlashOverlap, arXiv 2504.19519, releases collectives by waves of finished CTAs; per CTA from traced sets is
ours.)"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cuco.propose.builtin.config import ProducerMap

#: Samples and distinct sizes that a formula must hold on before it is believed.
MIN_SAMPLES = 3
MIN_SIZES = 3


@dataclass(frozen=True)
class WriteSample:
    """One traced launch of the producer, seen from one send.

    ``grid`` in CTAs (x, y, z); ``bytes`` sent; ``writes[cta]`` are the byte intervals (begin, end) that
    linear CTA index ``cta`` (x fastest) writes, relative to the first byte sent; writes outside [0, bytes)
    are left out by the tracer."""

    grid: tuple[int, int, int]
    bytes: int
    writes: Sequence[Sequence[tuple[int, int]]]


def fit_map(samples: Sequence[WriteSample]) -> ProducerMap | None:
    """The finest map that holds on every sample, or None.

    None, too, where there are fewer than ``MIN_SAMPLES`` samples, or sizes that cannot tell formulas apart.
    """
    samples = [sample for sample in samples if sample.bytes > 0]
    if len(samples) < MIN_SAMPLES or len({(s.bytes, s.grid) for s in samples}) < MIN_SIZES:
        return None
    if not all(_covers(sample) for sample in samples):
        return None
    holding = [
        candidate
        for candidate in _candidates(samples[-1])
        if all(_holds(candidate, s) for s in samples) and _distinguishes(candidate, samples)
    ]
    return max(holding, key=lambda m: sum(_intervals(m, s) for s in samples), default=None)


def _candidates(sample: WriteSample) -> Iterable[ProducerMap]:
    for axis in (1, 0, 2, 3):
        yield ProducerMap(axis, 0)
        hulls = _hulls(sample, axis)
        if hulls[0] is not None:
            yield ProducerMap(axis, hulls[0][1])


def _axis_counts(grid: tuple[int, int, int]) -> tuple[int, int, int, int]:
    return (*grid, grid[0] * grid[1] * grid[2])


def _index(cta: int, grid: tuple[int, int, int], axis: int) -> int:
    x, y, _ = grid
    return (cta % x, cta // x % y, cta // (x * y), cta)[axis]


def _hulls(sample: WriteSample, axis: int) -> list[tuple[int, int] | None]:
    """Per index along ``axis``, the hull of everything its CTAs write."""
    hulls: list[tuple[int, int] | None] = [None] * _axis_counts(sample.grid)[axis]
    for cta, intervals in enumerate(sample.writes):
        for begin, end in intervals:
            i = _index(cta, sample.grid, axis)
            old = hulls[i]
            hulls[i] = (begin, end) if old is None else (min(old[0], begin), max(old[1], end))
    return hulls


def _intervals(candidate: ProducerMap, sample: WriteSample) -> int:
    return _axis_counts(sample.grid)[candidate.axis]


def _distinguishes(candidate: ProducerMap, samples: Sequence[WriteSample]) -> bool:
    """A grid of one interval fits every formula; at least two sizes must have had several."""
    return len({(s.bytes, s.grid) for s in samples if _intervals(candidate, s) > 1}) >= 2


def _holds(candidate: ProducerMap, sample: WriteSample) -> bool:
    """The generated code's own guard on grid and size (see ``producer_map`` in produce.cuh), and
    containment."""
    n = _intervals(candidate, sample)
    if candidate.unit == 0 and sample.bytes % n:
        return False
    unit = candidate.unit or sample.bytes // n
    if candidate.unit and n != -(-sample.bytes // unit):
        return False
    return all(
        hull is None or (i * unit <= hull[0] and hull[1] <= (i + 1) * unit)
        for i, hull in enumerate(_hulls(sample, candidate.axis))
    )


def _covers(sample: WriteSample) -> bool:
    """Every byte that is sent is written by the producer; otherwise somebody else produces part of it."""
    reached = 0
    for begin, end in sorted(interval for intervals in sample.writes for interval in intervals):
        if begin > reached:
            return False
        reached = max(reached, end)
    return reached >= sample.bytes
