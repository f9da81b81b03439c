# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""Matrix instructions against numpy, with fragments laid out by an independent reading of the PTX manual."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from ptx_machine import HEADER, Machine


def lanes() -> list[tuple[int, int, int]]:
    return [(lane, lane // 4, lane % 4) for lane in range(32)]


def split_ab(matrix: np.ndarray, rows: int, packed: int, transpose: bool) -> np.ndarray:
    """Fragments of A (or of B transposed): [lane, register, element]. `packed` neighbours along k per
    register.
    """
    m = matrix.T if transpose else matrix
    k, halves = m.shape[1], rows // 8
    out = np.zeros((32, halves * k // (4 * packed), packed), m.dtype)
    for lane, group, quad in lanes():
        for r in range(out.shape[1]):
            row = group + 8 * (r % halves)
            column = packed * quad + 4 * packed * (r // halves)
            out[lane, r] = m[row, column : column + packed]
    return out


def c_index(rows: int) -> list[list[tuple[int, int]]]:
    return [[(g + 8 * (r // 2), 2 * q + r % 2) for r in range(rows // 4)] for _, g, q in lanes()]


def mma_text(op: str, na: int, nb: int, nc: int, kind: str, whole: str) -> str:
    """Each thread loads its A, B and C registers from consecutive memory, multiplies twice (C += A*B),
    stores C.
    """
    size = {"b32": 4, "f32": 4, "f64": 8, "s32": 4}
    regs = {"b32": ".b32", "f32": ".f32", "f64": ".f64", "s32": ".b32"}
    lines = [
        ".visible .entry k(.param .u64 out, .param .u64 pa, .param .u64 pb, .param .u64 pc) { .reg .b64 p, o; .reg .b32 t;",
        f".reg {regs[whole]} a<{na}>, b<{nb}>; .reg {regs[kind]} c<{nc}>; mov.u32 t, %tid.x;",
    ]
    for name, n, k in (("a", na, whole), ("b", nb, whole), ("c", nc, kind)):
        lines.append(f"ld.param.u64 p, [p{name}]; mul.wide.u32 o, t, {n * size[k]}; add.u64 p, p, o;")
        lines += [f"ld.global.{k} {name}{i}, [p+{i * size[k]}];" for i in range(n)]
    vector = {
        x: "{" + ", ".join(f"{x}{i}" for i in range(n)) + "}" for x, n in (("a", na), ("b", nb), ("c", nc))
    }
    lines += [f"{op} {vector['c']}, {vector['a']}, {vector['b']}, {vector['c']};"] * 2
    lines.append(f"ld.param.u64 p, [out]; mul.wide.u32 o, t, {nc * size[kind]}; add.u64 p, p, o;")
    lines += [f"st.global.{kind} [p+{i * size[kind]}], c{i};" for i in range(nc)]
    return HEADER + "\n".join([*lines, "ret; }", ""])


TYPES = {
    "f16": (np.float16, 2), "bf16": (ml_dtypes.bfloat16, 2), "tf32": (np.float32, 1), "f64": (np.float64, 1),
    "s8": (np.int8, 4), "u8": (np.uint8, 4), "e4m3": (ml_dtypes.float8_e4m3fn, 4), "e5m2": (ml_dtypes.float8_e5m2, 4),
}  # fmt: skip

MMA = [
    (16, 16, "f32", "f16", "f16"), (16, 8, "f32", "f16", "f16"), (16, 16, "f32", "bf16", "bf16"),
    (16, 8, "f32", "bf16", "bf16"), (16, 8, "f32", "tf32", "tf32"), (16, 4, "f32", "tf32", "tf32"),
    (16, 16, "f16", "f16", "f16"), (16, 8, "f16", "f16", "f16"), (8, 4, "f64", "f64", "f64"),
    (16, 4, "f64", "f64", "f64"), (16, 8, "f64", "f64", "f64"), (16, 16, "f64", "f64", "f64"),
    (16, 32, "s32", "s8", "s8"), (16, 32, "s32", "u8", "s8"), (16, 16, "s32", "s8", "u8"), (16, 32, "s32", "u8", "u8"),
    (16, 32, "f32", "e4m3", "e4m3"), (16, 32, "f32", "e4m3", "e5m2"), (16, 32, "f32", "e5m2", "e5m2"),
]  # fmt: skip


def small(shape: tuple[int, int], kind: str, seed: int) -> np.ndarray:
    """Small integers: every product and sum is exact in any accumulator, so order cannot matter."""
    low = 0 if kind == "u8" else -3
    return np.random.default_rng(seed).integers(low, 4, shape).astype(TYPES[kind][0])


def mma_case(shape: tuple[int, int, str, str, str]) -> str:
    """The text of a case: registers per lane follow from the shape."""
    m, k, acc, ta, tb = shape
    per_register = 4 if acc == "f16" else 2
    registers = [m * k // (32 * TYPES[ta][1]), 8 * k // (32 * TYPES[tb][1]), m * 8 // 32 * 2 // per_register]
    op = f"mma.sync.aligned.m{m}n8k{k}.row.col.{acc}.{ta}.{tb}.{acc}"
    return mma_text(op, *registers, {"f16": "b32"}.get(acc, acc), "f64" if acc == "f64" else "b32")


@pytest.fixture(scope="module", autouse=True)
def compiled(machine: Machine) -> None:
    moves = [move_text(count, trans) for count in (1, 2, 4) for trans in (False, True)]
    machine.batch([*map(mma_case, MMA), *map(wmma_text, WMMA), *moves])


@pytest.mark.parametrize("shape", MMA, ids=["-".join(map(str, s)) for s in MMA])
def test_mma(machine: Machine, shape: tuple[int, int, str, str, str]) -> None:
    m, k, acc, ta, tb = shape
    a, b = small((m, k), ta, 1), small((k, 8), tb, 2)
    fa, fb = split_ab(a, m, TYPES[ta][1], False), split_ab(b, 8, TYPES[tb][1], True)
    places = c_index(m)
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "s32": np.int32}[acc]
    c = np.random.default_rng(3).integers(-5, 6, (m, 8)).astype(kind)
    fc = np.array([[c[p] for p in lane] for lane in places])
    out = np.zeros_like(fc)
    program = machine.build(mma_case(shape))
    result = program.run("k", [out, fa, fb, fc])
    assert not result.failure, result.failure
    product = a.astype(np.float64) @ b.astype(np.float64)
    want = c.astype(np.float64) + 2 * product
    assert np.array_equal(out.astype(np.float64), np.array([[want[p] for p in lane] for lane in places]))
    assert result.classes[{"f16": "mma_f16", "bf16": "mma_bf16", "tf32": "mma_tf32", "f64": "mma_f64"}.get(
        ta, "mma_int8" if acc == "s32" else "mma_fp8")] == 2 * 2 * m * 8 * k  # fmt: skip


def test_mma_rounds_each_step_in_single_precision(machine: Machine) -> None:
    """Sums go in order of k with one rounding each: the same bits on every host."""
    rng = np.random.default_rng(9)
    a, b = (rng.normal(size=s).astype(ml_dtypes.bfloat16) for s in ((16, 16), (16, 8)))
    c = rng.normal(size=(16, 8)).astype(np.float32)
    places = c_index(16)
    fc = np.array([[c[p] for p in lane] for lane in places])
    text = mma_text("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "f32", "b32")
    out = np.zeros_like(fc)
    assert (
        not machine.build(text)
        .run("k", [out, split_ab(a, 16, 2, False), split_ab(b, 8, 2, True), fc])
        .failure
    )
    want = c.copy()
    for _ in range(2):
        for k in range(16):
            want = want + a[:, k : k + 1].astype(np.float32) * b[k : k + 1].astype(np.float32)
    assert np.array_equal(out, np.array([[want[p] for p in lane] for lane in places]))


def test_saturating_integer_mma(machine: Machine) -> None:
    a, b = np.full((16, 32), 127, np.int8), np.full((32, 8), 127, np.int8)
    c = np.full((32, 4), 2**31 - 5, np.int32)
    out = np.zeros_like(c)
    text = mma_text("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", 4, 2, 4, "s32", "b32")
    assert (
        not machine.build(text).run("k", [out, split_ab(a, 16, 4, False), split_ab(b, 8, 4, True), c]).failure
    )
    assert set(out.ravel().tolist()) == {2**31 - 1}


MOVE = (
    HEADER
    + r"""
.visible .entry k(.param .u64 out, .param .u64 in) {
  .shared .align 16 .b8 box[512]; .shared .align 16 .b8 back[512];
  .reg .b64 p, o; .reg .b32 t, m, n, r<4>, x<4>;
  mov.u32 t, %tid.x; shl.b32 n, t, 4; cvt.u64.u32 o, n; ld.param.u64 p, [in]; add.u64 p, p, o;
  mov.u32 m, box; add.u32 m, m, n;
  ld.global.v4.b32 {r0, r1, r2, r3}, [p]; st.shared.v4.b32 [m], {r0, r1, r2, r3}; bar.sync 0;
  ldmatrix.sync.aligned.m8n8.xN_TRANS.shared.b16 VECTOR, [m];
  mov.u32 m, back; add.u32 m, m, n;
  st.shared.v4.b32 [m], {0, 0, 0, 0}; bar.sync 0;
  stmatrix.sync.aligned.m8n8.xN_TRANS.shared.b16 [m], VECTOR; bar.sync 0;
  movmatrix.sync.aligned.m8n8.trans.b16 x0, r0;
  ld.param.u64 p, [out]; mul.wide.u32 o, t, 36; add.u64 p, p, o;
  st.global.b32 [p], r0; st.global.b32 [p+4], r1; st.global.b32 [p+8], r2; st.global.b32 [p+12], r3;
  ld.shared.v4.b32 {r0, r1, r2, r3}, [m];
  st.global.b32 [p+16], r0; st.global.b32 [p+20], r1; st.global.b32 [p+24], r2; st.global.b32 [p+28], r3;
  st.global.b32 [p+32], x0;
  ret;
}
"""
)


def move_text(count: int, trans: bool) -> str:
    vector = "{" + ", ".join(f"r{i}" for i in range(count)) + "}"
    return MOVE.replace("xN_TRANS", f"x{count}" + (".trans" if trans else "")).replace("VECTOR", vector)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_ldmatrix_stmatrix_movmatrix(machine: Machine, count: int, trans: bool) -> None:
    text = move_text(count, trans)
    source = np.random.default_rng(4).integers(0, 65536, (32, 8)).astype(np.uint16)
    out = np.zeros((32, 18), np.uint16)
    result = machine.build(text).run("k", [out, source])
    assert not result.failure, result.failure
    for lane in range(32):
        for m in range(count):
            matrix = source[8 * m : 8 * m + 8]
            matrix = matrix.T if trans else matrix
            assert (
                out[lane, 2 * m : 2 * m + 2].tolist()
                == matrix[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2].tolist()
            )
    rows = 8 * count
    assert np.array_equal(out[:rows, 8:16], source[:rows])  # stmatrix undoes ldmatrix
    first = source[:8].T if trans else source[:8]
    for lane in range(32):
        assert out[lane, 16:18].tolist() == first.T[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2].tolist()


WMMA = [
    (16, 16, 16, "f16", "f32", 8, 8), (32, 8, 16, "f16", "f32", 8, 8), (8, 32, 16, "f16", "f32", 8, 8),
    (16, 16, 16, "f16", "f16", 8, 8), (16, 16, 16, "bf16", "f32", 4, 4), (32, 8, 16, "bf16", "f32", 8, 2),
    (16, 16, 8, "tf32", "f32", 4, 4),
]  # fmt: skip


def wmma_text(shape: tuple[int, int, int, str, str, int, int]) -> str:
    m, n, k, t, acc, na, nb = shape
    nc = m * n // 32 // (2 if acc == "f16" else 1)
    c_reg = ".b32" if acc == "f16" else ".f32"
    names = {
        x: "{" + ", ".join(f"{x}{i}" for i in range(c)) + "}" for x, c in (("a", na), ("b", nb), ("c", nc))
    }
    suffix = f"m{m}n{n}k{k}"
    types = f"{acc}.{acc}" if t == "f16" else f"f32.{t}.{t}.f32"
    return (
        HEADER
        + f".visible .entry k(.param .u64 pc, .param .u64 pa, .param .u64 pb) {{ .reg .b64 x, y, z; .reg .b32 a<{na}>, b<{nb}>;"
        f".reg {c_reg} c<{nc}>; ld.param.u64 x, [pa]; ld.param.u64 y, [pb]; ld.param.u64 z, [pc];"
        f"wmma.load.a.sync.aligned.row.{suffix}.global.{t} {names['a']}, [x], {k + 3};"
        f"wmma.load.b.sync.aligned.col.{suffix}.{t} {names['b']}, [y], {k + 8};"
        f"wmma.load.c.sync.aligned.row.{suffix}.global.{acc} {names['c']}, [z], {n + 4};"
        f"wmma.mma.sync.aligned.row.col.{suffix}.{types} {names['c']}, {names['a']}, {names['b']}, {names['c']};"
        f"wmma.store.d.sync.aligned.row.{suffix}.global.{acc} [z], {names['c']}, {n + 4}; ret; }}\n"
    )


@pytest.mark.parametrize("shape", WMMA, ids=["-".join(map(str, s[:5])) for s in WMMA])
def test_wmma(machine: Machine, shape: tuple[int, int, int, str, str, int, int]) -> None:
    m, n, k, t, acc, _, _ = shape
    a, b = small((m, k + 3), t, 5), small((n, k + 8), t, 6)  # b by columns
    c = (
        np.random.default_rng(7)
        .integers(-4, 5, (m, n + 4))
        .astype(np.float16 if acc == "f16" else np.float32)
    )
    want = c.astype(np.float64)
    want[:, :n] += a[:, :k].astype(np.float64) @ b[:, :k].astype(np.float64).T
    result = machine.build(wmma_text(shape)).run("k", [c, a, b])
    assert not result.failure, result.failure
    assert np.array_equal(c.astype(np.float64), want)


def test_a_partial_warp_is_refused(machine: Machine) -> None:
    program = machine.build(move_text(1, False))
    failure = program.run(
        "k", [np.zeros((32, 18), np.uint16), np.zeros((32, 8), np.uint16)], block=(24, 1, 1)
    ).failure
    assert "part of the warp" in failure
