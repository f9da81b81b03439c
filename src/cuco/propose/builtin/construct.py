"""Puts generated exchanges into the user's source: what stands where NCCL's calls and producers' launches
stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cuco.propose.builtin import runtime
from cuco.propose.builtin.calls import shims
from cuco.propose.builtin.config import EdgeConfig, edge_config
from cuco.propose.builtin.exchange import Exchange
from cuco.propose.builtin.source_map import Producer
from cuco.propose.builtin.wrappers import KernelText, LaunchText, held_launch, wrapper_name, wrappers
from cuco.propose.protocol import ProposalRefused
from cuco.source.edit import CallSpan, Edit, FunctionSpan, LaunchSpan, SourceFile, apply
from cuco.space import Directive
from cuco.space.dimensions import Placement

if TYPE_CHECKING:
    from cuco.source import CommGraph

ENTRY_POINTS = ("cuco_prepare", "cuco_launch", "cuco_finish")
_BESIDE = (Placement.STREAM_SPLIT, Placement.PIPELINED)
_NCCL_TYPES = {
    "ncclInt8": "int8",
    "ncclChar": "int8",
    "ncclUint8": "uint8",
    "ncclInt32": "int32",
    "ncclInt": "int32",
    "ncclUint32": "uint32",
    "ncclInt64": "int64",
    "ncclUint64": "uint64",
    "ncclFloat16": "float16",
    "ncclHalf": "float16",
    "ncclBfloat16": "bfloat16",
    "ncclFloat32": "float32",
    "ncclFloat": "float32",
    "ncclFloat64": "float64",
    "ncclDouble": "float64",
}


@dataclass(frozen=True)
class Construction:
    """What is known beyond the source. ``replace`` False: infrastructure only, NCCL's calls stay (stage
    A)."""

    producers: Mapping[str, Producer] = field(default_factory=dict)
    transfer_bytes: Mapping[str, int] = field(default_factory=dict)
    replace: bool = True


@dataclass(frozen=True)
class _Planned:
    """One exchange with its constants; ``second`` for the all-gather phase of an all-reduce."""

    exchange: Exchange
    config: EdgeConfig
    second: EdgeConfig | None
    producer: Producer | None


def construct(
    path: Path,
    graph: CommGraph,
    found: Sequence[Exchange],
    chosen: Mapping[str, Directive],
    known: Construction,
) -> str:
    """The candidate's source. ``chosen``: directive per leading edge. Raises ProposalRefused with the
    reason."""
    source = SourceFile.read(path)
    planned = _plan(found, chosen, known)
    configs = [config for one in planned for config in (one.config, one.second) if config is not None]
    types = _reduce_types(graph, found)
    generated = runtime.render(configs, reduce_types=types, staging=_staging(found))
    generated += (
        "namespace cuco_gen {\n" + "\n".join(shims(p.exchange, p.config, p.second) for p in planned) + "}\n"
    )
    generated += f"{runtime.END}\n"
    edits = [Edit.replace(source.function(name).name_span, f"user_{name}") for name in ENTRY_POINTS]
    wrapped: list[tuple[str, str]] = []
    if known.replace:
        edits += [edit for one in planned for edit in _renamed_calls(source, graph, one)]
        edits += [edit for one in planned for edit in _joins(source, graph, one)]
        overlapped, extra = _overlapped(source, planned, wrapped)
        edits += overlapped
        generated += extra
    edits.append(Edit.insert(source.after_includes, "\n" + generated))
    return apply(source.text, edits) + runtime.entry_points(wrapped)


def _plan(found: Sequence[Exchange], chosen: Mapping[str, Directive], known: Construction) -> list[_Planned]:
    planned: list[_Planned] = []
    index = slot = 0
    for exchange in found:
        directive, producer = chosen[exchange.leader], known.producers.get(exchange.leader)
        fused = directive.placement in (Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED)
        if fused and producer is not None and not producer.allows(directive.placement):
            raise ProposalRefused(f"{directive.placement} does not fit how {producer.kernel} is written")
        if exchange.reduces and directive.placement is not Placement.DEFERRED:
            raise ProposalRefused("a reduction's second half waits for the first: Deferred only")
        size = producer.bytes if producer else known.transfer_bytes.get(exchange.leader, 1 << 20)
        configs = [
            edge_config(
                index + phase,
                slot + phase * exchange.slots,
                exchange.slots,
                directive,
                bytes_per_transfer=size,
                producer=producer.map if fused and producer else None,
            )
            for phase in range(exchange.phases)
        ]
        planned.append(
            _Planned(
                exchange, configs[0], configs[1] if len(configs) > 1 else None, producer if fused else None
            )
        )
        index += exchange.phases
        slot += exchange.phases * exchange.slots
    return planned


def _staging(found: Sequence[Exchange]) -> int:
    return max((2 if "Reduce" in one.ops else 1 if one.reduces else 0) for one in found)


def _reduce_types(graph: CommGraph, found: Sequence[Exchange]) -> list[str]:
    """Data types of the reductions; all of them where the source computes the type."""
    types: list[str] = []
    for call in (call for one in found if one.reduces for call in one.calls):
        name = _NCCL_TYPES.get(graph.edge(call).dtype or "")
        types += [name] if name else list(runtime.REDUCE_TYPES)
    return list(dict.fromkeys(types))


def _call(source: SourceFile, graph: CommGraph, edge_id: str) -> CallSpan:
    edge = graph.edge(edge_id)
    try:
        found = source.call_at(edge.file, edge.offset)
    except KeyError:
        raise ProposalRefused(f"nccl{edge.op} (line {edge.line}) is not written as a call of NCCL") from None
    if not isinstance(found, CallSpan) or found.file != source.main or found.call.start == found.call.end:
        raise ProposalRefused(f"nccl{edge.op} (line {edge.line}) stands in a macro or another file")
    return found


def _rename(source: SourceFile, call: CallSpan, index: int) -> Edit:
    """Only the callee's name changes."""
    text = source.slice(call.call)
    name = text[: text.index("(")].strip()
    if not name.startswith("nccl"):
        raise ProposalRefused(f"line {call.line}: {name} is not the name of an NCCL call")
    start = call.call.start
    return Edit.replace(
        (start, start + len(name.encode())), f"cuco_gen::edge{index}_{name.removeprefix('nccl')}"
    )


def _renamed_calls(source: SourceFile, graph: CommGraph, one: _Planned) -> list[Edit]:
    calls = {
        (call.file, call.call): call for call in (_call(source, graph, edge) for edge in one.exchange.calls)
    }
    edits = [_rename(source, call, one.config.index) for call in calls.values()]
    if one.exchange.group is not None:
        edits += [
            _rename(source, call, one.config.index) for call in _group_calls(source, list(calls.values()))
        ]
    return edits


def _group_calls(source: SourceFile, members: Sequence[CallSpan]) -> tuple[CallSpan, CallSpan]:
    """The group start and end around these calls."""
    first, last = min(m.call.start for m in members), max(m.call.start for m in members)
    function = members[0].function
    starts = [c for c in source.calls(op="GroupStart", function=function) if c.call.start < first]
    ends = [c for c in source.calls(op="GroupEnd", function=function) if c.call.start > last]
    if not starts or not ends:
        raise ProposalRefused(f"line {members[0].line}: the group starts or ends in another function")
    return starts[-1], ends[0]


def _joins(source: SourceFile, graph: CommGraph, one: _Planned) -> list[Edit]:
    """An exchange beside the stream is joined before whoever reads what it received."""
    if one.config.placement not in _BESIDE:
        return []
    edits: list[Edit] = []
    readers = dict.fromkeys(reader for call in one.exchange.calls for reader in graph.consumers(call))
    kernels = {kernel.name: kernel for kernel in graph.kernels}
    for reader in readers:
        if reader in one.exchange.calls:
            continue
        if reader not in kernels:
            call = _call(source, graph, reader)
            edits += _comma(call.call, one.config.index, call.arguments[-1].text)
            continue
        for offset in dict.fromkeys((launch.file, launch.offset) for launch in kernels[reader].launches):
            launch = source.call_at(*offset)
            if not isinstance(launch, LaunchSpan) or launch.via != "<<<>>>":
                raise ProposalRefused(f"{reader} reads what was received and is not launched by <<<>>>")
            edits += _comma(launch.call, one.config.index, _launch_text(launch).stream)
    return edits


def _comma(call: tuple[int, int], index: int, stream: str) -> list[Edit]:
    return [Edit.insert(call[0], f"(cuco_gen::join({index}, {stream}), "), Edit.insert(call[1], ")")]


def _overlapped(
    source: SourceFile, planned: Sequence[_Planned], wrapped: list[tuple[str, str]]
) -> tuple[list[Edit], str]:
    """Wrappers of producers and their held launches. The second value is text for kernels that stand in
    headers."""
    edits: list[Edit] = []
    headers = ""
    by_kernel: dict[str, list[_Planned]] = {}
    by_launch: dict[tuple[str, int], list[_Planned]] = {}
    for one in planned:
        if one.producer is not None:
            by_kernel.setdefault(one.producer.kernel, []).append(one)
            by_launch.setdefault((one.producer.file, one.producer.offset), []).append(one)
    for name, users in by_kernel.items():
        function = source.kernel(name)
        text = wrappers(_kernel_text(source, function), [one.config for one in users])
        wrapped += [(name, wrapper_name(name, one.config)) for one in users]
        if function.file == source.main:
            edits.append(Edit.insert(source.after(function), text))
        else:
            headers += text
    for place, users in by_launch.items():
        launch = source.call_at(*place)
        if not isinstance(launch, LaunchSpan) or launch.via != "<<<>>>" or launch.file != source.main:
            raise ProposalRefused(
                "a producer that is not launched by <<<>>> in this file cannot be overlapped"
            )
        edits.append(
            Edit.replace(launch.call, held_launch(_launch_text(launch), [one.config for one in users]))
        )
    return edits, headers


def _launch_text(launch: LaunchSpan) -> LaunchText:
    grid, block, shared, stream = ([a.text for a in launch.configuration] + ["0", "0"])[:4]
    return LaunchText(launch.kernel, grid, block, shared, stream, ", ".join(a.text for a in launch.arguments))


def _kernel_text(source: SourceFile, function: FunctionSpan) -> KernelText:
    if function.template:
        raise ProposalRefused(f"{function.name} is a template, and the construction copies plain kernels")
    edits = []
    for name, stands_for in (("blockIdx", "cuco_cta"), ("gridDim", "cuco_grid")):
        for span in source.references(function, name):
            start = span.start - function.body.start
            edits.append(Edit.replace((start, start + len(name)), stands_for))
    body = apply(source.slice(function.body, function.file), edits)
    bounds = f"__launch_bounds__({', '.join(function.launch_bounds)})" if function.launch_bounds else ""
    return KernelText(function.name, tuple((p.text, p.name) for p in function.parameters), bounds, body)
