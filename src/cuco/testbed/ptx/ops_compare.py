"""setp, set, selp, slct and mov."""

from __future__ import annotations

from cuco.testbed.ptx.emitter import Emitter, convert
from cuco.testbed.ptx.model import Instruction, Operand, Pair, Reg, Sym
from cuco.testbed.ptx.ops_real import FORMATS, as_real
from cuco.testbed.ptx.table import Unsupported, op

_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_UNORDERED = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
_BOOLEAN = {"and": "&&", "or": "||", "xor": "!="}
_REAL = ("f16", "bf16", "f32", "f64")


def _comparison(i: Instruction) -> str:
    known = {*_ORDERED, *_UNSIGNED, *_UNORDERED, "num", "nan"}
    return next(p for p in i.parts[1:] if p in known)


def compare(name: str, a: str, b: str, real: bool) -> str:
    """C++ for one PTX comparison of two values; ordered ones are false for NaN."""
    if name in ("num", "nan"):
        unordered = f"(isa::is_nan({a}) || isa::is_nan({b}))"
        return unordered if name == "nan" else f"!{unordered}"
    if name in _UNORDERED:
        # A negated ordered comparison is true for NaN.
        opposite = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[_UNORDERED[name]]
        if opposite == "!=":
            return f"!({a} < {b} || {a} > {b})"
        return f"!({a} {opposite} {b})"
    sign = _ORDERED.get(name) or _UNSIGNED[name]
    if real and sign == "!=":
        return f"({a} < {b} || {a} > {b})"
    return f"({a} {sign} {b})"


def _source_type(i: Instruction) -> str:
    kind = i.type
    if any(p in _UNSIGNED for p in i.parts[1:]):
        return {"s16": "u16", "s32": "u32", "s64": "u64", "b16": "u16", "b32": "u32", "b64": "u64"}.get(
            kind, kind
        )
    return kind


def _combine(e: Emitter, i: Instruction, value: str) -> str:
    """Apply the optional boolean operator with the predicate operand c."""
    operator = next((_BOOLEAN[p] for p in i.parts[1:] if p in _BOOLEAN), "")
    return f"({value} {operator} {e.read(i.operands[3], 'pred')})" if operator else value


def _value(e: Emitter, i: Instruction) -> str:
    kind = _source_type(i)
    a, b = as_real(e, i, kind, 1), as_real(e, i, kind, 2)
    return compare(_comparison(i), a, b, kind in _REAL)


def _lane_value(e: Emitter, i: Instruction, lane: int) -> str:
    form = FORMATS[i.type]

    def half(operand: Operand) -> str:
        value = f"uint16_t({e.read(operand, 'b32')} >> {16 * lane})"
        value = f"isa::flush16<{form}>({value})" if i.has("ftz") else value
        return f"isa::widen<{form}>({value})"

    return compare(_comparison(i), half(i.operands[1]), half(i.operands[2]), True)


@op("setp")
def setp(e: Emitter, i: Instruction) -> str:
    target = i.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    if i.type.endswith("x2"):
        if second is None:
            raise Unsupported("setp on packed halves without two destinations")
        low, high = (_combine(e, i, _lane_value(e, i, lane)) for lane in (0, 1))
        stores = f"{e.write(first, 'l_', 'pred')} {e.write(second, 'h_', 'pred')}"
        return f"{{ const bool l_ = {low}, h_ = {high}; {stores} }}"
    if second is None:
        return e.write(first, _combine(e, i, _value(e, i)), "pred")
    opposite = _combine(e, i, "!t_")
    return (
        f"{{ const bool t_ = {_value(e, i)}, p_ = {_combine(e, i, 't_')}, q_ = {opposite}; "
        f"{e.write(first, 'p_', 'pred')} {e.write(second, 'q_', 'pred')} }}"
    )


@op("set")
def set_value(e: Emitter, i: Instruction) -> str:
    target, source = i.parts[-2:]
    if source in ("f16x2", "bf16x2"):
        low, high = (_combine(e, i, _lane_value(e, i, lane)) for lane in (0, 1))
        one = {"f16x2": "0x3c00u", "bf16x2": "0x3f80u"}.get(target, "0xffffu")
        return e.write(i.operands[0], f"({low} ? {one} : 0u) | ({high} ? {one} << 16 : 0u)", "b32")
    value = _combine(e, i, _value(e, i))
    true = {"f32": "1.0f", "f16": "uint16_t(0x3c00)", "bf16": "uint16_t(0x3f80)"}.get(target)
    if true is None:
        true = "uint16_t(0xffff)" if target in ("u16", "s16") else "0xffffffffu"
    kind = {"s32": "u32", "s16": "u16"}.get(target, target)
    return e.write(
        i.operands[0], f"{value} ? {true} : {'0.0f' if target == 'f32' else f'decltype({true})(0)'}", kind
    )


@op("selp")
def selp(e: Emitter, i: Instruction) -> str:
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    return e.write(i.operands[0], f"{e.read(i.operands[3], 'pred')} ? {a} : {b}", i.type)


@op("slct")
def slct(e: Emitter, i: Instruction) -> str:
    kind, chooser = i.parts[-2:]
    a, b = (e.read(x, kind) for x in i.operands[1:3])
    c = e.read(i.operands[3], chooser)
    if i.has("ftz") and chooser == "f32":
        c = f"isa::flush({c})"
    return e.write(i.operands[0], f"{c} >= 0 ? {a} : {b}", kind)


@op("mov")
def mov(e: Emitter, i: Instruction) -> str:
    source = i.operands[1]
    if isinstance(source, Sym):
        address = e.symbol(source.name, source.offset)
        return e.write(i.operands[0], convert(f"uint64_t({address})", "uint64_t", "uint64_t"), "b64")
    if isinstance(source, Reg) and source.special and source.name.endswith("explicit_cluster"):
        return e.write(i.operands[0], e.read(source, "pred"), "pred")
    return e.write(i.operands[0], e.read(source, i.type), i.type)
