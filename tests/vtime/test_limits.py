"""Floors, overlap limits and efficiencies, as arithmetic."""

from __future__ import annotations

import pytest

from cuco.testbed.vtime import load_machine
from cuco.verify import limits
from cuco.workload.problem import Work

M = load_machine("h200-nvlink-8")


def test_the_floor_is_the_slowest_of_three_peaks() -> None:
    arithmetic = [Work(flops={"bfloat16": 989.4e12 * 1e-6 * 50})]
    memory = [Work(hbm_bytes=4800e3 * 70)]
    links = [Work(bytes_out=450e3 * 90), Work(bytes_in=450e3 * 90)]
    assert limits.floor(arithmetic, M, 1).us == pytest.approx(50)
    assert limits.floor(memory, M, 1).us == pytest.approx(70)
    assert limits.floor(links, M, 2).us == pytest.approx(90)


def test_links_follow_the_placement() -> None:
    work = [Work(bytes_out=1e9)] * 4
    near = limits.floor(work, M, 4).communication_us
    split = limits.floor(work, M, 2).communication_us
    far = limits.floor(work, M, 1).communication_us
    assert near == pytest.approx(1e9 / 450e3)
    assert split == pytest.approx(1e9 / 500e3)
    assert far == pytest.approx(1e9 / 50e3)


def test_unknown_types_get_the_fastest_units() -> None:
    assert limits.floor([Work(flops={"float8_e4m3": 1e12})], M, 1).us == pytest.approx(1e6 / 1978.9)
    assert limits.floor([Work(flops={"posit16": 1e12})], M, 1).us == pytest.approx(1e6 / 1978.9)


@pytest.mark.parametrize(
    ("compute", "communication", "limit"), [(100, 100, 2.0), (100, 50, 1.5), (100, 0, 1.0), (0, 0, 1.0)]
)
def test_overlap_limit(compute: float, communication: float, limit: float) -> None:
    assert limits.overlap_limit(compute, communication) == pytest.approx(limit)
    assert limits.overlap_limit(communication, compute) == pytest.approx(limit)


def test_overlap_efficiency() -> None:
    assert limits.overlap_efficiency(100, 50, 150) == pytest.approx(0)
    assert limits.overlap_efficiency(100, 50, 100) == pytest.approx(1)
    assert limits.overlap_efficiency(100, 0, 100) is None


def test_roofline_limit() -> None:
    assert limits.roofline_limit(300, limits.Floor(50, 100, 10)) == pytest.approx(3)
    assert limits.roofline_limit(300, limits.Floor(0, 0, 0)) is None


def test_times_below_the_floor_are_findings() -> None:
    least = limits.Floor(100, 10, 20)
    assert limits.below_floor(100, least) is None
    assert limits.below_floor(98, least) is None
    finding = limits.below_floor(90, least)
    assert finding is not None
    assert finding.rule == "below-floor"
    assert "90.0 us" in finding.message and "100.0 us" in finding.message
    assert limits.below_floor(1, limits.Floor(0, 0, 0)) is None
