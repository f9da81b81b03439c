"""What a walk over host code records: communication, launches, events in program order, clock readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cuco.source.clang_ast import Node, Unit, render
from cuco.source.expressions import Expressions
from cuco.source.graph import Edge, Launch
from cuco.source.values import Event, Value


@dataclass(frozen=True, eq=False)
class LaunchSite:
    """A launch as walked: the kernel's declaration (None: unknown), the launch, per argument what it
    leads to, and the sizes that are constants."""

    kernel: Node | None
    name: str
    launch: Launch
    values: tuple[Value, ...]
    event: int
    grid: tuple[int | None, ...] = ()
    block: tuple[int | None, ...] = ()
    node: Node | None = None


@dataclass
class Timing:
    """A clock reading or an event record: ``key`` tells the variable or event, ``position`` its place among
    events."""

    kind: str
    key: str
    line: int
    position: int
    root: str
    file: str = ""


@dataclass
class Trail:
    """Everything recorded along the way."""

    edges: list[Edge] = field(default_factory=list)
    launches: list[LaunchSite] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    elapsed: list[tuple[str, str]] = field(default_factory=list)
    comms: dict[str, None] = field(default_factory=dict)
    streams: dict[str, None] = field(default_factory=dict)
    windows: list[tuple[Node, Value, Node | None]] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """Lengths of a trail, to tell what came after."""

    edges: int
    launches: int
    events: int
    timings: int


class Recorder(Expressions):
    """Expressions with a trail: where the walk is (loops, conditions, groups), and how arguments are
    shown."""

    def __init__(self, unit: Unit, own_files: frozenset[str], buffer_names: list[str]) -> None:
        super().__init__(buffer_names)
        self.unit, self.own_files = unit, own_files
        self.trail = Trail()
        self.entered: set[str] = set()
        self.frames = self.calls = self.conditions = self.loop_count = 0
        self.loops: list[int] = []
        self.loop_heads: list[str] = []
        self.root = self.function_name = ""
        self._group_depth, self._groups = 0, 0
        self._group: int | None = None
        self._counts: dict[str, int] = {}

    def _event(self, event: Event) -> int:
        self.trail.events.append(
            replace(
                event,
                loops=tuple(self.loops),
                conditional=bool(self.conditions),
                group=self._group,
                root=self.root,
            )
        )
        return len(self.trail.events) - 1

    def _shown(self, position: int | None, nodes: Sequence[Node], values: Sequence[Value]) -> str | None:
        """An argument's text: as written, or what a function pointer's caller had."""
        if position is None or position >= len(values):
            return None
        value = values[position]
        if position >= len(nodes):
            return value.text
        node = nodes[position]
        handle = node.is_pointer and node.strip().kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR")
        if handle and not value.buffers and value.text:
            return value.text
        return self._argument_text(node, node.parent or node)

    def _argument_text(self, node: Node, call: Node) -> str:
        if (
            node.span[0] == node.span[1]
            or (node.span[0] == call.span[0] and node.strip().kind != "CALL_EXPR")
            or (node.span == call.span)
        ):
            return render(node)
        return self.text(node)

    def _constant(self, position: int | None, nodes: Sequence[Node], values: Sequence[Value]) -> str | None:
        """A data type or reduction: the enumerator where it is known, else the text."""
        if position is not None and position < len(values) and values[position].constant:
            return values[position].constant
        return self._shown(position, nodes, values)

    def _stream(self, position: int | None, nodes: Sequence[Node], values: Sequence[Value]) -> str:
        shown = self._shown(position, nodes, values)
        return "0" if shown in (None, "", "nullptr", "NULL", "cudaStream_t{}", "__null") else str(shown)

    def mark(self) -> Mark:
        trail = self.trail
        return Mark(len(trail.edges), len(trail.launches), len(trail.events), len(trail.timings))

    def fold(self, start: Mark, middle: Mark) -> None:
        """Two turns of a loop as one: what the second turn reached is added to the first one's records."""
        trail = self.trail
        if len(trail.events) - middle.events == middle.events - start.events:
            for index in range(start.events, middle.events):
                one, two = trail.events[index], trail.events[index + middle.events - start.events]
                same = set(one.writes) == set(two.writes)
                trail.events[index] = replace(
                    one,
                    reads=tuple(dict.fromkeys((*one.reads, *two.reads))),
                    writes=tuple(dict.fromkeys((*one.writes, *two.writes))),
                    whole=one.whole and same,
                )
        if len(trail.launches) - middle.launches == middle.launches - start.launches:
            for index in range(start.launches, middle.launches):
                one_launch = trail.launches[index]
                two_launch = trail.launches[index + middle.launches - start.launches]
                pairs = zip(one_launch.values, two_launch.values, strict=True)
                values = tuple(_either(first, second) for first, second in pairs)
                names = tuple(tuple(memory.name for memory in value.reachable) for value in values)
                launch = one_launch.launch.model_copy(update={"buffers": names})
                trail.launches[index] = replace(one_launch, values=values, launch=launch)
        if len(trail.edges) - middle.edges == middle.edges - start.edges:
            for index in range(start.edges, middle.edges):
                first_edge, second_edge = trail.edges[index], trail.edges[index + middle.edges - start.edges]
                trail.edges[index] = first_edge.model_copy(
                    update={
                        "send": _both_names(first_edge.send, second_edge.send),
                        "recv": _both_names(first_edge.recv, second_edge.recv),
                    }
                )
        del trail.edges[middle.edges :], trail.launches[middle.launches :]
        del trail.events[middle.events :], trail.timings[middle.timings :]


def _either(first: Value, second: Value) -> Value:
    if first.buffers == second.buffers:
        return first
    buffers = tuple(dict.fromkeys((*first.buffers, *second.buffers)))
    return replace(first, buffers=buffers, shifted=first.shifted or second.shifted)


def _both_names(first: str | None, second: str | None) -> str | None:
    names = [*(first or "").split("|"), *(second or "").split("|")]
    return "|".join(dict.fromkeys(name for name in names if name)) or None


def loop_head(text: str) -> str:
    """``for (...)`` or ``while (...)`` at the beginning of a loop's text; of a do loop its first word."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return text[: index + 1] if text.startswith(("for", "while")) else "do"
    return ""
