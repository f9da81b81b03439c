"""Cost classes: what one execution of an instruction by one thread adds to the counted work of a phase.

Units: instructions per thread, except `*_bytes` (bytes per thread) and `mma_*` (floating or integer
operations of the warp's instruction, a multiply-add being two, divided by 32). An fma is one instruction of
its class.
"""

from __future__ import annotations

import re
from collections import Counter

from cuco.testbed.ptx.access import access_of, space_of
from cuco.testbed.ptx.model import SIZES, Imm, Instruction
from cuco.testbed.ptx.table import lookup

CLASS_NAMES = (
    "int", "fp32", "fp64", "fp16", "special", "convert", "control", "warp",
    "mma_f16", "mma_bf16", "mma_tf32", "mma_f64", "mma_int8", "mma_fp8",
    "ld_global_bytes", "st_global_bytes", "ld_shared_bytes", "st_shared_bytes",
    "ld_local_bytes", "st_local_bytes",
    "atomic", "fence", "bar",
)  # fmt: skip

_REAL_CLASS = {"f32": "fp32", "f64": "fp64", "f16": "fp16", "bf16": "fp16", "f16x2": "fp16", "bf16x2": "fp16"}
_SPECIAL = ("rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh")
_SPACE = {"": "global", "global": "global", "shared": "shared", "local": "local"}
_MMA_TYPES = {
    "f16": "mma_f16", "bf16": "mma_bf16", "tf32": "mma_tf32", "f64": "mma_f64",
    "s8": "mma_int8", "u8": "mma_int8", "e4m3": "mma_fp8", "e5m2": "mma_fp8",
}  # fmt: skip


def mma_shape(i: Instruction) -> tuple[int, int, int]:
    """(m, n, k) of an mma or wmma instruction, zeros if it names none."""
    for part in i.parts:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part)
        if found:
            m, n, k = (int(x) for x in found.groups())
            return m, n, k
    return 0, 0, 0


def mma_types(i: Instruction) -> list[str]:
    """Element types at the end of the opcode, in the order d, a, b, c (PTX spells wmma's d and c only)."""
    return [p for p in i.parts if p in _MMA_TYPES or p in ("f32", "s32", "b1", "s4", "u4")]


def classes_of(i: Instruction) -> Counter[str]:
    """Class amounts of one execution by one thread."""
    entry = lookup(i)
    kind = entry.kind if entry else "pure"
    if kind in ("load", "store"):
        return _memory(i)
    if kind == "matrix":
        return _matrix(i)
    if kind == "async":
        return _async(i)
    simple = {
        "atomic": "atomic", "fence": "fence", "barrier": "bar", "mbarrier": "bar", "warp": "warp",
        "control": "control", "call": "control", "effect": "control", "special": "special",
    }  # fmt: skip
    if kind in simple:
        return Counter({simple[kind]: 1})
    if kind == "hint":
        return Counter()
    return Counter({_arithmetic(i): 1})


def _arithmetic(i: Instruction) -> str:
    if i.name in _SPECIAL:
        return "fp64" if i.type == "f64" and not i.has("approx") else "special"
    if i.name == "cvt":
        return "convert"
    if i.name in ("mov", "selp", "slct", "cvta"):
        return "int"
    if i.name == "div" and i.type == "f32":
        return "special"
    return _REAL_CLASS.get(i.type, "int")


def _memory(i: Instruction) -> Counter[str]:
    space = _SPACE.get(space_of(i))
    if space is None:
        return Counter({"int": 1})  # parameters and constants come from a cache that is never the limit
    direction = "st" if i.name == "st" else "ld"
    return Counter({f"{direction}_{space}_bytes": access_of(i).bytes})


def _async(i: Instruction) -> Counter[str]:
    if i.has("ca", "cg") and len(i.operands) > 2 and isinstance(i.operands[2], Imm):
        size = i.operands[2].value
        return Counter({"ld_global_bytes": size, "st_shared_bytes": size})
    return Counter({"int": 1})


def _matrix(i: Instruction) -> Counter[str]:
    m, n, k = mma_shape(i)
    if i.name == "ldmatrix" or i.name == "stmatrix":
        count = next((int(p[1:]) for p in i.parts if p in ("x1", "x2", "x4")), 1)
        return Counter({f"{'ld' if i.name == 'ldmatrix' else 'st'}_shared_bytes": 4 * count})
    if i.name == "wmma" and i.parts[1] in ("load", "store"):
        return _wmma_memory(i, m, n, k)
    if i.name in ("mma", "wmma") and m:
        types = [t for t in mma_types(i) if t in _MMA_TYPES]
        flavour = next((t for t in types if t not in ("f16",)), "f16")
        return Counter({_MMA_TYPES[flavour]: 2 * m * n * k // 32})
    return Counter({"warp": 1})


def _wmma_memory(i: Instruction, m: int, n: int, k: int) -> Counter[str]:
    elements = {"a": m * k, "b": k * n, "c": m * n, "d": m * n}[i.parts[2]]
    size = SIZES.get(i.type, 2)
    space = _SPACE.get(space_of(i), "global")
    return Counter({f"{'ld' if i.parts[1] == 'load' else 'st'}_{space}_bytes": elements * size // 32})


def weight_of(i: Instruction) -> int:
    """Progress of one execution: about the issue slots it takes, at least 1."""
    amounts = classes_of(i)
    mma = sum(v for k, v in amounts.items() if k.startswith("mma_"))
    if mma:
        return max(1, mma // 8)
    return 4 if amounts["special"] else 2 if amounts["fp64"] else 1
