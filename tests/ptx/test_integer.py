# ruff: noqa: E501  (PTX text and tables of cases read best on one line)
"""Integer and bit instructions against Python's unbounded integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptx_machine import Case, CaseRunner, Machine

BITS = {"u16": 16, "s16": 16, "b16": 16, "u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64}
Fn = Callable[..., int]


def wrap(value: int, kind: str) -> int:
    bits = BITS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def unsigned(value: int, kind: str) -> int:
    return value & ((1 << BITS[kind]) - 1)


def shift_right(a: int, n: int, kind: str) -> int:
    n = unsigned(n, "u32")
    return a >> min(n, BITS[kind] - 1) if kind[0] == "s" else (a >> n if n < BITS[kind] else 0)


def divide(a: int, b: int, kind: str) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int, kind: str) -> int:
    return a if b == 0 else a - b * divide(a, b, kind)


def typed(kinds: list[str]) -> list[tuple[Case, Fn]]:
    """One case per type for the operations that exist in all of them."""
    table: list[tuple[Case, Fn]] = []
    for k in kinds:
        bits = BITS[k]

        def add(code: str, n: int, fn: Fn, k: str = k) -> None:
            table.append((Case(code.replace("TYPE", k), (k,) * n, (k,)), fn))

        add("add.TYPE d, a, b;", 2, lambda a, b: a + b)
        add("sub.TYPE d, a, b;", 2, lambda a, b: a - b)
        add("mul.lo.TYPE d, a, b;", 2, lambda a, b: a * b)
        add("mul.hi.TYPE d, a, b;", 2, lambda a, b, n=bits: (a * b) >> n)
        add("mad.lo.TYPE d, a, b, c;", 3, lambda a, b, c: a * b + c)
        add("mad.hi.TYPE d, a, b, c;", 3, lambda a, b, c, n=bits: ((a * b) >> n) + c)
        add("div.TYPE d, a, b;", 2, lambda a, b, k=k: divide(a, b, k))
        add("rem.TYPE d, a, b;", 2, lambda a, b, k=k: remainder(a, b, k))
        add("min.TYPE d, a, b;", 2, min)
        add("max.TYPE d, a, b;", 2, max)
        add("sad.TYPE d, a, b, c;", 3, lambda a, b, c: c + abs(a - b))
        # Immediates take the operation's type: 64-bit ones are as wide as the registers.
        most = 2 ** (bits - 1) - 1
        add(f"mul.hi.TYPE d, a, {most};", 1, lambda a, n=bits, most=most: (a * most) >> n)
        add(f"min.TYPE d, a, {most // 3};", 1, lambda a, most=most: min(a, most // 3))
        add("max.TYPE d, 5, a;", 1, lambda a: max(a, 5))
        if k[0] == "s":
            add("abs.TYPE d, a;", 1, abs)
            add("neg.TYPE d, a;", 1, lambda a: -a)
    return table


def wide() -> list[tuple[Case, Fn]]:
    table: list[tuple[Case, Fn]] = []
    for k, w in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        table.append((Case(f"mul.wide.{k} d, a, b;", (k, k), (w,)), lambda a, b: a * b))
        table.append((Case(f"mad.wide.{k} d, a, b, c;", (k, k, w), (w,)), lambda a, b, c: a * b + c))
    return table


def low24(a: int, k: str) -> int:
    a &= 0xFFFFFF
    return a - (1 << 24) if k == "s32" and a >> 23 else a


def logic() -> list[tuple[Case, Fn]]:
    table: list[tuple[Case, Fn]] = []
    for k in ("b16", "b32", "b64"):
        n = BITS[k]
        mask = (1 << n) - 1
        table += [
            (Case(f"and.{k} d, a, b;", (k, k), (k,)), lambda a, b: a & b),
            (Case(f"or.{k} d, a, b;", (k, k), (k,)), lambda a, b: a | b),
            (Case(f"xor.{k} d, a, b;", (k, k), (k,)), lambda a, b: a ^ b),
            (Case(f"not.{k} d, a;", (k,), (k,)), lambda a, m=mask: a ^ m),
            (Case(f"cnot.{k} d, a;", (k,), (k,)), lambda a: int(a == 0)),
            (Case(f"shl.{k} d, a, b;", (k, "u32"), (k,)), lambda a, s, n=n: a << s if s < n else 0),
        ]
    for k in ("u16", "s16", "u32", "s32", "u64", "s64"):
        table.append((Case(f"shr.{k} d, a, b;", (k, "u32"), (k,)), lambda a, s, k=k: shift_right(a, s, k)))
    return table


def lop3(a: int, b: int, c: int) -> int:
    return sum(
        (0x96 >> (((a >> i & 1) << 2) | ((b >> i & 1) << 1) | (c >> i & 1)) & 1) << i for i in range(32)
    )


def bfe(a: int, p: int, n: int, k: str) -> int:
    p, n, width = p & 255, n & 255, BITS[k]
    raw = unsigned(a, k)
    if n == 0:
        return 0
    sign = raw >> min(p + n - 1, width - 1) & 1 if k[0] == "s" else 0
    return sum(((raw >> (i + p) & 1) if i < n and i + p < width else sign) << i for i in range(width))


def bfi(a: int, b: int, p: int, n: int, k: str) -> int:
    p, n = p & 255, n & 255
    for i in range(n):
        if i + p < BITS[k]:
            b = b & ~(1 << (i + p)) | (a >> i & 1) << (i + p)
    return b


def prmt(a: int, b: int, s: int) -> int:
    pool = [(b << 32 | a) >> (8 * i) & 255 for i in range(8)]
    result = 0
    for i in range(4):
        x = s >> (4 * i) & 15
        byte = pool[x & 7]
        result |= (255 * (byte >> 7) if x & 8 else byte) << (8 * i)
    return result


def fns(mask: int, base: int, n: int) -> int:
    base &= 31
    if n == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    found = [i for i in (range(base, 32) if n > 0 else range(base, -1, -1)) if mask >> i & 1]
    return found[abs(n) - 1] if abs(n) <= len(found) else 0xFFFFFFFF


def bits_table() -> list[tuple[Case, Fn]]:
    table: list[tuple[Case, Fn]] = [
        (Case("lop3.b32 d, a, b, c, 0x96;", ("b32",) * 3), lop3),
        (Case("prmt.b32 d, a, b, c;", ("b32",) * 3), prmt),
        (Case("prmt.b32.f4e d, a, b, c;", ("b32",) * 3), lambda a, b, c: (b << 32 | a) >> 8 * (c & 3)),
        (
            Case("prmt.b32.rc8 d, a, b, c;", ("b32",) * 3),
            lambda a, b, c: (a >> 8 * (c & 3) & 255) * 0x01010101,
        ),
        (
            Case("prmt.b32.rc16 d, a, b, c;", ("b32",) * 3),
            lambda a, b, c: (a >> 16 * (c & 1) & 65535) * 0x10001,
        ),
        (
            Case("shf.l.clamp.b32 d, a, b, c;", ("b32",) * 3),
            lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32,
        ),
        (Case("shf.l.wrap.b32 d, a, b, c;", ("b32",) * 3), lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
        (Case("shf.r.clamp.b32 d, a, b, c;", ("b32",) * 3), lambda a, b, c: (b << 32 | a) >> min(c, 32)),
        (Case("shf.r.wrap.b32 d, a, b, c;", ("b32",) * 3), lambda a, b, c: (b << 32 | a) >> (c & 31)),
        (Case("brev.b32 d, a;", ("b32",)), lambda a: int(f"{a:032b}"[::-1], 2)),
        (Case("brev.b64 d, a;", ("b64",), ("b64",)), lambda a: int(f"{a:064b}"[::-1], 2)),
        (Case("popc.b32 d, a;", ("b32",)), lambda a: a.bit_count()),
        (Case("popc.b64 d, a;", ("b64",)), lambda a: a.bit_count()),
        (Case("clz.b32 d, a;", ("b32",)), lambda a: 32 - a.bit_length()),
        (Case("clz.b64 d, a;", ("b64",)), lambda a: 64 - a.bit_length()),
        (Case("bfind.u32 d, a;", ("u32",)), lambda a: a.bit_length() - 1),
        (Case("bfind.s32 d, a;", ("s32",)), lambda a: (~a if a < 0 else a).bit_length() - 1),
        (Case("bfind.u64 d, a;", ("u64",)), lambda a: a.bit_length() - 1),
        (Case("bfind.shiftamt.u32 d, a;", ("u32",)), lambda a: 32 - a.bit_length() if a else -1),
        (
            Case("bmsk.clamp.b32 d, a, b;", ("b32",) * 2),
            lambda a, b: ((1 << min(b, 32)) - 1) << a if a < 32 else 0,
        ),
        (Case("bmsk.wrap.b32 d, a, b;", ("b32",) * 2), lambda a, b: ((1 << (b & 31)) - 1) << (a & 31)),
        (Case("szext.clamp.u32 d, a, b;", ("u32",) * 2), lambda a, n: a & ((1 << min(n, 32)) - 1)),
        (Case("szext.wrap.s32 d, a, b;", ("s32", "u32")), lambda a, n: szext(a, n & 31)),
        (Case("fns.b32 d, a, b, c;", ("b32", "b32", "s32")), fns),
    ]
    for k in ("u32", "s32", "u64", "s64"):
        table.append(
            (Case(f"bfe.{k} d, a, b, c;", (k, "u32", "u32"), (k,)), lambda a, p, n, k=k: bfe(a, p, n, k))
        )
    for k in ("b32", "b64"):
        case = Case(f"bfi.{k} d, a, b, c, f;", (k, k, "u32", "u32"), (k,))
        table.append((case, lambda a, b, p, n, k=k: bfi(a, b, p, n, k)))
    return table


def szext(a: int, n: int) -> int:
    if n == 0:
        return 0
    low = a & ((1 << n) - 1)
    return low - (1 << n) if low >> (n - 1) else low


def byte(word: int, i: int, signed: bool, width: int = 8) -> int:
    value = word >> (width * i) & ((1 << width) - 1)
    return value - (1 << width) if signed and value >> (width - 1) else value


def dots() -> list[tuple[Case, Fn]]:
    table: list[tuple[Case, Fn]] = []
    for x in ("u32", "s32"):
        for y in ("u32", "s32"):
            sx, sy = x == "s32", y == "s32"
            case = Case(f"dp4a.{x}.{y} d, a, b, c;", ("b32",) * 3)
            table.append(
                (
                    case,
                    lambda a, b, c, sx=sx, sy=sy: c + sum(byte(a, i, sx) * byte(b, i, sy) for i in range(4)),
                )
            )
            for half, base in (("lo", 0), ("hi", 2)):
                case = Case(f"dp2a.{half}.{x}.{y} d, a, b, c;", ("b32",) * 3)
                table.append(
                    (
                        case,
                        lambda a, b, c, sx=sx, sy=sy, o=base: (
                            c + sum(byte(a, i, sx, 16) * byte(b, i + o, sy) for i in range(2))
                        ),
                    )
                )
    return table


def clamp(v: int) -> int:
    return max(-(1 << 31), min((1 << 31) - 1, v))


SATURATING: list[tuple[Case, Fn]] = [
    (Case("add.sat.s32 d, a, b;", ("s32",) * 2, ("s32",)), lambda a, b: clamp(a + b)),
    (Case("sub.sat.s32 d, a, b;", ("s32",) * 2, ("s32",)), lambda a, b: clamp(a - b)),
    (Case("mad.hi.sat.s32 d, a, b, c;", ("s32",) * 3, ("s32",)), lambda a, b, c: clamp((a * b >> 32) + c)),
    (Case("mul24.lo.s32 d, a, b;", ("s32",) * 2, ("s32",)), lambda a, b: low24(a, "s32") * low24(b, "s32")),
    (Case("mul24.hi.u32 d, a, b;", ("u32",) * 2, ("u32",)), lambda a, b: low24(a, "u32") * low24(b, "u32") >> 16),
    (Case("mad24.lo.u32 d, a, b, c;", ("u32",) * 3, ("u32",)), lambda a, b, c: low24(a, "u32") * low24(b, "u32") + c),
    (Case("add.u16x2 d, a, b;", ("b32",) * 2), lambda a, b: each16(a, b, lambda x, y: x + y)),
    (Case("max.s16x2 d, a, b;", ("b32",) * 2), lambda a, b: each16(a, b, max, True)),
    (Case("min.u16x2 d, a, b;", ("b32",) * 2), lambda a, b: each16(a, b, min)),
    (Case("max.relu.s32 d, a, b;", ("s32",) * 2, ("s32",)), lambda a, b: max(a, b, 0)),
    # Carry chains, 64 bits out of two 32-bit halves.
    (
        Case("{ .reg .b32 l, h, m; .reg .b64 w; mov.b64 {l, h}, a; mov.b64 {m, x_}, b; add.cc.u32 l, l, m; "
             "addc.u32 h, h, x_; mov.b64 d, {l, h}; }", ("b64", "b64"), ("b64",)),
        lambda a, b: a + b,
    ),
    (
        Case("{ .reg .b32 l, h, m; mov.b64 {l, h}, a; mov.b64 {m, x_}, b; sub.cc.u32 l, l, m; subc.u32 h, h, x_; "
             "mov.b64 d, {l, h}; }", ("b64", "b64"), ("b64",)),
        lambda a, b: a - b,
    ),
    (
        Case("{ .reg .b32 l, h, m; mov.b64 {l, h}, a; mov.b64 {m, x_}, b; mul.lo.u32 y_, l, m; "
             "mul.hi.u32 z_, l, m; mad.lo.cc.u32 z_, l, x_, z_; madc.hi.u32 x_, l, x_, 0; "
             "mad.lo.cc.u32 z_, h, m, z_; madc.hi.u32 x_, h, m, x_; mov.b64 d, {y_, z_}; }", ("b64", "b64"), ("b64",)),
        lambda a, b: a * b,
    ),
]  # fmt: skip


def each16(a: int, b: int, fn: Fn, signed: bool = False) -> int:
    return sum((fn(byte(a, i, signed, 16), byte(b, i, signed, 16)) & 65535) << (16 * i) for i in range(2))


TABLE = [
    *typed(["u16", "s16", "u32", "s32", "u64", "s64"]), *wide(), *logic(), *bits_table(), *dots(), *SATURATING,
]  # fmt: skip


@pytest.fixture(scope="module")
def run(machine: Machine) -> CaseRunner:
    return CaseRunner(machine, [case for case, _ in TABLE])


def samples(kind: str, count: int, seed: int) -> list[int]:
    """Random values of many magnitudes with the corners that break implementations."""
    rng = random.Random(f"{kind}{seed}")
    bits = BITS[kind]
    corners = [0, 1, 2, 31, 32, 33, 63, 64, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 255, 256]
    raw = [
        rng.choice(corners) if rng.random() < 0.3 else rng.getrandbits(rng.randint(1, bits))
        for _ in range(count)
    ]
    return [wrap(v, kind) for v in raw]


@pytest.mark.parametrize("row", range(len(TABLE)), ids=[f"{n}-{c.id}" for n, (c, _) in enumerate(TABLE)])
def test_integer(run: CaseRunner, row: int) -> None:
    case, fn = TABLE[row]
    values = [samples(k, 512, n) for n, k in enumerate(case.inputs)]
    arrays: list[Any] = [np.array(v, dtype=object) for v in values]
    if case.id.startswith(("bfe.", "bfi.")):  # fields that mostly fit
        arrays[-1] = np.array([v % 70 for v in values[-1]], dtype=object)
        arrays[-2] = np.array([v % 70 for v in values[-2]], dtype=object)
    if case.id.startswith("fns"):
        arrays[1] = np.array([v % 32 for v in values[1]], dtype=object)
        arrays[2] = np.array([v % 9 - 4 for v in values[2]], dtype=object)
    (got,) = run(case, *arrays)
    kind = case.outputs[0]
    want = [wrap(fn(*x), kind) for x in zip(*arrays, strict=True)]
    bad = [n for n in range(512) if int(got[n]) != want[n]]
    assert not bad, [(tuple(a[n] for a in arrays), int(got[n]), want[n]) for n in bad[:3]]


BY_CODE = {case.code: (case, fn) for case, fn in TABLE}
CHOSEN = ("mad.hi.s64 d, a, b, c;", "shf.l.clamp.b32 d, a, b, c;", "prmt.b32 d, a, b, c;", "bfe.s32 d, a, b, c;", "dp4a.s32.u32 d, a, b, c;")  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(code=st.sampled_from(CHOSEN), data=st.data())
def test_any_operands(run: CaseRunner, code: str, data: st.DataObject) -> None:
    """Values that hypothesis chooses and shrinks; 32 lanes at a time."""
    case, fn = BY_CODE[code]
    column = st.lists(st.integers(0, (1 << 64) - 1), min_size=32, max_size=32)
    values = [[wrap(v, kind) for v in data.draw(column)] for kind in case.inputs]
    (got,) = run(case, *[np.array(v, dtype=object) for v in values])
    kind = case.outputs[0]
    assert [int(g) for g in got] == [wrap(fn(*x), kind) for x in zip(*values, strict=True)]
