"""Rules over kernels: indices against what was asked for, signals, divergence, spinning, relaxed
publishing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuco.source.clang_ast import Node
from cuco.source.linting.device_walk import BLOCK, DeviceCall, KernelFacts
from cuco.source.linting.divergence import Guard, Level
from cuco.source.linting.findings import Findings
from cuco.source.linting.host_facts import Requirements

_GIN = "ncclGin_BackendMask"
_SESSIONS = ("ncclLsaBarrierSession", "ncclGinBarrierSession", "ncclBarrierSession")
_ONE_SHOT = {
    "ncclLsaBarrier": "ncclLsaBarrierSession",
    "ncclGinBarrier": "ncclGinBarrierSession",
    "ncclBarrier": "ncclBarrierSession",
}
_SIGNAL_ARGUMENT = {
    "readSignal": 0,
    "waitSignal": 1,
    "waitSignalMeetShadow": 1,
    "waitSignalFollowShadow": 1,
    "resetSignal": 0,
    "increaseSignalShadow": 0,
    "getSignalShadowPtr": 0,
}
_COUNTER_ARGUMENT = {"readCounter": 0, "waitCounter": 1, "resetCounter": 0}
_PEERS = frozenset({"ncclGetLsaPointer", "ncclGetPeerPointer", "lsaPtr", "peerPtr"})


def check_kernel(found: Findings, facts: KernelFacts, wanted: Sequence[Requirements]) -> None:
    """All rules that look at one kernel."""
    _barrier_counts(found, facts, wanted)
    _signal_counts(found, facts, wanted)
    _divergence(found, facts)
    _weak_signals(found, facts)
    _spins(found, facts)
    _relaxed(found, facts)


# ---- indices -------------------------------------------------------------------------------------


def _highest(index: int | str | None, facts: KernelFacts) -> int | None:
    """The highest index used: a constant, or the last block of the largest constant grid."""
    if index == BLOCK:
        return max(facts.grid) - 1 if facts.grid else None
    return index if isinstance(index, int) else None


def _barrier_counts(found: Findings, facts: KernelFacts, wanted: Sequence[Requirements]) -> None:
    for call in facts.calls:
        kind = _ONE_SHOT.get(call.name, call.name)
        tags = [_tag(argument) for argument in call.arguments]
        if kind not in _SESSIONS or not any(tags) or not wanted:
            continue
        tag_at = next(position for position, tag in enumerate(tags) if tag)
        name = _count_field(kind, tags[tag_at])
        at = tag_at + 1 + (kind == "ncclBarrierSession" and len(call.arguments) > tag_at + 2)
        index = call.index(at) if at < len(call.arguments) else None
        highest = _highest(index, facts)
        if name is None or highest is None:
            continue
        _compare(
            found,
            "barrier-count",
            call,
            facts,
            wanted,
            name,
            highest,
            index,
            what=kind.removesuffix("Session"),
        )


def _tag(argument: Node) -> str:
    name = argument.canonical_type.removeprefix("const ")
    return name.removeprefix("ncclTeamTag") if name.startswith("ncclTeamTag") else ""


def _count_field(kind: str, tag: str) -> str | None:
    if kind == "ncclLsaBarrierSession":
        return "lsaBarrierCount" if tag == "Lsa" else None
    if kind == "ncclGinBarrierSession":
        return {"World": "worldGinBarrierCount", "Rail": "railGinBarrierCount"}.get(tag)
    return "barrierCount"


def _compare(
    found: Findings,
    rule: str,
    call: DeviceCall,
    facts: KernelFacts,
    wanted: Sequence[Requirements],
    name: str,
    highest: int,
    index: int | str | None,
    **names: object,
) -> None:
    """Report an index beyond every count asked for; certain with one requirements variable of constant
    fields."""
    values = [one.value(name) for one in wanted]
    if any(count is None for count, _ in values):
        return
    count = max(count for count, _ in values if count is not None)
    if highest < count:
        return
    certain = (
        len(wanted) == 1
        and values[0][1]
        and not any(set(one.fields) & {"resourceRequirementsList", "teamRequirementsList"} for one in wanted)
    )
    if any(guard.level == Level.UNIFORM for guard in call.guards) or index == BLOCK and call.guards:
        certain = False
    shown = f"{index} (up to {highest})" if index == BLOCK else index
    found.add(
        rule,
        call.node,
        doubtful=not certain,
        kernel=facts.kernel.spelling,
        index=shown,
        field=name,
        count=count,
        needed=highest + 1,
        **names,
    )


def signal_uses(facts: KernelFacts) -> Iterator[tuple[DeviceCall, str, int | str | None]]:
    """Signals used by a kernel: the call, how (wait, shadow, inc, add, ...), and the index."""
    for call in facts.calls:
        if call.owner == _GIN and call.name in _SIGNAL_ARGUMENT:
            at = _SIGNAL_ARGUMENT[call.name]
            if at < len(call.arguments) and not call.arguments[at].canonical_type.startswith("ncclWindow"):
                yield call, call.name, call.index(at)
        elif call.owner == _GIN and call.name in ("put", "putValue", "signal"):
            for argument in call.arguments:
                action = _action(argument)
                if action and "Signal" in action and "VA" not in action:
                    yield call, action, _action_index(argument, call)


def _action(argument: Node) -> str:
    """The type of a remote or local action, such as ncclGin_WeakSignalInc."""
    name = argument.canonical_type.removeprefix("const ").rstrip(" &")
    return name if name.startswith("ncclGin_") else ""


def _action_index(argument: Node, call: DeviceCall) -> int | str | None:
    from cuco.source.linting.device_walk import index_of

    inner = argument.strip()
    for part in [inner, *inner.walk()]:
        if part.kind == "INIT_LIST_EXPR" and part.expressions:
            return index_of(part.expressions[0], call.constants)
    return None


def _signal_counts(found: Findings, facts: KernelFacts, wanted: Sequence[Requirements]) -> None:
    if not wanted:
        return
    for call, _, index in signal_uses(facts):
        highest = _highest(index, facts)
        if highest is not None:
            _compare(found, "signal-count", call, facts, wanted, "ginSignalCount", highest, index)
    for call in facts.calls:
        index = None
        if call.owner == _GIN and call.name in _COUNTER_ARGUMENT:
            index = call.index(_COUNTER_ARGUMENT[call.name])
        elif call.owner == _GIN and call.name in ("put", "putValue"):
            index = next(
                (_action_index(one, call) for one in call.arguments if "Counter" in _action(one)), None
            )
        highest = _highest(index, facts)
        if highest is not None:
            _compare(found, "counter-count", call, facts, wanted, "ginCounterCount", highest, index)


# ---- divergence ----------------------------------------------------------------------------------


def _group_of(call: DeviceCall) -> tuple[str, str] | None:
    """What takes part in a call: (rule, block or warp); None for a call of one thread."""
    if call.name.startswith("__syncthreads"):
        return "divergent-syncthreads", "block"
    names = [argument.canonical_type.removeprefix("const ").rstrip(" &") for argument in call.arguments]
    if call.name == "sync" and call.owner in ("ncclCoopCta", "ncclCoopWarp"):
        return ("divergent-coop", "block") if call.owner == "ncclCoopCta" else None
    if call.owner.startswith("ncclCoop") or call.name.startswith(("ncclCoop", "ncclTeam")):
        return None
    if not (call.owner.startswith("nccl") or call.name.startswith("nccl")):
        return None
    if "ncclCoopCta" in names:
        return "divergent-coop", "block"
    if "ncclCoopTile<32>" in names:
        return "divergent-coop", "warp"
    return None


def _divergence(found: Findings, facts: KernelFacts) -> None:
    for call in facts.calls:
        group = _group_of(call)
        if group is None:
            continue
        rule, who = group
        least = Level.THREAD if who == "warp" else Level.WARP
        splitting = [guard for guard in call.guards if guard.level >= least]
        if splitting:
            guard = next((one for one in splitting if _certain(one, who)), splitting[0])
            found.add(
                rule,
                call.node,
                doubtful=not _certain(guard, who),
                call=_shown(call),
                group=who,
                condition=guard.text,
            )
        _returns(found, call, who, least)


def _certain(guard: Guard, who: str) -> bool:
    return guard.certain and (who == "block" or guard.level == Level.THREAD)


def _returns(found: Findings, call: DeviceCall, who: str, least: Level) -> None:
    """Threads, or whole ranks, that left before the call."""
    for place, guard in call.returns:
        if guard.level >= least:
            found.add(
                "early-return",
                call.node,
                doubtful=not _certain(guard, who),
                at=place.line,
                condition=guard.text,
                call=_shown(call),
            )
        elif guard.level == Level.UNIFORM and _crosses_ranks(call) and not _same_on_all_ranks(guard.text):
            found.add("rank-early-return", call.node, at=place.line, condition=guard.text, call=_shown(call))


def _crosses_ranks(call: DeviceCall) -> bool:
    return call.name in ("sync", "arrive", "wait", *_ONE_SHOT) and (
        call.owner.endswith("BarrierSession") or call.name in _ONE_SHOT
    )


def _same_on_all_ranks(condition: str) -> bool:
    """Conditions over the block's number are the same on all ranks, whose grids match."""
    return "blockIdx" in condition or "gridDim" in condition


def _shown(call: DeviceCall) -> str:
    return call.name + ("()" if call.name.startswith("__") else "")


# ---- signals -------------------------------------------------------------------------------------


def check_signals(found: Findings, kernels: Sequence[KernelFacts]) -> None:
    """Rules over all kernels together: one discipline per signal."""
    uses: dict[int, list[tuple[KernelFacts, DeviceCall, str]]] = {}
    for facts in kernels:
        for call, how, index in signal_uses(facts):
            if isinstance(index, int):
                uses.setdefault(index, []).append((facts, call, how))
    for index, found_uses in sorted(uses.items()):
        _discipline(found, index, found_uses)
        _inc_and_add(found, index, found_uses)


def _discipline(found: Findings, index: int, uses: list[tuple[KernelFacts, DeviceCall, str]]) -> None:
    by_value = [(facts, call) for facts, call, how in uses if how == "waitSignal"]
    by_shadow = [
        (facts, call)
        for facts, call, how in uses
        if how in ("waitSignalMeetShadow", "waitSignalFollowShadow")
    ]
    if not by_value or not by_shadow:
        return
    touched = {id(facts) for facts, _, how in uses if how in ("increaseSignalShadow", "getSignalShadowPtr")}
    reset = any(how in ("resetSignal", "getSignalShadowPtr") for _, _, how in uses)
    behind = [(facts, call) for facts, call in by_value if id(facts) not in touched]
    other = next(((f, c) for f, c in by_shadow if not behind or f is not behind[0][0]), by_shadow[0])
    certain = bool(behind) and not reset and other[0] is not behind[0][0]
    first = (behind or by_value)[0]
    found.add(
        "signal-discipline",
        other[1].node,
        doubtful=not certain,
        index=index,
        first=first[0].kernel.spelling,
        second=other[0].kernel.spelling,
    )


def _inc_and_add(found: Findings, index: int, uses: list[tuple[KernelFacts, DeviceCall, str]]) -> None:
    increments = [call for _, call, how in uses if how.endswith("SignalInc")]
    additions = [call for _, call, how in uses if how.endswith("SignalAdd")]
    if increments and additions:
        reset = any(how == "resetSignal" for _, _, how in uses)
        found.add(
            "signal-inc-add",
            additions[0].node,
            doubtful=reset,
            index=index,
            inc=increments[0].node.line,
            add=additions[0].node.line,
        )


def _weak_signals(found: Findings, facts: KernelFacts) -> None:
    """A put without an action of its own, and after it a weak signal that somebody may take to cover it."""
    bare: DeviceCall | None = None
    for call in facts.calls:
        if call.owner != _GIN or call.name not in ("put", "putValue", "signal", "flush"):
            continue
        actions = [_action(argument) for argument in call.arguments]
        remote = [one for one in actions if "Signal" in one]
        if call.name == "put" and not remote:
            bare = call
        elif any(one.startswith("ncclGin_Weak") for one in remote) and bare is not None:
            found.add("weak-signal", call.node, call=call.name, at=bare.node.line)
        elif any("Strong" in one for one in remote):
            bare = None


# ---- memory --------------------------------------------------------------------------------------


def _spins(found: Findings, facts: KernelFacts) -> None:
    for loop in facts.spins:
        barrier = any(part.kind in ("ASM_STMT", "CALL_EXPR") for part in loop.walk())
        condition = next(
            (
                part.text
                for part in loop.walk()
                if part.kind == "ARRAY_SUBSCRIPT_EXPR"
                or part.operator == "*"
                or (part.kind == "MEMBER_REF_EXPR" and part.expressions)
            ),
            "memory",
        )
        found.add("plain-spin", loop, doubtful=barrier, name=condition)


def _relaxed(found: Findings, facts: KernelFacts) -> None:
    if not any(call.name in _PEERS for call in facts.calls):
        return
    syncs = [call for call in facts.calls if call.owner.endswith("BarrierSession") and call.name == "sync"]
    for call in syncs:
        if any("memory_order_relaxed" in argument.text for argument in call.arguments):
            found.add("relaxed-publish", call.node, call=call.name, kernel=facts.kernel.spelling)
