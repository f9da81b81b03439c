"""The communication step of a program, carried over behind cuco.h."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuco.errors import UsageError
from cuco.fastpath.adopt.names import Names, enclosing_function, identifiers
from cuco.fastpath.adopt.references import EXTENTS, reference_of
from cuco.fastpath.adopt.texts import FIND_BUFFER, FIND_PARAM, launch_function
from cuco.source.edit import CallSpan, Edit, FunctionSpan, LaunchSpan, SourceFile, apply
from cuco.source.graph import Buffer, CommGraph, Edge, Launch

DTYPES = {
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
    "ncclFloat32": "float32",
    "ncclFloat": "float32",
    "ncclFloat64": "float64",
    "ncclDouble": "float64",
    "ncclBfloat16": "bfloat16",
    "ncclFloat8e4m3": "float8_e4m3",
    "ncclFloat8e5m2": "float8_e5m2",
}
_POINTED = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned int": "uint32",
    "unsigned": "uint32",
    "half": "float16",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "char": "int8",
    "unsigned char": "uint8",
    "long": "int64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "uint64_t": "uint64",
    "int64_t": "int64",
    "uint32_t": "uint32",
    "int32_t": "int32",
}
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "uint32": "unsigned",
    "int8": "char",
    "uint8": "unsigned char",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float8_e4m3": "void",
    "float8_e5m2": "void",
}
_BYTES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float16": 2,
    "bfloat16": 2,
}
#: Name, dtype, role and shape.
BufferRow = tuple[str, str, str, Sequence[str]]
_BY_HAND = "Wrap the step behind cuco.h by hand; docs/workloads.md shows how"


@dataclass
class Step:
    """What the files of a workload need. A buffer is (name, dtype, role, shape)."""

    host: str
    ops: list[str]
    parameters: dict[str, int | None]
    buffers: Sequence[BufferRow]
    reference: str | None
    moved: str
    exact: bool
    headers: dict[str, str] = field(default_factory=dict)


def existing_step(source: SourceFile, graph: CommGraph) -> Step:
    """A source that has the entry points: its buffers become the workload's, with one extent of ``n``
    each."""
    buffers = [one for one in graph.buffers if one.allocator == "cuco" and "[" not in one.name]
    if not buffers:
        raise UsageError(f"{source.path} names no buffer of cuco_ctx", fix=_BY_HAND)
    shapes = _shapes_by_edges(graph, {one.name: one.name for one in buffers}, lambda _: "n")
    rows = any("shape[1]" in (edge.count or "") for edge in graph.edges)  # the code counts in rows of n
    listed = []
    for one in buffers:
        shape = shapes.get(one.name, "n")
        extents = ["ranks", "n"] if rows and shape.startswith("ranks") else [shape]
        listed.append((one.name, _dtype(graph, one.name), _role(one), extents))
    return _step(source, graph, source.text, {"n": None}, listed, {one.name: one.name for one in buffers})


def extracted_step(source: SourceFile, graph: CommGraph) -> Step:
    """The step of a program with its own main or helper functions."""
    _check(source, graph)
    used = [one for one in graph.buffers if one.role != "unknown"]
    names = {one.name: _plain(one.name) for one in used}
    if len(set(names.values())) != len(names):
        raise UsageError(f"{source.path}: two buffers would get the same name", fix=_BY_HAND)
    sites: list[Edge | Launch] = [
        *graph.edges,
        *(launch for kernel in graph.kernels for launch in kernel.launches),
    ]
    sites.sort(key=lambda one: (one.call_lines[0] if one.call_lines else one.line, one.line, one.offset))
    sites = [one for one in sites if _is_timed(graph, one)]
    entry = enclosing_function(source, _outermost(source, sites[0]))
    resolved = Names(source, entry, names, _kept_names(source))
    writer = _Writer(source, graph, resolved, names)
    statements = writer.statements(sites)
    shapes = _shapes(graph, used, names, resolved)
    listed = [(names[one.name], _dtype(graph, one.name), _role(one), [shapes[one.name]]) for one in used]
    if not any(role in ("out", "inout") for _, _, role, _ in listed):
        raise UsageError(f"{source.path}: no buffer of the step is its result", fix=_BY_HAND)
    host = _host_text(source, resolved, names, listed, statements)
    return _step(source, graph, host, resolved.parameters, listed, names)


def _check(source: SourceFile, graph: CommGraph) -> None:
    if len(graph.communicators) > 1:
        raise UsageError(
            f"{source.path} uses {len(graph.communicators)} communicators; a workload has one", fix=_BY_HAND
        )
    unknown = [kernel.name for kernel in graph.kernels if not kernel.resolved]
    if unknown:
        raise UsageError(
            f"{source.path} launches {unknown[0]}, and which kernel that is is not known", fix=_BY_HAND
        )
    split = [edge for edge in graph.edges if "|" in f"{edge.send}{edge.recv}"]
    if split:
        raise UsageError(
            f"{source.path}:{split[0].line}: the buffer of this call changes from turn to turn", fix=_BY_HAND
        )


def _is_timed(graph: CommGraph, site: Edge | Launch) -> bool:
    """Whether a call lies in the timed region (calls in helpers count where they are called)."""
    if graph.timed_region is None:
        return True
    lines = (*site.call_lines, site.line)
    return any(graph.timed_region[0] <= line <= graph.timed_region[1] for line in lines)


def _outermost(source: SourceFile, site: Edge | Launch) -> int:
    if not site.call_lines:
        return site.offset
    data = source.text.encode()
    at = 0
    for _ in range(site.call_lines[0] - 1):
        at = data.find(b"\n", at) + 1
    line = data[at : data.find(b"\n", at)]
    return at + len(line) - len(line.lstrip())


def _plain(name: str) -> str:
    """A buffer's last component: ``b.partial`` and ``s->partial`` become ``partial``."""
    return name.replace("->", ".").split(".")[-1].strip("*[]")


def _role(buffer: Buffer) -> str:
    return buffer.role if buffer.role in ("in", "out", "inout", "scratch") else "scratch"


def _dtype(graph: CommGraph, name: str) -> str:
    for edge in graph.edges:
        if name in (edge.send, edge.recv) and edge.dtype in DTYPES:
            return DTYPES[edge.dtype]
    for kernel in graph.kernels:
        for launch in kernel.launches:
            for parameter, buffers in zip(kernel.parameters, launch.buffers, strict=False):
                kind = parameter.type.replace("const", "").replace("__restrict", "").replace("*", "").strip()
                if name in buffers and kind in _POINTED:
                    return _POINTED[kind]
    return "float32"


def _shapes(
    graph: CommGraph, used: Sequence[Buffer], names: Mapping[str, str], resolved: Names
) -> dict[str, str]:
    """Elements of every buffer: from its allocation, else from the counts of the calls that use it."""
    by_edges = _shapes_by_edges(graph, names, resolved.shape)
    found: dict[str, str] = {}
    for buffer in used:
        elements = _elements(buffer.bytes, _dtype(graph, buffer.name))
        shape = None
        if elements is not None:
            resolved.need(elements)
            shape = resolved.shape(elements)
        shape = shape or by_edges.get(buffer.name)
        if shape is None:
            raise UsageError(f"the size of buffer {buffer.name} is not found in the source", fix=_BY_HAND)
        found[buffer.name] = shape
    return found


def _elements(size: str | None, dtype: str) -> str | None:
    """A byte count as a count of elements: one factor is the element's size."""
    if size is None:
        return None
    factors = [one.strip() for one in size.split("*")]
    for one in factors:
        if one.startswith("sizeof") or one == str(_BYTES.get(dtype)):
            rest = list(factors)
            rest.remove(one)
            return " * ".join(rest) or "1"
    return None


def _shapes_by_edges(
    graph: CommGraph, names: Mapping[str, str], shape: Callable[[str], str | None]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for edge in graph.edges:
        count = shape(edge.count or "")
        if count is None or edge.op not in EXTENTS or edge.send_offset or edge.recv_offset:
            continue
        for side, extent in zip((edge.send, edge.recv), EXTENTS[edge.op], strict=True):
            if side is not None and side in names and extent:
                found.setdefault(side, extent.format(n=count if count.isalnum() else f"({count})"))
    return found


def _kept_names(source: SourceFile) -> frozenset[str]:
    """Names at file scope, which stay: types, constants, macros, device functions, pure helpers."""
    dropped = {one.name for one in _dropped(source)}
    found: set[str] = set()
    for node in source.reading.unit.top:
        for part in [
            node,
            *(node.children if node.kind in ("NAMESPACE", "ENUM_DECL", "LINKAGE_SPEC") else []),
        ]:
            if part.spelling and part.spelling not in dropped:
                found.add(part.spelling)
    found |= {
        child.spelling
        for child in source.reading.unit.root.children
        if child.kind == "MACRO_DEFINITION" and child.file in source.reading.own_files
    }
    return frozenset(found)


def _dropped(source: SourceFile) -> list[FunctionSpan]:
    """Host functions that run the program: main and whatever calls CUDA or NCCL."""
    calls = {one.function for one in source.all_calls} | {one.function for one in source.launches}
    kept = []
    for one in source.functions:
        if one.device or one.kernel or one.file != source.main:
            continue
        body = source.slice(one.body)
        if (
            one.name == "main"
            or one.name in calls
            or any(name.startswith(("cuda", "nccl", "MPI_")) for name in identifiers(body))
        ):
            kept.append(one)
    return kept


@dataclass
class _Writer:
    """Writes the step's statements, all on one stream: the program's order is an order that its streams
    allow."""

    source: SourceFile
    graph: CommGraph
    names: Names
    buffers: Mapping[str, str]

    def statements(self, sites: Sequence[Edge | Launch]) -> list[str]:
        lines: list[str] = []
        group: int | None = None
        loops: list[str] = []
        for site in sites:
            now = site.group if isinstance(site, Edge) else None
            wanted = self._headers(site)
            if loops and (wanted != loops or now != group or now is None):
                lines += _closed(len(loops))
                loops = []
            if group is not None and now != group:
                lines.append(_checked("ncclGroupEnd()"))
            if now is not None and now != group:
                lines.append(_checked("ncclGroupStart()"))
            if wanted != loops:
                lines += [f"{'  ' * depth}{one} {{" for depth, one in enumerate(wanted)]
            loops, group = wanted, now
            bound = {name for one in loops for name in identifiers(one)}
            written = [self._edge(site, bound)] if isinstance(site, Edge) else self._launch(site, bound)
            lines += ["  " * len(loops) + one for one in written]
        lines += _closed(len(loops))
        return [*lines, _checked("ncclGroupEnd()")] if group is not None else lines

    def _place(self, site: Edge | Launch) -> CallSpan | LaunchSpan | None:
        try:
            return self.source.call_at(site.file, site.offset)
        except KeyError:
            return None

    def _headers(self, site: Edge | Launch) -> list[str]:
        """Loops whose variable the call uses, from the outside in."""
        values = (
            [site.count, site.peer, site.send_offset, site.recv_offset]
            if isinstance(site, Edge)
            else site.args
        )
        used = set(identifiers(" ".join(str(one) for one in values)))
        found: list[str] = []
        for header in site.loops:
            variables = _loop_variables(header)
            if set(variables) & used:
                found.append(header)
                self.names.need(
                    header, bound=[*variables, *(name for one in found for name in _loop_variables(one))]
                )
        return found

    def _value(self, text: str | None, bound: set[str] | None = None) -> str:
        shown = text or "0"
        for long, short in self.buffers.items():
            shown = shown.replace(long, short)
        self.names.need(shown, bound={*(bound or ()), *self.buffers.values()})
        return shown

    def _edge(self, edge: Edge, bound: set[str]) -> str:
        place = self._place(edge)
        if edge.conditional and not (isinstance(place, CallSpan) and place.variable):
            raise UsageError(f"{self.source.path}:{edge.line}: this call is under a condition", fix=_BY_HAND)
        sides = [
            self._side(edge.send, edge.send_offset, bound),
            self._side(edge.recv, edge.recv_offset, bound),
        ]
        arguments = [one for one in sides if one]
        if edge.op in ("Broadcast",) and len(arguments) == 1:
            arguments *= 2
        arguments += [self._value(edge.count, bound), edge.dtype or "ncclFloat"]
        arguments += [edge.reduction] if edge.reduction else []
        arguments += [self._value(one, bound) for one in (edge.peer, edge.root) if one is not None]
        arguments += ["ctx->comm", "stream"]
        return _checked(f"nccl{edge.op}({', '.join(arguments)})")

    def _side(self, name: str | None, offset: str | None, bound: set[str]) -> str | None:
        if name is None:
            return None
        base = self.buffers.get(name, name)
        return f"{base} + {self._value(offset, bound)}" if offset else base

    def _launch(self, launch: Launch, bound: set[str]) -> list[str]:
        place = self._place(launch)
        if launch.conditional or not isinstance(place, LaunchSpan):
            raise UsageError(
                f"{self.source.path}:{launch.line}: this launch cannot be carried over", fix=_BY_HAND
            )
        callee = self.source.slice(place.callee, place.file) if place.via == "<<<>>>" else place.kernel
        sizes = [
            f"dim3({', '.join(self._value(one, bound) for one in size)})"
            if size
            else self._value(text, bound)
            for size, text in ((launch.grid_size, launch.grid), (launch.block_size, launch.block))
        ]
        configuration = ", ".join([*sizes, self._value(launch.shared, bound), "stream"])
        arguments = ", ".join(self._value(one, bound) for one in launch.args)
        return [
            f"{callee}<<<{configuration}>>>({arguments});",
            "if (cudaError_t failed = cudaGetLastError()) return failed;",
        ]


def _closed(depth: int) -> list[str]:
    """The closing braces of nested loops, from the inside out."""
    return ["  " * level + "}" for level in reversed(range(depth))]


def _checked(call: str) -> str:
    return f"if (ncclResult_t failed = {call}) return 1000 + failed;"


def _loop_variables(header: str) -> list[str]:
    """The variable that a for loop counts with."""
    inside = header.partition("(")[2].partition(";")[0].partition("=")[0]
    return identifiers(inside)[-1:] if header.startswith("for") else identifiers(inside)


def _host_text(
    source: SourceFile,
    resolved: Names,
    names: Mapping[str, str],
    listed: Sequence[BufferRow],
    statements: Sequence[str],
) -> str:
    edits = [Edit(one.comment, source.after(one), "") for one in _dropped(source)]
    for node in source.reading.unit.top:
        if (
            node.kind == "INCLUSION_DIRECTIVE"
            and node.file == source.main
            and node.spelling in ("mpi.h", "cuco.h")
        ):
            edits.append(Edit.delete(node.expansion))
    parts = ["#include <cstring>\n", '#include "cuco.h"\n']
    edits.append(Edit.insert(source.after_includes, "".join(parts)))
    lines = [
        f'{_C_TYPES[dtype]} *{name} = ({_C_TYPES[dtype]} *)find_buffer(ctx, "{name}")->ptr;'
        for name, dtype, _, _ in listed
    ]
    lines += [
        f"const int {name} = {'ctx->rank' if meaning == 'rank' else 'ctx->nranks'};"
        for name, meaning in resolved.ranks.items()
    ]
    lines += [f'const int64_t {name} = find_param(ctx, "{name}");' for name in resolved.parameters]
    lines += list(resolved.declarations.values())
    text = apply(source.text, edits).rstrip() + "\n"
    finders = FIND_BUFFER + (FIND_PARAM if resolved.parameters else "")
    return text + "\n" + finders + launch_function([*lines, *statements])


def _step(
    source: SourceFile,
    graph: CommGraph,
    host: str,
    parameters: dict[str, int | None],
    listed: Sequence[BufferRow],
    names: Mapping[str, str],
) -> Step:
    edges = list(graph.edges)
    first = edges[0]
    send, recv = names.get(first.send or "", ""), names.get(first.recv or "", "")
    bytes_of = {name: _BYTES.get(dtype, 1) for name, dtype, _, _ in listed}
    shape = {name: " * ".join(extents) for name, _, _, extents in listed}
    moved = f"{bytes_of.get(recv or send, 4)} * ({shape.get(recv or send, '0')})"
    rows = any(name == recv and len(extents) > 1 for name, _, _, extents in listed)
    headers = {}
    for file in source.reading.own_files - {source.main}:
        headers[Path(file).name] = source.reading.unit.bytes_of(file).decode("utf-8", "replace")
    return Step(
        host=host,
        ops=[edge.op for edge in edges],
        parameters=parameters,
        buffers=listed,
        reference=reference_of(graph, edges, send, recv, rows),
        moved=moved,
        exact=first.op in ("AllGather", "AlltoAll", "Broadcast", "Send", "Recv")
        and not any(kernel.launches for kernel in graph.kernels),
        headers=headers,
    )


__all__ = ["Step", "existing_step", "extracted_step"]
