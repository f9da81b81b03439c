"""Laws that every replay obeys, on generated traces."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vtime_builder import Builder, phase

from cuco.testbed.vtime import Timing, load_machine, replay
from cuco.testbed.vtime.links import TURNS
from cuco.testbed.vtime.sharing import water_level

M = load_machine("h200-nvlink-8")
CLOCKS = M.sm.clock_ghz * 1e3
COUNTS = st.fixed_dictionaries(
    {
        "mma_bf16": st.floats(0, 1e9),
        "fp32": st.floats(0, 1e6),
        "int": st.floats(0, 1e6),
        "ld_global": st.floats(0, 1e6),
        "ld_shared": st.floats(0, 1e6),
    }
)


@given(
    COUNTS,
    st.sampled_from(["mma_bf16", "fp32", "int", "ld_global", "ld_shared"]),
    st.floats(0, 1e6),
    st.floats(0, 1e5),
)
@settings(max_examples=60, deadline=None)
def test_more_work_alone_never_takes_less_time(
    counts: dict[str, float], name: str, more: float, progress: float
) -> None:
    def total(values: dict[str, float], mp: float) -> float:
        builder = Builder()
        builder.launch(0, [[phase(mp=mp, **values)]])
        return replay(builder.trace(), M).total_us

    base = total(counts, 0)
    assert total({**counts, name: counts[name] + more}, 0) >= base - 1e-9
    assert total(counts, progress) >= base - 1e-9


def chain(sizes: list[float], work: list[float]) -> Builder:
    """Rank after rank: wait, work, send onwards, raise the next rank's flag. Nothing contends."""
    ranks = len(sizes) + 1
    builder = Builder(ranks)
    for rank in range(ranks):
        builder.word(rank, rank, f"flag {rank}")
        phases = []
        if rank:
            phases.append(phase(strands=[[0, 1, [[1, "wait", rank, "ge", 1]]]], mp=1))
        phases.append(phase(mma_bf16=work[rank % len(work)]))
        if rank < len(sizes):
            phases.append(phase(remote=[[rank + 1, sizes[rank], 0]]))
            phases.append(phase(strands=[[0, 1, [[1, "add", rank + 1, 1]]]], mp=1))
        builder.launch(rank, [phases])
    return builder


@given(
    st.lists(st.floats(1, 1e7), min_size=1, max_size=5),
    st.lists(st.floats(0, 1e8), min_size=1, max_size=3),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_a_chain_without_contention_is_monotone(
    sizes: list[float], work: list[float], data: st.DataObject
) -> None:
    base = replay(chain(sizes, work).trace(), M).total_us
    at = data.draw(st.integers(0, len(sizes) - 1))
    bigger = [*sizes[:at], sizes[at] + data.draw(st.floats(0, 1e7)), *sizes[at + 1 :]]
    assert replay(chain(bigger, work).trace(), M).total_us >= base - 1e-6
    harder = [work[0] + data.draw(st.floats(0, 1e8)), *work[1:]]
    assert replay(chain(sizes, harder).trace(), M).total_us >= base - 1e-6


def random_trace(seed: int) -> tuple[Builder, dict[str, float]]:
    """A busy trace: several kernels per rank with work, remote traffic to everybody, flags, puts and
    collectives."""
    rng = random.Random(seed)
    ranks = rng.choice([2, 4])
    builder = Builder(ranks, lsa_team=rng.choice([1, ranks]), regs=rng.choice([32, 64, 128]))
    totals = {"mma": 0.0, "remote": 0.0}
    flops: dict[int, float] = dict.fromkeys(range(ranks), 0.0)
    out: dict[int, float] = dict.fromkeys(range(ranks), 0.0)
    for rank in range(ranks):
        builder.word(rank, rank, f"arrivals {rank}")
    posted = 0
    for rank in range(ranks):
        for _ in range(rng.randint(1, 3)):
            ctas = []
            for _ in range(rng.randint(1, 300)):
                amount, size = rng.uniform(0, 2e7), rng.uniform(0, 1e5)
                peer = (rank + rng.randint(1, ranks - 1)) % ranks
                flops[rank] += amount
                out[rank] += size
                flag = [[0, 4, [[2, "add", peer, 1]]]]
                ctas.append(
                    [phase(mma_bf16=amount), phase(remote=[[peer, size, 0]]), phase(strands=flag, mp=8)]
                )
            builder.launch(rank, ctas, stream=rng.randint(0, 2), priority=rng.choice([0, -1]))
        builder.nic(posted, rank, (rank + 1) % ranks, rng.uniform(0, 1e6), sig=[(rank + 1) % ranks, 1])
        builder.launch(rank, [[phase(strands=[[0, 0, [[0, "put", posted]]]])]], stream=1)
        posted += 1
        builder.host(rank, "nccl", 2, coll="AllReduce", bytes=1e6, comm=0, seq=0)
    totals["mma"] = max(flops.values())
    totals["remote"] = max(out.values())
    return builder, totals


@pytest.mark.parametrize("seed", range(12))
def test_conservation_floor_and_repetition(seed: int) -> None:
    builder, totals = random_trace(seed)
    trace = builder.trace()
    timing = replay(trace, M)
    again = replay(builder.trace(), M)
    assert again == timing
    check_ports(timing)
    compute = totals["mma"] / (M.rates.mma_bf16 * CLOCKS * M.sm.count)
    port = M.nvlink if trace.lsa_team == trace.ranks else M.nic
    assert timing.total_us >= max(compute, totals["remote"] / (port.gbs * 1e3))


def check_ports(timing: Timing) -> None:
    """Busy time is within the replay, and no port moved more than its rate allows."""
    for use in timing.ports:
        rate = (M.nvlink if use.kind.startswith("nvlink") else M.nic).gbs * 1e3
        assert use.busy_us <= timing.total_us + 1e-6
        assert use.bytes <= rate * use.busy_us * (1 + 1e-6) + 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_parts_take_no_longer_than_the_whole_work_needs(seed: int) -> None:
    """Compute alone has no communication in it; communication alone moves the same bytes."""
    builder, _ = random_trace(seed)
    trace = builder.trace()
    whole, compute, communication = (
        replay(trace, M, part=part) for part in ("all", "compute", "communication")
    )
    assert all(use.bytes == 0 for use in compute.ports)
    assert [use.bytes for use in communication.ports] == pytest.approx([use.bytes for use in whole.ports])
    assert compute.total_us <= whole.total_us + 1e-6


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.integers(1, 50)), min_size=1, max_size=8))
def test_water_level_uses_all_there_is_and_no_more(wanted: list[tuple[float, int]]) -> None:
    level = water_level(wanted)
    used = sum(min(share, level) * count for share, count in wanted)
    asked = sum(share * count for share, count in wanted)
    assert used == pytest.approx(min(1.0, asked), rel=1e-9)


def test_many_transfers_share_a_port_fairly() -> None:
    """Equal transfers that start together end together, up to a turn."""
    builder = Builder(2)
    size = 3.7e6
    builder.launch(0, [[phase(remote=[[1, size, 0]])]] * 8)
    timing = replay(builder.trace(), M)
    sent = 8 * size / (M.nvlink.gbs * 1e3)
    start = M.host.launch_us + M.host.launch_latency_us
    ends = [time - start for time, _ in timing.timeline.occupancy[0].points[1:]]
    assert ends[-1] == pytest.approx(sent, rel=1e-6)
    assert ends[0] >= sent * (1 - 1.5 / TURNS)


def test_halving_launches_and_latencies_never_slows_a_chain() -> None:
    builder = chain([1e6, 2e6, 3e6], [1e7])
    half = M.override(scale_launch=0.5, scale_latency=0.5)
    assert replay(builder.trace(), half).total_us < replay(builder.trace(), M).total_us
