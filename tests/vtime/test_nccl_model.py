"""The NCCL model against published figures, and its shape."""

from __future__ import annotations

import pytest
from vtime_builder import Builder, phase

from cuco.testbed.vtime import TraceError, load_machine, nccl, replay
from cuco.testbed.vtime.published import FIGURES, Figure, modelled_us

M = load_machine("h200-nvlink-8")


@pytest.mark.parametrize(
    "figure", [item for item in FIGURES if item.gate], ids=lambda item: f"{item.ranks}x{item.bytes}"
)
def test_within_a_fifth_of_published_figures(figure: Figure) -> None:
    assert modelled_us(figure) == pytest.approx(figure.us, rel=0.20)


def test_gated_sizes_are_those_of_the_issue() -> None:
    for ranks in (8, 16):
        sizes = {figure.bytes for figure in FIGURES if figure.gate and figure.ranks == ranks}
        assert {2**20, 2**24, 2**28} <= sizes


@pytest.mark.parametrize(
    "collective",
    ["AllGather", "ReduceScatter", "AllReduce", "Broadcast", "Reduce", "AlltoAll", "Gather", "Scatter"],
)
def test_larger_messages_never_take_less_time(collective: str) -> None:
    times = [nccl.plan(M, collective, float(2**power), range(4)).us for power in range(4, 30)]
    assert times == sorted(times)


def test_protocols_by_size() -> None:
    chosen = [nccl.plan(M, "AllGather", 2.0**power, range(8)).protocol for power in (8, 17, 26)]
    assert chosen == ["LL", "LL128", "Simple"]


def test_domains_of_one_use_the_nic() -> None:
    far = M.placed(1)
    plan = nccl.plan(far, "AllGather", 64e6, range(4))
    assert plan.nvlink_bytes == 0
    assert plan.nic_bytes == pytest.approx(3 * 64e6)
    assert plan.us > 3 * 64e6 / (M.nic.gbs * 1e3)
    near = nccl.plan(M, "AllGather", 64e6, range(4))
    assert near.nic_bytes == 0
    assert near.us < plan.us / 5


def test_a_collective_starts_with_its_last_member() -> None:
    builder = Builder(2)
    for rank in range(2):
        if rank:
            builder.launch(rank, [[phase(mma_bf16=1e9)]])
        builder.host(rank, "nccl", coll="AllGather", bytes=1e6, comm=0, seq=0)
    compute = 1e9 / (M.rates.mma_bf16 * M.sm.clock_ghz * 1e3)
    plan = nccl.plan(M, "AllGather", 1e6, range(2))
    expected = M.host.launch_us + M.host.launch_latency_us + compute + M.host.kernel_gap_us + plan.us
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def test_a_group_of_sends_and_receives_is_one_launch() -> None:
    builder = Builder(2)
    for rank in range(2):
        for coll in ("Send", "Recv"):
            builder.host(rank, "nccl", coll=coll, bytes=1e6, comm=0, peer=1 - rank, group=1)
    host = 2 * M.host.nccl_call_us + M.host.nccl_group_us + M.host.launch_latency_us
    timing = replay(builder.trace(), M)
    assert timing.total_us == pytest.approx(host + nccl.pair_us(M, 1e6, near=True))
    assert sum(len(lane.intervals) for lane in timing.timeline.lanes if lane.kind == "stream") == 2


def test_a_missing_member_is_named() -> None:
    builder = Builder(2)
    for rank in range(2):
        builder.host(rank, "nccl", coll="AllGather", bytes=8, comm=0, seq=0)
    builder.host(0, "nccl", coll="Send", bytes=8, comm=0, peer=1)
    with pytest.raises(TraceError, match="pair"):
        replay(builder.trace(), M)


def test_channels_need_slots() -> None:
    """NCCL's CTAs wait for a slot like any other: a full GPU delays the collective."""
    builder = Builder(2, regs=128)
    for rank in range(2):
        builder.launch(rank, [[phase(mma_bf16=1e9)]] * 264, stream=0)
        builder.host(rank, "nccl", 1, coll="AllGather", bytes=1e6, comm=0, seq=0)
    timing = replay(builder.trace(), M)
    lanes = [lane for lane in timing.timeline.lanes if lane.rank == 0 and lane.kind == "stream"]
    kernel, collective = lanes[0].intervals[0], lanes[1].intervals[0]
    assert collective.end > kernel.end
