"""Bootstrap intervals: they cover the truth, widen with the spread between processes, and are honest."""

from __future__ import annotations

import numpy as np
import pytest

from cuco.errors import UsageError
from cuco.verify import statistics


def processes(
    rng: np.random.Generator, count: int, centre: float, between: float, within: float
) -> list[list[float]]:
    """Step times of ``count`` processes, each with an offset of its own."""
    offsets = rng.normal(centre, between, count)
    return [list(np.abs(rng.normal(offset, within, 30)) + 1e-6) for offset in offsets]


def test_modelled_times_say_so() -> None:
    point = statistics.modelled(12.5)
    assert (point.low, point.value, point.high) == (12.5, 12.5, 12.5)
    assert "modelled" in point.note
    assert point.excludes(12.6) and not point.excludes(12.5)


def test_the_interval_covers_the_truth_most_of_the_time() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for trial in range(40):
        found = statistics.median_interval(processes(rng, 8, 100.0, 3.0, 1.0), seed=trial, draws=200)
        covered += found.low <= 100.0 <= found.high
    assert covered >= 32  # nominal 38; the percentile bootstrap of 8 processes is somewhat narrow


def test_processes_are_resampled_not_steps() -> None:
    """Many steps of processes that differ must not make the interval narrow."""
    rng = np.random.default_rng(1)
    apart = statistics.median_interval(processes(rng, 6, 100.0, 5.0, 0.1))
    alike = statistics.median_interval(processes(rng, 6, 100.0, 0.0, 0.1))
    assert apart.high - apart.low > 10 * (alike.high - alike.low)


def test_ratio_of_two_programs() -> None:
    rng = np.random.default_rng(3)
    baseline = processes(rng, 8, 130.0, 1.0, 1.0)
    candidate = processes(rng, 8, 100.0, 1.0, 1.0)
    found = statistics.ratio_interval(baseline, candidate, draws=400)
    assert found.value == pytest.approx(1.3, rel=0.02)
    assert found.low < found.value < found.high
    assert found.excludes(1.0)
    assert not statistics.ratio_interval(candidate, candidate, draws=400).excludes(1.0)
    again = [statistics.ratio_interval(baseline, candidate, seed=5, draws=100) for _ in range(2)]
    assert again[0] == again[1]


def test_few_processes_are_admitted() -> None:
    assert "2 processes" in statistics.median_interval([[1.0, 2.0], [1.5, 2.5]]).note
    assert statistics.median_interval([[1.0]] * 5).note == ""


@pytest.mark.parametrize("bad", [[], [[]], [[0.0]], [[float("nan")]], [[-1.0]]])
def test_impossible_times_are_refused(bad: list[list[float]]) -> None:
    with pytest.raises(UsageError):
        statistics.median_interval(bad)
