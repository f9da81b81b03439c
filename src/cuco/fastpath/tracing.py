"""Traced runs of the host-driven program: which kernel produces what an exchange sends, and which CTA which
bytes.

The program runs in the emulator with every memory access observed (hooks variant), at three small sizes and
with two data sets, and ``fit_map`` looks for a formula that holds in all of them (design 8, trace-guided
fusion)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuco.errors import CucoError
from cuco.propose.builtin.exchange import Exchange, exchanges
from cuco.propose.builtin.fusion import MIN_SIZES, WriteSample, fit_map
from cuco.propose.builtin.source_map import Producer
from cuco.source import CommGraph
from cuco.source.edit import SourceFile
from cuco.testbed.build import build_candidate
from cuco.testbed.emulator import Job, Segment, StepPlan, run
from cuco.testbed.vtime.machine import Machine
from cuco.verify.runs import machine_limits
from cuco.workload import Workload, run_secret

Params = Mapping[str, int | float]

#: The size that samples start from; seeds choose the data.
SIZE = "tiny"
SEEDS = (1, 2)
ONE_SOURCE = ("AllGather", "Broadcast", "Send")


@dataclass
class Launched:
    """One traced launch: what every CTA wrote, per buffer, in bytes from the buffer's start."""

    kernel: str
    rank: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    writes: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Sent:
    """One traced NCCL call that sends: ``bytes`` of ``buffer`` from ``offset``, after ``launches`` of its
    rank."""

    rank: int
    op: str
    buffer: str
    offset: int
    bytes: int
    after: int | None


@dataclass(frozen=True)
class Found:
    """What tracing found: producers and the bytes of a transfer at the optimised size, per leading edge id;
    ``notes`` say why an exchange has no producer."""

    producers: dict[str, Producer]
    transfer_bytes: dict[str, int]
    notes: dict[str, str]


def find_producers(
    workload: Workload,
    graph: CommGraph,
    *,
    ranks: int,
    lsa_team: int,
    machine: Machine,
    size: str,
    overrides: Params | None = None,
) -> Found:
    """Traces the host-driven program and fits a map per exchange; ``size`` is the one being optimised.

    Raises what building and running the host program raise; an exchange without a map is no error.
    """
    found = exchanges(graph)
    scale = workload.params(size, overrides or {})
    plan = [(params, SEEDS[0]) for params in sample_sizes(workload, graph, ranks)]
    plan.append((plan[0][0], SEEDS[1]))
    runs = [_trace(workload, ranks, lsa_team, machine, params, seed) for params, seed in plan]
    producers: dict[str, Producer] = {}
    sizes: dict[str, int] = {}
    notes: dict[str, str] = {}
    source = SourceFile.read(workload.host_source)
    for index, exchange in enumerate(found):
        sends = [list(_sends(one, index, found)) for one in runs]
        sizes[exchange.leader] = _bytes_at(workload, ranks, sends[0], scale)
        reason, producer = _producer(source, graph, exchange, sends, runs)
        if producer is None:
            notes[exchange.leader] = reason
        else:
            producers[exchange.leader] = _sized(producer, sizes[exchange.leader])
    return Found(producers, sizes, notes)


def sample_sizes(workload: Workload, graph: CommGraph, ranks: int) -> list[dict[str, int | float]]:
    """The smallest size and some that grow one integer parameter at a time, where that changes what is
    sent."""
    base = workload.params(SIZE)
    names = {buffer.name for buffer in workload.buffers(0, ranks, base)}
    sent = {
        edge.send for edge in graph.edges
    } & names or names  # memory of the candidate's own follows the buffers

    def shapes(params: Params) -> list[tuple[int, ...]]:
        return [
            b.shape for rank in range(ranks) for b in workload.buffers(rank, ranks, params) if b.name in sent
        ]

    sizes = [base]
    for factor in (2, 3):
        for name, value in base.items():
            grown = {**base, name: value * factor}
            if isinstance(value, int) and workload.allows(ranks, grown) and shapes(grown) != shapes(base):
                sizes.append(grown)
    return sizes[: MIN_SIZES + 1]


def _trace(workload: Workload, ranks: int, lsa_team: int, machine: Machine, params: Params, seed: int) -> Run:
    built = build_candidate(workload.host_source, variant="hooks", include=workload.include_dirs)
    secret = run_secret(seed)
    with tempfile.TemporaryDirectory(prefix="cuco-sets-") as folder:
        path = Path(folder) / "trace.jsonl"
        job = Job(
            host_library=built.host_so,
            kernels_library=built.kernels_so,
            registers=built.registers,
            buffers=[workload.buffers(rank, ranks, params) for rank in range(ranks)],
            params=dict(params),
            lsa_team=lsa_team,
            segments=[Segment("isolated", 1)],
            steps=[StepPlan(checked=False)],
            supply=lambda step: [workload.inputs(secret, step, rank, ranks, params) for rank in range(ranks)],
            seed=seed,
            settings={**machine_limits(machine), "access_sets": 1},
            trace=path,
        )
        result = run(job)
        if not result.completed:
            reason = str(result.findings[0]) if result.findings else "it did not complete"
            raise CucoError(f"the host version failed while it was traced: {reason}")
        return _read(path)


@dataclass
class Run:
    """A traced run: launches by id and sends in program order per rank."""

    launches: dict[int, Launched] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)


def _read(path: Path) -> Run:
    out = Run()
    last: dict[int, int] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            if "set" in record:
                launch, cta = record["set"]
                known = out.launches.setdefault(
                    launch,
                    Launched(record["kernel"], record["rank"], tuple(record["grid"]), tuple(record["block"])),
                )
                known.writes[cta] = [(name, begin, end) for name, begin, end in record["w"]]
            elif record.get("op") == "launch":
                last[record["h"]] = record["id"]
            elif record.get("op") == "nccl" and "send" in record:
                rank = record["h"]
                out.sent.append(
                    Sent(
                        rank,
                        record["coll"],
                        record["send"],
                        record["offset"],
                        record["bytes"],
                        last.get(rank),
                    )
                )
    return out


def _sends(one: Run, index: int, found: Sequence[Exchange]) -> Iterator[Sent]:
    """The traced sends of exchange ``index``: those of its operations, in program order among exchanges
    alike."""
    ops = {op for op in found[index].ops if op != "Recv"}
    alike = [i for i, other in enumerate(found) if ops & set(other.ops)]
    place = alike.index(index)
    per_rank: dict[int, list[Sent]] = {}
    for sent in one.sent:
        if sent.op in ops:
            per_rank.setdefault(sent.rank, []).append(sent)
    for calls in per_rank.values():
        yield from calls[place :: len(alike)]


def _producer(
    source: SourceFile,
    graph: CommGraph,
    exchange: Exchange,
    sends: Sequence[Sequence[Sent]],
    runs: Sequence[Run],
) -> tuple[str, Producer | None]:
    if exchange.reduces:
        return "a reduction is not overlapped with its producer", None
    names = {name for call in exchange.calls for name in graph.producers(call)}
    kernels = [kernel for kernel in graph.kernels if kernel.name in names]
    if len(kernels) != 1 or names - {kernel.name for kernel in kernels}:
        return "not exactly one kernel writes what is sent", None
    kernel = kernels[0]
    samples: list[WriteSample] = []
    flat = True
    for calls, one in zip(sends, runs, strict=True):
        for sent in calls:
            launch = one.launches.get(sent.after or -1)
            if launch is None or kernel.name not in launch.kernel:
                return f"the launch before the call is not one of {kernel.name}", None
            samples.append(_sample(launch, sent))
            flat = flat and launch.block[1] == 1 and launch.block[2] == 1
    fitted = fit_map(samples)
    if fitted is None:
        return f"no formula says which CTA of {kernel.name} writes which bytes", None
    place = kernel.launches[0]
    return "", Producer(
        kernel.name,
        place.file,
        place.offset,
        fitted,
        0,
        all(op in (*ONE_SOURCE, "Recv") for op in exchange.ops),
        flat,
        _movable(source, kernel.name),
    )


def _sample(launch: Launched, sent: Sent) -> WriteSample:
    count = launch.grid[0] * launch.grid[1] * launch.grid[2]
    writes = []
    for cta in range(count):
        inside = [
            (max(begin - sent.offset, 0), min(end - sent.offset, sent.bytes))
            for name, begin, end in launch.writes.get(cta, ())
            if name == sent.buffer
        ]
        writes.append([(begin, end) for begin, end in inside if begin < end])
    return WriteSample(launch.grid, sent.bytes, writes)


def _movable(source: SourceFile, kernel: str) -> bool:
    """No device function besides the kernel reads blockIdx or gridDim."""
    return not any(
        source.references(one, name)
        for one in source.functions
        if one.device and one.name != kernel and one.file == source.main
        for name in ("blockIdx", "gridDim")
    )


def _bytes_at(workload: Workload, ranks: int, sends: Sequence[Sent], params: Params) -> int:
    """The largest transfer at these parameters: what was traced at the smallest size, grown as its buffer
    grows (or as all buffers do, where the candidate's own memory is sent)."""
    largest = max(sends, key=lambda sent: sent.bytes, default=None)
    if largest is None:
        return 1

    def total(at: Params) -> int:
        all_buffers = [buffer for rank in range(ranks) for buffer in workload.buffers(rank, ranks, at)]
        own = [buffer.bytes for buffer in all_buffers if buffer.name == largest.buffer]
        return sum(own or [buffer.bytes for buffer in all_buffers])

    return max(1, largest.bytes * total(params) // max(1, total(workload.params(SIZE))))


def _sized(producer: Producer, size: int) -> Producer:
    return Producer(
        producer.kernel,
        producer.file,
        producer.offset,
        producer.map,
        size,
        producer.one_source,
        producer.flat_block,
        producer.movable,
    )
