# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""setp, set, selp, slct and mov."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from ptx_machine import Case, CaseRunner, Machine
from test_integer import samples
from test_real import ARRAY, FORMATS, code_samples, to_float

COUNT = 512
ORDERED: dict[str, Callable[[object, object], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
INT_KINDS = ("u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f32", "f64", "f16", "bf16")
COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b,
}  # fmt: skip


def real(name: str, a: float, b: float) -> bool:
    unordered = math.isnan(a) or math.isnan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if name in ORDERED:
        return not unordered and ORDERED[name](a, b)
    return unordered or ORDERED[name[:-1]](a, b)


INTEGER = [(Case(f"setp.{c}.{k} d, a, b;", (k, k), ("pred",)), c, k) for k in INT_KINDS for c in ORDERED]
INTEGER += [(Case(f"setp.{c}.u32 d, a, b;", ("u32", "u32"), ("pred",)), UNSIGNED[c], "u32") for c in UNSIGNED]
REAL = [
    (Case(f"setp.{c}.{k} d, a, b;", (ARRAY[k], ARRAY[k]), ("pred",)), c, k)
    for k in FLOATS
    for c in (*ORDERED, *(c + "u" for c in ORDERED), "num", "nan")
]
COMBINED = [
    (Case(f"setp.lt.{b}.s32 d|e, a, b, {n}c;", ("s32", "s32", "pred"), ("pred", "pred")), b, n)
    for b in COMBINE
    for n in ("", "!")
]
SETS = [
    (Case("set.lt.u32.s32 d, a, b;", ("s32", "s32")), 0xFFFFFFFF),
    (Case("set.lt.s32.s32 d, a, b;", ("s32", "s32")), 0xFFFFFFFF),
    (Case("set.lt.f32.s32 d, a, b;", ("s32", "s32")), 0x3F800000),
]
OTHER = [
    Case("selp.b64 d, a, b, c;", ("b64", "b64", "pred"), ("b64",)),
    Case("slct.u32.s32 d, a, b, c;", ("u32", "u32", "s32")),
    Case("slct.f32.f32 d, a, b, c;", ("b32", "b32", "f32")),
    Case("mov.b64 d, {a, b};", ("b32", "b32"), ("b64",)),
    Case("mov.b64 {d, e}, a;", ("b64",), ("b32", "b32")),
    Case("mov.b32 d, {a, b};", ("b16", "b16")),
    Case("mov.b32 {d, e}, a;", ("b32",), ("b16", "b16")),
    Case("mov.b32 {_, d}, a;", ("b32",), ("b16",)),
    Case("{ .reg .b128 w; mov.b128 w, {a, b}; mov.b128 {e, d}, w; }", ("b64", "b64"), ("b64", "b64")),
    Case("{ .reg .pred q; mov.pred q, a; not.pred q, q; xor.pred q, q, b; mov.pred d, q; }", ("pred", "pred"), ("pred",)),
    Case("mov.f32 d, 0f3F800000;", ("b32",)),
    Case("mov.u32 d, -7;", ("b32",)),
    Case("mov.f64 d, 0d3FF0000000000000;", ("b32",), ("b64",)),
    Case("mov.u32 d, WARP_SZ;", ("b32",)),
    Case("{ .reg .pred q, r; setp.lt.f16x2 q|r, a, b; selp.u32 d, 1, 0, q; selp.u32 e, 1, 0, r; }", ("b32", "b32"), ("b32", "b32")),
    Case("set.lt.f16x2.f16x2 d, a, b;", ("b32", "b32")),
]  # fmt: skip


@pytest.fixture(scope="module")
def run(machine: Machine) -> CaseRunner:
    rows = [c for c, _, _ in (*INTEGER, *REAL, *COMBINED)] + [c for c, _ in SETS] + OTHER
    return CaseRunner(machine, rows)


@pytest.mark.parametrize("row", INTEGER, ids=[r[0].id for r in INTEGER])
def test_integer_comparison(run: CaseRunner, row: tuple[Case, str, str]) -> None:
    case, name, kind = row
    a, b = samples(kind, COUNT, 0), samples(kind, COUNT, 1)
    b[::5] = a[::5]
    (got,) = run(case, np.array(a, dtype=object), np.array(b, dtype=object))
    assert [bool(g) for g in got] == [ORDERED[name](x, y) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("row", REAL, ids=[r[0].id for r in REAL])
def test_real_comparison(run: CaseRunner, row: tuple[Case, str, str]) -> None:
    case, name, kind = row
    f = FORMATS[kind]
    a, b = code_samples(f, COUNT, 0), code_samples(f, COUNT, 1)
    b[::5] = a[::5]
    a[::7] = [f.top | 1] * len(a[::7])
    b[::11] = [f.top | 1] * len(b[::11])
    b[1], a[1] = f.top, f.top
    (got,) = run(case, np.array(a, dtype=object), np.array(b, dtype=object))
    want = [real(name, to_float(x, kind), to_float(y, kind)) for x, y in zip(a, b, strict=True)]
    assert [bool(g) for g in got] == want


@pytest.mark.parametrize("row", COMBINED, ids=[r[0].code[:28] for r in COMBINED])
def test_combined_with_a_predicate(run: CaseRunner, row: tuple[Case, str, str]) -> None:
    case, name, negate = row
    a, b = samples("s32", COUNT, 0), samples("s32", COUNT, 1)
    c = np.arange(COUNT) // 3 % 2
    p, q = run(case, np.array(a, dtype=object), np.array(b, dtype=object), c)
    for n in range(COUNT):
        third = bool(c[n]) != (negate == "!")
        assert bool(p[n]) == COMBINE[name](a[n] < b[n], third)
        assert bool(q[n]) == COMBINE[name](not a[n] < b[n], third)


def test_set(run: CaseRunner) -> None:
    a, b = samples("s32", COUNT, 2), samples("s32", COUNT, 3)
    for case, true in SETS:
        (got,) = run(case, np.array(a, dtype=object), np.array(b, dtype=object))
        assert got.tolist() == [true if x < y else 0 for x, y in zip(a, b, strict=True)]


def test_select_and_move(run: CaseRunner) -> None:
    rng = np.random.default_rng(3)
    w = [rng.integers(0, 2**63, COUNT, dtype=np.uint64) for _ in range(2)]
    h = [x.astype(np.uint32) for x in w]
    p = np.arange(COUNT) % 2
    s = np.arange(COUNT) - 100
    by = dict(zip((c.code for c in OTHER), OTHER, strict=True))
    cases = list(by.values())
    assert np.array_equal(run(cases[0], w[0], w[1], p)[0], np.where(p, w[0], w[1]))
    assert np.array_equal(run(cases[1], h[0], h[1], s)[0], np.where(s >= 0, h[0], h[1]))
    f = s.astype(np.float32)
    f[0] = np.nan
    assert np.array_equal(run(cases[2], h[0], h[1], f)[0], np.where(f >= 0, h[0], h[1]))
    assert np.array_equal(run(cases[3], h[0], h[1])[0], h[1].astype(np.uint64) << np.uint64(32) | h[0])
    d, e = run(cases[4], w[0])
    assert np.array_equal(d, w[0].astype(np.uint32)) and np.array_equal(
        e, (w[0] >> np.uint64(32)).astype(np.uint32)
    )
    assert np.array_equal(
        run(cases[5], h[0] & 0xFFFF, h[1] & 0xFFFF)[0], (h[1] & 0xFFFF) << 16 | h[0] & 0xFFFF
    )
    d, e = run(cases[6], h[0])
    assert np.array_equal(d, h[0] & 0xFFFF) and np.array_equal(e, h[0] >> 16)
    assert np.array_equal(run(cases[7], h[0])[0], h[0] >> 16)
    d, e = run(cases[8], w[0], w[1])
    assert np.array_equal(d, w[1]) and np.array_equal(e, w[0])
    q = np.arange(COUNT) // 2 % 2
    assert np.array_equal(run(cases[9], p, q)[0], (1 - p) ^ q)
    assert set(run(cases[10], h[0])[0].tolist()) == {0x3F800000}
    assert set(run(cases[11], h[0])[0].tolist()) == {2**32 - 7}
    assert set(run(cases[12], h[0])[0].tolist()) == {0x3FF0000000000000}
    assert set(run(cases[13], h[0])[0].tolist()) == {32}
    x, y = (v.astype(np.uint32) & np.uint32(0xBFFFBFFF) for v in h)
    less = x.view(np.float16) < y.view(np.float16)
    d, e = run(cases[14], x, y)
    assert np.array_equal(np.stack([d, e], 1).ravel().astype(bool), less)
    (got,) = run(cases[15], x, y)
    assert np.array_equal(got.view(np.float16), less.astype(np.float16))
