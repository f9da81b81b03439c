# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""Floating-point instructions: exact rationals for what PTX defines to the bit, error bounds for
approximations.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact import BF16, F16, F32, F64, Format, decode, encode
from ptx_machine import Case, CaseRunner, Machine

FORMATS = {"f32": F32, "f64": F64, "f16": F16, "bf16": BF16}
ARRAY = {"f32": "b32", "f64": "b64", "f16": "b16", "bf16": "b16"}
COUNT = 512


def code_samples(f: Format, count: int, seed: object) -> list[int]:
    """Finite codes of all magnitudes, subnormals and corners included, with many near each other's
    exponents.
    """
    rng = random.Random(str((f, seed)))
    out = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.15:
            body = rng.choice([0, 1, (1 << f.mantissa) - 1, 1 << f.mantissa, f.top - 1, f.bias << f.mantissa])
        elif kind < 0.25:
            body = rng.getrandbits(f.mantissa)  # subnormal
        elif kind < 0.75:
            body = (f.bias + rng.randint(-3, 3)) << f.mantissa | rng.getrandbits(f.mantissa)
        else:
            body = rng.randrange(f.top)
        out.append(body | rng.getrandbits(1) << (f.bits - 1))
    return out


def flushed(code: int, f: Format) -> int:
    return code if code >> f.mantissa & ((1 << f.exponent) - 1) else code & 1 << (f.bits - 1)


def zero_sign(op: str, values: list[Fraction], codes: list[int], f: Format, mode: str) -> bool:
    """Sign of an exactly zero result, by IEEE 754."""
    signs = [c >> (f.bits - 1) for c in codes]
    if op in ("mul", "div"):
        return signs[0] != signs[1]
    if op == "fma":
        product, addend = signs[0] ^ signs[1], signs[2]
        if values[0] * values[1] == 0 and values[2] == 0 and product == addend:
            return bool(product)
        return mode == "rm"
    second = signs[1] ^ (op == "sub")
    if values[0] == 0 and values[1] == 0 and signs[0] == second:
        return bool(signs[0])
    return mode == "rm"


APPLY: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


def reference(op: str, codes: list[int], f: Format, mode: str, ftz: bool, sat: bool) -> int | None:
    """Expected code, or None where the exact quotient does not exist."""
    if ftz:
        codes = [flushed(c, f) for c in codes]
    values = [decode(c, f) for c in codes]
    assert all(v is not None for v in values)
    exact_values = [v for v in values if v is not None]
    if op == "div" and exact_values[1] == 0:
        return None
    x = APPLY[op](*exact_values)
    code = encode(x, f, mode, negative_zero=x == 0 and zero_sign(op, exact_values, codes, f, mode))
    if ftz:
        code = flushed(code, f)
    if sat:
        one = f.bias << f.mantissa
        code = 0 if code >> (f.bits - 1) else min(code, one)
    return code


def arithmetic() -> list[tuple[Case, str, str, str, bool, bool]]:
    table = []
    for kind in ("f32", "f64"):
        for op, n in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2)):
            for mode in ("rn", "rz", "rm", "rp"):
                variants = (
                    ["", ".ftz", ".sat", ".ftz.sat"] if kind == "f32" and mode in ("rn", "rz") else [""]
                )
                for v in variants:
                    if op == "div" and "sat" in v:
                        continue
                    operands = ", ".join("abc"[:n])
                    code = f"{op}.{mode}{v}.{kind} d, {operands};"
                    case = Case(code, (ARRAY[kind],) * n, (ARRAY[kind],))
                    table.append((case, op, kind, mode, "ftz" in v, "sat" in v))
    for kind in ("f16", "bf16"):
        for op, n in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
            for v in ("", ".ftz", ".sat") if kind == "f16" else ("",):
                code = f"{op}.rn{v}.{kind} d, {', '.join('abc'[:n])};"
                table.append((Case(code, ("b16",) * n, ("b16",)), op, kind, "rn", "ftz" in v, "sat" in v))
    return table


ARITHMETIC = arithmetic()


@pytest.fixture(scope="module")
def run(machine: Machine) -> CaseRunner:
    return CaseRunner(
        machine, [row[0] for row in ARITHMETIC] + [c for c, _, _ in OTHERS] + PACKED + APPROXIMATE
    )


@pytest.mark.parametrize("row", range(len(ARITHMETIC)), ids=[r[0].id for r in ARITHMETIC])
def test_rounded(run: CaseRunner, row: int) -> None:
    case, op, kind, mode, ftz, sat = ARITHMETIC[row]
    f = FORMATS[kind]
    codes = [code_samples(f, COUNT, (op, n)) for n in range(len(case.inputs))]
    (got,) = run(case, *[np.array(c, dtype=object) for c in codes])
    for n, row_codes in enumerate(zip(*codes, strict=True)):
        want = reference(op, list(row_codes), f, mode, ftz, sat)
        if want is not None:
            assert int(got[n]) == want, ([hex(c) for c in row_codes], hex(int(got[n])), hex(want))


# -------------------- min, max, signs, tests
def to_float(code: int, kind: str) -> float:
    if kind == "f32":
        return float(struct.unpack("<f", struct.pack("<I", code))[0])
    if kind == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", code))[0])
    f = FORMATS[kind]
    value = decode(code, f)
    if value is not None:
        return math.copysign(float(value), -1 if code >> (f.bits - 1) else 1)
    return (
        math.nan
        if code & ((1 << f.mantissa) - 1)
        else math.copysign(math.inf, -1 if code >> (f.bits - 1) else 1)
    )


NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF, "f64": 0x7FFFFFFFFFFFFFFF}


def extreme(codes: tuple[int, ...], kind: str, biggest: bool, nans: bool) -> int:
    values = [(to_float(c, kind), c) for c in codes]
    numbers = [v for v in values if not math.isnan(v[0])]
    if not numbers or (nans and len(numbers) < len(values)):
        return NAN[kind]
    best = sorted(numbers, key=lambda v: (v[0], math.copysign(1, v[0])))
    return best[-1 if biggest else 0][1]


def sign_bit(kind: str) -> int:
    return 1 << (FORMATS[kind].bits - 1)


OTHERS: list[tuple[Case, str, Callable[..., int]]] = []
for K in ("f32", "f64", "f16", "bf16"):
    A = ARRAY[K]
    for NAME in ("min", "max"):
        for V in ("", ".NaN") if K != "f64" else ("",):
            OTHERS.append(
                (
                    Case(f"{NAME}{V}.{K} d, a, b;", (A, A), (A,)),
                    K,
                    lambda a, b, k=K, big=NAME == "max", nans=V == ".NaN": extreme((a, b), k, big, nans),
                )
            )
    OTHERS.append((Case(f"neg.{K} d, a;", (A,), (A,)), K, lambda a, k=K: a ^ sign_bit(k)))
    OTHERS.append((Case(f"abs.{K} d, a;", (A,), (A,)), K, lambda a, k=K: a & ~sign_bit(k)))
for K in ("f32", "f64"):
    A = ARRAY[K]
    OTHERS += [
        (Case(f"copysign.{K} d, a, b;", (A, A), (A,)), K, lambda a, b, k=K: a & sign_bit(k) | b & ~sign_bit(k)),
        (Case(f"testp.finite.{K} p_, a; selp.u32 d, 1, 0, p_;".replace("p_", "q"), (A,)), K, lambda a, k=K: int(math.isfinite(to_float(a, k)))),
        (Case(f"testp.infinite.{K} q, a; selp.u32 d, 1, 0, q;", (A,)), K, lambda a, k=K: int(math.isinf(to_float(a, k)))),
        (Case(f"testp.number.{K} q, a; selp.u32 d, 1, 0, q;", (A,)), K, lambda a, k=K: int(not math.isnan(to_float(a, k)))),
        (Case(f"testp.notanumber.{K} q, a; selp.u32 d, 1, 0, q;", (A,)), K, lambda a, k=K: int(math.isnan(to_float(a, k)))),
        (
            Case(f"testp.subnormal.{K} q, a; selp.u32 d, 1, 0, q;", (A,)), K,
            lambda a, f=FORMATS[K]: int(a & ((1 << f.mantissa) - 1) != 0 and not a >> f.mantissa & ((1 << f.exponent) - 1)),
        ),
        (
            Case(f"testp.normal.{K} q, a; selp.u32 d, 1, 0, q;", (A,)), K,
            lambda a, f=FORMATS[K]: int(0 < (a >> f.mantissa & ((1 << f.exponent) - 1)) < (1 << f.exponent) - 1),
        ),
    ]  # fmt: skip
OTHERS = [
    (Case("{ .reg .pred q; " + c.code + " }", c.inputs, c.outputs) if "testp" in c.code else c, k, f)
    for c, k, f in OTHERS
]


@pytest.mark.parametrize(
    "row", range(len(OTHERS)), ids=[f"{n}-{c.code[:30]}" for n, (c, _, _) in enumerate(OTHERS)]
)
def test_selections(run: CaseRunner, row: int) -> None:
    case, kind, fn = OTHERS[row]
    f = FORMATS[kind]
    specials = [f.top, f.top | sign_bit(kind), f.top + 1, f.top | 1 << (f.mantissa - 1)]
    codes = []
    for n in range(len(case.inputs)):
        c = code_samples(f, COUNT, n)
        for k in range(0, COUNT, 7 + n):
            c[k] = specials[k % 4]
        codes.append(c)
    (got,) = run(case, *[np.array(c, dtype=object) for c in codes])
    for n, row_codes in enumerate(zip(*codes, strict=True)):
        assert int(got[n]) == fn(*row_codes), (
            [hex(c) for c in row_codes],
            hex(int(got[n])),
            hex(fn(*row_codes)),
        )


# -------------------- packed halves
PACKED = [Case(f"{op}.rn.{k} d, a, b;" if op != "fma" else f"fma.rn.relu.{k} d, a, b, c;",
               ("b32",) * (3 if op == "fma" else 2))
          for k in ("f16x2", "bf16x2") for op in ("add", "sub", "mul", "fma")]  # fmt: skip


@pytest.mark.parametrize("case", PACKED, ids=[c.id for c in PACKED])
def test_packed(run: CaseRunner, case: Case) -> None:
    f = F16 if ".f16x2" in case.code else BF16
    op = case.code[:3]
    lanes = [[code_samples(f, COUNT, (n, side)) for side in (0, 1)] for n in range(len(case.inputs))]
    arrays: list[Any] = [
        np.array([hi << 16 | lo for lo, hi in zip(*pair, strict=True)], dtype=object) for pair in lanes
    ]
    (got,) = run(case, *arrays)
    for n in range(COUNT):
        for side in (0, 1):
            codes = [pair[side][n] for pair in lanes]
            want = reference(op, codes, f, "rn", False, False)
            assert want is not None
            if op == "fma" and want >> 15:
                want = 0
            assert int(got[n]) >> (16 * side) & 0xFFFF == want, [hex(c) for c in codes]


# -------------------- roots, approximations
def test_square_root_and_reciprocal_round_correctly(machine: Machine) -> None:
    cases = [Case(f"{op}.{m}.{k} d, a;", (ARRAY[k],), (ARRAY[k],))
             for op in ("sqrt", "rcp") for m in ("rn", "rz", "rm", "rp") for k in ("f32", "f64")]  # fmt: skip
    runner = CaseRunner(machine, cases)
    for case in cases:
        op, mode, kind = case.code.split(" ")[0].split(".")
        f = FORMATS[kind]
        codes = [c & ~sign_bit(kind) for c in code_samples(f, COUNT, op)]
        codes = [c if c else 1 for c in codes]
        (got,) = runner(case, np.array(codes, dtype=object))
        for code, value in zip(codes, got, strict=True):
            x = decode(code, f)
            assert x is not None
            if op == "rcp":
                assert int(value) == encode(1 / x, f, mode), (case.id, hex(code))
            else:
                assert int(value) == root_code(x, f, mode), (case.id, hex(code))


def root_code(x: Fraction, f: Format, mode: str) -> int:
    """The rounded square root: an integer root with enough digits, and a sticky one below them."""
    shift = 2 * (f.mantissa + f.bias + 40)
    scaled = (x.numerator << shift) // x.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and (x.numerator << shift) % x.denominator == 0
    value = Fraction(2 * root + (0 if exact else 1), 2) / Fraction(2) ** (shift // 2)
    return encode(value, f, mode)


APPROXIMATE = [
    Case(f"{name}.f32 d, a;", ("f32",), ("f32",))
    for name in ("rcp.approx", "sqrt.approx", "rsqrt.approx", "ex2.approx", "lg2.approx", "sin.approx", "cos.approx",
                 "tanh.approx", "rcp.approx.ftz", "ex2.approx.ftz")
] + [Case("div.approx.f32 d, a, b;", ("f32", "f32"), ("f32",)), Case("div.full.f32 d, a, b;", ("f32", "f32"), ("f32",))]  # fmt: skip
MEANING: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "ex2": lambda x: 2.0**x,
    "lg2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
}


@pytest.mark.parametrize("case", APPROXIMATE, ids=[c.id for c in APPROXIMATE])
def test_approximations_stay_within_the_stated_error(run: CaseRunner, case: Case) -> None:
    """Relative 2^-21 (PTX states 2^-20 or better, absolute 2^-20 for sin and cos)."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.01, 3.0, COUNT).astype(np.float32)
    y = rng.uniform(0.1, 9.0, COUNT).astype(np.float32)
    arrays = (x, y)[: len(case.inputs)]
    (got,) = run(case, *arrays)
    for n in range(COUNT):
        want = (
            x[n] / np.float64(y[n])
            if case.code.startswith("div")
            else MEANING[case.id.split(".")[0]](float(x[n]))
        )
        assert abs(float(got[n]) - want) <= max(abs(want), 0.5 if "lg2" in case.id else 0) * 2.0**-21


def test_double_approximations_use_the_upper_half_only(machine: Machine) -> None:
    cases = [
        Case("rcp.approx.ftz.f64 d, a;", ("f64",), ("f64",)),
        Case("rsqrt.approx.f64 d, a;", ("f64",), ("f64",)),
    ]
    runner = CaseRunner(machine, cases)
    x = np.random.default_rng(6).uniform(0.5, 100.0, COUNT)
    for case, fn in zip(cases, (lambda v: 1 / v, lambda v: 1 / np.sqrt(v)), strict=True):
        (got,) = runner(case, x)
        assert np.all(np.abs(got / fn(x) - 1) < 2.0**-19)
        assert not np.any(got.view(np.uint64) & 0xFFFFFFFF)
