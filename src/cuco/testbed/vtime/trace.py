"""Reads trace schema v1 (docs/trace.md): what a run did, with counted work and synchronisation edges.

The reader keeps the trace as it is (no times in it); ``cost`` turns phases into demands, ``replay`` into
times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuco.errors import EXIT_INTERNAL, CucoError

Event = tuple[Any, ...]  # (position, kind, *arguments)


@dataclass(frozen=True, slots=True)
class Strand:
    """One thread that synchronises inside a phase: its progress in the phase and its events by position."""

    thread: int
    total: float
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """What a CTA did between two block-wide joins. ``remote``: (peer, bytes written, bytes read)."""

    work: tuple[float, ...]
    remote: tuple[tuple[int, float, float], ...] = ()
    max_progress: float = 0.0
    strands: tuple[Strand, ...] = ()

    @property
    def plain(self) -> bool:
        """No remote traffic and no synchronisation: may be joined with its neighbours."""
        return not self.remote and not self.strands


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as compiled: registers per thread, static shared bytes."""

    id: int
    name: str
    registers: int = 32
    shared: int = 0


@dataclass(frozen=True, slots=True)
class HostOp:
    """One entry of a rank's host timeline; ``args`` are its fields by the schema's names."""

    op: str
    stream: int = 0
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel launch and its CTAs' phases, as indices into ``Trace.phases``."""

    id: int
    rank: int
    kernel: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    priority: int
    footprint: tuple[float, float] | None = None  # unique global bytes read, written

    @property
    def threads(self) -> int:
        """Threads per CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True, slots=True)
class NicOp:
    """One device-initiated network operation; signal, counter and done are (word, delta)."""

    id: int
    src: int
    dst: int
    ctx: int
    kind: str
    bytes: float
    signal: tuple[int, int] | None = None
    counter: tuple[int, int] | None = None
    done: tuple[int, int] | None = None
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A synchronisation word: where it lives and what to call it."""

    id: int
    rank: int
    name: str


@dataclass
class Trace:
    """A whole trace. ``ctas[launch][i]`` are the phase indices of CTA i."""

    ranks: int
    lsa_team: int
    classes: tuple[str, ...]
    sliced: bool = False
    kernels: dict[int, Kernel] = field(default_factory=dict)
    hosts: list[list[HostOp]] = field(default_factory=list)
    launches: dict[int, Launch] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    ctas: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    nic: dict[int, NicOp] = field(default_factory=dict)
    words: dict[int, Word] = field(default_factory=dict)
    known: dict[Phase, int] = field(default_factory=dict, repr=False)  # phases that were seen already

    def copy(self, **changes: Any) -> Trace:
        """A copy with some fields replaced (the others are shared)."""
        return replace(self, **changes)


class TraceError(CucoError):
    """A trace that does not follow the schema: a fault of CUCo, not of the user."""

    exit_code = EXIT_INTERNAL


def read_trace(path: str | Path) -> Trace:
    """Reads a trace file (JSON lines). TraceError names the line that does not follow the schema."""
    with open(path, encoding="utf-8") as lines:
        return parse_trace(lines, str(path))


def parse_trace(lines: Iterable[str], name: str = "trace") -> Trace:
    """A trace from its lines, see read_trace."""
    records = _records(lines, name)
    try:
        number, header = next(records)
    except StopIteration:
        raise TraceError(f"{name} is empty") from None
    if header.get("trace") != 1:
        raise TraceError(f"{name} line {number}: not a trace of schema version 1")
    trace = Trace(
        ranks=int(header["ranks"]),
        lsa_team=int(header.get("lsa_team", header["ranks"])),
        classes=tuple(header.get("classes", ())),
        sliced=bool(header.get("sliced", False)),
    )
    trace.hosts = [[] for _ in range(trace.ranks)]
    for item in header.get("kernels", ()):
        _add_kernel(trace, item)
    shared: dict[int, int] = {}
    for number, record in records:
        try:
            _add(trace, record, shared)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            what = f"{type(error).__name__} {error}"
            raise TraceError(f"{name} line {number} does not follow trace schema 1: {what}") from error
    return trace


def _records(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise TraceError(f"{name} line {number} is not JSON: {error}") from error


def _add_kernel(trace: Trace, item: dict[str, Any]) -> None:
    kernel = Kernel(
        item["id"], item.get("name", str(item["id"])), int(item.get("regs") or 32), int(item.get("smem") or 0)
    )
    trace.kernels[kernel.id] = kernel


def _add(trace: Trace, record: dict[str, Any], shared: dict[int, int]) -> None:
    if "h" in record:
        _add_host(trace, record)
    elif "c" in record:
        launch, index = record["c"]
        entries = tuple(_phase_index(trace, item, shared) for item in record["p"])
        rows = trace.ctas.setdefault(launch, [])
        while len(rows) <= index:
            rows.append(())
        rows[index] = entries
    elif "ph" in record:
        shared[record["ph"]] = _new_phase(trace, record)
    elif "n" in record:
        trace.nic[record["n"]] = NicOp(
            id=record["n"],
            src=record["src"],
            dst=record["dst"],
            ctx=record.get("ctx", 0),
            kind=record["kind"],
            bytes=float(record.get("bytes", 0)),
            signal=_pair(record.get("sig")),
            counter=_pair(record.get("ctr")),
            done=_pair(record.get("done")),
            strong=bool(record.get("strong", False)),
        )
    elif "word" in record:
        trace.words[record["word"]] = Word(record["word"], record.get("rank", 0), record.get("name", ""))
    elif "set" in record:
        return  # read and write sets are no business of time
    elif "kernel" in record and "id" in record["kernel"]:
        _add_kernel(trace, record["kernel"])
    else:
        raise ValueError(f"unknown record with keys {sorted(record)}")


def _pair(value: Any) -> tuple[int, int] | None:
    return None if value is None else (int(value[0]), int(value[1]))


def _add_host(trace: Trace, record: dict[str, Any]) -> None:
    rank = record["h"]
    args = {key: value for key, value in record.items() if key not in ("h", "op", "stream")}
    stream = int(record.get("stream") or 0)
    if record["op"] == "launch":
        unique = record.get("unique")
        trace.launches[record["id"]] = Launch(
            id=record["id"], rank=rank, kernel=record["kernel"], grid=_three(record["grid"]),
            block=_three(record["block"]), shared=int(record.get("smem") or 0),
            priority=int(record.get("priority") or 0),
            footprint=(float(unique[0]), float(unique[1])) if unique else None,
        )  # fmt: skip
    trace.hosts[rank].append(HostOp(record["op"], stream, args))


def _three(value: Any) -> tuple[int, int, int]:
    items = [int(item) for item in value] + [1, 1, 1]
    return (items[0], items[1], items[2])


def _phase_index(trace: Trace, item: Any, shared: dict[int, int]) -> int:
    return shared[item] if isinstance(item, int) else _new_phase(trace, item)


def _new_phase(trace: Trace, item: dict[str, Any]) -> int:
    strands = []
    for thread, total, events in item.get("s", ()):
        strands.append(Strand(thread, float(total), tuple(tuple(event) for event in events)))
    phase = Phase(
        work=tuple(float(value) for value in item["w"]),
        remote=tuple((int(p), float(w), float(r)) for p, w, r in item.get("r", ()) if w or r),
        max_progress=float(item.get("mp", 0)),
        strands=tuple(strands),
    )
    found = trace.known.setdefault(phase, len(trace.phases))
    if found == len(trace.phases):
        trace.phases.append(phase)
    return found
