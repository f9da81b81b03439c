"""Traces small enough to compute by hand."""

from __future__ import annotations

import pytest
from vtime_builder import Builder, phase

from cuco.testbed.vtime import TraceError, load_machine, replay
from cuco.testbed.vtime.machine import Machine

M = load_machine("h200-nvlink-8")
LAUNCH = M.host.launch_us + M.host.launch_latency_us
CLOCKS = M.sm.clock_ghz * 1e3


def one_slot() -> Machine:
    """One SM that holds one CTA."""
    return M.override(values={"sm.count": 1, "sm.blocks": 1})


def mma_us(flops: float) -> float:
    return flops / (M.rates.mma_bf16 * CLOCKS)


def test_one_cta() -> None:
    builder = Builder()
    builder.launch(0, [[phase(mma_bf16=1e9)]])
    assert replay(builder.trace(), M).total_us == pytest.approx(LAUNCH + mma_us(1e9) + 0)


def test_phases_without_synchronisation_add_up() -> None:
    builder = Builder()
    builder.launch(0, [[phase(mma_bf16=1e8), phase(fp32=1e6), phase(mma_bf16=2e8)]])
    fp32 = 1e6 / (M.rates.fp32 * CLOCKS)
    assert replay(builder.trace(), M).total_us == pytest.approx(LAUNCH + mma_us(3e8) + fp32)


@pytest.mark.parametrize(("ctas", "waves"), [(1, 1), (132, 1), (133, 2), (264, 2), (265, 3)])
def test_waves_on_one_slot_per_sm(ctas: int, waves: int) -> None:
    machine = M.override(values={"sm.blocks": 1})
    builder = Builder()
    builder.launch(0, [[phase(mma_bf16=1e8)]] * ctas)
    assert replay(builder.trace(), machine).total_us == pytest.approx(LAUNCH + waves * mma_us(1e8))


def test_two_ctas_share_a_pipe_and_hardly_two_pipes() -> None:
    machine = M.override(values={"sm.count": 1})
    same, different = Builder(), Builder()
    same.launch(0, [[phase(mma_bf16=1e8)]] * 2)
    shared = mma_us(1e8) * M.rates.shared_bytes * CLOCKS  # as long on the shared memory pipe
    different.launch(0, [[phase(mma_bf16=1e8)], [phase(ld_shared=shared)]])
    assert replay(same.trace(), machine).total_us == pytest.approx(LAUNCH + 2 * mma_us(1e8))
    # Pipes overlap, though not perfectly: the norm of two equal loads.
    together = mma_us(1e8) * 2 ** (1 / M.threads.pipe_norm)
    assert replay(different.trace(), machine).total_us == pytest.approx(LAUNCH + together)


def test_few_warps_cannot_fill_a_pipe() -> None:
    builder = Builder()
    builder.launch(0, [[phase(fp32=1e6)]], threads=32)
    expected = 1e6 / (M.rates.fp32 * CLOCKS) * M.threads.warps_for_full_alu
    assert replay(builder.trace(), M).total_us == pytest.approx(LAUNCH + expected)


def test_a_long_thread_bounds_its_phase() -> None:
    builder = Builder()
    builder.launch(0, [[phase(int=100, mp=1e5)]])
    assert replay(builder.trace(), M).total_us == pytest.approx(
        LAUNCH + 1e5 * M.threads.cycles_per_instruction / CLOCKS
    )


def test_hbm_is_shared_by_the_gpu() -> None:
    size = 132 * 4e6
    builder = Builder()
    builder.launch(0, [[phase(ld_global=4e6)]] * 132, threads=1024, unique=[size, 0])
    moved = size / (M.memory.hbm_gbs * 1e3)
    assert replay(builder.trace(), M).total_us == pytest.approx(LAUNCH + moved, rel=0.03)


def test_l2_serves_what_fits() -> None:
    small, large = Builder(), Builder()
    for builder, unique in ((small, 20e6), (large, 132 * 4e6)):
        builder.launch(0, [[phase(ld_global=4e6)]] * 132, threads=1024, unique=[unique, 0])
    by_l2 = 132 * 4e6 / (M.memory.l2_gbs * 1e3)
    assert replay(small.trace(), M).total_us == pytest.approx(LAUNCH + by_l2, rel=0.03)
    assert replay(large.trace(), M).total_us > replay(small.trace(), M).total_us


def test_kernels_in_a_stream_follow_each_other() -> None:
    builder = Builder()
    for _ in range(3):
        builder.launch(0, [[phase(mma_bf16=1e9)]])
    expected = LAUNCH + 3 * mma_us(1e9) + 2 * M.host.kernel_gap_us
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def test_short_kernels_are_bound_by_the_host() -> None:
    builder = Builder()
    for _ in range(10):
        builder.launch(0, [[phase(mma_bf16=1e5)]])
    expected = 10 * M.host.launch_us + M.host.launch_latency_us + mma_us(1e5)
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def test_events_join_streams() -> None:
    builder = Builder()
    builder.launch(0, [[phase(mma_bf16=1e9)]], stream=1)
    builder.host(0, "record", 1, event=5, ver=1)
    builder.host(0, "wait_event", 2, event=5, ver=1)
    builder.launch(0, [[phase(mma_bf16=1e9)]], stream=2)
    expected = LAUNCH + 2 * mma_us(1e9) + M.host.cross_stream_us
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def test_the_host_blocks_in_a_synchronisation() -> None:
    builder = Builder()
    builder.launch(0, [[phase(mma_bf16=1e9)]], stream=3)
    builder.host(0, "stream_sync", 3)
    builder.launch(0, [[phase(mma_bf16=1e9)]], stream=3)
    expected = 2 * (LAUNCH + mma_us(1e9)) + M.host.sync_us
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def flag_trace(size: float) -> Builder:
    """Rank 0 stores ``size`` bytes into rank 1 and then raises a flag there; rank 1 waits for it."""
    builder = Builder(2)
    builder.word(0, 1, "flag")
    builder.launch(0, [[phase(remote=[[1, size, 0]]), phase(strands=[[0, 10, [[10, "add", 0, 1]]]], mp=10)]])
    builder.launch(1, [[phase(strands=[[0, 10, [[10, "wait", 0, "ge", 1]]]], mp=10)]])
    return builder


def test_a_flag_follows_its_data() -> None:
    size = 37e6
    chain = 10 * M.threads.cycles_per_instruction / CLOCKS
    last_byte = size / (M.nvlink.gbs * 1e3) + M.nvlink.latency_us
    raised = size / (M.nvlink.gbs * 1e3) + chain + M.nvlink.latency_us
    expected = LAUNCH + max(last_byte, raised) + M.sync.poll_us
    assert replay(flag_trace(size).trace(), M).total_us == pytest.approx(expected)


def test_a_stored_version_ends_the_wait_for_it_and_for_older_ones() -> None:
    builder = Builder(1)
    builder.word(4, 0, "epoch")
    builder.launch(0, [[phase(mma_bf16=1e9, strands=[[0, 100, [[50, "st", 4, 7]]]], mp=100)]], stream=0)
    builder.launch(0, [[phase(strands=[[0, 10, [[0, "wait", 4, "ver", 6]]]], mp=10)]], stream=1)
    timing = replay(builder.trace(), M)
    assert timing.total_us == pytest.approx(LAUNCH + mma_us(1e9))
    waiter = next(lane for lane in timing.timeline.lanes if lane.name == "stream 1")
    seen = LAUNCH + mma_us(1e9) / 2 + M.sync.local_visible_us + M.sync.poll_us
    assert waiter.intervals[0].end == pytest.approx(seen + 10 * M.threads.cycles_per_instruction / CLOCKS)


def test_remote_reads_take_a_round_trip() -> None:
    builder = Builder(2)
    builder.launch(0, [[phase(remote=[[1, 0, 37e6]])]])
    expected = LAUNCH + 2 * M.nvlink.latency_us + 37e6 / (M.nvlink.gbs * 1e3)
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


@pytest.mark.parametrize("strong", [False, True])
def test_a_put_and_its_signal(strong: bool) -> None:
    size = 4.8e6
    builder = Builder(2, lsa_team=1)
    builder.word(0, 1, "signal 0 of context 0")
    builder.nic(9, 0, 1, size, sig=[0, 1], strong=strong)
    builder.launch(0, [[phase(strands=[[0, 0, [[0, "put", 9]]]])]])
    builder.launch(1, [[phase(strands=[[0, 0, [[0, "wait", 0, "ge", 1]]]])]])
    gin = M.gin
    arrived = (
        LAUNCH
        + gin.proxy_pickup_us
        + gin.proxy_us_per_descriptor
        + size / (M.nic.gbs * 1e3)
        + M.nic.latency_us
    )
    timing = replay(builder.trace(), M)
    assert timing.total_us == pytest.approx(arrived + max(M.sync.poll_us, gin.completion_us))


def test_a_flush_waits_for_the_acknowledgement() -> None:
    builder = Builder(2, lsa_team=1)
    builder.word(0, 0, "done")
    builder.nic(1, 0, 1, 4.8e6)
    builder.nic(2, 0, 1, 0, kind="flush", done=[0, 1])
    builder.launch(0, [[phase(strands=[[0, 0, [[0, "put", 1], [0, "put", 2], [0, "wait", 0, "ge", 1]]]])]])
    gin = M.gin
    arrived = LAUNCH + gin.proxy_pickup_us + gin.proxy_us_per_descriptor + 100 + M.nic.latency_us
    assert replay(builder.trace(), M).total_us == pytest.approx(arrived + gin.completion_us + M.sync.poll_us)


def test_puts_of_one_queue_share_the_port_in_order() -> None:
    builder = Builder(2, lsa_team=1)
    builder.word(0, 1, "signal")
    for number in range(4):
        builder.nic(number, 0, 1, 4.8e5, sig=[0, 1])
    builder.launch(0, [[phase(strands=[[0, 0, [[0, "put", number] for number in range(4)]]])]])
    builder.launch(1, [[phase(strands=[[0, 0, [[0, "wait", 0, "ge", 4]]]])]])
    gin = M.gin
    first = LAUNCH + gin.proxy_pickup_us + gin.proxy_us_per_descriptor
    expected = first + 4 * 10 + M.nic.latency_us + gin.completion_us
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def test_a_spinning_cta_keeps_its_slot() -> None:
    builder = Builder(1)
    builder.word(0, 0, "ready")
    builder.launch(0, [[phase(strands=[[0, 0, [[0, "wait", 0, "ge", 1]]]])]], stream=0)
    builder.launch(0, [[phase(strands=[[0, 0, [[0, "add", 0, 1]]]])]], stream=1)
    replay(builder.trace(), M)  # two slots: fine
    with pytest.raises(TraceError, match="waits for ready.*no slot for kernel"):
        replay(builder.trace(), one_slot())


def test_priority_goes_first() -> None:
    builder = Builder(1)
    builder.launch(0, [[phase(mma_bf16=1e9)]] * 4, stream=0)
    builder.launch(0, [[phase(mma_bf16=1e9)]], stream=1, priority=-5)
    timing = replay(builder.trace(), one_slot())
    urgent = next(lane for lane in timing.timeline.lanes if lane.name == "stream 1")
    assert urgent.intervals[0].end == pytest.approx(LAUNCH + 2 * mma_us(1e9))


def test_steps_are_measured_from_the_common_start() -> None:
    builder = Builder(2)
    builder.host(1, "api", name="slow start")
    builder.step(3, lambda rank: builder.launch(rank, [[phase(mma_bf16=1e9 * (rank + 1))]]))
    step = replay(builder.trace(), M).step(3)
    assert step.us == pytest.approx([LAUNCH + mma_us(1e9), LAUNCH + mma_us(2e9)])
    assert step.device_us == pytest.approx([mma_us(1e9), mma_us(2e9)])
    assert step.max_us == step.us[1]


def test_unknown_words_are_refused() -> None:
    builder = Builder(1)
    builder.host(0, "teleport")
    with pytest.raises(TraceError, match="teleport"):
        replay(builder.trace(), M)


def test_host_memory_is_behind_pcie() -> None:
    builder = Builder(1)
    builder.launch(0, [[phase(remote=[[-1, 50e3, 0]])]])
    builder.records.append(
        {"set": [0, 0], "rank": 0, "kernel": "kernel", "grid": [1, 1, 1], "w": [], "r": []}
    )
    expected = LAUNCH + 50e3 / (M.memory.pcie_gbs * 1e3) + M.memory.latency_us
    assert replay(builder.trace(), M).total_us == pytest.approx(expected)


def test_tickets_block_only_the_cta_that_goes_on() -> None:
    """Four CTAs in two waves count themselves; the one that came last in the run sends. Nobody else waits."""
    builder = Builder(2)
    builder.word(3, 0, "tickets")
    builder.word(4, 1, "arrived")
    ctas = []
    for ticket in (3, 2, 1, 0):  # the first CTA drew the last ticket
        pair = [[0, "wait", 3, "ge", ticket], [0, "add", 3, 1]]
        phases = [phase(mma_bf16=1e9), phase(strands=[[0, 0, pair]])]
        if ticket == 3:
            phases.append(phase(remote=[[1, 37e4, 0]]))
        ctas.append(phases)
    builder.launch(0, ctas)
    machine = M.override(values={"sm.count": 1, "sm.blocks": 2})
    two_waves = LAUNCH + 2 * 2 * mma_us(1e9)
    with_send = two_waves + M.sync.local_visible_us + M.sync.poll_us + 1 + M.nvlink.latency_us
    # The sender keeps its slot until the others have counted themselves: they pass the other slot one by one.
    total = replay(builder.trace(), machine).total_us
    assert two_waves < total <= with_send + 1e-6
