"""Barriers, mbarrier and the warp-wide operations without matrices."""

from __future__ import annotations

from cuco.testbed.ptx.access import order_of, scope_of
from cuco.testbed.ptx.emitter import Emitter
from cuco.testbed.ptx.model import Imm, Instruction, Operand, Pair, Sink
from cuco.testbed.ptx.ops_memory import shared_address
from cuco.testbed.ptx.table import Unsupported, op


# -------------------- block barriers
@op("bar.red", "barrier.red", "barrier.cta.red", kind="barrier")
def bar_reduce(e: Emitter, i: Instruction) -> str:
    operation = next(p for p in i.parts if p in ("popc", "and", "or"))
    rest = i.operands[1:]
    identifier = e.read(rest[0], "u32")
    count = e.read(rest[1], "u32") if len(rest) > 2 else "0"
    what, predicate = f"EMU_RED_{operation.upper()}", e.read(rest[-1], "pred")
    call = f"emu_bar_red(T_, {identifier}, {count}, {what}, {predicate}, {e.site(i)})"
    if operation == "popc":
        return e.write(i.operands[0], call, "u32")
    return e.write(i.operands[0], f"{call} != 0", "pred")


@op("bar.sync", "bar.arrive", "barrier", kind="barrier", dests=0)
def bar(e: Emitter, i: Instruction) -> str:
    if i.has("cluster"):
        if i.has("arrive"):
            return ""
        return f"emu_bar_sync(T_, EMU_BAR_CLUSTER, 0, {e.site(i)});"
    identifier = e.read(i.operands[0], "u32") if i.operands else "0"
    count = e.read(i.operands[1], "u32") if len(i.operands) > 1 else "0"
    function = "emu_bar_arrive" if i.has("arrive") else "emu_bar_sync"
    return f"{function}(T_, {identifier}, {count}, {e.site(i)});"


@op("bar.warp", kind="warp", dests=0)
def syncwarp(e: Emitter, i: Instruction) -> str:
    return f"emu_warp_call(T_, nullptr, nullptr, {e.read(i.operands[0], 'u32')}, {e.site(i)});"


# -------------------- mbarrier
def _mode(i: Instruction, default: str) -> str:
    return f"EMU_MODE({order_of(i, default)}, {scope_of(i, 'EMU_CTA')}, EMU_SHARED)"


@op("mbarrier.init", "mbarrier.inval", "mbarrier.expect_tx", "mbarrier.complete_tx", kind="mbarrier", dests=0)
def mbarrier_state(e: Emitter, i: Instruction) -> str:
    where, site = shared_address(e, i, i.operands[0]), e.site(i)
    what = i.parts[1]
    if what == "inval":
        return f"emu_mbar_inval(T_, {where}, {site});"
    value = e.read(i.operands[1], "u32")
    if what == "init":
        return f"emu_mbar_init(T_, {where}, {value}, {site});"
    sign = "" if what == "expect_tx" else "-"
    return f"emu_mbar_tx(T_, {where}, {sign}int64_t({value}), {_mode(i, 'EMU_RELAXED')}, {site});"


@op("mbarrier.arrive", "mbarrier.arrive_drop", kind="mbarrier")
def mbarrier_arrive(e: Emitter, i: Instruction) -> str:
    target, operands = i.operands[0], i.operands
    if not isinstance(target, Sink) and len(operands) == 1:
        raise Unsupported(i.op)
    where, count, transactions = shared_address(e, i, operands[1]), "1", "0"
    if i.has("expect_tx"):
        transactions = e.read(operands[2], "u32")
    elif len(operands) > 2:
        count = e.read(operands[2], "u32")
    drop = int(i.has("arrive_drop"))
    mode = _mode(i, "EMU_RELEASE")
    call = f"emu_mbar_arrive(T_, {where}, {count}, {transactions}, {drop}, {mode}, {e.site(i)})"
    return e.write(target, call, "b64")


@op("mbarrier.test_wait", "mbarrier.try_wait", kind="mbarrier")
def mbarrier_wait(e: Emitter, i: Instruction) -> str:
    parity = i.has("parity")
    value = f"uint64_t({e.read(i.operands[2], 'u32')})" if parity else e.read(i.operands[2], "b64")
    where = shared_address(e, i, i.operands[1])
    blocks = int(i.parts[1] == "try_wait")
    mode = _mode(i, "EMU_ACQUIRE")
    call = f"emu_mbar_test(T_, {where}, {value}, {int(parity)}, {blocks}, {mode}, {e.site(i)})"
    return e.write(i.operands[0], f"{call} != 0", "pred")


@op("mbarrier.pending_count")
def mbarrier_pending(e: Emitter, i: Instruction) -> str:
    return e.write(i.operands[0], f"uint32_t({e.read(i.operands[1], 'b64')})", "u32")


# -------------------- warp operations
def _call(e: Emitter, i: Instruction, function: str, mask: Operand) -> str:
    return f"emu_warp_call(T_, isa::{function}, &w_, {e.read(mask, 'u32')}, {e.site(i)});"


_SHUFFLES = {"up": "UP", "down": "DOWN", "bfly": "BUTTERFLY", "idx": "INDEX"}


@op("shfl", kind="warp")
def shfl(e: Emitter, i: Instruction) -> str:
    mode = next(_SHUFFLES[p] for p in i.parts if p in _SHUFFLES)
    value, b, c = (e.read(x, "b32") for x in i.operands[1:4])
    mask: Operand = i.operands[4] if len(i.operands) > 4 else Imm(0xFFFFFFFF)
    target = i.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    return (
        f"{{ isa::Shuffle w_{{{value}, {b}, {c}, 0, 0}}; {_call(e, i, f'shuffle<isa::{mode}>', mask)} "
        f"{e.write(first, 'w_.result', 'b32')} {e.write(second, 'w_.in_range != 0', 'pred')} }}"
    )


@op("vote", kind="warp")
def vote(e: Emitter, i: Instruction) -> str:
    mask: Operand = i.operands[2] if len(i.operands) > 2 else Imm(0xFFFFFFFF)
    predicate = e.read(i.operands[1], "pred")
    start = f"{{ isa::Ballot w_{{uint32_t({predicate}), 0, 0}}; {_call(e, i, 'ballot', mask)} "
    if i.has("ballot"):
        return f"{start}{e.write(i.operands[0], 'w_.result', 'b32')} }}"
    result = {
        "any": "w_.result != 0",
        "all": "w_.result == w_.lanes",
        "uni": "w_.result == 0 || w_.result == w_.lanes",
    }[next(p for p in i.parts if p in ("any", "all", "uni"))]
    return f"{start}{e.write(i.operands[0], result, 'pred')} }}"


@op("match", kind="warp")
def match(e: Emitter, i: Instruction) -> str:
    value = f"uint64_t({e.read(i.operands[1], i.type)})"
    target = i.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    field = "w_.all" if i.has("all") else "w_.same"
    return (
        f"{{ isa::Match w_{{{value}, 0, 0}}; {_call(e, i, 'match', i.operands[2])} "
        f"{e.write(first, field, 'b32')} {e.write(second, 'w_.all != 0', 'pred')} }}"
    )


@op("redux", kind="warp")
def redux(e: Emitter, i: Instruction) -> str:
    operation = next((p for p in i.parts if p in ("add", "min", "max", "and", "or", "xor")), "")
    if i.type not in ("u32", "s32", "b32") or not operation:
        raise Unsupported(i.op)
    lane = "int32_t" if i.type == "s32" else "uint32_t"
    value = e.read(i.operands[1], "b32")
    function = f"redux<isa::R_{operation.upper()}, {lane}>"
    return (
        f"{{ isa::Redux w_{{{value}, 0}}; {_call(e, i, f'{function}', i.operands[2])} "
        f"{e.write(i.operands[0], 'w_.result', 'b32')} }}"
    )


@op("elect", kind="warp")
def elect(e: Emitter, i: Instruction) -> str:
    target = i.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    return (
        f"{{ isa::Elect w_{{0, 0}}; {_call(e, i, 'elect', i.operands[1])} "
        f"{e.write(first, 'w_.leader', 'b32')} {e.write(second, 'w_.is_leader != 0', 'pred')} }}"
    )


@op("activemask", kind="warp")
def activemask(e: Emitter, i: Instruction) -> str:
    return e.write(i.operands[0], "emu_activemask(T_)", "b32")
