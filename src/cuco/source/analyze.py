"""``analyze``: a CUDA and NCCL source to its CommGraph."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from cuco.source.clang_ast import FUNCTIONS, RECORDS, Node
from cuco.source.dataflow import dependencies, roles, timed_region
from cuco.source.device_access import ATOMIC, READ, REMOTE, UNKNOWN, WRITE, DeviceAnalysis
from cuco.source.graph import Access, Buffer, CommGraph, Kernel, Parameter
from cuco.source.reading import Headers, Reading, read
from cuco.source.trail import LaunchSite
from cuco.source.values import CAPTURED, Event, Memory
from cuco.source.walker import Walker

_ENTRY_ORDER = ("cuco_prepare", "cuco_launch", "cuco_finish", "main")


def analyze(
    path: str | Path,
    include_dirs: Sequence[str | Path] | None = None,
    *,
    defines: Sequence[str] = (),
    text: str | None = None,
) -> CommGraph:
    """Read a ``.cu`` file: kernels and launches, NCCL calls, buffers, what flows between them, what is timed.

    ``include_dirs`` replaces the toolchain's header folders (then libclang alone judges the syntax).
    ``defines`` are macros as ``NAME=VALUE``. ``text`` replaces the file's content.
    Raises UsageError (exit 2) for a file that cannot be read, CompileError (exit 1) with the compiler's line
    for a source that does not compile.
    """
    headers = None if include_dirs is None else Headers(tuple(Path(one) for one in include_dirs))
    return graph_of(read(path, headers, defines=defines, text=text))


def graph_of(reading: Reading) -> CommGraph:
    """The CommGraph of a parsed source."""
    return Analysis(reading).graph()


class Analysis:
    """One reading on its way to a graph."""

    def __init__(self, reading: Reading) -> None:
        self.reading, self.unit = reading, reading.unit
        self.declared = _declared_buffers(reading.path)
        self.walker = Walker(reading.unit, reading.own_files, list(self.declared))
        self.functions = own_functions(reading)
        self.device = DeviceAnalysis()
        self.hosts = [one for one in self.functions if not is_device(one)]
        self.entries: list[Node] = []

    def walk(self) -> Walker:
        """Walk the host code from its entry points; once."""
        if not self.entries:
            self.entries = self._entries(self.hosts)
            for function in self.entries:
                self.walker.enter(function)
        return self.walker

    def graph(self) -> CommGraph:
        trail = self.walk().trail
        kernels, launched = self._kernels()
        events = [launched.get(index, event) for index, event in enumerate(trail.events)]
        plain, carried = dependencies(events)
        bodies = [site.kernel.definition for site in trail.launches if site.kernel is not None]
        device_calls = _device_calls(
            device_closure(self.functions, [one for one in bodies if one is not None])
        )
        return CommGraph(
            kernels=kernels,
            edges=tuple(trail.edges),
            buffers=self._buffers(events),
            dependencies=tuple(plain),
            timed_region=timed_region(trail, self.unit.main, self._launch_body(self.hosts)),
            carried=tuple(carried),
            device_calls=device_calls,
            communicators=tuple(one for one in trail.comms if one),
            streams=tuple(one for one in trail.streams if one),
            entry_points=tuple(one.spelling for one in self.entries),
            notes=tuple(trail.notes),
        )

    # ---- entry points ----------------------------------------------------------------------------

    def _entries(self, hosts: list[Node]) -> list[Node]:
        """Functions that nobody in the file calls, those of cuco.h and main first; then whatever stays
        unreached."""
        used = {
            part.referenced.place
            for one in hosts
            if one.body is not None
            for part in one.body.walk()
            if part.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "CALL_EXPR")
            and part.referenced is not None
            and part.referenced.place != one.place
        }
        named = sorted(
            (one for one in hosts if one.spelling in _ENTRY_ORDER),
            key=lambda one: _ENTRY_ORDER.index(one.spelling),
        )
        free = [
            one
            for one in hosts
            if one not in named
            and one.place not in used
            and one.kind == "FUNCTION_DECL"
            and one.file == self.unit.main
        ]
        chosen = named + [one for one in free if _does_something(one)]
        return chosen + self._unreached(hosts, chosen)

    def _unreached(self, hosts: list[Node], chosen: list[Node]) -> list[Node]:
        """Functions with NCCL calls or launches that a trial walk from the chosen entries does not come
        to."""
        trial = Walker(self.unit, self.reading.own_files, list(self.declared))
        for function in chosen:
            trial.enter(function)
        left = []
        for one in hosts:
            if (
                one.place not in trial.entered
                and one not in chosen
                and one.file == self.unit.main
                and (
                    one.kind in ("FUNCTION_DECL", "CXX_METHOD", "FUNCTION_TEMPLATE") and _does_something(one)
                )
            ):
                left.append(one)
                trial.enter(one)
        return left

    def _launch_body(self, hosts: list[Node]) -> tuple[int, int] | None:
        for one in hosts:
            if one.spelling == "cuco_launch" and one.body is not None and one.body.children:
                statements = one.body.children
                return statements[0].line, statements[-1].end_line
        return None

    # ---- kernels ---------------------------------------------------------------------------------

    def _kernels(self) -> tuple[tuple[Kernel, ...], dict[int, Event]]:
        """Kernels with their launches, and the launch events with what they read and write."""
        sites: dict[str, list[LaunchSite]] = {}
        nodes: dict[str, Node] = {}
        for one in self.functions:
            if is_kernel(one):
                nodes.setdefault(one.place, one)
                sites.setdefault(one.place, [])
        unknown: dict[str, list[LaunchSite]] = {}
        events: dict[int, Event] = {}
        for site in self.walker.trail.launches:
            body = site.kernel.definition if site.kernel is not None else None
            events[site.event] = self._launch_event(site, body)
            if site.kernel is None:
                unknown.setdefault(site.name, []).append(site)
                continue
            place = (body or site.kernel).place
            nodes[place] = body or site.kernel
            sites.setdefault(place, []).append(site)
        kernels = [self._kernel(nodes[place], sites[place]) for place in sites]
        kernels += [
            Kernel(
                name=name,
                line=found[0].launch.line,
                launches=tuple(one.launch for one in found),
                resolved=False,
            )
            for name, found in unknown.items()
        ]
        return tuple(
            sorted(kernels, key=lambda one: (one.file != self.unit.main, one.file, one.line))
        ), events

    def _kernel(self, node: Node, sites: list[LaunchSite]) -> Kernel:
        accesses = self.device.summary(node).found
        parameters = []
        for position, parameter in enumerate(node.parameters):
            marks = _marks(accesses, position, "")
            if parameter.cursor.type.get_canonical().kind.name in _SCALARS:
                marks = set()
            parameters.append(
                Parameter(
                    name=parameter.spelling,
                    type=parameter.type,
                    access=_access(marks),
                    atomic=ATOMIC in marks,
                    remote=REMOTE in marks,
                )
            )
        return Kernel(
            name=node.spelling,
            line=node.name_place[1],
            end_line=node.end_line,
            file=node.file,
            launches=tuple(site.launch for site in sites),
            parameters=tuple(parameters),
            launch_bounds=launch_bounds(node),
            template=_is_template(node),
        )

    def _launch_event(self, site: LaunchSite, body: Node | None) -> Event:
        event = self.walker.trail.events[site.event]
        accesses = self.device.summary(body).found if body is not None else {}
        reads: dict[Memory, None] = {}
        writes: dict[Memory, None] = {}
        whole = True
        for position, value in enumerate(site.values):
            for path, held in (("", value), *value.fields):
                marks = _marks(accesses, position, path)
                for memory in held.buffers:
                    if body is None or marks & {READ, UNKNOWN}:
                        reads.setdefault(memory)
                    if body is None or marks & {WRITE, UNKNOWN}:
                        writes.setdefault(memory)
                        whole = whole and not held.shifted and not marks & {ATOMIC, READ}
        return Event(
            event.kind,
            event.node,
            event.line,
            tuple(reads),
            tuple(writes),
            whole and not event.loops,
            event.conditional,
            event.group,
            event.loops,
            file=event.file,
            root=event.root,
        )

    # ---- buffers ---------------------------------------------------------------------------------

    def _buffers(self, events: list[Event]) -> tuple[Buffer, ...]:
        used = {memory for event in events for memory in (*event.reads, *event.writes)}
        kept = [
            memory
            for memory in self.walker.memories
            if memory in used or (memory.device and memory.allocator not in ("param", "unknown", "cuco"))
        ]
        for memory in kept:
            if memory.allocator == "cuco" and memory.name in self.declared:
                memory.role, memory.bytes = self.declared[memory.name]
        found = roles(events, kept)
        merged: dict[str, Buffer] = {}
        for memory in kept:
            if memory.name not in merged:
                merged[memory.name] = Buffer(
                    name=memory.name,
                    allocator=memory.allocator,
                    bytes=memory.bytes,
                    role=found[memory],
                    line=memory.line,
                    windows=tuple(memory.windows),
                )
        return tuple(merged.values())


# ---- small readings of declarations --------------------------------------------------------------


def own_functions(reading: Reading) -> list[Node]:
    """Functions, methods and function templates with bodies that the user wrote, in source order."""
    found: list[Node] = []

    def collect(nodes: list[Node]) -> None:
        for child in nodes:
            if child.kind in FUNCTIONS:
                if child.body is not None:
                    found.append(child)
            elif child.kind in RECORDS or child.kind in ("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"):
                collect(child.children)

    collect(reading.unit.top)
    return found


def is_kernel(function: Node) -> bool:
    """Whether a function is ``__global__``."""
    return any(child.kind == "CUDAGLOBAL_ATTR" for child in function.children)


def is_device(function: Node) -> bool:
    """Whether a function runs on the device only."""
    kinds = {child.kind for child in function.children}
    return "CUDAGLOBAL_ATTR" in kinds or ("CUDADEVICE_ATTR" in kinds and "CUDAHOST_ATTR" not in kinds)


def launch_bounds(function: Node) -> tuple[str, ...]:
    """The arguments of ``__launch_bounds__`` as written."""
    for child in function.children:
        if child.kind == "UNEXPOSED_ATTR" and child.expansion[1] > child.expansion[0]:
            start, end = child.expansion
            written = child.unit.slice(child.file, start, end)
            if written.startswith("__launch_bounds__") and "(" in written:
                return tuple(
                    " ".join(one.split()) for one in split_arguments(written[written.index("(") + 1 : -1])
                )
    return ()


def split_arguments(text: str) -> list[str]:
    """A list of arguments at its outer commas."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [one.strip() for one in [*parts, text[start:]] if one.strip()]


def _does_something(function: Node) -> bool:
    """Whether a function launches or calls anything of NCCL or CUDA."""
    for part in function.walk():
        if part.kind == "CALL_EXPR" and part.spelling.startswith(("nccl", "pnccl", "cuda", "__cudaPush")):
            return True
        if part.kind == "CALL_EXPR" and part.canonical_type == "ncclResult_t":
            return True
        if part.kind == "OVERLOADED_DECL_REF" and part.spelling.startswith("nccl"):
            return True
    return False


def _is_template(function: Node) -> bool:
    return function.kind == "FUNCTION_TEMPLATE" or bool(function.cursor.get_num_template_arguments() > 0)


def _marks(accesses: dict[tuple[int, str], set[str]], position: int, path: str) -> set[str]:
    """What a kernel does through one parameter, or through one field of it."""
    if path == CAPTURED:
        return {UNKNOWN}
    return set().union(
        *(
            what
            for (at, below), what in accesses.items()
            if at == position and (not path or not below or below == path or below.startswith(f"{path}."))
        ),
        set(),
    )


def _access(marks: set[str]) -> Access:
    if UNKNOWN in marks:
        return "unknown"
    if READ in marks and WRITE in marks:
        return "read-write"
    return "write" if WRITE in marks else "read" if READ in marks else "none"


def device_closure(functions: list[Node], launched: Iterable[Node]) -> list[Node]:
    """Kernels and the device functions that they call, instantiated where clang has made the instance."""
    queue = [*launched, *(one for one in functions if is_kernel(one))]
    found: dict[str, Node] = {}
    while queue:
        one = queue.pop(0)
        if one.key in found or one.body is None:
            continue
        if one.kind == "FUNCTION_TEMPLATE" and any(other.place == one.place for other in found.values()):
            continue
        found[one.key] = one
        for part in one.walk():
            target = (
                part.referenced.definition
                if part.kind == "CALL_EXPR" and part.referenced is not None
                else None
            )
            if target is not None and target.file in {other.file for other in functions}:
                queue.append(target)
    return list(found.values())


def _device_calls(functions: list[Node]) -> dict[str, int]:
    """Calls of NCCL's device API in device code, by name; each place in the source counts once."""
    places: dict[tuple[str, str], str] = {}
    for function in functions:
        for part in function.walk():
            declared = part.referenced if part.kind == "CALL_EXPR" else None
            if declared is None:
                continue
            owner = str(declared.cursor.semantic_parent.spelling) if declared.kind != "FUNCTION_DECL" else ""
            if part.spelling.startswith("nccl") or owner.startswith("nccl"):
                name = "ncclGin" if part.spelling.startswith("ncclGin_Backend") else part.spelling
                places[(f"{part.file}:{part.span}", name)] = name
    names = sorted(places.values())
    return {name: names.count(name) for name in dict.fromkeys(names)}


def _declared_buffers(path: Path) -> dict[str, tuple[str, str]]:
    """Buffers of the workload.toml beside the source: name to role and size expression in bytes, in its
    order."""
    try:
        data = tomllib.loads((path.parent / "workload.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for one in data.get("buffers", []):
        if not isinstance(one, dict) or "name" not in one:
            continue
        shape = one.get("shape", [])
        size = " * ".join([f"({part})" for part in shape] + [str(_BYTES.get(str(one.get("dtype")), 1))])
        found[str(one["name"])] = (str(one.get("role", "unknown")), size)
    return found


_BYTES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int8": 1,
    "uint8": 1,
    "float8_e4m3": 1,
    "float8_e5m2": 1,
}
_SCALARS = frozenset(
    {
        "BOOL",
        "CHAR_S",
        "SCHAR",
        "UCHAR",
        "SHORT",
        "USHORT",
        "INT",
        "UINT",
        "LONG",
        "ULONG",
        "LONGLONG",
        "ULONGLONG",
        "FLOAT",
        "DOUBLE",
        "ENUM",
    }
)
