"""Puts generated exchanges into the user's source: what stands where NCCL's calls and producers' launches
stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cuco.propose.builtin import runtime
from cuco.propose.builtin.blocks import draw
from cuco.propose.builtin.calls import shims
from cuco.propose.builtin.config import EdgeConfig, edge_config
from cuco.propose.builtin.exchange import Exchange
from cuco.propose.builtin.source_map import Producer
from cuco.propose.builtin.wrappers import KernelText, LaunchText, held_launch, wrapper_name, wrappers
from cuco.propose.protocol import ProposalRefused
from cuco.source import evolve
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
    """What is known beyond the source. ``replace`` False: stage A, infrastructure only, NCCL's calls stay and
    the evolve blocks of what replaces them are empty."""

    producers: Mapping[str, Producer] = field(default_factory=dict)
    transfer_bytes: Mapping[str, int] = field(default_factory=dict)
    replace: bool = True


@dataclass(frozen=True)
class _Planned:
    """One exchange with its constants; ``second`` for the all-gather phase of an all-reduce."""

    exchange: Exchange
    directive: Directive
    config: EdgeConfig
    second: EdgeConfig | None
    producer: Producer | None

    def written(self) -> runtime.Written:
        return runtime.Written(
            (self.config,) if self.second is None else (self.config, self.second),
            shims(self.exchange, self.config, self.second),
            runtime.design_comment(self.exchange.calls, self.directive),
        )


def construct(
    source: SourceFile,
    graph: CommGraph,
    found: Sequence[Exchange],
    chosen: Mapping[str, Directive],
    known: Construction,
) -> str:
    """The candidate made of ``source``, the user's host-driven code, which ``graph`` was read from.

    ``chosen``: directive per leading edge. Raises ProposalRefused with the line, the reason and what would
    help, UsageError for malformed evolve markers of the user's.
    """
    planned = _plan(graph, found, chosen, known)
    launched = [kernel.name for kernel in graph.kernels]
    blocks = draw(source, [(edge.file, edge.offset) for edge in graph.edges], launched)
    inside = [Edit.replace(source.function(name).name_span, f"user_{name}") for name in ENTRY_POINTS]
    texts: dict[str, str] = {}
    wrapped: list[tuple[str, str]] = []
    if known.replace:
        inside += [edit for one in planned for edit in _renamed_calls(source, graph, one)]
        inside += [edit for one in planned for edit in _joins(source, graph, one)]
        inside += _held(source, planned)
        texts, wrapped = _stand_ins(source, planned)
    before = [Edit.insert(source.after_includes, "\n" + _generated(source, graph, planned, texts))]
    before += [
        Edit.insert(source.after(kernel), blocks.stand_ins(kernel.name, texts.get(kernel.name, "")))
        for kernel in source.kernels
        if kernel.file == source.main and kernel.name in launched
    ]
    text = apply(source.text, [*before, *blocks.edits, *inside]) + runtime.entry_points(wrapped)
    blocks.check(text)
    return text if known.replace else runtime.infrastructure(text)


def _generated(
    source: SourceFile, graph: CommGraph, planned: Sequence[_Planned], texts: Mapping[str, str]
) -> str:
    """The namespace, and kernels that stand for those of headers."""
    found = [one.exchange for one in planned]
    in_headers = [name for name in texts if source.kernel(name).file != source.main]
    return runtime.render(
        [one.written() for one in planned],
        reduce_types=_reduce_types(graph, found),
        staging=_staging(found),
        kernels="".join(texts[name] for name in in_headers),
    )


def _plan(
    graph: CommGraph, found: Sequence[Exchange], chosen: Mapping[str, Directive], known: Construction
) -> list[_Planned]:
    planned: list[_Planned] = []
    index = slot = 0
    for exchange in found:
        try:
            planned.append(_planned(exchange, chosen[exchange.leader], known, index, slot))
        except ProposalRefused as error:
            edge = graph.edge(exchange.leader)
            raise ProposalRefused(f"nccl{edge.op}: {error.reason}", line=edge.line, fix=error.fix) from None
        index += exchange.phases
        slot += exchange.phases * exchange.slots
    return planned


def _planned(
    exchange: Exchange, directive: Directive, known: Construction, index: int, slot: int
) -> _Planned:
    producer = known.producers.get(exchange.leader)
    fused = directive.placement in (Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED)
    if fused and producer is not None:
        producer.require(directive.placement)
    if exchange.reduces and directive.placement is not Placement.DEFERRED:
        raise ProposalRefused(
            f"the second half of a reduction waits for the first, it cannot be {directive.placement}",
            fix="Use placement Deferred",
        )
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
    second = configs[1] if len(configs) > 1 else None
    return _Planned(exchange, directive, configs[0], second, producer if fused else None)


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
    name = f"nccl{edge.op}"
    try:
        found = source.call_at(edge.file, edge.offset)
    except KeyError:
        raise ProposalRefused(
            f"{name} is not called by its name",
            line=edge.line,
            fix=f"Write {name}(...) where it is called, not a pointer to it",
        ) from None
    if not isinstance(found, CallSpan) or found.call.start == found.call.end:
        raise ProposalRefused(
            f"{name} is written by a macro, where it cannot be replaced",
            line=edge.line,
            fix="Write the call itself; a macro may stand around it",
        )
    if found.file != source.main:
        raise ProposalRefused(
            f"{name} is called in {Path(found.file).name}, and only {source.path.name} is rewritten",
            line=edge.line,
            fix=f"Move the function that calls it into {source.path.name}",
        )
    return found


def _rename(source: SourceFile, call: CallSpan, index: int) -> Edit:
    """Only the callee's name changes."""
    text = source.slice(call.call)
    name = text[: text.index("(")].strip()
    if not name.startswith("nccl"):
        raise ProposalRefused(
            f"{name} stands for {call.name}, and only calls by NCCL's own names are replaced",
            line=call.line,
            fix=f"Write {call.name}(...)",
        )
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
        raise ProposalRefused(
            f"the group of {members[0].name} starts or ends in another function",
            line=members[0].line,
            fix="Put ncclGroupStart and ncclGroupEnd into the function that makes the calls",
        )
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
            launch = _launch(source, offset, reader, "it reads what is received beside the stream")
            edits += _comma(launch.call, one.config.index, _launch_text(launch).stream)
    return edits


def _launch(source: SourceFile, place: tuple[str, int], kernel: str, why: str) -> LaunchSpan:
    """The launch at a place, which has to be one that can be rewritten."""
    launch = source.call_at(*place)
    if not isinstance(launch, LaunchSpan) or launch.via != "<<<>>>" or launch.file != source.main:
        how = f"in {Path(launch.file).name}" if launch.file != source.main else "other than by <<<>>>"
        raise ProposalRefused(
            f"{kernel} is launched {how}, and {why}",
            line=launch.line,
            fix=f"Launch it by <<<>>> in {source.path.name}, or leave the exchange Deferred",
        )
    return launch


def _comma(call: tuple[int, int], index: int, stream: str) -> list[Edit]:
    return [Edit.insert(call[0], f"(cuco_gen::join({index}, {stream}), "), Edit.insert(call[1], ")")]


def _stand_ins(
    source: SourceFile, planned: Sequence[_Planned]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Per producer the text of the kernels that stand for it, and pairs (kernel, one that stands for it)."""
    users: dict[str, list[EdgeConfig]] = {}
    for one in planned:
        if one.producer is not None:
            users.setdefault(one.producer.kernel, []).append(one.config)
    texts = {
        name: wrappers(_kernel_text(source, source.kernel(name)), configs) for name, configs in users.items()
    }
    return texts, [(name, wrapper_name(name, one)) for name, configs in users.items() for one in configs]


def _held(source: SourceFile, planned: Sequence[_Planned]) -> list[Edit]:
    """Launches of producers wait for the exchange that sends what they make."""
    by_launch: dict[tuple[str, int], list[_Planned]] = {}
    for one in planned:
        if one.producer is not None:
            by_launch.setdefault((one.producer.file, one.producer.offset), []).append(one)
    edits = []
    for place, users in by_launch.items():
        kernel = users[0].producer.kernel if users[0].producer else ""
        launch = _launch(source, place, kernel, "the exchange that overlaps it holds its launch")
        held = held_launch(_launch_text(launch), [one.config for one in users])
        edits.append(Edit.replace(launch.call, held))
    return edits


def _launch_text(launch: LaunchSpan) -> LaunchText:
    grid, block, shared, stream = ([a.text for a in launch.configuration] + ["0", "0"])[:4]
    return LaunchText(launch.kernel, grid, block, shared, stream, ", ".join(a.text for a in launch.arguments))


def _kernel_text(source: SourceFile, function: FunctionSpan) -> KernelText:
    if function.template:
        raise ProposalRefused(
            f"{function.name} is a template, and only the body of a plain kernel is copied for the overlap",
            line=function.line,
            fix="Write it for the types that are used, or leave the exchange Deferred",
        )
    edits = []
    for name, stands_for in (("blockIdx", "cuco_cta"), ("gridDim", "cuco_grid")):
        for span in source.references(function, name):
            start = span.start - function.body.start
            edits.append(Edit.replace((start, start + len(name)), stands_for))
    # The user's evolve blocks stay with the kernel: a second one of the same name would not be a block.
    body = evolve.strip(apply(source.slice(function.body, function.file), edits))
    bounds = f"__launch_bounds__({', '.join(function.launch_bounds)})" if function.launch_bounds else ""
    return KernelText(function.name, tuple((p.text, p.name) for p in function.parameters), bounds, body)
