# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""Branches, predicates, calls, locations, unsupported opcodes, traps and counters."""

from __future__ import annotations

import numpy as np
from ptx_machine import HEADER, Machine

LOOP = (
    HEADER
    + r"""
.visible .entry collatz(.param .u64 out, .param .u64 in) {
  .reg .b64 p, q, o; .reg .b32 n, s, t; .reg .pred g, h;
  ld.param.u64 p, [out]; ld.param.u64 q, [in];
  mov.u32 t, %tid.x; mul.wide.u32 o, t, 4; add.u64 p, p, o; add.u64 q, q, o;
  ld.global.u32 n, [q]; mov.u32 s, 0;
$again:
  setp.eq.u32 g, n, 1;
  @g bra $done;
  and.b32 t, n, 1; setp.ne.u32 h, t, 0;
  @h mad.lo.u32 n, n, 3, 1;
  @!h shr.u32 n, n, 1;
  add.u32 s, s, 1;
  bra.uni $again;
$done:
  st.global.u32 [p], s;
  ret;
}
"""
)


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    return steps


def test_divergent_loops_and_exact_block_counts(machine: Machine) -> None:
    program = machine.build(LOOP)
    values = np.arange(1, 65, dtype=np.uint32)
    out = np.zeros(64, np.uint32)
    result = program.run("collatz", [out, values], block=(64, 1, 1))
    want = [collatz(int(v)) for v in values]
    assert not result.failure and out.tolist() == want
    odd = sum(1 for v in values for n in path(int(v)) if n % 2 and n != 1)
    total = sum(want)
    counts = sorted(int(c) for c in result.blocks)
    assert counts == sorted([64, total + 64, total, odd, total - odd, total, 64])
    weights = np.array(program.translation.block_weight, dtype=np.uint64)
    assert result.progress == int((weights * result.blocks).sum())


def path(n: int) -> list[int]:
    out = [n]
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        out.append(n)
    return out


CALLS = (
    HEADER
    + r"""
.global .align 8 .u64 functions[2] = {twice, square};
.func (.param .b32 r) twice(.param .b32 x) { .reg .b32 a; ld.param.b32 a, [x]; add.u32 a, a, a; st.param.b32 [r], a; ret; }
.func (.param .b32 r) square(.param .b32 x) { .reg .b32 a; ld.param.b32 a, [x]; mul.lo.u32 a, a, a; st.param.b32 [r], a; ret; }
.func (.param .b32 r) fib(.param .b32 x) {
  .reg .b32 a, b, c; .reg .pred g;
  ld.param.b32 a, [x]; setp.lt.u32 g, a, 2; @g bra $leaf;
  sub.u32 b, a, 1;
  { .param .b32 p0; .param .b32 v0; st.param.b32 [p0+0], b; call.uni (v0), fib, (p0); ld.param.b32 c, [v0+0]; }
  sub.u32 b, a, 2;
  { .param .b32 p0; .param .b32 v0; st.param.b32 [p0+0], b; call.uni (v0), fib, (p0); ld.param.b32 a, [v0+0]; }
  add.u32 a, a, c;
$leaf:
  st.param.b32 [r], a; ret;
}
.func leave(.param .b32 x) { .reg .b32 a; .reg .pred g; ld.param.b32 a, [x]; setp.gt.u32 g, a, 2; @g exit; ret; }
.visible .entry calls(.param .u64 out) {
  .reg .b64 p, f, o; .reg .b32 t, r; .reg .pred g;
  ld.param.u64 p, [out]; mov.u32 t, %tid.x; mul.wide.u32 o, t, 12; add.u64 p, p, o;
  and.b32 r, t, 1; mul.wide.u32 o, r, 8; mov.u64 f, functions; add.u64 f, f, o; ld.global.u64 f, [f];
  { .param .b32 p0; .param .b32 v0; st.param.b32 [p0+0], t;
    prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);
    call (v0), f, (p0), prototype_0; ld.param.b32 r, [v0+0]; }
  st.global.u32 [p], r;
  { .param .b32 p0; .param .b32 v0; st.param.b32 [p0+0], t; call.uni (v0), fib, (p0); ld.param.b32 r, [v0+0]; }
  st.global.u32 [p+4], r;
  { .param .b32 p0; st.param.b32 [p0+0], t; call.uni leave, (p0); }
  st.global.u32 [p+8], 1;
  ret;
}
.visible .entry switch(.param .u64 out) {
  .reg .b64 p, o; .reg .b32 t, r;
  ld.param.u64 p, [out]; mov.u32 t, %tid.x; mul.wide.u32 o, t, 4; add.u64 p, p, o;
$table: .branchtargets $a, $b, $c;
  brx.idx t, $table;
$a: mov.u32 r, 10; bra $end;
$b: mov.u32 r, 20; bra $end;
$c: mov.u32 r, 30;
$end: st.global.u32 [p], r; ret;
}
.visible .entry early(.param .u64 out) {
  .reg .b64 p; .reg .b32 t; .reg .pred g; ld.param.u64 p, [out]; mov.u32 t, %tid.x;
  setp.ne.u32 g, t, 0; @g exit; bar.sync 0; st.global.u32 [p], 5; ret;
}
.visible .entry dynamic_stack(.param .u64 out) {
  .reg .b64 p, q, r; .reg .b32 t; ld.param.u64 p, [out];
  stacksave.u64 r; alloca.u64 q, 64, 16; st.local.u32 [q+60], 9; ld.u32 t, [q+60]; stackrestore.u64 r;
  st.global.u32 [p], t; ret;
}
"""
)


def test_calls_direct_recursive_and_through_pointers(machine: Machine) -> None:
    program = machine.build(CALLS)
    out = np.zeros((8, 3), np.uint32)
    result = program.run("calls", [out], block=(8, 1, 1))
    assert not result.failure
    fib = [0, 1, 1, 2, 3, 5, 8, 13]
    assert out[:, 0].tolist() == [t * t if t % 2 else 2 * t for t in range(8)]
    assert out[:, 1].tolist() == fib
    assert out[:, 2].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]  # exit inside a function ends the thread


def test_branch_tables(machine: Machine) -> None:
    program = machine.build(CALLS)
    out = np.zeros(3, np.uint32)
    assert not program.run("switch", [out], block=(3, 1, 1)).failure
    assert out.tolist() == [10, 20, 30]
    assert (
        "index outside its table" in program.run("switch", [np.zeros(4, np.uint32)], block=(4, 1, 1)).failure
    )


def test_exited_threads_leave_barriers(machine: Machine) -> None:
    program = machine.build(CALLS)
    out = np.zeros(1, np.uint32)
    assert not program.run("early", [out], block=(64, 1, 1)).failure and out[0] == 5


def test_alloca(machine: Machine) -> None:
    out = np.zeros(1, np.uint32)
    assert not machine.build(CALLS).run("dynamic_stack", [out], block=(1, 1, 1)).failure and out[0] == 9


UNSUPPORTED = (
    HEADER
    + r"""
.file 1 "/src/kernel.cu"
.file 2 "/src/helper.h"
.visible .entry k(.param .u64 out, .param .u32 go) {
  .reg .b64 p; .reg .b32 r, d; .reg .pred g;
  ld.param.u64 p, [out]; ld.param.u32 r, [go]; setp.eq.u32 g, r, 0;
  .loc 1 41 3
  .loc 2 9 5, function_name $L__info_string0, inlined_at 1 41 3
  .loc 2 5 1, function_name $L__info_string1, inlined_at 2 9 5
  @!g wgmma.fence.sync.aligned;
  .loc 1 43 1
  st.global.u32 [p], 1;
  setp.eq.u32 g, r, 2;
  @g trap;
  ret;
}
.section .debug_str
{
$L__info_string0:
.b8 111,117,116,101,114,0
$L__info_string1:
.b8 105,110,110,101,114,0
}
"""
)


def test_unsupported_stops_only_when_reached_and_names_both_lines(machine: Machine) -> None:
    program = machine.build(UNSUPPORTED)
    (use,) = program.translation.unsupported
    assert use.text.endswith("wgmma.fence.sync.aligned") and use.line == 5 and use.file == "/src/helper.h"
    out = np.zeros(1, np.uint32)
    assert not program.run("k", [out, 0], block=(1, 1, 1)).failure and out[0] == 1
    failure = program.run("k", [out, 1], block=(1, 1, 1)).failure
    assert (
        "unsupported" in failure
        and "wgmma" in failure
        and "/src/helper.h:5" in failure
        and "ptx 13," in failure
    )


def test_sites_carry_the_chain_of_inlined_calls(machine: Machine) -> None:
    sites = machine.build(UNSUPPORTED).translation.sites
    site = next(s for s in sites if "wgmma" in s.text)
    assert (site.function, site.file, site.line) == ("inner", "/src/helper.h", 5)
    assert site.inlined_at == "outer@/src/helper.h:9;k@/src/kernel.cu:41"


def test_trap_names_its_line(machine: Machine) -> None:
    program = machine.build(UNSUPPORTED.replace("@!g wgmma.fence.sync.aligned;", ""))
    failure = program.run("k", [np.zeros(1, np.uint32), 2], block=(1, 1, 1)).failure
    assert failure.startswith("trap") and "/src/kernel.cu:43" in failure


def test_endless_loops_run_out_of_fuel(machine: Machine) -> None:
    text = HEADER + ".visible .entry k() { $a: bra $a; }\n"
    assert "out of fuel" in machine.build(text).run("k", [], block=(1, 1, 1)).failure


RUNTIME = (
    HEADER
    + r"""
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.visible .entry k(.param .u32 bad) {
  .reg .b64 p, q; .reg .b32 r; .reg .pred g;
  mov.u64 p, text; cvta.global.u64 p, p;
  { .param .b64 p0; st.param.b64 [p0], p; .param .b64 p1; st.param.b64 [p1], 0; .param .b32 v;
    call.uni (v), vprintf, (p0, p1); ld.param.b32 r, [v]; }
  { .param .b64 p0; st.param.b64 [p0], 64; .param .b64 v; call.uni (v), malloc, (p0); ld.param.b64 q, [v]; }
  st.u32 [q+60], r;
  { .param .b64 p0; st.param.b64 [p0], q; call.uni free, (p0); }
  nanosleep.u32 50; griddepcontrol.wait; griddepcontrol.launch_dependents;
  ld.param.u32 r, [bad]; setp.eq.u32 g, r, 0; @g ret;
  { .param .b64 p0; st.param.b64 [p0], p; .param .b64 p1; st.param.b64 [p1], p; .param .b32 p2; st.param.b32 [p2], 12;
    .param .b64 p3; st.param.b64 [p3], p; .param .b64 p4; st.param.b64 [p4], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4); }
  ret;
}
"""
)


def test_device_runtime_calls(machine: Machine) -> None:
    program = machine.build(RUNTIME)
    result = program.run("k", [0], block=(2, 1, 1))
    assert not result.failure and result.printed == "hellohello" and result.events.count("sleep50") == 2
    assert program.run("k", [1], block=(1, 1, 1)).failure == "assert hello hello:12 hello"


SPECIAL = (
    HEADER
    + r"""
.visible .entry k(.param .u64 out) {
  .reg .b64 p, o, c; .reg .b32 r, t, w; .reg .pred g;
  ld.param.u64 p, [out];
  mov.u32 t, %tid.y; mov.u32 w, %ntid.x; mul.lo.u32 t, t, w; mov.u32 r, %tid.x; add.u32 t, t, r;
  mul.wide.u32 o, t, 64; add.u64 p, p, o;
  mov.u32 r, %laneid; st.global.u32 [p], r; mov.u32 r, %warpid; st.global.u32 [p+4], r;
  mov.u32 r, %nwarpid; st.global.u32 [p+8], r; mov.u32 r, %lanemask_lt; st.global.u32 [p+12], r;
  mov.u32 r, %lanemask_le; st.global.u32 [p+16], r; mov.u32 r, %lanemask_eq; st.global.u32 [p+20], r;
  mov.u32 r, %lanemask_ge; st.global.u32 [p+24], r; mov.u32 r, %lanemask_gt; st.global.u32 [p+28], r;
  mov.u32 r, %ntid.y; st.global.u32 [p+32], r; mov.u32 r, %nctaid.z; st.global.u32 [p+36], r;
  mov.u32 r, %smid; st.global.u32 [p+40], r; mov.u32 r, %envreg1; st.global.u32 [p+44], r;
  mov.u32 r, %cluster_nctarank; st.global.u32 [p+48], r; mov.u32 r, %clusterid.x; st.global.u32 [p+52], r;
  mov.u64 c, %clock64; mov.u32 r, %clock; cvt.u32.u64 w, c; setp.gt.u32 g, r, w; selp.u32 r, 1, 0, g;
  st.global.u32 [p+56], r; mov.u64 c, %globaltimer; setp.ne.u64 g, c, 0; selp.u32 r, 1, 0, g; st.global.u32 [p+60], r;
  ret;
}
"""
)


def test_special_registers(machine: Machine) -> None:
    out = np.zeros((40, 16), np.uint32)
    result = machine.build(SPECIAL).run("k", [out], block=(20, 2, 1))
    assert not result.failure
    for t in range(40):
        lane = t % 32
        bit, full = 1 << lane, 2**32 - 1
        below = bit - 1
        want = [
            lane,
            t // 32,
            2,
            below,
            below | bit,
            bit,
            full & ~below,
            full & ~(below | bit),
            2,
            1,
            0,
            0x11223344,
            1,
            0,
            1,
            1,
        ]
        assert out[t].tolist() == want
