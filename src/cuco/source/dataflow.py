"""What flows between kernels and communication through buffers, what buffers are for, and which region is
timed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cuco.source.trail import Timing, Trail
from cuco.source.values import Event, Memory

Dependency = tuple[str, str, str]


@dataclass
class _State:
    """Last writers of every buffer: name of the writer, and the group it wrote in."""

    writers: dict[Memory, list[Event]] = field(default_factory=dict)
    found: dict[Dependency, None] = field(default_factory=dict)


def dependencies(events: Sequence[Event]) -> tuple[list[Dependency], list[Dependency]]:
    """(last writer, reader, buffer) in program order, and those that exist only from one turn of a loop to
    the next."""
    state = _State()
    for event in events:
        _apply(state, event)
    plain = dict(state.found)
    again = _State()
    for event in events:
        _apply(again, event)
    again.found.clear()
    for event in events:  # a second turn: only what loops carry is new
        _apply(again, event, second_turn=True)
    return list(plain), [one for one in again.found if one not in plain]


def _apply(state: _State, event: Event, *, second_turn: bool = False) -> None:
    if event.kind not in ("launch", "edge", "copy", "fill", "upload", "download"):
        return
    sources: list[Event] = []
    for memory in event.reads:
        for writer in state.writers.get(memory, []):
            if second_turn and not set(writer.loops) & set(event.loops):
                continue
            if (
                event.kind in ("launch", "edge")
                and not _same_group(writer, event)
                and (writer.node != event.node or second_turn)
            ):
                state.found.setdefault((writer.node, event.node, memory.name), None)
            sources.append(writer)
    passes = event.kind in ("copy", "upload", "fill", "download")
    for memory in event.writes:
        old = state.writers.get(memory, [])
        keep = [] if event.whole and not event.conditional else old
        if not event.whole or event.conditional:
            keep = [writer for writer in old if writer is not event]
        elif event.group is not None:
            keep = [writer for writer in old if writer.group == event.group]
        added = sources if passes else [event]
        state.writers[memory] = [*keep, *(writer for writer in added if writer not in keep)]


def _same_group(writer: Event, reader: Event) -> bool:
    """Calls of one group run at the same time: none of them reads what another receives."""
    return writer.group is not None and writer.group == reader.group


def roles(events: Sequence[Event], memories: Iterable[Memory]) -> dict[Memory, str]:
    """What each buffer is for, by how kernels and communication use it and whether the host fetches it."""
    first: dict[Memory, str] = {}
    last: dict[Memory, str] = {}
    fetched: set[Memory] = set()
    uploaded: set[Memory] = set()
    for event in events:
        if event.kind == "download":
            fetched.update(event.reads)
        if event.kind == "upload":
            uploaded.update(event.writes)
        if event.kind == "fill":
            for memory in event.writes:
                first.setdefault(memory, "write")
                last[memory] = "write"
        if event.kind not in ("launch", "edge", "copy"):
            continue
        for memory in event.reads:
            first.setdefault(memory, "read")
            last[memory] = "read"
        for memory in event.writes:
            first.setdefault(memory, "write")
            last[memory] = "write"
    found: dict[Memory, str] = {}
    for memory in memories:
        if memory.role:
            found[memory] = memory.role
        elif memory not in first:
            found[memory] = "unknown"
        else:
            takes = first[memory] == "read" or memory in uploaded
            gives = memory in fetched or last[memory] == "write"
            written = any(
                memory in event.writes for event in events if event.kind in ("launch", "edge", "copy")
            )
            gives = gives and written
            found[memory] = "inout" if takes and gives else "in" if takes else "out" if gives else "scratch"
    return found


def timed_region(trail: Trail, main: str, launch_body: tuple[int, int] | None) -> tuple[int, int] | None:
    """First and last line of what is timed: the pair of clock readings or event records with most work
    between.

    A workload's timed region is the body of cuco_launch.
    """
    if launch_body is not None:
        return launch_body
    best: tuple[int, int, int] | None = None
    for first, second in _pairs(trail):
        work = sum(
            1 for event in trail.events[first.position : second.position] if event.kind in ("launch", "edge")
        )
        if work and first.file == main and (best is None or work > best[0]):
            best = (work, first.line, second.line)
    return (best[1], best[2]) if best is not None and best[1] <= best[2] else None


def _pairs(trail: Trail) -> list[tuple[Timing, Timing]]:
    records = [one for one in trail.timings if one.kind == "record"]
    pairs = []
    for start, stop in trail.elapsed:
        starts = [one for one in records if one.key == start]
        stops = [one for one in records if one.key == stop]
        pairs += [
            (one, two)
            for one in starts
            for two in stops
            if one.position <= two.position and one.root == two.root
        ]
    clocks = [one for one in trail.timings if one.kind == "clock"]
    pairs += [
        (one, two)
        for one, two in zip(clocks, clocks[1:], strict=False)
        if one.key == two.key and one.root == two.root
    ]
    return pairs
