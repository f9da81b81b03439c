"""Measurements of real runs in the emulator: the same on every seed, sliced where the slice is proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cuco.testbed.build import build_candidate
from cuco.testbed.vtime import load_machine
from cuco.verify.benchmark import baselines, best
from cuco.verify.measure import MeasurementRejected, MeasureOptions, measure, time_traced
from cuco.verify.tracing import Setting, first_difference, slice_refusal
from cuco.workload import load_workload

CANDIDATES = Path(__file__).parents[1] / "candidates" / "ring_shift"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["good_lsa.cu", "good_gin.cu"])
def test_modelled_time_is_the_same_on_eight_seeds(name: str) -> None:
    workload = load_workload("micro/ring_shift")
    options = MeasureOptions(size="tiny")
    found = [measure(workload, CANDIDATES / name, replace(options, seed=seed)) for seed in range(1, 9)]
    assert len({item.us for item in found}) == 1
    assert len({item.communication_us for item in found}) == 1
    first = found[0].traced
    assert first is not None
    for other in found[1:]:
        assert other.traced is not None
        assert first_difference(first.trace, other.traced.trace) == ""


@pytest.mark.slow
def test_a_deadlock_is_no_time() -> None:
    workload = load_workload("micro/ring_shift")
    with pytest.raises(MeasurementRejected) as caught:
        measure(workload, CANDIDATES / "deadlock.cu", MeasureOptions(size="tiny"))
    assert caught.value.findings[0].kind == "deadlock"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm_allgather", "kv_transfer"])
def test_the_slice_of_a_gemm_counts_what_full_execution_counts(name: str) -> None:
    workload = load_workload(name)
    machine = load_machine(workload.spec.machine)
    built = build_candidate(workload.host_source, variant="slice", include=workload.include_dirs)
    ranks = workload.spec.ranks.default
    team = workload.lsa_team(ranks, workload.params("tiny"))
    assert slice_refusal(workload, workload.host_source, built, Setting(ranks, team, machine, {})) == ""


@pytest.mark.slow
def test_host_versions_of_the_gemm() -> None:
    """At several waves the sequential version takes compute plus communication; tuning finds a chunking that
    gains, but not all there is."""
    workload = load_workload("gemm_allgather")
    options = MeasureOptions(size="tiny", overrides={"m": 6144, "n": 6144, "k": 512})
    rows = baselines(workload, options)
    assert all(row.us is not None for row in rows), [row.reason for row in rows]
    sequential = rows[0].measurement
    assert sequential is not None and sequential.sliced
    total = sequential.compute_us + sequential.communication_us
    assert sequential.us == pytest.approx(total, rel=0.1)
    leader = best(rows)
    assert leader is not None and leader.us is not None and leader.us <= sequential.us
    assert leader.us > max(sequential.compute_us, sequential.communication_us)
    machine = load_machine("h200-nvlink-8").override(scale_launch=0.5, scale_latency=0.5)
    assert sequential.traced is not None
    assert time_traced(workload, sequential.traced, machine).us < sequential.us
