# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""Warp operations, block barriers, mbarrier and asynchronous copies."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_machine import HEADER, Machine


def kernel(body: str, inputs: int = 1, registers: str = "") -> str:
    """One word in per input and one out per thread: a, b are inputs, d is the result, t the thread."""
    names = "ab"[:inputs]
    params = ", ".join(f".param .u64 p_{x}" for x in ("d", *names))
    lines = [
        f".visible .entry k({params}) {{ .reg .b64 p_, o_; .reg .b32 t, d, a, b; .reg .pred p, q; {registers}"
    ]
    lines.append("mov.u32 t, %tid.x; mul.wide.u32 o_, t, 4;")
    for x in names:
        lines.append(f"ld.param.u64 p_, [p_{x}]; add.u64 p_, p_, o_; ld.global.u32 {x}, [p_];")
    lines.append(body)
    lines.append("ld.param.u64 p_, [p_d]; add.u64 p_, p_, o_; st.global.u32 [p_], d; ret; }")
    return HEADER + "\n".join(lines) + "\n"


def execute(machine: Machine, text: str, *inputs: np.ndarray, threads: int = 32) -> np.ndarray:
    out = np.zeros(threads, np.uint32)
    result = machine.build(text).run("k", [out, *inputs], block=(threads, 1, 1))
    assert not result.failure, result.failure
    return out


VALUES = np.arange(32, dtype=np.uint32) * 3 + 100


def shuffled(mode: str, b: int, c: int) -> tuple[list[int], list[bool]]:
    values, flags = [], []
    for lane in range(32):
        segment, clamp = c >> 8 & 31, c & 31
        most, least = (lane & segment) | (clamp & ~segment), lane & segment
        j, ok = {
            "up": (lane - b, lane - b >= most),
            "down": (lane + b, lane + b <= most),
            "bfly": (lane ^ b, (lane ^ b) <= most),
            "idx": (least | (b & ~segment), (least | (b & ~segment)) <= most),
        }[mode]
        values.append(int(VALUES[j if ok else lane]))
        flags.append(ok)
    return values, flags


SHUFFLES = [("up", 3, 0), ("down", 5, 31), ("bfly", 7, 31), ("idx", 9, 31), ("idx", 2, 0x181F), ("down", 2, 0x1C1F), ("up", 1, 0x1800)]  # fmt: skip
REDUCTIONS = ("add.s32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32")


def shuffle_text(mode: str, b: int, c: int) -> str:
    return kernel(f"shfl.sync.{mode}.b32 d|p, a, {b}, {c}, -1; @!p add.u32 d, d, 1000000;")


def vote_text(mode: str) -> str:
    return kernel(f"setp.ne.u32 p, a, 0; vote.sync.{mode}.pred q, p, -1; selp.u32 d, 1, 0, q;")


def redux_text(op: str) -> str:
    return kernel(f"redux.sync.{op} d, a, -1;")


def barrier_text(op: str, form: str) -> str:
    """op: operation with its destination; form: the whole block, or a named barrier with a negated predicate."""
    operation, target = op.split()
    tail = "" if operation.startswith("popc") else "selp.u32 d, 1, 0, q;"
    if form == "bar":
        return kernel(f"setp.ne.u32 p, a, 0; bar.red.{operation} {target}, 0, p; {tail}")
    return kernel(f"setp.ne.u32 p, a, 0; barrier.cta.red.{operation} {target}, 3, 64, !p; {tail}")


BARRIERS = ("popc.u32 d", "and.pred q", "or.pred q")


@pytest.fixture(scope="module", autouse=True)
def compiled(machine: Machine) -> None:
    machine.batch(
        [shuffle_text(*s) for s in SHUFFLES]
        + [vote_text(m) for m in ("any", "all", "uni")]
        + [redux_text(op) for op in REDUCTIONS]
        + [barrier_text(op, form) for op in BARRIERS for form in ("bar", "named")]
    )


@pytest.mark.parametrize(("mode", "b", "c"), SHUFFLES)
def test_shuffle(machine: Machine, mode: str, b: int, c: int) -> None:
    values, flags = shuffled(mode, b, c)
    got = execute(machine, shuffle_text(mode, b, c), VALUES)
    assert got.tolist() == [v + (0 if ok else 1000000) for v, ok in zip(values, flags, strict=True)]


def test_votes(machine: Machine) -> None:
    a = (np.arange(32) % 3 == 0).astype(np.uint32)
    ballot = sum(1 << n for n in range(32) if a[n])
    text = kernel("setp.ne.u32 p, a, 0; vote.sync.ballot.b32 d, p, 0xffffffff;")
    assert set(execute(machine, text, a).tolist()) == {ballot}
    for mode, value in (("any", True), ("all", False), ("uni", False)):
        text = vote_text(mode)
        assert set(execute(machine, text, a).tolist()) == {int(value)}
        assert set(execute(machine, text, np.ones(32, np.uint32)).tolist()) == {1}
    # half warps diverge and vote among themselves
    body = (
        "setp.ge.u32 q, t, 16; setp.ne.u32 p, a, 0; @q bra $high; vote.sync.ballot.b32 d, p, 0x0000ffff; bra $end;"
        "$high: vote.sync.ballot.b32 d, p, 0xffff0000; $end: activemask.b32 b; shr.u32 b, b, t; and.b32 b, b, 1; setp.eq.u32 p, b, 0; @p trap;"
    )
    got = execute(machine, kernel(body), a)
    assert got.tolist() == [ballot & 0xFFFF] * 16 + [ballot & 0xFFFF0000] * 16


def test_match_redux_elect(machine: Machine) -> None:
    a = (np.arange(32, dtype=np.uint32) * 7) % 5
    got = execute(machine, kernel("match.any.sync.b32 d, a, -1;"), a)
    assert got.tolist() == [sum(1 << k for k in range(32) if a[k] == v) for v in a]
    text = kernel("match.all.sync.b32 d|p, a, -1; @p add.u32 d, d, 5;")
    assert set(execute(machine, text, a).tolist()) == {0}
    assert set(execute(machine, text, np.full(32, 9, np.uint32)).tolist()) == {4}  # all ones + 5 wraps
    signed = np.array([(-3) ** (n % 4) * n for n in range(32)], dtype=np.int32)
    raw = signed.view(np.uint32)
    for op, want in (
        ("add.s32", int(signed.sum()) & 0xFFFFFFFF),
        ("min.s32", int(signed.min()) & 0xFFFFFFFF),
        ("max.s32", int(signed.max())),
        ("min.u32", int(raw.min())),
        ("max.u32", int(raw.max())),
        ("and.b32", int(np.bitwise_and.reduce(raw))),
        ("or.b32", int(np.bitwise_or.reduce(raw))),
        ("xor.b32", int(np.bitwise_xor.reduce(raw))),
    ):
        assert set(execute(machine, redux_text(op), raw).tolist()) == {want}, op
    got = execute(machine, kernel("elect.sync d|p, -1; @p add.u32 d, d, 7;"), a)
    assert got.tolist() == [7] + [0] * 31


def test_wrong_mask_is_an_error(machine: Machine) -> None:
    program = machine.build(kernel("bar.warp.sync 1; mov.u32 d, 0;"))
    assert "outside its mask" in program.run("k", [np.zeros(32, np.uint32), VALUES]).failure


def test_block_barriers_order_shared_memory(machine: Machine) -> None:
    text = kernel(
        ".shared .align 4 .b32 box[128]; mov.u32 b, box; shl.b32 d, t, 2; add.u32 b, b, d; st.shared.u32 [b], a;"
        "bar.sync 0; mov.u32 b, box; mov.u32 d, 508; shl.b32 t, t, 2; sub.u32 d, d, t; add.u32 b, b, d; ld.shared.u32 d, [b];"
    )
    values = np.arange(128, dtype=np.uint32)
    assert execute(machine, text, values, threads=128).tolist() == values[::-1].tolist()


def test_barrier_reductions_and_named_barriers(machine: Machine) -> None:
    a = (np.arange(64) % 4 == 1).astype(np.uint32)
    for op, want in (("popc.u32 d", 16), ("and.pred q", 0), ("or.pred q", 1)):
        assert set(execute(machine, barrier_text(op, "bar"), a, threads=64).tolist()) == {want}
        inverted = {"popc.u32 d": 48, "and.pred q": 0, "or.pred q": 1}[op]
        assert set(execute(machine, barrier_text(op, "named"), a, threads=64).tolist()) == {inverted}
    # producer warp arrives, consumer warp waits
    body = (
        ".shared .align 4 .b32 box; setp.lt.u32 p, t, 32; @p bra $produce; barrier.sync 2, 64; ld.shared.u32 d, [box]; bra $end;"
        "$produce: mov.u32 d, 0; setp.ne.u32 q, t, 31; @q bra $arrive; st.shared.u32 [box], 99;"
        "$arrive: bar.warp.sync -1; barrier.arrive 2, 64; $end: barrier.cluster.arrive; barrier.cluster.wait;"
    )
    assert execute(machine, kernel(body), a, threads=64).tolist() == [0] * 32 + [99] * 32


def test_mbarrier_phases(machine: Machine) -> None:
    body = """
.shared .align 8 .b64 bar; .reg .b64 state; .reg .b32 m; mov.u32 m, bar;
setp.ne.u32 p, t, 0; @p bra $ready; mbarrier.init.shared::cta.b64 [m], 64; $ready: bar.sync 0;
mov.u32 d, 0;
mbarrier.arrive.shared::cta.b64 state, [m];
$wait: mbarrier.try_wait.shared::cta.b64 q, [m], state; @!q bra $wait;
mbarrier.pending_count.b64 b, state; setp.gt.u32 q, b, 64; @q trap;
mbarrier.arrive.release.cta.shared::cta.b64 _, [m];
$again: mbarrier.test_wait.parity.shared::cta.b64 q, [m], 1; nanosleep.u32 1; @!q bra $again;
add.u32 d, a, 1;
"""
    a = np.arange(64, dtype=np.uint32)
    assert execute(machine, kernel(body), a, threads=64).tolist() == (a + 1).tolist()


def test_asynchronous_copies(machine: Machine) -> None:
    body = """
.shared .align 16 .b8 box[512]; .reg .b32 m; .reg .b64 g; mov.u32 m, box; shl.b32 b, t, 4; add.u32 m, m, b;
ld.param.u64 g, [p_a]; cvt.u64.u32 o_, b; add.u64 g, g, o_;
cp.async.cg.shared.global [m], [g], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
ld.shared.u32 d, [m+12];
cp.async.ca.shared.global.L2::128B [m], [g], 8, 4; cp.async.wait_all; ld.shared.u32 b, [m+4]; add.u32 d, d, b;
setp.eq.u32 p, t, 3; cp.async.ca.shared.global [m+8], [g], 4, p; cp.async.wait_all; ld.shared.u32 b, [m+8];
@!p sub.u32 b, b, a; @p add.u32 b, b, 1000; mul.wide.u32 o_, t, 4;
"""
    source = np.arange(128, dtype=np.uint32) + 50
    text = kernel(body + "@p add.u32 d, d, b;")
    got = execute(machine, text, source)
    want = [int(source[4 * t + 3]) + (1000 if t == 3 else 0) for t in range(32)]
    assert got.tolist() == want
    classes = machine.build(text).run("k", [np.zeros(32, np.uint32), source]).classes
    assert classes["ld_global_bytes"] == 32 * (4 + 16 + 8 + 4) and classes["st_shared_bytes"] == 32 * (
        16 + 8 + 4
    )


def test_bulk_copies_complete_transactions(machine: Machine) -> None:
    body = """
.shared .align 128 .b8 box[128]; .shared .align 8 .b64 bar; .reg .b32 m, n; .reg .b64 g, state; mov.u32 m, bar; mov.u32 n, box;
setp.ne.u32 p, t, 0; @p bra $wait;
mbarrier.init.shared.b64 [m], 1; fence.proxy.async.shared::cta; ld.param.u64 g, [p_a];
mbarrier.arrive.expect_tx.shared::cta.b64 state, [m], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [n], [g], 128, [m];
$wait: bar.sync 0;
$poll: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 q, [m], 0; @!q bra $poll;
shl.b32 b, t, 2; add.u32 n, n, b; ld.shared.u32 d, [n]; add.u32 b, d, 5; st.shared.u32 [n], b; bar.sync 0;
@p bra $end; ld.param.u64 g, [p_a]; mov.u32 n, box;
cp.async.bulk.global.shared::cta.bulk_group [g], [n], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [n], 64; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
$end: mul.wide.u32 o_, t, 4;
"""
    source = np.arange(32, dtype=np.uint32) * 2
    before = source.copy()
    text = kernel(body)
    program = machine.build(text)
    out = np.zeros(32, np.uint32)
    result = program.run("k", [out, source])
    assert not result.failure, result.failure
    assert out.tolist() == before.tolist()
    assert source.tolist() == [int(v) + 5 + (int(v) + 5 if n < 16 else 0) for n, v in enumerate(before)]
    assert (
        result.classes["ld_global_bytes"] == 32 * 4 + 128
        and result.classes["st_global_bytes"] == 32 * 4 + 128 + 64
    )
