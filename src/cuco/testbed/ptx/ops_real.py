"""Floating-point operations: single, double, half and bfloat16 (scalar and packed)."""

from __future__ import annotations

from cuco.testbed.ptx.emitter import CTYPES, Emitter
from cuco.testbed.ptx.model import Instruction
from cuco.testbed.ptx.table import Unsupported, op

ROUNDINGS = {"rn": "isa::RN", "rz": "isa::RZ", "rm": "isa::RM", "rp": "isa::RP", "rna": "isa::RNA"}
FORMATS = {"f16": "isa::F16", "bf16": "isa::BF16", "f16x2": "isa::F16", "bf16x2": "isa::BF16"}


def flag(value: bool) -> str:
    return "true" if value else "false"


def rounding(i: Instruction) -> str:
    """The rounding mode of an instruction, to nearest even by default."""
    return next((ROUNDINGS[p] for p in i.parts if p in ROUNDINGS), "isa::RN")


def is_half(i: Instruction) -> bool:
    return i.type in FORMATS


def per_lane(e: Emitter, i: Instruction, call: str, count: int) -> str:
    """Apply `call` (which names its arguments x, y, z) to one or both halves of 16-bit operands."""
    names = ("x", "y", "z")[:count]
    values = [e.read(o, i.type) for o in i.operands[1 : 1 + count]]
    packed = i.type.endswith("x2")
    arguments = ", ".join(f"uint16_t {n}" for n in names)
    if packed:
        body = f"isa::pair{count}({', '.join(values)}, []({arguments}) {{ return {call}; }})"
    else:
        body = f"[]({arguments}) {{ return {call}; }}({', '.join(values)})"
    return e.write(i.operands[0], body, i.type)


def binary(e: Emitter, i: Instruction) -> str:
    """add, sub, mul, div of any floating type."""
    ftz, sat = flag(i.has("ftz")), flag(i.has("sat"))
    if is_half(i):
        if rounding(i) != "isa::RN" or i.name == "div":
            raise Unsupported(f"rounding of {i.op}")
        return per_lane(e, i, f"isa::n{i.name}<{FORMATS[i.type]}, {ftz}, {sat}>(x, y)", 2)
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    mode = rounding(i)
    if mode == "isa::RN" and not i.has("ftz", "sat"):
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[i.name]
        return e.write(i.operands[0], f"{a} {sign} {b}", i.type)
    return e.write(i.operands[0], f"isa::f{i.name}<{mode}, {ftz}, {sat}>({a}, {b})", i.type)


@op("fma")
def fma(e: Emitter, i: Instruction) -> str:
    ftz, sat, relu = flag(i.has("ftz")), flag(i.has("sat")), flag(i.has("relu"))
    if is_half(i):
        return per_lane(e, i, f"isa::nfma<{FORMATS[i.type]}, {ftz}, {sat}, {relu}>(x, y, z)", 3)
    if i.type not in ("f32", "f64"):
        raise Unsupported(i.op)
    a, b, c = (e.read(x, i.type) for x in i.operands[1:4])
    if rounding(i) == "isa::RN" and not i.has("ftz", "sat"):
        return e.write(i.operands[0], f"isa::fused({a}, {b}, {c})", i.type)
    return e.write(i.operands[0], f"isa::ffma<{rounding(i)}, {ftz}, {sat}>({a}, {b}, {c})", i.type)


def min_max(e: Emitter, i: Instruction) -> str:
    ftz, nans, xorsign = flag(i.has("ftz")), flag(i.has("NaN")), i.has("xorsign")
    is_max = flag(i.name == "max")
    if is_half(i):
        call = f"isa::nminmax<{FORMATS[i.type]}, {is_max}, {ftz}, {nans}, {flag(xorsign)}>(x, y)"
        return per_lane(e, i, call, 2)
    values = [e.read(x, i.type) for x in i.operands[1:]]
    if xorsign:
        if len(values) != 2:
            raise Unsupported(i.op)
        return e.write(
            i.operands[0], f"isa::fminmax_xorsign<{is_max}, {ftz}, {nans}>({', '.join(values)})", "f32"
        )
    result = values[0]
    for value in values[1:]:
        result = f"isa::f{i.name}<{ftz}, {nans}>({result}, {value})"
    return e.write(i.operands[0], result, i.type)


def sign(e: Emitter, i: Instruction) -> str:
    """abs and neg."""
    ftz = flag(i.has("ftz"))
    if is_half(i):
        return per_lane(e, i, f"isa::n{i.name}<{ftz}, {FORMATS[i.type]}>(x)", 1)
    return e.write(i.operands[0], f"isa::f{i.name}<{ftz}>({e.read(i.operands[1], i.type)})", i.type)


@op("copysign")
def copysign(e: Emitter, i: Instruction) -> str:
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    return e.write(i.operands[0], f"isa::fcopysign({a}, {b})", i.type)


@op("rcp", "sqrt")
def exact_unary(e: Emitter, i: Instruction) -> str:
    a, ftz = e.read(i.operands[1], i.type), flag(i.has("ftz"))
    if i.has("approx"):
        if i.type == "f64":
            return e.write(i.operands[0], f"isa::approx_{i.name}_f64({a})", "f64")
        return e.write(i.operands[0], f"isa::approx_{i.name}<{ftz}>({a})", "f32")
    return e.write(i.operands[0], f"isa::f{i.name}<{rounding(i)}, {ftz}>({a})", i.type)


@op("rsqrt", "lg2", "sin", "cos")
def approximate(e: Emitter, i: Instruction) -> str:
    a = e.read(i.operands[1], i.type)
    if i.type == "f64":
        return e.write(i.operands[0], f"isa::approx_{i.name}_f64({a})", "f64")
    return e.write(i.operands[0], f"isa::approx_{i.name}<{flag(i.has('ftz'))}>({a})", "f32")


@op("ex2", "tanh")
def exponential(e: Emitter, i: Instruction) -> str:
    if is_half(i):
        form = FORMATS[i.type]
        call = f"isa::ntanh<{form}>(x)" if i.name == "tanh" else f"isa::nex2<{form}, {flag(i.has('ftz'))}>(x)"
        return per_lane(e, i, call, 1)
    return approximate(e, i)


_TESTS = {
    "finite": "isa::is_finite({})",
    "infinite": "isa::is_infinite({})",
    "number": "!isa::is_nan({})",
    "notanumber": "isa::is_nan({})",
    "normal": "isa::is_normal({})",
    "subnormal": "isa::is_subnormal({})",
}


@op("testp")
def test_property(e: Emitter, i: Instruction) -> str:
    if i.parts[1] not in _TESTS or i.type not in ("f32", "f64"):
        raise Unsupported(i.op)
    return e.write(i.operands[0], _TESTS[i.parts[1]].format(e.read(i.operands[1], i.type)), "pred")


def as_real(e: Emitter, i: Instruction, kind: str, index: int) -> str:
    """Operand `index` as float or double, widening halves; subnormals flushed where the opcode says ftz."""
    value = e.read(i.operands[index], kind)
    if kind in ("f16", "bf16"):
        if i.has("ftz"):
            value = f"isa::flush16<{FORMATS[kind]}>({value})"
        return f"isa::widen<{FORMATS[kind]}>({value})"
    if CTYPES[kind] in ("float", "double") and i.has("ftz"):
        return f"isa::flush({value})"
    return value
