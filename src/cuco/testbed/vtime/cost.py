"""From counted work to demands: how long a phase takes alone on an SM, and how much of each pipe it uses
meanwhile.

A phase's demand on a pipe is its count over the SM's rate, stretched where the CTA has too few warps to fill
the pipe. The pipes of an SM overlap, but never perfectly: together they take the ``threads.pipe_norm`` norm
of their demands (fitted to a GEMM on hardware, docs/machines.md). A phase takes at least that, its slowest
thread's own instruction chain, its bytes over what its threads can keep in flight, and its bytes over the
GPU's HBM; barriers and fences come on top. Neighbouring phases without remote traffic or synchronisation are
joined: demands and times add up.

Cache model: all global traffic passes L2. CTAs that are resident together are taken to walk through their
data together, so that a wave of them reads each byte of the launch's footprint (unique bytes read and
written) from HBM at most once; a later wave finds in L2 the share of the footprint that fits. Stores are
written back once per unique byte. A launch that brings no footprint is given the most that its rank's
workload touches (its ``hbm_bytes``), or all that it moves if that is less; where that is unknown too,
``memory.unknown_l2_hit`` of the loads hit and all stores are written back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.tickets import without_idle_tickets
from cuco.testbed.vtime.trace import Launch, Phase, Strand, Trace, TraceError

#: What a replay keeps: everything, the computation alone (C), or the communication alone (M).
Part = Literal["all", "compute", "communication"]

#: What the CTAs of an SM share. ``alu`` is the busiest of its arithmetic pipes, or the issue slots.
PIPES = ("alu", "mma", "shared", "global", "atomic")
_ALU = ("int", "fp32", "fp64", "fp16", "special", "convert", "warp")
_FLOPS = ("fp32", "fp64", "fp16", "mma_bf16", "mma_f16", "mma_tf32", "mma_fp64", "mma_int8", "mma_fp8")
_MMA = tuple(name for name in _FLOPS if name.startswith("mma_"))
_BYTES = ("ld_global", "st_global", "ld_shared", "st_shared", "ld_local", "st_local")
KNOWN = frozenset((*_ALU, *_MMA, *_BYTES, "control", "atomic", "fence", "bar"))
#: Progress that the translator gives one thread's share of an mma, per flop (testbed.ptx.classes.weight_of).
MMA_WEIGHT = 1 / 8


def canonical(name: str) -> str:
    """A trace's class as it is called here: bytes have no suffix, double precision mma is mma_fp64."""
    name = name.removesuffix("_bytes")
    return {"mma_f64": "mma_fp64"}.get(name, name)


@dataclass(frozen=True, slots=True)
class Cost:
    """A stretch of work. ``alone`` us on an idle SM; ``pipes``: (pipe, share used meanwhile); shares of L2
    and HBM."""

    id: int
    alone: float
    pipes: tuple[tuple[int, float], ...]
    l2: float
    hbm: float


@dataclass(frozen=True, slots=True)
class Segment:
    """What a CTA does next: work, remote traffic and synchronising threads side by side."""

    cost: Cost | None
    remote: tuple[tuple[int, float, float], ...] = ()
    strands: tuple[Strand, ...] = ()
    max_progress: float = 0.0


@dataclass(frozen=True, slots=True)
class _Demand:
    alone: float
    pipes: tuple[float, ...]  # us at the full rate of each pipe
    l2_bytes: float
    hbm_bytes: float


#: Threads per CTA, and the shares of loads and stores that miss L2.
_Place = tuple[int, float, float]


def _norm(values: Sequence[float], exponent: float) -> float:
    """The exponent-norm: between the largest (perfect overlap of the pipes) and the sum (none)."""
    largest = max(values)
    if largest <= 0:
        return 0.0
    total: float = sum((value / largest) ** exponent for value in values)
    joined: float = largest * total ** (1 / exponent)
    return joined


class CostModel:
    """Compiles CTAs of a trace into segments for one machine."""

    def __init__(
        self, trace: Trace, machine: Machine, part: Part = "all", footprint: Sequence[float] | None = None
    ) -> None:
        self._footprint = footprint
        rates = machine.rates
        self._alu_rates = (
            *(rates.int_, rates.fp32, rates.fp64, rates.fp16),
            *(rates.special, rates.convert, rates.warp),
        )
        self._trace = trace
        self._machine = machine
        self._part = part
        self._names = tuple(canonical(name) for name in trace.classes)
        unknown = [name for name in self._names if name not in KNOWN]
        if unknown:
            raise TraceError(f"trace classes without a rate: {', '.join(unknown)}")
        self._slot = {name: index for index, name in enumerate(self._names)}
        self._demands: dict[tuple[int, _Place], _Demand] = {}
        self._programs: dict[tuple[_Place, tuple[int, ...]], tuple[Segment, ...]] = {}
        self._joined: dict[tuple[tuple[int, ...], _Place], Cost | None] = {}
        self._costs: dict[tuple[float, tuple[tuple[int, float], ...], float, float], Cost] = {}
        self._misses: dict[int, tuple[float, float]] = {}
        self._bytes: dict[tuple[int, ...], tuple[float, float]] = {}

    def program(self, launch: Launch, phases: tuple[int, ...]) -> tuple[Segment, ...]:
        """The segments of a CTA with these phases."""
        place = (launch.threads, *self._miss(launch))
        key = (place, phases)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self._compile(place, phases)
        return found

    def silent(self, launch: Launch) -> bool:
        """Whether nothing of the launch is left in this part of the trace."""
        if self._part == "all":
            return False
        return not any(self.program(launch, phases) for phases in set(self._trace.ctas.get(launch.id, ())))

    def _compile(self, place: _Place, phases: tuple[int, ...]) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        run: list[int] = []
        whole = without_idle_tickets([self._trace.phases[index] for index in phases])
        for index, phase in zip(phases, whole, strict=True):
            if phase.plain:
                if self._part != "communication":
                    run.append(index)
                continue
            if self._part == "compute":
                if self._flops(phase):
                    run.append(index)
                continue
            if run:
                segments += self._segment(tuple(run), place)
                run.clear()
            keep = self._part == "all" or not self._flops(phase)
            cost = self._cost((index,), place) if keep else None
            segments.append(Segment(cost, phase.remote, phase.strands, phase.max_progress))
        if run:
            segments += self._segment(tuple(run), place)
        return tuple(segments)

    def _segment(self, run: tuple[int, ...], place: _Place) -> list[Segment]:
        cost = self._cost(run, place)
        return [Segment(cost)] if cost else []

    def _cost(self, run: tuple[int, ...], place: _Place) -> Cost | None:
        """The joint cost of neighbouring phases; equal costs are one object, so that sharing can remember
        them."""
        key = (run, place)
        if key not in self._joined:
            self._joined[key] = self._join(run, place)
        return self._joined[key]

    def _join(self, run: tuple[int, ...], place: _Place) -> Cost | None:
        counted = [(self._demand(index, place), count) for index, count in Counter(run).items()]
        alone = sum(demand.alone * count for demand, count in counted)
        if alone <= 0:
            return None
        totals = [0.0] * len(PIPES)
        l2 = hbm = 0.0
        for demand, count in counted:
            l2 += demand.l2_bytes * count
            hbm += demand.hbm_bytes * count
            for pipe, value in enumerate(demand.pipes):
                totals[pipe] += value * count
        memory = self._machine.memory
        pipes = tuple(
            (pipe, min(1.0, value / alone)) for pipe, value in enumerate(totals) if value / alone > 1e-6
        )
        l2_share = min(1.0, l2 / (memory.l2_gbs * 1e3) / alone)
        hbm_share = min(1.0, hbm / (memory.hbm_gbs * 1e3) / alone)
        same = (alone, pipes, l2_share, hbm_share)
        return self._costs.setdefault(same, Cost(len(self._costs) + 1, *same))

    def _count(self, phase: Phase, name: str) -> float:
        slot = self._slot.get(name)
        return phase.work[slot] if slot is not None and slot < len(phase.work) else 0.0

    def _flops(self, phase: Phase) -> bool:
        return any(self._count(phase, name) > 0 for name in _FLOPS)

    def _demand(self, index: int, place: _Place) -> _Demand:
        key = (index, place)
        found = self._demands.get(key)
        if found is None:
            found = self._demands[key] = self._measure(self._trace.phases[index], place)
        return found

    def _measure(self, phase: Phase, place: _Place) -> _Demand:
        machine = self._machine
        threads, load_miss, store_miss = place
        per_us = machine.sm.clock_ghz * 1e3  # clocks per us
        pipes = self._pipes(phase, per_us)
        warps = max(1.0, threads / 32)
        stretch = (machine.threads.warps_for_full_alu / warps, machine.threads.warps_for_full_mma / warps)
        stretched = [value * max(1.0, stretch[at] if at < 2 else 1.0) for at, value in enumerate(pipes)]
        together = _norm(stretched, machine.threads.pipe_norm)
        written = sum(item[1] for item in phase.remote)
        read = sum(item[2] for item in phase.remote)
        loads = max(0.0, self._count(phase, "ld_global") - read)
        stores = max(0.0, self._count(phase, "st_global") - written)
        hbm_bytes = loads * load_miss + stores * store_miss
        memory = machine.memory
        inflight = threads * machine.threads.inflight_bytes / memory.latency_us  # bytes per us
        busy = max(together, (loads + stores) / inflight, hbm_bytes / (memory.hbm_gbs * 1e3))
        busy = max(busy, self._chain_us(phase, threads))
        return _Demand(busy + self._wait_us(phase, threads), tuple(pipes), loads + stores, hbm_bytes)

    def _chain_us(self, phase: Phase, threads: int) -> float:
        """The slowest thread's instructions one after another; mma is pipelined and bound by its pipe
        alone."""
        multiplied = sum(self._count(phase, name) for name in _MMA) * MMA_WEIGHT / max(1, threads)
        instructions = max(0.0, phase.max_progress - multiplied)
        return (
            instructions * self._machine.threads.cycles_per_instruction / (self._machine.sm.clock_ghz * 1e3)
        )

    def _wait_us(self, phase: Phase, threads: int) -> float:
        """Barriers of the block and fences."""
        machine = self._machine
        barriers = self._count(phase, "bar") / max(1, threads)
        waits = barriers * machine.threads.barrier_cycles / (machine.sm.clock_ghz * 1e3)
        if fences := self._count(phase, "fence"):
            waits += max(1.0, fences / max(1, threads)) * machine.sync.fence_us
        return waits

    def _pipes(self, phase: Phase, per_us: float) -> list[float]:
        """Microseconds at the full rate of each of PIPES."""
        rates = self._machine.rates
        alu = [
            self._count(phase, name) / (rate * per_us)
            for name, rate in zip(_ALU, self._alu_rates, strict=True)
        ]
        issued = sum(self._count(phase, name) for name in (*_ALU, "control")) / (rates.issue * per_us)
        mma = sum(self._count(phase, name) / (getattr(rates, name) * per_us) for name in _MMA)
        shared = sum(self._count(phase, name) for name in _BYTES[2:])  # local memory is served by the same L1
        moved = self._count(phase, "ld_global") + self._count(phase, "st_global")
        return [
            max(issued, *alu),
            mma,
            shared / (rates.shared_bytes * per_us),
            moved / (rates.global_bytes * per_us),
            self._count(phase, "atomic") / (rates.atomic * per_us),
        ]

    def _miss(self, launch: Launch) -> tuple[float, float]:
        """Shares of a launch's loads and stores that reach HBM."""
        found = self._misses.get(launch.id)
        if found is None:
            found = self._misses[launch.id] = self._miss_of(launch)
        return found

    def _miss_of(self, launch: Launch) -> tuple[float, float]:
        memory = self._machine.memory
        most = self._footprint[launch.rank] if self._footprint is not None else 0.0
        if launch.footprint is None and most <= 0:
            return 1.0 - memory.unknown_l2_hit, 1.0
        loads = stores = 0.0
        for phases in self._trace.ctas.get(launch.id, ()):
            moved = self._cta_bytes(phases)
            loads += moved[0]
            stores += moved[1]
        read, written = launch.footprint or (min(loads, most), min(stores, most))
        spill = max(0.0, 1.0 - memory.l2_bytes / read) if read > 0 else 0.0
        missed = read * (1.0 + (self._waves(launch) - 1.0) * spill)
        load_miss = min(1.0, missed / loads) if loads > 0 else 0.0
        return load_miss, min(1.0, written / stores) if stores > 0 else 0.0

    def _waves(self, launch: Launch) -> float:
        """How often the GPU is filled with CTAs of the launch, at least once."""
        kernel = self._trace.kernels.get(launch.kernel)
        registers, shared = (kernel.registers, kernel.shared) if kernel else (32, 0)
        slots = self._machine.sm.slots(launch.threads, registers, shared + launch.shared)
        return max(1.0, launch.ctas / (max(1, slots) * self._machine.sm.count))

    def _cta_bytes(self, phases: tuple[int, ...]) -> tuple[float, float]:
        found = self._bytes.get(phases)
        if found is None:
            items = [self._trace.phases[index] for index in phases]
            loads = sum(self._count(item, "ld_global") - sum(r[2] for r in item.remote) for item in items)
            stores = sum(self._count(item, "st_global") - sum(r[1] for r in item.remote) for item in items)
            found = self._bytes[phases] = (max(0.0, loads), max(0.0, stores))
        return found
