"""Operands of one function as C++: the vocabulary that every op table entry is written in."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from cuco.testbed.ptx.layout import Layout
from cuco.testbed.ptx.model import (
    SIZES,
    Addr,
    FloatImm,
    Function,
    Imm,
    Instruction,
    Label,
    Operand,
    Reg,
    Sink,
    Sym,
    Vec,
)
from cuco.testbed.ptx.special import special_register
from cuco.testbed.ptx.table import Unsupported

CTYPES = {
    "pred": "bool",
    "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t",
    "b16": "uint16_t", "u16": "uint16_t", "s16": "int16_t", "f16": "uint16_t", "bf16": "uint16_t",
    "b32": "uint32_t", "u32": "uint32_t", "s32": "int32_t", "f32": "float",
    "f16x2": "uint32_t", "bf16x2": "uint32_t", "tf32": "uint32_t",
    "b64": "uint64_t", "u64": "uint64_t", "s64": "int64_t", "f64": "double",
    "b128": "u128", "e4m3x2": "uint16_t", "e5m2x2": "uint16_t",
}  # fmt: skip
"""C++ type of a value of each PTX type (half formats are their bits)."""

UNSIGNED = {"s8": "u8", "s16": "u16", "s32": "u32", "s64": "u64"}
BITS = {1: "b8", 2: "b16", 4: "b32", 8: "b64", 16: "b128"}


def identifier(name: str) -> str:
    """A C++ identifier for a PTX name; different names stay different."""
    return re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m.group()):x}_", name)


def variable(name: str) -> str:
    """The C++ local of a register or of a .local/.param variable."""
    return "v_" + identifier(name[1:]) if name.startswith("%") else "n_" + identifier(name)


def storage(register_type: str) -> str:
    """The C++ type a register is kept in: floats as floats, everything else unsigned."""
    if register_type in ("f32", "f64", "pred"):
        return CTYPES[register_type]
    return CTYPES[BITS[SIZES[register_type]]]


class Emitter:
    """Reads and writes operands of `function`; `site` numbers an instruction for the runtime."""

    def __init__(self, function: Function, layout: Layout, site: Callable[[Instruction], int]) -> None:
        self.f = function
        self.layout = layout
        self.site = site
        self.special_values: dict[str, str] = {}
        """Special registers that are to be read from somewhere else (counted loops)."""
        self.current: Instruction
        """The instruction being written; set by whoever walks the body."""
        self.params = {p.name: p for p in (*function.params, *function.returns)}

        self._order = {s.name if isinstance(s, Label) else s: n for n, s in enumerate(function.body)}

    def is_backward(self, i: Instruction, target: str) -> bool:
        """Whether a branch goes to a label at or before itself."""
        return self._order.get(target, 1 << 60) <= self._order.get(i, 0)

    # -------------------- reading
    def read(self, operand: Operand, kind: str) -> str:
        """An rvalue of C++ type CTYPES[kind]."""
        if isinstance(operand, Reg):
            return self._read_register(operand, kind)
        if isinstance(operand, Imm):
            return _integer(operand.value, kind)
        if isinstance(operand, FloatImm):
            return _floating(operand, kind)
        if isinstance(operand, Sym):
            return f"{CTYPES[kind]}({self.symbol(operand.name, operand.offset)})"
        if isinstance(operand, Vec):
            return self._pack(operand, kind)
        raise Unsupported(f"operand {operand!r} as a value")

    def _read_register(self, operand: Reg, kind: str) -> str:
        want = CTYPES[kind]
        if operand.special:
            value = self.special_values.get(operand.name) or special_register(operand.name)
            if "@" in value:
                value = value.replace("@", str(self.site(self.current)))
            return f"{want}({value})"
        have = storage(self.f.registers[operand.name])
        value = convert(variable(operand.name), have, want)
        if operand.negated:
            return f"(!{value})" if kind == "pred" else f"{want}(-{value})"
        return value

    def _pack(self, operand: Vec, kind: str) -> str:
        width = SIZES[kind] // len(operand.items)
        part, whole = BITS[width], CTYPES[BITS[SIZES[kind]]]
        terms = [
            f"{whole}({self.read(item, part)}) << {8 * width * i}"
            for i, item in enumerate(operand.items)
            if not isinstance(item, Sink)
        ]
        return convert("(" + " | ".join(terms) + ")", whole, CTYPES[kind])

    # -------------------- writing
    def write(self, operand: Operand, expression: str, kind: str) -> str:
        """A statement that stores an expression of type `kind`; wider registers are extended by its sign."""
        if isinstance(operand, Sink):
            return f"(void)({expression});"
        if isinstance(operand, Vec):
            return self._unpack(operand, expression, kind)
        if not isinstance(operand, Reg):
            raise Unsupported(f"operand {operand!r} as a destination")
        have, want = CTYPES[kind], storage(self.f.registers[operand.name])
        name = variable(operand.name)
        if have == want:
            return f"{name} = {expression};"
        if want in ("float", "double") or have in ("float", "double"):
            return f"{name} = {convert(f'{have}({expression})', have, want)};"
        return f"{name} = {have}({expression});"

    def _unpack(self, operand: Vec, expression: str, kind: str) -> str:
        width = SIZES[kind] // len(operand.items)
        whole, part = CTYPES[BITS[SIZES[kind]]], BITS[width]
        source = convert(f"{CTYPES[kind]}({expression})", CTYPES[kind], whole)
        stores = [
            self.write(item, f"{CTYPES[part]}(t_ >> {8 * width * i})", part)
            for i, item in enumerate(operand.items)
            if not isinstance(item, Sink)
        ]
        return f"{{ const {whole} t_ = {source}; {' '.join(stores)} }}"

    # -------------------- addresses
    def symbol(self, name: str, offset: int = 0) -> str:
        """The value of a symbol: a generic address, or the offset of a shared variable."""
        plus = f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else ""
        if name in self.params:
            return f"{self._parameter(name)}{plus}"
        local = self.f.variables.get(name)
        if local is not None and local.space in ("local", "param"):
            return f"uint64_t({variable(name)}){plus}"
        where = self.layout.shared_offset(self.f, name)
        if where is not None:
            return f"({where}{plus})"
        index = self.layout.global_index(self.f, name)
        if index is not None:
            return f"(B_->globals[{index}]{plus})"
        if name in self.layout.functions:
            return f"uint64_t(&F_{identifier(name)})"
        raise Unsupported(f"unknown symbol {name}")

    def _parameter(self, name: str) -> str:
        if self.f.entry:
            return f"uint64_t(P_ + {self.layout.parameter_offset(self.f, name)})"
        return f"uint64_t({variable(name)})"

    def address(self, operand: Operand, space: str) -> str:
        """A generic address (uint64_t) of a memory operand in a PTX state space ("" is generic)."""
        if not isinstance(operand, Addr):
            raise Unsupported("a memory operand without brackets")
        base, plus = operand.base, _plus(operand.offset)
        shared = space.startswith("shared")
        if isinstance(base, Reg):
            value = self.read(base, "u32" if shared else "u64")
            return f"SHARED({value}{plus})" if shared else f"({value}{plus})"
        if isinstance(base, Imm):
            value = f"{base.value + operand.offset}"
            return f"SHARED({value})" if shared else f"uint64_t({value}ull)"
        value = self.symbol(base.name, operand.offset)
        is_offset = self.layout.shared_offset(self.f, base.name) is not None
        return f"SHARED({value})" if is_offset else value


def convert(value: str, have: str, want: str) -> str:
    """C++ that turns a value of type `have` into `want` the PTX way (bits, truncation, zero extension)."""
    if have == want:
        return value
    real = ("float", "double")
    if have not in real and want not in real:
        return f"{want}({value})"
    if have in real:
        whole = "uint32_t" if have == "float" else "uint64_t"
        inner = f"bits<{whole}>({value})"
        return inner if want == whole else f"{want}({inner})" if want not in real else inner
    whole = "uint32_t" if want == "float" else "uint64_t"
    return f"bits<{want}>({value if have == whole else f'{whole}({value})'})"


def _plus(offset: int) -> str:
    return f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else ""


def _integer(value: int, kind: str) -> str:
    if kind in ("f32", "f64"):
        return f"{CTYPES[kind]}({value})"
    if kind == "pred":
        return "true" if value else "false"
    size = SIZES[kind]
    masked = value & ((1 << (8 * size)) - 1)
    if size == 16:
        return f"u128({value if value >= 0 else f'-{-value}ll'})"
    literal = f"0x{masked:x}ul" if size == 8 else f"0x{masked:x}u"
    if masked < 10:
        literal = f"{masked}{'ul' if size == 8 else 'u'}"
    return literal if CTYPES[kind] in ("uint32_t", "uint64_t") else f"{CTYPES[kind]}({literal})"


def _floating(operand: FloatImm, kind: str) -> str:
    if kind == "f32":
        bits = operand.bits
        if operand.width == 8:
            (number,) = struct.unpack("<d", struct.pack("<Q", bits))
            (bits,) = struct.unpack("<I", struct.pack("<f", number))
        return f"bits<float>(0x{bits:08x}u)"
    if kind == "f64":
        if operand.width == 4:
            return f"double(bits<float>(0x{operand.bits:08x}u))"
        return f"bits<double>(uint64_t(0x{operand.bits:016x}ull))"
    return f"{CTYPES[kind]}(0x{operand.bits:x}{'ull' if operand.width == 8 else 'u'})"
