"""Warp-wide matrix instructions: which native function does each, and which registers it reads and writes.

Neighbouring ones are executed in one rendezvous of the warp (matrix_groups.py), so they are described here
rather than written one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuco.testbed.ptx.access import space_of
from cuco.testbed.ptx.classes import mma_shape, mma_types
from cuco.testbed.ptx.emitter import CTYPES, Emitter
from cuco.testbed.ptx.model import SIZES, Imm, Instruction, Operand, Vec
from cuco.testbed.ptx.table import Unsupported, op


@dataclass(frozen=True)
class MatrixCall:
    """A call of a function of matrix.h. Words are (operand, PTX type); `address` is a shared or generic
    address.
    """

    function: str
    sources: list[tuple[Operand, str]]
    results: list[tuple[Operand, str]]
    address: Operand | None = None
    space: str = ""


def _items(operand: Operand) -> list[Operand]:
    return list(operand.items) if isinstance(operand, Vec) else [operand]


_MMA = {
    **{
        (f"m16n8k{k}", "f32", t, t): f"isa_mma_m16n8k{k}_{t}_f32"
        for k, t in ((16, "f16"), (16, "bf16"), (8, "f16"), (8, "bf16"), (8, "tf32"), (4, "tf32"))
    },
    **{(f"m16n8k{k}", "f16", "f16", "f16"): f"isa_mma_m16n8k{k}_f16_f16" for k in (16, 8)},
    **{
        (f"m{m}n8k{k}", "f64", "f64", "f64"): f"isa_mma_m{m}n8k{k}_f64_f64"
        for m, k in ((8, 4), (16, 4), (16, 8), (16, 16))
    },
    **{
        (f"m16n8k{k}", "s32", a, b): f"isa_mma_m16n8k{k}_{a}{b}"
        for k in (16, 32)
        for a in ("s8", "u8")
        for b in ("s8", "u8")
    },
    **{
        ("m16n8k32", "f32", a, b): f"isa_mma_m16n8k32_{a}{b}_f32"
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
    },
}


def mma_call(i: Instruction) -> MatrixCall:
    """mma.sync; Unsupported names shapes and types outside the table."""
    m, n, k = mma_shape(i)
    types = mma_types(i)
    if len(types) != 4 or types[0] != types[3] or not i.has("row") or i.has("sp", "_sp", "block_scale"):
        raise Unsupported(i.op)
    function = _MMA.get((f"m{m}n{n}k{k}", types[0], types[1], types[2]))
    if function is None:
        raise Unsupported(i.op)
    if i.has("satfinite"):
        function += "_sat"
    whole = "f64" if types[0] == "f64" else "b32"
    accumulator = {"f32": "f32", "f64": "f64", "f16": "b32", "s32": "b32"}[types[0]]
    d, a, b, c = (_items(x) for x in i.operands[:4])
    sources = [(x, whole) for x in (*a, *b)] + [(x, accumulator) for x in c]
    return MatrixCall(function, sources, [(x, accumulator) for x in d])


def move_call(i: Instruction) -> MatrixCall:
    """ldmatrix, stmatrix, movmatrix."""
    if i.name == "movmatrix":
        return MatrixCall("isa_movmatrix_trans", [(i.operands[1], "b32")], [(i.operands[0], "b32")])
    count = next((p for p in i.parts if p in ("x1", "x2", "x4")), "")
    if not i.has("m8n8") or i.type != "b16" or not count:
        raise Unsupported(i.op)
    function = f"isa_{i.name}_{count}{'_trans' if i.has('trans') else ''}"
    registers, where = (0, 1) if i.name == "ldmatrix" else (1, 0)
    words = [(x, "b32") for x in _items(i.operands[registers])]
    space = space_of(i)
    if i.name == "ldmatrix":
        return MatrixCall(function, [], words, i.operands[where], space)
    return MatrixCall(function, words, [], i.operands[where], space)


_WMMA = {
    *(f"{s}_f16_f32_f32" for s in ("m16n16k16", "m32n8k16", "m8n32k16")),
    *(f"{s}_f16_f16_f16" for s in ("m16n16k16", "m32n8k16", "m8n32k16")),
    *(f"{s}_bf16_f32_f32" for s in ("m16n16k16", "m32n8k16", "m8n32k16")),
    "m16n16k16_f16_f32_f16",
    "m16n16k16_f16_f16_f32",
    "m16n16k8_tf32_f32_f32",
}


def wmma_call(i: Instruction) -> MatrixCall:
    """wmma.mma: the opcode ends in d and c (f16 inputs) or d, a, b, c."""
    types = mma_types(i)
    shape = "m{}n{}k{}".format(*mma_shape(i))
    inputs = types[1] if len(types) == 4 else "f16"
    name = f"{shape}_{inputs}_{types[0]}_{types[-1]}"
    if name not in _WMMA or i.has("satfinite"):
        raise Unsupported(i.op)
    d, a, b, c = (_items(x) for x in i.operands[:4])
    kinds = {"f32": "f32", "f16": "b32"}
    sources = [(x, "b32") for x in (*a, *b)] + [(x, kinds[types[-1]]) for x in c]
    return MatrixCall(f"isa_wmma_{name}", sources, [(x, kinds[types[0]]) for x in d])


def matrix_call(i: Instruction) -> MatrixCall:
    """Describe any instruction that the groups execute."""
    if i.name == "mma":
        return mma_call(i)
    if i.name == "wmma":
        return wmma_call(i)
    return move_call(i)


@op("mma", "movmatrix", "ldmatrix", "wmma.mma", kind="matrix")
def grouped(e: Emitter, i: Instruction) -> str:
    raise Unsupported("matrix instructions are written in groups")


@op("stmatrix", kind="matrix", dests=0)
def grouped_store(e: Emitter, i: Instruction) -> str:
    raise Unsupported("matrix instructions are written in groups")


# -------------------- wmma memory
def _fragment(i: Instruction) -> tuple[int, int, str, int]:
    """Rows, columns, element type and elements per register of a fragment."""
    m, n, k = mma_shape(i)
    which = i.parts[2]
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[which]
    kind = i.parts[-1]
    if kind not in ("f16", "bf16", "f32", "tf32"):
        raise Unsupported(i.op)
    return rows, columns, kind, 2 if kind in ("f16", "bf16") else 1


def _element_address(i: Instruction, index: str, stride: str) -> str:
    rows, columns, kind, _ = _fragment(i)
    order = "true" if i.has("row") else "false"
    return f"a_ + {SIZES[kind]} * isa::wmma_element(T_->lane, {index}, {rows}, {columns}, {order}, {stride})"


def _default_stride(i: Instruction) -> Operand:
    rows, columns, _, _ = _fragment(i)
    return Imm(columns if i.has("row") else rows)


@op("wmma.load", kind="matrix")
def wmma_load(e: Emitter, i: Instruction) -> str:
    """Every lane fetches its own elements: no rendezvous is needed."""
    from cuco.testbed.ptx.ops_memory import check

    rows, columns, kind, packed = _fragment(i)
    space = space_of(i)
    stride = e.read(i.operands[2] if len(i.operands) > 2 else _default_stride(i), "u32")
    part = CTYPES[{"f16": "b16", "bf16": "b16"}.get(kind, "b32")]
    code = [f"const uint64_t a_ = {e.address(i.operands[1], space)}; const uint32_t s_ = {stride};"]
    code.append(f"uint32_t t_[{rows * columns // 32 // packed}];")
    address = _element_address(i, "n_", "s_")
    fetch = f"const uint64_t e_ = {address}; {check(e, i, space, str(SIZES[kind]), 'EMU_READ', 'e_')}"
    place = "t_[n_] = v_;" if packed == 1 else "t_[n_ / 2] = n_ % 2 ? t_[n_ / 2] | uint32_t(v_) << 16 : v_;"
    count = rows * columns // 32
    code.append(
        f"for (uint32_t n_ = 0; n_ < {count}; n_++) "
        f"{{ {fetch} const {part} v_ = emu_read<{part}>(e_); {place} }}"
    )
    target = "f32" if kind == "f32" else "b32"
    for n, item in enumerate(_items(i.operands[0])):
        word = f"t_[{n % (count // packed)}]"
        code.append(e.write(item, f"bits<float>({word})" if target == "f32" else word, target))
    return f"{{ {' '.join(code)} }}"


@op("wmma.store", kind="matrix", dests=0)
def wmma_store(e: Emitter, i: Instruction) -> str:
    from cuco.testbed.ptx.ops_memory import check

    rows, columns, kind, packed = _fragment(i)
    space = space_of(i)
    stride = e.read(i.operands[2] if len(i.operands) > 2 else _default_stride(i), "u32")
    count = rows * columns // 32
    words = ", ".join(e.read(x, "b32") for x in _items(i.operands[1])[: count // packed])
    part = "uint16_t" if packed == 2 else "uint32_t"
    value = "uint16_t(t_[n_ / 2] >> 16 * (n_ % 2))" if packed == 2 else "t_[n_]"
    address = _element_address(i, "n_", "s_")
    store = f"const uint64_t e_ = {address}; {check(e, i, space, str(SIZES[kind]), 'EMU_WRITE', 'e_')}"
    return (
        f"{{ const uint64_t a_ = {e.address(i.operands[0], space)}; const uint32_t s_ = {stride}; "
        f"const uint32_t t_[] = {{{words}}}; "
        f"for (uint32_t n_ = 0; n_ < {count}; n_++) {{ {store} emu_write<{part}>(e_, {value}); }} }}"
    )
