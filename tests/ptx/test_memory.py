# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""Loads, stores, atomics, fences, address spaces, variables with initialisers, hooks and remote checks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_machine import HEADER, Machine

MEMORY = (
    HEADER
    + r"""
.global .align 16 .b32 table[4] = {1, -2, 0x30, 4};
.global .align 8 .u64 pointers[2] = {table+8, generic(table)+4};
.const .align 4 .f32 constants[2] = {0f3FC00000, 2.5};
.visible .global .align 4 .u32 counter = 7;
.extern .shared .align 16 .b8 dynamic[];

.visible .entry vectors(.param .u64 out, .param .u64 in) {
  .reg .b64 p, q; .reg .b32 r<4>; .reg .f32 f<2>; .reg .b16 h<4>; .reg .b64 d<2>;
  ld.param.u64 p, [out]; ld.param.u64 q, [in];
  ld.global.v4.u32 {r0, r1, r2, r3}, [q];
  st.global.v4.u32 [p], {r3, r2, r1, r0};
  ld.global.nc.v2.f32 {f0, f1}, [q+16];
  st.global.v2.f32 [p+16], {f1, f0};
  ld.global.ca.v4.u16 {h0, _, h2, h3}, [q+24];
  st.global.cs.v2.u16 [p+24], {h3, h0};
  ld.v2.u64 {d0, d1}, [q+32];
  st.v2.u64 [p+32], {d1, d0};
  ld.global.s8 r0, [q+48]; ld.global.u8 r1, [q+48]; ld.global.s16 d0, [q+48];
  st.global.u32 [p+48], r0; st.global.u32 [p+52], r1; st.global.u64 [p+56], d0;
  mov.b64 d0, q; ld.global.v2.u64 {q, d1}, [q+64]; st.global.v2.u64 [p+64], {q, d1};
  ret;
}
.visible .entry spaces(.param .u64 out) {
  .local .align 8 .b8 depot[16];
  .shared .align 4 .b32 box[32];
  .reg .b64 p, q, l; .reg .b32 r, s, t; .reg .pred g;
  ld.param.u64 p, [out];
  mov.u64 l, depot; cvta.local.u64 q, l;
  mov.u32 t, %tid.x;
  add.u32 r, t, 5; st.local.u32 [l+4], r; ld.u32 s, [q+4];
  st.global.u32 [p], s;
  mov.u32 r, box; shl.b32 s, t, 2; add.u32 r, r, s; mul.lo.u32 s, t, 3;
  st.shared.u32 [r], s; ld.shared.u32 t, [box+0]; st.global.u32 [p+4], t;
  cvt.u64.u32 l, r; cvta.shared.u64 q, l; ld.u32 t, [q]; st.global.u32 [p+8], t;
  isspacep.shared g, q; selp.u32 t, 1, 0, g; st.global.u32 [p+12], t;
  isspacep.global g, p; selp.u32 t, 1, 0, g; st.global.u32 [p+16], t;
  mov.u64 l, depot; isspacep.local g, l; selp.u32 t, 1, 0, g; st.global.u32 [p+20], t;
  cvta.to.shared.u64 l, q; cvt.u32.u64 t, l; sub.u32 t, t, r; st.global.u32 [p+24], t;
  ld.const.f32 r, [constants+4]; st.global.u32 [p+28], r;
  mov.u32 r, dynamic; st.shared.u32 [r+8], 77; ld.shared.u32 t, [dynamic+8]; st.global.u32 [p+32], t;
  mov.u32 t, %dynamic_smem_size; st.global.u32 [p+36], t;
  ld.global.u64 q, [pointers]; ld.u32 t, [q]; st.global.u32 [p+40], t;
  ld.global.u64 q, [pointers+8]; ld.u32 t, [q]; st.global.u32 [p+44], t;
  prefetch.global.L2 [p]; prefetchu.L1 [p]; discard.global.L2 [p], 128;
  ret;
}
.visible .entry atomics(.param .u64 out, .param .u64 mem) {
  .reg .b64 p, q, w, x; .reg .b32 r, s; .reg .f32 f; .reg .f64 d; .reg .b16 h; .reg .b128 b, c, e;
  ld.param.u64 p, [out]; ld.param.u64 q, [mem];
  atom.global.add.u32 r, [q], 5; st.global.u32 [p], r;
  atom.global.min.s32 r, [q+4], -9; st.global.u32 [p+4], r;
  atom.global.max.u32 r, [q+8], 100; st.global.u32 [p+8], r;
  atom.global.inc.u32 r, [q+12], 3; st.global.u32 [p+12], r;
  atom.global.dec.u32 r, [q+16], 3; st.global.u32 [p+16], r;
  atom.global.exch.b32 r, [q+20], 11; st.global.u32 [p+20], r;
  atom.global.cas.b32 r, [q+24], 6, 12; st.global.u32 [p+24], r;
  atom.global.and.b32 r, [q+28], 12; atom.global.or.b32 r, [q+28], 3; atom.global.xor.b32 r, [q+28], 1;
  st.global.u32 [p+28], r;
  mov.b32 f, 0f3F800000; atom.global.add.f32 f, [q+32], f; st.global.f32 [p+32], f;
  red.relaxed.sys.global.add.u64 [q+40], 7;
  mov.b64 d, 0d3FF8000000000000; red.add.f64 [q+48], d;
  mov.b32 r, 0x3C003C00; red.global.add.noftz.f16x2 [q+56], r;
  mov.b32 r, 0x3F803F80; atom.global.add.noftz.bf16x2 r, [q+60], r; st.global.u32 [p+60], r;
  mov.b16 h, 0x3C00; atom.global.add.noftz.f16 h, [q+64], h;
  mov.b16 h, 9; atom.global.cas.b16 h, [q+66], 8, h;
  mov.b64 w, 1; mov.b64 x, 2; mov.b128 b, {w, x}; mov.b64 w, 3; mov.b128 c, {w, x};
  atom.global.cas.b128 e, [q+80], b, c; mov.b128 {w, x}, e; st.global.u64 [p+80], w;
  atom.acq_rel.sys.global.exch.b64 w, [q+96], 44; st.global.u64 [p+96], w;
  atom.global.v2.f32.add {f, _}, [q+104], {f, f};
  ret;
}
"""
)


def test_vectors_widths_and_extension(machine: Machine) -> None:
    program = machine.build(MEMORY)
    source = np.arange(80, dtype=np.uint8)
    source[48:50] = [0x80, 0xFF]
    out = np.zeros(80, np.uint8)
    result = program.run("vectors", [out, source], block=(1, 1, 1))
    assert not result.failure
    words = out.view(np.uint32)
    assert words[:4].tolist() == source.view(np.uint32)[3::-1].tolist()
    assert words[4:6].tolist() == source.view(np.uint32)[5:3:-1].tolist()
    assert out[24:28].view(np.uint16).tolist() == source.view(np.uint16)[[15, 12]].tolist()
    assert out[32:48].view(np.uint64).tolist() == source[32:48].view(np.uint64)[::-1].tolist()
    assert words[12] == 0xFFFFFF80 and words[13] == 0x80
    assert out[56:64].view(np.int64)[0] == np.int16(np.uint16(0xFF80).view(np.int16))
    assert out[64:80].tolist() == source[64:80].tolist()
    assert result.classes["ld_global_bytes"] == 16 + 8 + 8 + 16 + 1 + 1 + 2 + 16
    assert result.classes["st_global_bytes"] == 16 + 8 + 4 + 16 + 4 + 4 + 8 + 16


def test_state_spaces_and_initialisers(machine: Machine) -> None:
    program = machine.build(MEMORY)
    out = np.zeros(12, np.uint32)
    result = program.run("spaces", [out], block=(1, 1, 1), shared=64)
    assert not result.failure
    two_and_a_half = int(np.float32(2.5).view(np.uint32))
    assert out.tolist() == [5, 0, 0, 1, 1, 1, 0, two_and_a_half, 77, 64, 0x30, 2**32 - 2]
    assert program.global_bytes("counter", 4) == (7).to_bytes(4, "little")
    kernel = next(k for k in program.translation.kernels if k.name == "spaces")
    assert kernel.static_shared == 128 and kernel.dynamic_align == 16


def test_atomics(machine: Machine) -> None:
    program = machine.build(MEMORY)
    mem = np.zeros(128, np.uint8)
    words = mem.view(np.uint32)
    words[:8] = [1, 4, 50, 3, 0, 2, 6, 0xF5]
    mem.view(np.float32)[8] = 2.0
    mem.view(np.uint64)[5] = 100
    mem.view(np.float64)[6] = 0.25
    words[14], words[15] = 0x40003C00, 0x40003F80
    mem.view(np.uint16)[32:34] = [0x4000, 8]
    mem.view(np.uint64)[10:12] = [1, 2]
    mem.view(np.uint64)[12] = 5
    out = np.zeros(128, np.uint8)
    result = program.run("atomics", [out, mem], block=(1, 1, 1))
    assert not result.failure
    assert words[:8].tolist() == [6, 2**32 - 9, 100, 0, 3, 11, 12, ((0xF5 & 12) | 3) ^ 1]
    got = out.view(np.uint32)
    assert got[:8].tolist() == [1, 4, 50, 3, 0, 2, 6, (0xF5 & 12) | 3]
    assert mem.view(np.float32)[8] == 3.0 and out.view(np.float32)[8] == 2.0
    assert mem.view(np.uint64)[5] == 107 and mem.view(np.float64)[6] == 1.75
    assert mem.view(np.float16)[28:30].tolist() == [2.0, 3.0]
    assert words[15] == 0x40404000 and got[15] == 0x40003F80
    assert mem.view(np.float16)[32] == 3.0 and mem.view(np.uint16)[33] == 9
    assert mem.view(np.uint64)[10] == 3 and out.view(np.uint64)[10] == 1
    assert mem.view(np.uint64)[12] == 44 and out.view(np.uint64)[12] == 5
    assert mem.view(np.float32)[26:28].tolist() == [2.0, 2.0]
    relaxed_gpu, relaxed_sys, acq_rel_sys = 2 | 2 << 8, 2 | 3 << 8, 5 | 3 << 8
    modes = [int(m) for m in re.findall(r"at(\d+)", result.events)]
    assert modes.count(acq_rel_sys) == 1 and modes.count(relaxed_sys) == 1
    assert modes.count(relaxed_gpu) == len(modes) - 2


STRONG = (
    HEADER
    + r"""
.visible .entry strong(.param .u64 mem) {
  .reg .b64 p; .reg .b32 r<4>;
  ld.param.u64 p, [mem];
  ld.volatile.global.u32 r0, [p];
  ld.relaxed.gpu.global.u32 r1, [p+4];
  ld.acquire.sys.u32 r2, [p+8];
  st.release.gpu.global.u32 [p+12], r2;
  st.volatile.global.v4.u32 [p+16], {r0, r1, r2, r2};
  ld.relaxed.sys.global.v4.u32 {r0, r1, r2, r3}, [p+16];
  st.relaxed.cta.global.u32 [p+32], r3;
  st.global.wt.v2.u32 [p+40], {r0, r1};
  fence.acq_rel.gpu; fence.sc.sys; membar.gl; membar.sys; fence.proxy.async; fence.proxy.async.shared::cta;
  fence.proxy.alias; fence.acquire.sync_restrict::shared::cluster.cluster;
  ret;
}
"""
)


def test_strong_accesses_carry_order_scope_and_whole_width(machine: Machine) -> None:
    program = machine.build(STRONG)
    mem = np.arange(16, dtype=np.uint32)
    result = program.run("strong", [mem], block=(1, 1, 1))
    assert not result.failure
    assert mem[4:8].tolist() == [0, 1, 2, 2] and mem[3] == 2 and mem[8] == 2 and mem[10:12].tolist() == [0, 1]

    def mode(order: int, scope: int) -> int:
        return order | scope << 8

    want = [
        f"ld4:{mode(1, 3)}", f"ld4:{mode(2, 2)}", f"ld4:{mode(3, 3)}", f"st4:{mode(4, 2)}", f"st16:{mode(1, 3)}",
        f"ld16:{mode(2, 3)}", f"st4:{mode(2, 0)}", f"st8:{mode(0, 3)}",
        "fence5.2", "fence6.3", "fence6.2", "fence6.3", "proxy0", "proxy2", "proxy3", "fence3.1",
    ]  # fmt: skip
    assert result.events.split() == want


def test_hooks_see_every_access_before_it_happens(machine: Machine) -> None:
    program = machine.build(MEMORY, variant="hooks")
    out, source = np.zeros(80, np.uint8), np.zeros(80, np.uint8)
    result = program.run("vectors", [out, source], block=(1, 1, 1))
    want = "g0:16 g1:16 g0:8 g1:8 g0:8 g1:4 g0:16 g1:16 g0:1 g0:1 g0:2 g1:4 g1:4 g1:8 g0:16 g1:16"
    assert result.events.split() == want.split()
    result = program.run("spaces", [np.zeros(12, np.uint32)], block=(1, 1, 1), shared=64)
    assert "s1:4 s0:4" in result.events


def test_only_addresses_outside_the_own_arena_are_checked(machine: Machine) -> None:
    program = machine.build(MEMORY)
    out, source = np.zeros(80, np.uint8), np.zeros(80, np.uint8)
    low = source.ctypes.data
    result = program.run("vectors", [out, source], block=(1, 1, 1), arena=(low, low + 80))
    assert set(result.events.split()) == {"remote1:16", "remote1:8", "remote1:4"}
    low = out.ctypes.data
    result = program.run("vectors", [out, source], block=(1, 1, 1), arena=(low, low + 80))
    assert result.events.split().count("remote0:16") == 3 and "remote1" not in result.events


def test_shared_variables_of_one_kernel_do_not_overlap(machine: Machine) -> None:
    text = HEADER + "".join(f".shared .align 8 .b8 s{n}[{size}];\n" for n, size in enumerate((5, 24, 100)))
    body = "mov.u32 r, {v}; st.shared.u8 [r], 1;"
    text += ".visible .entry one() { .reg .b32 r; " + body.format(v="s0") + body.format(v="s1") + " ret; }\n"
    text += ".visible .entry two() { .reg .b32 r; " + body.format(v="s1") + body.format(v="s2") + " ret; }\n"
    kernels = {k.name: k for k in machine.build(text).translation.kernels}
    assert kernels["one"].static_shared == 32 and kernels["two"].static_shared >= 124


@pytest.mark.parametrize("text", ["st.global.u32 [p], ;", ".reg .b33 x;", "add.u32 r0, r1"])
def test_malformed_text_names_its_line(text: str) -> None:
    from cuco.testbed.ptx import PtxError, translate

    with pytest.raises(PtxError, match="PTX line 6"):
        translate(HEADER + ".visible .entry k() {\n\n" + text + "\nret; }\n")
