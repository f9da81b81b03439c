"""What is derived from a trace for a measurement, on traces built by hand."""

from __future__ import annotations

from functools import cache

import pytest
from vtime_builder import Builder, phase

from cuco.testbed.vtime import load_machine
from cuco.testbed.vtime.trace import Trace
from cuco.verify.measure import MeasurementRejected, MeasureOptions, measure, time_traced
from cuco.verify.placement import ranks_per_domain
from cuco.verify.tracing import Traced, first_difference, heavy_refusal
from cuco.workload import load_workload

M = load_machine("h200-nvlink-8")
WORKLOAD = load_workload("gemm_allgather")
SIZE = {"m": 2048, "n": 2048, "k": 2048}


@cache
def gemm(fused: bool, ranks: int = 2, *, flops: float = 2.0 * 128 * 128 * 4096) -> Trace:
    """A GEMM of three waves per rank whose product is gathered by NCCL, or stored to peers as it is made."""
    builder = Builder(ranks, regs=128)
    tiles = 792
    for rank in range(ranks):
        builder.word(rank, rank, f"arrivals at {rank}")

    def step(rank: int) -> None:
        others = [peer for peer in range(ranks) if peer != rank]
        ctas = []
        for _ in range(tiles):
            phases = [phase(mma_bf16=flops, ld_global=128 * 4096 * 4, mp=20000)]
            if fused:
                phases.append(phase(remote=[[peer, 32768, 0] for peer in others]))
                adds = [[1, "add", peer, 1] for peer in others]
                phases.append(phase(strands=[[0, 1, adds]], mp=1))
            ctas.append(phases)
        builder.launch(rank, ctas, stream=1)
        if fused:
            wait = [[0, "wait", rank, "ge", tiles * (ranks - 1)]]
            builder.launch(rank, [[phase(strands=[[0, 1, wait]], mp=1)]], stream=1, threads=32)
        else:
            builder.host(rank, "nccl", 1, coll="AllGather", bytes=tiles * 32768.0, comm=0, seq=0)

    builder.step(0, step)
    return builder.trace()


def traced(trace: Trace, size: dict[str, int] = SIZE) -> Traced:
    return Traced(trace, "full", size, True, "", 0.0)


def test_host_driven_time_is_the_sum_and_fused_time_near_the_maximum() -> None:
    host = time_traced(WORKLOAD, traced(gemm(False)), M)
    fused = time_traced(WORKLOAD, traced(gemm(True)), M)
    assert host.us == pytest.approx(host.compute_us + host.communication_us, rel=0.05)
    assert fused.us < host.us
    assert fused.us >= max(fused.compute_us, fused.communication_us)
    assert fused.compute_us == pytest.approx(host.compute_us, rel=0.02)
    assert host.overlap_efficiency == pytest.approx(0, abs=0.1)
    assert fused.overlap_efficiency is not None and fused.overlap_efficiency > 0.3
    assert 1 < fused.overlap_limit <= 2
    assert not fused.findings


def test_halved_constants_can_be_replayed_without_a_run() -> None:
    found = time_traced(WORKLOAD, traced(gemm(True)), M)
    assert found.traced is not None
    half = time_traced(WORKLOAD, found.traced, M.override(scale_launch=0.5, scale_latency=0.5))
    assert half.us < found.us


def test_work_that_was_not_counted_is_found() -> None:
    claimed = {"m": 16384, "n": 16384, "k": 16384}
    found = time_traced(WORKLOAD, traced(gemm(True), claimed), M)
    assert [item.rule for item in found.findings] == ["below-floor"]


def test_the_data_of_a_measurement_is_labelled() -> None:
    data = time_traced(WORKLOAD, traced(gemm(False)), M).as_dict()
    assert data["modelled"] is True and data["fidelity"] == "modelled"
    assert data["ci95_us"] == [data["us"], data["us"]]
    assert "modelled" in data["ci95_note"]


def test_equal_traces_have_no_difference_and_others_do() -> None:
    assert first_difference(gemm(True), gemm(True)) == ""
    assert "counts CTA 0" in first_difference(gemm(True), gemm(True, flops=1.0))
    assert "host operations" in first_difference(gemm(True), gemm(False))


def test_a_refused_kernel_with_arithmetic_forbids_the_slice() -> None:
    trace = gemm(True)
    assert heavy_refusal(trace, {}) == ""
    assert heavy_refusal(trace, {"other": "reads its own product"}) == ""
    assert "reads its own product" in heavy_refusal(trace, {"kernel": "reads its own product"})


def test_ranks_sit_as_the_machine_has_them() -> None:
    far = load_machine("h100-100g")
    assert ranks_per_domain(WORKLOAD, M, 4, SIZE) == 4
    assert ranks_per_domain(WORKLOAD, far, 4, SIZE) == 1
    assert ranks_per_domain(WORKLOAD, far, 4, SIZE, 2) == 2


def test_what_cannot_be_timed_at_its_size_is_not_timed_at_another() -> None:
    options = MeasureOptions(size="full", slicing="never")
    with pytest.raises(MeasurementRejected, match="takes a timing slice"):
        measure(WORKLOAD, WORKLOAD.host_source, options)
