"""cvt in all its forms, and cvta."""

from __future__ import annotations

from cuco.testbed.ptx.emitter import CTYPES, Emitter
from cuco.testbed.ptx.model import SIZES, Instruction
from cuco.testbed.ptx.ops_real import FORMATS, flag, rounding
from cuco.testbed.ptx.table import Unsupported, op

_INTEGRAL = {"rni": "isa::RN", "rzi": "isa::RZ", "rmi": "isa::RM", "rpi": "isa::RP"}
_HALVES = ("f16", "bf16")
_REAL = ("f16", "bf16", "f32", "f64")
_FP8 = {"e4m3x2": "isa::E4M3", "e5m2x2": "isa::E5M2"}


def _integral(i: Instruction) -> str:
    return next((_INTEGRAL[p] for p in i.parts if p in _INTEGRAL), "")


@op("cvt")
def cvt(e: Emitter, i: Instruction) -> str:
    if i.parts[1] == "pack":
        return _pack(e, i)
    target, source = i.parts[-2:]
    if "x2" in target or "x2" in source:
        return _packed(e, i, target, source)
    if target == "tf32":
        call = f"isa::to_tf32<{rounding(i)}, {flag(i.has('satfinite'))}, {flag(i.has('relu'))}>"
        return e.write(i.operands[0], f"{call}({e.read(i.operands[1], 'f32')})", "b32")
    if source in _REAL:
        return _from_real(e, i, target, source)
    if target in _REAL:
        return _int_to_real(e, i, target, source)
    return _int_to_int(e, i, target, source)


def _int_to_int(e: Emitter, i: Instruction, target: str, source: str) -> str:
    value = e.read(i.operands[1], source)
    if i.has("sat"):
        value = f"isa::clamp_int<{CTYPES[target]}>({value})"
    return e.write(i.operands[0], f"{CTYPES[target]}({value})", target)


def _int_to_real(e: Emitter, i: Instruction, target: str, source: str) -> str:
    value = e.read(i.operands[1], source)
    if target in _HALVES:
        call = f"isa::narrow<{FORMATS[target]}, {rounding(i)}, false, false>(isa::wide_int({value}))"
        if i.has("sat"):
            call = f"isa::finish<{FORMATS[target]}, false, true, false>({call})"
        return e.write(i.operands[0], f"uint16_t({call})", target)
    call = f"isa::from_int<{CTYPES[target]}, {rounding(i)}>({value})"
    if i.has("sat"):
        call = f"isa::saturate({call})"
    return e.write(i.operands[0], call, target)


def _from_real(e: Emitter, i: Instruction, target: str, source: str) -> str:
    value = e.read(i.operands[1], source)
    if source in _HALVES:
        if i.has("ftz"):
            value = f"isa::flush16<{FORMATS[source]}>({value})"
        value = f"isa::widen<{FORMATS[source]}>({value})"
    whole = _integral(i)
    if target not in _REAL:
        if not whole:
            raise Unsupported("float to integer without an integer rounding")
        return e.write(
            i.operands[0], f"isa::to_int<{CTYPES[target]}, {whole}, {flag(i.has('ftz'))}>({value})", target
        )
    if i.has("ftz") and source == "f32":
        value = f"isa::flush({value})"
    if whole:
        value = f"isa::integral<{whole}>({value})"
    return _to_real(e, i, target, source, value)


def _to_real(e: Emitter, i: Instruction, target: str, source: str, value: str) -> str:
    if target in _HALVES:
        sat, relu = flag(i.has("satfinite")), flag(i.has("relu"))
        call = f"isa::narrow<{FORMATS[target]}, {rounding(i)}, {sat}, {relu}>({value})"
        if i.has("sat", "ftz"):
            call = (
                f"isa::finish<{FORMATS[target]}, {flag(i.has('ftz'))}, {flag(i.has('sat'))}, false>({call})"
            )
        return e.write(i.operands[0], f"uint16_t({call})", target)
    if target == "f32" and source == "f64":
        call = f"isa::to_f32<{rounding(i)}, {flag(i.has('ftz'))}, {flag(i.has('sat'))}>({value})"
        return e.write(i.operands[0], call, "f32")
    if target == "f64":
        value = f"double({value})"
    if i.has("sat"):
        value = f"isa::saturate({value})"
    if i.has("ftz") and target == "f32":
        value = f"isa::flush({value})"
    return e.write(i.operands[0], value, target)


def _packed(e: Emitter, i: Instruction, target: str, source: str) -> str:
    """Two values into one register, or fp8 pairs out of one. Operand a is the upper half."""
    relu = flag(i.has("relu"))
    if source in _FP8 and target == "f16x2":
        value = e.read(i.operands[1], "b16")
        return e.write(i.operands[0], f"isa::fp8_to_half2<{_FP8[source]}, {relu}>({value})", "b32")
    if target in _FP8:
        if source in ("f16x2", "bf16x2"):
            pair, form = e.read(i.operands[1], "b32"), FORMATS[source]
            high, low = f"isa::widen<{form}>(uint16_t(t_ >> 16))", f"isa::widen<{form}>(uint16_t(t_))"
            body = e.write(i.operands[0], f"isa::fp8_pair<{_FP8[target]}, {relu}>({high}, {low})", "b16")
            return f"{{ const uint32_t t_ = {pair}; {body} }}"
        if source == "f32":
            a, b = (e.read(x, "f32") for x in i.operands[1:3])
            return e.write(i.operands[0], f"isa::fp8_pair<{_FP8[target]}, {relu}>({a}, {b})", "b16")
    if target in ("f16x2", "bf16x2") and source == "f32":
        a, b = (e.read(x, "f32") for x in i.operands[1:3])
        one = f"isa::narrow<{FORMATS[target]}, {rounding(i)}, {flag(i.has('satfinite'))}, {relu}>"
        return e.write(i.operands[0], f"{one}({a}) << 16 | {one}({b})", "b32")
    raise Unsupported(i.op)


def _pack(e: Emitter, i: Instruction) -> str:
    """cvt.pack.sat: two integers clamped and concatenated, optionally above the lower bits of c."""
    kinds = [p for p in i.parts if p in SIZES]
    target, source = kinds[0], kinds[1]
    a, b = (e.read(x, source) for x in i.operands[1:3])
    bits = 8 * SIZES[target]
    unsigned = {2: "uint16_t", 1: "uint8_t"}[SIZES[target]]
    one = "uint32_t({u}(isa::clamp_int<{t}>({v})))"
    high = one.format(u=unsigned, t=CTYPES[target], v=a)
    low = one.format(u=unsigned, t=CTYPES[target], v=b)
    value = f"{high} << {bits} | {low}"
    if len(i.operands) > 3:
        value += f" | {e.read(i.operands[3], 'b32')} << {2 * bits}"
    return e.write(i.operands[0], value, "b32")


@op("cvta")
def cvta(e: Emitter, i: Instruction) -> str:
    to = i.has("to")
    space = next(p for p in i.parts if p.split("::")[0] in ("global", "shared", "local", "const", "param"))
    value = e.read(i.operands[1], "u64")
    if space.startswith("shared"):
        value = f"{value} - uint64_t(S_)" if to else f"SHARED({value})"
    return e.write(i.operands[0], value, "u64")
