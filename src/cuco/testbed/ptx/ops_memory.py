"""Loads, stores, atomics, fences, address spaces, prefetches."""

from __future__ import annotations

from collections.abc import Sequence

from cuco.testbed.ptx.access import access_of, is_announced, order_of, scope_of, space_of
from cuco.testbed.ptx.emitter import BITS, CTYPES, Emitter
from cuco.testbed.ptx.model import SIZES, Addr, Imm, Instruction, Operand, Sink, Vec
from cuco.testbed.ptx.table import Unsupported, op

_CHECKED = ("", "global")


def remote_check(e: Emitter, i: Instruction) -> str:
    """All that a slice executes of an access that may be remote: what the runtime counts of it."""
    if i.name == "cp":
        size = i.operands[2]
        address, bytes_ = (
            e.address(i.operands[1], "global"),
            str(size.value) if isinstance(size, Imm) else "0",
        )
    else:
        a = access_of(i)
        address, bytes_ = e.address(i.operands[0] if i.name == "st" else i.operands[1], a.space), str(a.bytes)
    if i.name == "st":
        return f"emu_dropped_store(T_, {address}, {bytes_}, {e.site(i)});"
    return f"{{ const uint64_t a_ = {address}; REMOTE(a_, {bytes_}, EMU_READ, {e.site(i)}); }}"


def control_check(e: Emitter, i: Instruction, spoiled: int) -> str:
    """Before a load that decides control in a slice: the runtime refuses memory that sliced kernels write."""
    a = access_of(i)
    if a.space not in _CHECKED:
        return ""
    return f"emu_control_read(T_, {e.address(i.operands[1], a.space)}, {a.bytes}, {spoiled}, {e.site(i)}); "


def _elements(operand: Operand, lanes: int) -> list[Operand]:
    return list(operand.items) if isinstance(operand, Vec) and lanes > 1 else [operand]


def check(e: Emitter, i: Instruction, space: str, size: str, kind: str, address: str = "a_") -> str:
    """Hook and remote check before a weak access; nothing for local, parameter and constant memory."""
    site = e.site(i)
    if space in _CHECKED:
        return f"HOOK_G({address}, {size}, {kind}, {site}); REMOTE({address}, {size}, {kind}, {site});"
    if space == "shared":
        return f"HOOK_S({address}, {size}, {kind}, {site});"
    return ""


@op("ld", "ldu", kind="load")
def load(e: Emitter, i: Instruction) -> str:
    a = access_of(i)
    target, source = i.operands[0], i.operands[1]
    part = "b128" if a.kind == "b128" else a.kind
    elements = _elements(target, a.lanes)
    start = f"const uint64_t a_ = {e.address(source, a.space)};"
    if a.strong:
        if a.bytes > 16:
            raise Unsupported("a strong access of more than 16 bytes")
        stores = [
            e.write(x, f"emu_read<{CTYPES[part]}>(uint64_t(t_) + {n * SIZES[part]})", part)
            for n, x in enumerate(elements)
            if not isinstance(x, Sink)
        ]
        call = f"emu_ld(T_, a_, t_, {a.bytes}, {a.mode}, {e.site(i)});"
        return f"{{ {start} alignas(16) char t_[16]; {call} {' '.join(stores)} }}"
    stores = [
        e.write(x, f"emu_read<{CTYPES[part]}>(a_{f' + {n * SIZES[part]}' if n else ''})", part)
        for n, x in enumerate(elements)
        if not isinstance(x, Sink)
    ]
    if len(stores) > 1:  # a destination may be the address register: read all before writing any
        stores = _read_then_write(e, elements, part)
    return f"{{ {start} {check(e, i, a.space, str(a.bytes), 'EMU_READ')} {' '.join(stores)} }}"


def _read_then_write(e: Emitter, elements: list[Operand], kind: str) -> list[str]:
    loads = [
        f"const {CTYPES[kind]} t{n}_ = emu_read<{CTYPES[kind]}>(a_{f' + {n * SIZES[kind]}' if n else ''});"
        for n in range(len(elements))
    ]
    return loads + [e.write(x, f"t{n}_", kind) for n, x in enumerate(elements) if not isinstance(x, Sink)]


@op("st", kind="store", dests=0)
def store(e: Emitter, i: Instruction) -> str:
    a = access_of(i)
    values = [e.read(x, a.kind) for x in _elements(i.operands[1], a.lanes)]
    ctype = CTYPES[a.kind]
    start = f"const uint64_t a_ = {e.address(i.operands[0], a.space)};"
    if a.strong or is_announced(i):
        if a.bytes > 16:
            raise Unsupported("a strong access of more than 16 bytes")
        fill = f"alignas(16) const {ctype} t_[] = {{{', '.join(values)}}};"
        return f"{{ {start} {fill} emu_st(T_, a_, t_, {a.bytes}, {a.mode}, {e.site(i)}); }}"
    writes = [
        f"emu_write<{ctype}>(a_{f' + {n * SIZES[a.kind]}' if n else ''}, {value});"
        for n, value in enumerate(values)
    ]
    return f"{{ {start} {check(e, i, a.space, str(a.bytes), 'EMU_WRITE')} {' '.join(writes)} }}"


# -------------------- atomics
ATOM_OPS = {
    "add": "EMU_ADD", "min": "EMU_MIN", "max": "EMU_MAX", "inc": "EMU_INC", "dec": "EMU_DEC",
    "and": "EMU_AND", "or": "EMU_OR", "xor": "EMU_XOR", "exch": "EMU_EXCH", "cas": "EMU_CAS",
}  # fmt: skip


def atom_mode(i: Instruction) -> str:
    space = {"": "EMU_GENERIC", "global": "EMU_GLOBAL", "shared": "EMU_SHARED"}[space_of(i)]
    return f"EMU_MODE({order_of(i, 'EMU_RELAXED')}, {scope_of(i, 'EMU_GPU')}, {space})"


@op("atom", kind="atomic")
def atom(e: Emitter, i: Instruction) -> str:
    return _atomic(e, i, i.operands[0], i.operands[1], list(i.operands[2:]))


@op("red", kind="atomic", dests=0)
def red(e: Emitter, i: Instruction) -> str:
    if i.has("async"):
        raise Unsupported(i.op)
    return _atomic(e, i, None, i.operands[0], list(i.operands[1:]))


def _atomic(e: Emitter, i: Instruction, old: Operand | None, where: Operand, values: list[Operand]) -> str:
    operation = next((ATOM_OPS[p] for p in i.parts[1:] if p in ATOM_OPS), None)
    if operation is None or not i.type:
        raise Unsupported(i.op)
    if i.has("L2::cache_hint"):
        values = values[:-1]
    if any(p.startswith("vec") or p in ("v2", "v4", "v8") for p in i.parts[1:]):
        return _vector_atomic(e, i, operation, old, where, values)
    start = f"const uint64_t a_ = {e.address(where, space_of(i))};"
    return f"{{ {start} {_one(e, i, operation, old, 'a_', values)} }}"


def _one(
    e: Emitter, i: Instruction, operation: str, old: Operand | None, a: str, values: Sequence[Operand | str]
) -> str:
    """One emu_atom call; a value given as text is C++ already."""
    kind = i.type
    ctype = CTYPES[kind]
    first, second = (values[1], values[0]) if operation == "EMU_CAS" else (values[0], None)
    value = first if isinstance(first, str) else e.read(first, kind)
    code = f"{{ const {ctype} v_ = {value}; "
    compare = "nullptr"
    if second is not None and not isinstance(second, str):
        code += f"const {ctype} c_ = {e.read(second, kind)}; "
        compare = "&c_"
    wanted = old is not None and not isinstance(old, Sink)
    code += f"{ctype} o_; " if wanted else ""
    target = "&o_" if wanted else "nullptr"
    code += f"emu_atom(T_, {a}, {target}, &v_, {compare}, {operation}, EMU_{kind.upper()}, "
    code += f"{atom_mode(i)}, {e.site(i)}); "
    if wanted and old is not None:
        code += e.write(old, "o_", kind)
    return code + " }"


def _vector_atomic(
    e: Emitter, i: Instruction, operation: str, old: Operand | None, where: Operand, values: list[Operand]
) -> str:
    """Vector atomics are atomic per element only, so they are one atomic per element. Sources are read
    first.
    """
    source = values[0]
    if not isinstance(source, Vec):
        raise Unsupported(i.op)
    all_values = ", ".join(e.read(item, i.type) for item in source.items)
    parts = [
        f"const uint64_t a_ = {e.address(where, space_of(i))};",
        f"const {CTYPES[i.type]} s_[] = {{{all_values}}};",
    ]
    for n in range(len(source.items)):
        target = old.items[n] if isinstance(old, Vec) else None
        parts.append(_one(e, i, operation, target, f"a_ + {n * SIZES[i.type]}", [f"s_[{n}]"]))
    return f"{{ {' '.join(parts)} }}"


# -------------------- fences
_PROXIES = {
    "async": "EMU_PROXY_ASYNC",
    "async::generic": "EMU_PROXY_ASYNC",
    "async.global": "EMU_PROXY_ASYNC_GLOBAL",
    "async.shared::cta": "EMU_PROXY_ASYNC_SHARED",
    "async.shared::cluster": "EMU_PROXY_ASYNC_SHARED",
    "alias": "EMU_PROXY_ALIAS",
}


@op("fence", "membar", kind="fence", dests=0)
def fence(e: Emitter, i: Instruction) -> str:
    site = e.site(i)
    if i.parts[1] == "proxy":
        rest = ".".join(i.parts[2:])
        proxy = (
            "EMU_PROXY_TENSORMAP"
            if rest.startswith("tensormap")
            else _PROXIES.get(rest) or _PROXIES.get(i.parts[2])
        )
        if proxy is None:
            raise Unsupported(i.op)
        return f"emu_fence_proxy(T_, {proxy}, {site});"
    order = order_of(i, "EMU_SC" if i.name == "membar" else "EMU_ACQ_REL")
    return f"emu_fence(T_, {order}, {scope_of(i, 'EMU_GPU')}, {site});"


# -------------------- the rest
@op("isspacep")
def isspacep(e: Emitter, i: Instruction) -> str:
    space = i.parts[1].split("::")[0].upper()
    value = e.read(i.operands[1], "u64")
    return e.write(i.operands[0], f"emu_isspace(T_, EMU_{space}, {value}) != 0", "pred")


@op(
    "prefetch", "prefetchu", "discard", "applypriority", "createpolicy", "cp.async.bulk.prefetch", kind="hint"
)
def hint(e: Emitter, i: Instruction) -> str:
    if i.name == "createpolicy":
        return e.write(i.operands[0], "uint64_t(0)", "b64")
    return ""


@op("mapa", "getctarank")
def cluster_address(e: Emitter, i: Instruction) -> str:
    """Clusters of one CTA: every address maps to itself and belongs to rank 0."""
    if i.name == "getctarank":
        return e.write(i.operands[0], "0u", "u32")
    kind = BITS[SIZES[i.type]]
    value, rank = e.read(i.operands[1], kind), e.read(i.operands[2], "u32")
    return f"if ({rank} != 0) emu_unsupported(T_, {e.site(i)}); {e.write(i.operands[0], value, kind)}"


@op("alloca", kind="effect")
def alloca(e: Emitter, i: Instruction) -> str:
    align = i.operands[2] if len(i.operands) > 2 else Imm(16)
    size = e.read(i.operands[1], i.type)
    if not isinstance(align, Imm):
        raise Unsupported("alloca with a variable alignment")
    bits = max(8, 8 * align.value)
    return e.write(i.operands[0], f"uint64_t(__builtin_alloca_with_align({size}, {bits}))", "u64")


@op("stacksave")
def stacksave(e: Emitter, i: Instruction) -> str:
    return e.write(i.operands[0], "0", i.type)


@op("stackrestore", kind="hint", dests=0)
def stackrestore(e: Emitter, i: Instruction) -> str:
    """Memory of alloca is returned when the function ends: enough for a program that terminates."""
    return ""


def shared_address(e: Emitter, i: Instruction, operand: Operand) -> str:
    """An address of an instruction whose default space is generic but that works on shared memory."""
    space = "shared" if any(p.split("::")[0] == "shared" for p in i.parts) else ""
    if not isinstance(operand, Addr):
        raise Unsupported("a memory operand without brackets")
    return e.address(operand, space)
