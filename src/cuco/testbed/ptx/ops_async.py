"""cp.async, cp.async.bulk (without tensors) and their groups."""

from __future__ import annotations

from cuco.testbed.ptx.emitter import Emitter
from cuco.testbed.ptx.model import Imm, Instruction, Reg
from cuco.testbed.ptx.ops_memory import ATOM_OPS, shared_address
from cuco.testbed.ptx.table import Unsupported, op


@op("cp.async", kind="async", dests=0)
def cp_async(e: Emitter, i: Instruction) -> str:
    if not (i.has("ca") or i.has("cg")):
        raise Unsupported(i.op)
    operands = list(i.operands)
    if i.has("L2::cache_hint"):
        operands.pop()
    size_operand = operands[2]
    if not isinstance(size_operand, Imm):
        raise Unsupported("cp.async with a size that is no constant")
    size = size_operand.value
    read = str(size)
    if len(operands) > 3:
        extra = operands[3]
        if isinstance(extra, Reg) and e.f.registers.get(extra.name) == "pred":
            read = f"({e.read(extra, 'pred')} ? 0u : {size}u)"  # ignore-src
        else:
            read = e.read(extra, "u32")
    to, source = e.address(operands[0], "shared"), e.address(operands[1], "global")
    return f"emu_cp_async(T_, {to}, {source}, {size}, {read}, {e.site(i)});"


@op("cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", kind="async", dests=0)
def cp_async_group(e: Emitter, i: Instruction) -> str:
    site = e.site(i)
    if i.has("commit_group"):
        return f"emu_cp_async_commit(T_, {site});"
    left = "~0u" if i.has("wait_all") else e.read(i.operands[0], "u32")
    return f"emu_cp_async_wait(T_, {left}, {site});"


@op("cp.async.mbarrier", kind="async", dests=0)
def cp_async_mbarrier(e: Emitter, i: Instruction) -> str:
    where = shared_address(e, i, i.operands[0])
    return f"emu_cp_async_mbar(T_, {where}, {int(i.has('noinc'))}, {e.site(i)});"


def _spaces(i: Instruction) -> tuple[str, str]:
    """Destination and source spaces of a bulk copy, in the order they are written."""
    found = [p.split("::")[0] for p in i.parts if p.split("::")[0] in ("global", "shared")]
    if len(found) < 2:
        raise Unsupported(i.op)
    return found[0], found[1]


@op("cp.async.bulk", "cp.reduce.async.bulk", kind="async", dests=0)
def cp_bulk(e: Emitter, i: Instruction) -> str:
    if i.has("tensor", "prefetch", "multicast::cluster", "cp_mask"):
        raise Unsupported(i.op)
    target, source = _spaces(i)
    to, come_from = e.address(i.operands[0], target), e.address(i.operands[1], source)
    size, site = e.read(i.operands[2], "u32"), e.site(i)
    barrier = "0"
    if i.has("mbarrier::complete_tx::bytes"):
        barrier = e.address(i.operands[3], "shared")
    count = f"B_->dynamic_classes[EMU_CLASS_{'LOAD' if source == 'global' else 'STORE'}_BULK] += n_;"
    if i.name == "cp" and i.parts[1] == "reduce":
        operation = next((ATOM_OPS[p] for p in i.parts[3:] if p in ATOM_OPS), None)
        if operation is None or not i.type:
            raise Unsupported(i.op)
        kind = f"EMU_{i.type.upper()}"
        call = f"emu_cp_reduce_bulk(T_, {to}, {come_from}, n_, {barrier}, {operation}, {kind}, {site});"
    else:
        call = f"emu_cp_bulk(T_, {to}, {come_from}, n_, {barrier}, {site});"
    return f"{{ const uint32_t n_ = {size}; {count} {call} }}"


@op("cp.async.bulk.commit_group", "cp.async.bulk.wait_group", kind="async", dests=0)
def cp_bulk_group(e: Emitter, i: Instruction) -> str:
    if i.has("commit_group"):
        return f"emu_cp_bulk_commit(T_, {e.site(i)});"
    return f"emu_cp_bulk_wait(T_, {e.read(i.operands[0], 'u32')}, {int(i.has('read'))}, {e.site(i)});"
