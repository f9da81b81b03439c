# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""cvt in all its forms, against exact rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from exact import BF16, E4M3, E5M2, F16, F32, F64, TF32, Format, decode, encode
from ptx_machine import Case, CaseRunner, Machine
from test_real import ARRAY, FORMATS, code_samples, sign_bit

COUNT = 512
INTS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
BITS = {k: int(k[1:]) for k in INTS}
BOX = {8: "b16", 16: "b16", 32: "b32", 64: "b64"}


def limits(kind: str) -> tuple[int, int]:
    n = BITS[kind]
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if kind[0] == "s" else (0, (1 << n) - 1)


def as_kind(raw: int, kind: str) -> int:
    raw &= (1 << BITS[kind]) - 1
    return raw - (1 << BITS[kind]) if kind[0] == "s" and raw >> (BITS[kind] - 1) else raw


def int_samples(kind: str) -> list[int]:
    rng = np.random.default_rng(BITS[kind] * 2 + (kind[0] == "s"))
    low, high = limits(kind)
    out = [low, high, 0, 1, high - 1, low + 1, high // 2, high // 2 + 1]
    while len(out) < COUNT:
        out.append(as_kind(int.from_bytes(rng.bytes(8), "little") >> int(rng.integers(0, BITS[kind])), kind))
    return out


ROUND_TO_INT: dict[str, Callable[[Fraction], int]] = {
    "rni": round,
    "rzi": math.trunc,
    "rmi": math.floor,
    "rpi": math.ceil,
}

Row = tuple[Case, str, str, str]
TO_INT: list[Row] = [
    (Case(f"cvt.{m}.{to}.{k} d, a;", (ARRAY[k],), (BOX[max(16, BITS[to])],)), k, to, m)
    for k in FORMATS
    for to in INTS
    for m in (ROUND_TO_INT if k in ("f32", "f64") else ("rni", "rzi"))
    if BITS[to] > 8 or k in ("f32", "f64")
]
FROM_INT: list[Row] = [
    (Case(f"cvt.{m}.{k}.{s} d, a;", (BOX[max(16, BITS[s])],), (ARRAY[k],)), s, k, m)
    for k in FORMATS
    for s in INTS
    for m in (("rn", "rz", "rm", "rp") if k in ("f32", "f64") else ("rn",))
]
INT_INT: list[Row] = [
    (Case(f"cvt{m}.{to}.{s} d, a;", (BOX[max(16, BITS[s])],), (BOX[max(16, BITS[to])],)), s, to, m)
    for to in INTS
    for s in INTS
    for m in ("", ".sat")
]
REAL_REAL: list[Row] = [
    *[(Case(f"cvt.{m}.{to}.{s} d, a;", (ARRAY[s],), (ARRAY[to],)), s, to, m)
      for s, to in (("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("f32", "bf16"), ("f64", "bf16"))
      for m in (("rn", "rz", "rm", "rp") if to in ("f32",) else ("rn", "rz"))],
    *[(Case(f"cvt.{to}.{s} d, a;", (ARRAY[s],), (ARRAY[to],)), s, to, "rn")
      for s, to in (("f16", "f32"), ("bf16", "f32"), ("f32", "f64"), ("f16", "f64"))],
    *[(Case(f"cvt.{m}.tf32.f32 d, a;", ("b32",), ("b32",)), "f32", "tf32", m) for m in ("rna", "rn", "rz")],
    *[(Case(f"cvt.{m}.{k}.{k} d, a;", (ARRAY[k],), (ARRAY[k],)), k, k, m)
      for k in ("f32", "f64") for m in ROUND_TO_INT],
]  # fmt: skip
PACKED: list[Row] = [
    *[(Case(f"cvt.{m}.{to}.f32 d, a, b;", ("b32", "b32")), "f32", to, m)
      for to in ("f16x2", "bf16x2") for m in ("rn", "rz", "rn.relu")],
    *[(Case(f"cvt.rn.satfinite{r}.{to}.f32 d, a, b;", ("b32", "b32"), ("b16",)), "f32", to, "rn.satfinite" + r)
      for to in ("e4m3x2", "e5m2x2") for r in ("", ".relu")],
]  # fmt: skip
ROWS = [*TO_INT, *FROM_INT, *INT_INT, *REAL_REAL, *PACKED]
EXTRA = [
    Case("cvt.rn.f16x2.e4m3x2 d, a;", ("b16",)),
    Case("cvt.rn.f16x2.e5m2x2 d, a;", ("b16",)),
    Case("cvt.rn.satfinite.e4m3x2.f16x2 d, a;", ("b32",), ("b16",)),
    Case("cvt.rn.satfinite.e5m2x2.f16x2 d, a;", ("b32",), ("b16",)),
    Case("cvt.pack.sat.s16.s32 d, a, b;", ("s32", "s32")),
    Case("cvt.pack.sat.u8.s32.b32 d, a, b, c;", ("s32", "s32", "b32")),
    Case("cvt.rzi.ftz.s32.f32 d, a;", ("b32",)),
    Case("cvt.sat.f32.f32 d, a;", ("b32",)),
    Case("cvt.rn.ftz.f32.f64 d, a;", ("b64",)),
]


@pytest.fixture(scope="module")
def run(machine: Machine) -> CaseRunner:
    return CaseRunner(machine, [r[0] for r in ROWS] + EXTRA)


def ids(rows: list[Row]) -> list[str]:
    return [r[0].id for r in rows]


@pytest.mark.parametrize("row", TO_INT, ids=ids(TO_INT))
def test_real_to_integer_clamps(run: CaseRunner, row: Row) -> None:
    case, source, to, mode = row
    f = FORMATS[source]
    codes = code_samples(f, COUNT - 3, to)
    codes += [f.top, f.top | sign_bit(source), f.top | 1 << (f.mantissa - 1)]
    (got,) = run(case, np.array(codes, dtype=object))
    low, high = limits(to)
    for code, value in zip(codes, got, strict=True):
        exact = decode(code, f)
        if exact is None:
            nan = code & ((1 << f.mantissa) - 1)
            wide = source == "f64" or BITS[to] == 64
            invalid = as_kind(1 << (BITS[to] - 1), to) if wide else 0
            want = invalid if nan else (low if code & sign_bit(source) else high)
        else:
            want = max(low, min(high, ROUND_TO_INT[mode](exact)))
        assert as_kind(int(value), to) == want, (hex(code), int(value), want)


@pytest.mark.parametrize("row", FROM_INT, ids=ids(FROM_INT))
def test_integer_to_real(run: CaseRunner, row: Row) -> None:
    case, source, to, mode = row
    values = int_samples(source)
    (got,) = (
        run(case, np.array([v & 0xFFFF if BITS[source] <= 16 else v for v in values], dtype=object))
        if BITS[source] <= 16
        else run(case, np.array([v % (1 << BITS[source]) for v in values], dtype=object))
    )
    for v, code in zip(values, got, strict=True):
        assert int(code) == encode(Fraction(v), FORMATS[to], mode), (v, hex(int(code)))


@pytest.mark.parametrize("row", INT_INT, ids=ids(INT_INT))
def test_integer_to_integer(run: CaseRunner, row: Row) -> None:
    case, source, to, mode = row
    values = int_samples(source)
    box = max(16, BITS[source])
    (got,) = run(case, np.array([v % (1 << box) for v in values], dtype=object))
    low, high = limits(to)
    for v, raw in zip(values, got, strict=True):
        want = max(low, min(high, v)) if mode else as_kind(v, to)
        assert as_kind(int(raw), to) == want, (v, int(raw))
        if BITS[to] == 8:  # the wider register is extended by the type's sign
            assert int(raw) == want % (1 << 16)


@pytest.mark.parametrize("row", REAL_REAL, ids=ids(REAL_REAL))
def test_real_to_real(run: CaseRunner, row: Row) -> None:
    case, source, to, mode = row
    f = FORMATS[source]
    codes = code_samples(f, COUNT, to)
    (got,) = run(case, np.array(codes, dtype=object))
    for code, value in zip(codes, got, strict=True):
        exact = decode(code, f)
        assert exact is not None
        negative = bool(code & sign_bit(source))
        if mode.endswith("i"):
            exact = Fraction(ROUND_TO_INT[mode](exact))
            want = encode(exact, f, "rn", negative_zero=negative)
        elif to == "tf32":
            want = encode(exact, TF32, mode, negative_zero=negative) << 13
        else:
            want = encode(exact, FORMATS[to], mode, negative_zero=negative)
        assert int(value) == want, (hex(code), hex(int(value)), hex(want))


NARROW: dict[str, Format] = {"f16x2": F16, "bf16x2": BF16, "e4m3x2": E4M3, "e5m2x2": E5M2}


@pytest.mark.parametrize("row", PACKED, ids=ids(PACKED))
def test_two_reals_into_one_register(run: CaseRunner, row: Row) -> None:
    case, _, to, mode = row
    f = NARROW[to]
    codes = [code_samples(F32, COUNT, (to, n)) for n in (0, 1)]
    (got,) = run(case, *[np.array(c, dtype=object) for c in codes])
    for high, low, value in zip(*codes, got, strict=True):
        want = 0
        for code in (high, low):
            x, negative = decode(code, F32), bool(code >> 31)
            assert x is not None
            if "relu" in mode and negative:
                x, negative = Fraction(0), False
            half = encode(x, f, mode.split(".")[0], negative_zero=negative, satfinite="satfinite" in mode)
            want = want << f.bits | half
        assert int(value) == want, (hex(high), hex(low), hex(int(value)), hex(want))


def test_fp8_pairs_agree_with_ml_dtypes(run: CaseRunner) -> None:
    pairs = np.array([n * 257 % 65536 for n in range(COUNT)], dtype=np.uint16)
    for case, kind in ((EXTRA[0], ml_dtypes.float8_e4m3fn), (EXTRA[1], ml_dtypes.float8_e5m2)):
        (got,) = run(case, pairs)
        want = pairs.view(np.uint8).view(kind).astype(np.float16)
        value = got.view(np.float16)
        assert np.array_equal(value, want, equal_nan=True)
    halves = np.random.default_rng(1).normal(0, 40, 2 * COUNT).astype(np.float16)
    for case, kind, most in (
        (EXTRA[2], ml_dtypes.float8_e4m3fn, 448),
        (EXTRA[3], ml_dtypes.float8_e5m2, 57344),
    ):
        (got,) = run(case, halves.view(np.uint32))
        want8 = np.clip(halves, -most, most).astype(kind).view(np.uint8)
        assert np.array_equal(got.view(np.uint8), want8)


def test_pack_saturates_and_concatenates(run: CaseRunner) -> None:
    a, b, c = (
        np.array([v * 77777 % (1 << 20) - (1 << 19) for v in range(n, n + COUNT)]) for n in (0, 999, 5)
    )
    (got,) = run(EXTRA[4], a, b)
    for x, y, v in zip(a, b, got, strict=True):
        x16, y16 = (max(-32768, min(32767, int(z))) & 0xFFFF for z in (x, y))
        assert int(v) == x16 << 16 | y16
    c = np.abs(c)
    (got,) = run(EXTRA[5], a, b, c)
    for x, y, z, v in zip(a, b, c, got, strict=True):
        x8, y8 = (max(0, min(255, int(w))) for w in (x, y))
        assert int(v) == (int(z) << 16 | x8 << 8 | y8) & 0xFFFFFFFF


def test_flush_and_saturate_modifiers(run: CaseRunner) -> None:
    subnormal = np.full(COUNT, 0x807FFFFF, dtype=np.uint32)
    assert not run(EXTRA[6], subnormal)[0].any()
    (got,) = run(EXTRA[7], np.array([0xBF000000, 0x40000000, 0x3E800000, 0x7FC00000] * 128, dtype=np.uint32))
    assert got[:4].tolist() == [0, 0x3F800000, 0x3E800000, 0]
    (got,) = run(EXTRA[8], np.array([1e-40] * COUNT).view(np.uint64))
    assert not got.any()
    assert F64.bias == 1023
