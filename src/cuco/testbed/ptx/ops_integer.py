"""Integer and bit operations (PTX ISA: Integer Arithmetic, Extended-Precision, Logic and Shift)."""

from __future__ import annotations

from cuco.testbed.ptx import ops_real
from cuco.testbed.ptx.emitter import CTYPES, UNSIGNED, Emitter
from cuco.testbed.ptx.model import SIZES, Instruction
from cuco.testbed.ptx.table import Unsupported, op

_WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_PACKED16 = {"u16x2": "uint16_t", "s16x2": "int16_t"}


def _is_real(i: Instruction) -> bool:
    return i.type in ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")


def _packed(i: Instruction) -> str:
    return next((p for p in i.parts if p in _PACKED16), "")


def _each16(e: Emitter, i: Instruction, body: str) -> str:
    lane = _PACKED16[_packed(i)]
    a, b = (e.read(x, "b32") for x in i.operands[1:3])
    call = f"isa::each16<{lane}>({a}, {b}, [](auto x, auto y) {{ return {body}; }})"
    return e.write(i.operands[0], call, "b32")


def _wrap(e: Emitter, i: Instruction, sign: str) -> str:
    """Two's complement add or sub in the unsigned type of the same size."""
    kind = UNSIGNED.get(i.type, i.type)
    a, b = (e.read(x, kind) for x in i.operands[1:3])
    return e.write(i.operands[0], f"{a} {sign} {b}", kind)


@op("add", "sub")
def add_sub(e: Emitter, i: Instruction) -> str:
    if _is_real(i):
        return ops_real.binary(e, i)
    sign = "+" if i.name == "add" else "-"
    if _packed(i):
        return _each16(e, i, f"x {sign} y")
    if i.has("sat"):
        a, b = (e.read(x, "s32") for x in i.operands[1:3])
        return e.write(i.operands[0], f"isa::{i.name}_sat({a}, {b})", "s32")
    return _wrap(e, i, sign)


@op("add.cc", "addc", "sub.cc", "subc", kind="carry")
def carry(e: Emitter, i: Instruction) -> str:
    kind = UNSIGNED.get(i.type, i.type)
    a, b = (e.read(x, kind) for x in i.operands[1:3])
    function = "add_cc" if i.name.startswith("add") else "sub_cc"
    carry_in = "cc_" if i.name.endswith("c") else "0"
    out = "&cc_" if i.has("cc") else "nullptr"
    return e.write(i.operands[0], f"isa::{function}<{CTYPES[kind]}>({a}, {b}, {carry_in}, {out})", kind)


@op("mul")
def mul(e: Emitter, i: Instruction) -> str:
    if _is_real(i):
        return ops_real.binary(e, i)
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    if i.has("wide"):
        return e.write(i.operands[0], f"isa::mul_wide({a}, {b})", _WIDE[i.type])
    if i.has("hi"):
        return e.write(i.operands[0], f"isa::mul_hi({a}, {b})", i.type)
    return e.write(i.operands[0], _product(e, i), UNSIGNED.get(i.type, i.type))


def _product(e: Emitter, i: Instruction) -> str:
    kind = UNSIGNED.get(i.type, i.type)
    a, b = (e.read(x, kind) for x in i.operands[1:3])
    return f"uint32_t({a}) * uint32_t({b})" if SIZES[kind] == 2 else f"{a} * {b}"


@op("mad")
def mad(e: Emitter, i: Instruction) -> str:
    if _is_real(i):
        return ops_real.fma(e, i)
    kind = UNSIGNED.get(i.type, i.type)
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    if i.has("wide"):
        wide = UNSIGNED.get(_WIDE[i.type], _WIDE[i.type])
        c = e.read(i.operands[3], wide)
        return e.write(i.operands[0], f"{CTYPES[wide]}(isa::mul_wide({a}, {b})) + {c}", wide)
    if i.has("hi"):
        if i.has("sat"):
            return e.write(i.operands[0], f"isa::mad_hi_sat({a}, {b}, {e.read(i.operands[3], 's32')})", "s32")
        return e.write(
            i.operands[0], f"{CTYPES[kind]}(isa::mul_hi({a}, {b})) + {e.read(i.operands[3], kind)}", kind
        )
    return e.write(i.operands[0], f"{_product(e, i)} + {e.read(i.operands[3], kind)}", kind)


@op("mad.lo.cc", "mad.hi.cc", "madc", kind="carry")
def mad_carry(e: Emitter, i: Instruction) -> str:
    kind = UNSIGNED.get(i.type, i.type)
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    half = "mul_hi" if i.has("hi") else "mul_lo"
    c = e.read(i.operands[3], kind)
    carry_in = "cc_" if i.name == "madc" else "0"
    out = "&cc_" if i.has("cc") else "nullptr"
    product = f"{CTYPES[kind]}(isa::{half}({a}, {b}))"
    return e.write(i.operands[0], f"isa::add_cc<{CTYPES[kind]}>({product}, {c}, {carry_in}, {out})", kind)


@op("mul24", "mad24")
def mul24(e: Emitter, i: Instruction) -> str:
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    value = f"isa::mul24_{'hi' if i.has('hi') else 'lo'}({a}, {b})"
    if i.name == "mul24":
        return e.write(i.operands[0], value, i.type)
    if i.has("sat"):
        return e.write(i.operands[0], f"isa::add_sat({value}, {e.read(i.operands[3], 's32')})", "s32")
    kind = UNSIGNED.get(i.type, i.type)
    return e.write(i.operands[0], f"{CTYPES[kind]}({value}) + {e.read(i.operands[3], kind)}", kind)


@op("sad")
def sad(e: Emitter, i: Instruction) -> str:
    a, b, c = (e.read(x, i.type) for x in i.operands[1:4])
    return e.write(i.operands[0], f"isa::sad({a}, {b}, {c})", i.type)


@op("div")
def div(e: Emitter, i: Instruction) -> str:
    if _is_real(i):
        return ops_real.binary(e, i)
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    return e.write(i.operands[0], f"isa::div({a}, {b})", i.type)


@op("rem")
def rem(e: Emitter, i: Instruction) -> str:
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    return e.write(i.operands[0], f"isa::rem({a}, {b})", i.type)


@op("min", "max")
def min_max(e: Emitter, i: Instruction) -> str:
    if _is_real(i):
        return ops_real.min_max(e, i)
    if _packed(i):
        return _each16(e, i, f"isa::{i.name}(x, y)")
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    value = f"isa::{i.name}({a}, {b})"
    if i.has("relu"):
        value = f"isa::max({value}, {CTYPES[i.type]}(0))"
    return e.write(i.operands[0], value, i.type)


@op("abs", "neg")
def abs_neg(e: Emitter, i: Instruction) -> str:
    if _is_real(i):
        return ops_real.sign(e, i)
    if i.name == "abs":
        return e.write(i.operands[0], f"isa::abs({e.read(i.operands[1], i.type)})", i.type)
    kind = UNSIGNED.get(i.type, i.type)
    return e.write(i.operands[0], f"0 - {e.read(i.operands[1], kind)}", kind)


@op("and", "or", "xor")
def logic(e: Emitter, i: Instruction) -> str:
    sign = {"and": "&", "or": "|", "xor": "^"}[i.name]
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    return e.write(i.operands[0], f"{a} {sign} {b}", i.type)


@op("not", "cnot")
def invert(e: Emitter, i: Instruction) -> str:
    a = e.read(i.operands[1], i.type)
    if i.name == "cnot":
        return e.write(i.operands[0], f"{CTYPES[i.type]}({a} == 0)", i.type)
    return e.write(i.operands[0], f"!{a}" if i.type == "pred" else f"~{a}", i.type)


@op("shl", "shr")
def shift(e: Emitter, i: Instruction) -> str:
    a, n = e.read(i.operands[1], i.type), e.read(i.operands[2], "u32")
    if n.rstrip("u").isdigit() and int(n.rstrip("u")) < 8 * SIZES[i.type] and SIZES[i.type] >= 4:
        return e.write(i.operands[0], f"{a} {'<<' if i.name == 'shl' else '>>'} {n}", i.type)
    return e.write(i.operands[0], f"isa::{i.name}({a}, {n})", i.type)


@op("shf")
def funnel(e: Emitter, i: Instruction) -> str:
    a, b, n = (e.read(x, "b32") for x in i.operands[1:4])
    flags = f"{str(i.has('l')).lower()}, {str(i.has('wrap')).lower()}"
    return e.write(i.operands[0], f"isa::shf({flags}, {a}, {b}, {n})", "b32")


@op("lop3")
def lop3(e: Emitter, i: Instruction) -> str:
    if i.type == "pred" or i.has("BoolOp") or len(i.operands) > 5:
        raise Unsupported("lop3 with a predicate result")
    a, b, c, table = (e.read(x, "b32") for x in i.operands[1:5])
    return e.write(i.operands[0], f"isa::lop3({a}, {b}, {c}, {table})", "b32")


_PRMT_MODES = {"f4e": "F4E", "b4e": "B4E", "rc8": "RC8", "ecl": "ECL", "ecr": "ECR", "rc16": "RC16"}


@op("prmt")
def permute(e: Emitter, i: Instruction) -> str:
    a, b, c = (e.read(x, "b32") for x in i.operands[1:4])
    mode = next((_PRMT_MODES[p] for p in i.parts if p in _PRMT_MODES), "")
    function = f"prmt_mode<isa::{mode}>" if mode else "prmt"
    return e.write(i.operands[0], f"isa::{function}({a}, {b}, {c})", "b32")


@op("bfe")
def bit_field_extract(e: Emitter, i: Instruction) -> str:
    a, p, n = e.read(i.operands[1], i.type), e.read(i.operands[2], "u32"), e.read(i.operands[3], "u32")
    return e.write(i.operands[0], f"isa::bfe({a}, {p}, {n})", i.type)


@op("bfi")
def bit_field_insert(e: Emitter, i: Instruction) -> str:
    a, b = (e.read(x, i.type) for x in i.operands[1:3])
    p, n = (e.read(x, "u32") for x in i.operands[3:5])
    return e.write(i.operands[0], f"isa::bfi({a}, {b}, {p}, {n})", i.type)


@op("bfind")
def bit_find(e: Emitter, i: Instruction) -> str:
    a = e.read(i.operands[1], i.type)
    return e.write(i.operands[0], f"isa::bfind({a}, {str(i.has('shiftamt')).lower()})", "u32")


@op("brev")
def bit_reverse(e: Emitter, i: Instruction) -> str:
    return e.write(i.operands[0], f"isa::brev({e.read(i.operands[1], i.type)})", i.type)


@op("popc", "clz")
def count(e: Emitter, i: Instruction) -> str:
    a = e.read(i.operands[1], i.type)
    value = f"isa::clz({a})" if i.name == "clz" else f"uint32_t(__builtin_popcountll({a}))"
    return e.write(i.operands[0], value, "u32")


@op("fns")
def find_nth_set(e: Emitter, i: Instruction) -> str:
    mask, base = (e.read(x, "u32") for x in i.operands[1:3])
    return e.write(i.operands[0], f"isa::fns({mask}, {base}, {e.read(i.operands[3], 's32')})", "u32")


@op("bmsk")
def bit_mask(e: Emitter, i: Instruction) -> str:
    a, b = (e.read(x, "u32") for x in i.operands[1:3])
    return e.write(i.operands[0], f"isa::bmsk({a}, {b}, {str(i.has('clamp')).lower()})", "b32")


@op("szext")
def sign_zero_extend(e: Emitter, i: Instruction) -> str:
    a, n = e.read(i.operands[1], i.type), e.read(i.operands[2], "u32")
    return e.write(i.operands[0], f"isa::szext({a}, {n}, {str(i.has('clamp')).lower()})", i.type)


@op("dp4a", "dp2a")
def dot(e: Emitter, i: Instruction) -> str:
    a_type, b_type = i.parts[-2:]
    types = ", ".join("int8_t" if t == "s32" else "uint8_t" for t in (a_type, b_type))
    a, b, c = (e.read(x, "b32") for x in i.operands[1:4])
    if i.name == "dp4a":
        return e.write(i.operands[0], f"isa::dp4a<{types}>({a}, {b}, {c})", "b32")
    return e.write(i.operands[0], f"isa::dp2a<{types}>({str(i.has('hi')).lower()}, {a}, {b}, {c})", "b32")
