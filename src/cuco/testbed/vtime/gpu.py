"""One GPU in virtual time: SM slots, in-order dispatch of CTAs, and CTAs that work, store remotely and wait.

Kernels wait in a queue ordered by stream priority, then by arrival. Only the first of the queue is
dispatched: the next one starts when all CTAs of the first have a slot ("leftover" policy). A CTA goes to the
SM with the most free threads and keeps its slot until its last phase ends, spinning or not.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field

from cuco.testbed.vtime.cost import Segment
from cuco.testbed.vtime.events import EventQueue
from cuco.testbed.vtime.links import Network, Transfer
from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.nic import Nic
from cuco.testbed.vtime.sharing import Core, Fabric
from cuco.testbed.vtime.trace import Strand, TraceError, Word
from cuco.testbed.vtime.words import Words


@dataclass(frozen=True, slots=True)
class Need:
    """What one CTA occupies on an SM (registers and shared bytes already rounded up to the allocation
    units)."""

    threads: int
    registers: int
    shared: int

    @staticmethod
    def of(machine: Machine, threads: int, registers: int, shared: int) -> Need:
        """Rounded need of a CTA: ``registers`` per thread, ``shared`` bytes static and dynamic."""
        sm = machine.sm
        warps = -(-threads // 32)
        per_warp = -(-registers * 32 // sm.register_unit) * sm.register_unit
        total = -(-(shared + sm.shared_reserved_per_block) // sm.shared_unit) * sm.shared_unit
        return Need(warps * 32, per_warp * warps, total)


@dataclass(eq=False)
class Grid:
    """A kernel on its way through the GPU. ``programs`` None: CTAs that only hold their slots (NCCL's
    channels)."""

    label: str
    priority: int
    need: Need
    ctas: int
    programs: list[tuple[Segment, ...]] | None
    on_done: Callable[[], None]
    on_resident: Callable[[], None] | None = None
    order: int = 0
    dispatched: int = 0
    finished: int = 0
    held: list[Sm] = field(default_factory=list)
    first_start: float = -1.0


class Sm:
    """Free resources of one SM and the work that runs there."""

    __slots__ = ("blocks", "core", "registers", "shared", "threads")

    def __init__(self, machine: Machine, core: Core) -> None:
        self.threads = machine.sm.threads
        self.registers = machine.sm.registers
        self.shared = machine.sm.shared_bytes
        self.blocks = machine.sm.blocks
        self.core = core

    def fits(self, need: Need) -> bool:
        return (
            self.blocks > 0
            and self.threads >= need.threads
            and self.registers >= need.registers
            and self.shared >= need.shared
        )

    def take(self, need: Need, sign: int) -> None:
        self.threads -= sign * need.threads
        self.registers -= sign * need.registers
        self.shared -= sign * need.shared
        self.blocks -= sign


class Gpu:
    """The GPU of one rank."""

    def __init__(
        self, rank: int, events: EventQueue, machine: Machine, network: Network, nic: Nic, words: Words,
        places: dict[int, Word],
    ) -> None:  # fmt: skip
        self.rank = rank
        self.events = events
        self.machine = machine
        self.network = network
        self.nic = nic
        self.words = words
        self.places = places
        self.fabric = Fabric(events)
        memo: dict[tuple[int, ...], float] = {}
        norm = machine.threads.pipe_norm
        self.sms = [Sm(machine, Core(events, self.fabric, norm, memo)) for _ in range(machine.sm.count)]
        self._queue: list[tuple[int, int, Grid]] = []
        self._order = 0
        self._freed: list[Sm] = []
        self.resident = 0
        self.occupancy: list[tuple[float, int]] = []
        self.waiting: dict[int, str] = {}

    def submit(self, grid: Grid) -> None:
        """A kernel is ready to run."""
        self._order += 1
        grid.order = self._order
        if grid.ctas == 0:
            self.events.at(self.events.now, grid.on_done)
            return
        if not any(sm.fits(grid.need) for sm in self._empty()):
            raise TraceError(
                f"kernel {grid.label} on rank {self.rank} needs more than an SM of {self.machine.name} has"
            )
        bisect.insort(self._queue, (grid.priority, grid.order, grid), key=lambda item: (item[0], item[1]))
        self._dispatch(self.sms)

    def _empty(self) -> list[Sm]:
        return [Sm(self.machine, self.sms[0].core)]

    def release(self, grid: Grid) -> None:
        """Frees the slots of a grid that only held them, and ends it."""
        for sm in grid.held:
            sm.take(grid.need, -1)
        self._count(-len(grid.held))
        freed, grid.held = grid.held, []
        grid.finished = grid.ctas
        self._refill(freed)
        grid.on_done()

    def pending(self) -> list[str]:
        """Kernels that still have CTAs without a slot."""
        return [
            f"{grid.label} ({grid.dispatched} of {grid.ctas} CTAs resident)" for _, _, grid in self._queue
        ]

    def _refill(self, freed: list[Sm]) -> None:
        """Dispatches to what was freed once everything that ends at this instant has ended, so that slots
        freed together are filled SM by SM and not pairwise (on hardware no two CTAs end at the same
        instant)."""
        if not self._freed:
            self.events.at(self.events.now, self._fill)
        self._freed += [sm for sm in freed if sm not in self._freed]

    def _fill(self) -> None:
        freed, self._freed = self._freed, []
        self._dispatch(freed)

    def _dispatch(self, candidates: list[Sm]) -> None:
        while self._queue:
            grid = self._queue[0][2]
            best: Sm | None = None
            for sm in candidates:
                if sm.fits(grid.need) and (best is None or sm.threads > best.threads):
                    best = sm
            if best is None:
                return
            self._place(grid, best)
            if grid.dispatched == grid.ctas:
                self._queue.pop(0)
                candidates = self.sms
                if grid.on_resident is not None:
                    self.events.at(self.events.now, grid.on_resident)

    def _place(self, grid: Grid, sm: Sm) -> None:
        if grid.dispatched == 0:
            grid.first_start = self.events.now
        sm.take(grid.need, +1)
        self._count(+1)
        index = grid.dispatched
        grid.dispatched += 1
        if grid.programs is None:
            grid.held.append(sm)
            return
        cta = CtaRun(self, grid, sm, index, grid.programs[index])
        self.events.at(self.events.now, cta.advance)

    def _count(self, delta: int) -> None:
        self.resident += delta
        now = self.events.now
        if self.occupancy and self.occupancy[-1][0] == now:
            self.occupancy[-1] = (now, self.resident)
        else:
            self.occupancy.append((now, self.resident))

    def ended(self, grid: Grid, sm: Sm) -> None:
        """A CTA ended on that SM."""
        sm.take(grid.need, -1)
        self._count(-1)
        grid.finished += 1
        self._refill([sm])
        if grid.finished == grid.ctas:
            grid.on_done()


class CtaRun:
    """One CTA on its SM, segment by segment."""

    __slots__ = ("_at", "_left", "_program", "_sent", "gpu", "grid", "index", "sm")

    def __init__(self, gpu: Gpu, grid: Grid, sm: Sm, index: int, program: tuple[Segment, ...]) -> None:
        self.gpu = gpu
        self.grid = grid
        self.sm = sm
        self.index = index
        self._program = program
        self._at = 0
        self._left = 0
        self._sent: list[Transfer] = []  # remote writes of earlier segments that may still be on their way

    def advance(self) -> None:
        """Starts the next segment, or ends the CTA."""
        if self._at == len(self._program):
            self.gpu.ended(self.grid, self.sm)
            return
        segment = self._program[self._at]
        self._at += 1
        self._left = 1
        if segment.cost is not None:
            self._left += 1
            self.sm.core.start(segment.cost, self._part_over)
        current = self._transfers(segment) if segment.remote else []
        for strand in segment.strands:
            self._left += 1
            StrandRun(self, segment, strand, current).step()
        self._sent = [item for item in self._sent if item.arrived < item.size - 1e-6] + [
            item for item, _ in current
        ]
        self._part_over()

    def earlier(self) -> list[Transfer]:
        """Remote writes of earlier segments that have not arrived."""
        return [item for item in self._sent if item.arrived < item.size - 1e-6]

    def _transfers(self, segment: Segment) -> list[tuple[Transfer, int]]:
        gpu = self.gpu
        started: list[tuple[Transfer, int]] = []
        for peer, written, read in segment.remote:
            if peer < 0:  # page-locked host memory
                self._left += 1
                memory = gpu.machine.memory
                gpu.events.after(
                    (written + read) / (memory.pcie_gbs * 1e3) + memory.latency_us, self._part_over
                )
                continue
            if written:
                self._left += 1
                started.append((gpu.network.send(gpu.rank, peer, written, on_sent=self._part_over), peer))
            if read:
                self._left += 1
                out, _ = gpu.network.ports(peer, gpu.rank)
                gpu.events.after(out.latency, self._read, peer, read)
        return started

    def _read(self, peer: int, size: float) -> None:
        self.gpu.network.send(peer, self.gpu.rank, size, on_arrived=self._part_over)

    def _part_over(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.advance()

    def strand_over(self) -> None:
        """A synchronising thread reached the end of the segment."""
        self._part_over()


class StrandRun:
    """A synchronising thread in a segment: its events at their positions, delayed by its own waits."""

    __slots__ = ("_at", "_cta", "_current", "_position", "_segment", "_strand")

    def __init__(
        self, cta: CtaRun, segment: Segment, strand: Strand, current: list[tuple[Transfer, int]]
    ) -> None:
        self._cta = cta
        self._segment = segment
        self._strand = strand
        self._current = current
        self._at = 0
        self._position = 0.0

    def step(self) -> None:
        """Moves to the next event, or to the thread's end of the segment."""
        strand = self._strand
        if self._at < len(strand.events):
            delay = self._delay(float(strand.events[self._at][0]))
            self._cta.gpu.events.after(delay, self._event)
        else:
            self._cta.gpu.events.after(self._delay(strand.total), self._cta.strand_over)

    def _delay(self, position: float) -> float:
        segment = self._segment
        moved = max(0.0, position - self._position)
        self._position = max(position, self._position)
        if segment.cost is None or segment.max_progress <= 0:
            return 0.0
        return moved / segment.max_progress * segment.cost.alone * self._cta.sm.core.slow(segment.cost)

    def _event(self) -> None:
        cta, gpu = self._cta, self._cta.gpu
        event = self._strand.events[self._at]
        self._at += 1
        kind = event[1]
        if kind in ("st", "add"):
            self._publish(kind, int(event[2]), float(event[3]))
            self.step()
        elif kind == "put":
            gpu.nic.post(int(event[2]))
            gpu.events.after(gpu.machine.gin.post_us, self.step)
        elif kind == "wait":
            word = int(event[2])
            key = id(self)
            if gpu.words.wait(word, str(event[3]), float(event[4]), self._resumed):
                gpu.events.after(gpu.machine.sync.poll_us, self.step)
            else:
                place = gpu.places.get(word)
                name = place.name if place and place.name else f"word {word}"
                gpu.waiting[key] = f"rank {gpu.rank} kernel {cta.grid.label} CTA {cta.index} waits for {name}"
        else:
            raise TraceError(f"unknown strand event '{kind}' in kernel {cta.grid.label}")

    def _resumed(self) -> None:
        gpu = self._cta.gpu
        gpu.waiting.pop(id(self), None)
        gpu.events.after(gpu.machine.sync.poll_us, self.step)

    def _publish(self, kind: str, word: int, value: float) -> None:
        """A release: visible after the link's latency, and not before the CTA's earlier remote bytes have
        arrived."""
        gpu = self._cta.gpu
        place = gpu.places.get(word)
        home = place.rank if place else gpu.rank
        if home == gpu.rank:
            latency = gpu.machine.sync.local_visible_us
        else:
            latency = gpu.network.ports(gpu.rank, home)[0].latency
        words = gpu.words

        def visible() -> None:
            if kind == "st":
                words.store(word, int(value))
            else:
                words.add(word, value)

        release = _Release(gpu.events, gpu.events.now + latency, visible)
        part = self._position / self._segment.max_progress if self._segment.max_progress > 0 else 1.0
        for transfer in self._cta.earlier():
            release.hold(transfer, transfer.size)
        for transfer, _ in self._current:
            release.hold(transfer, transfer.size * min(1.0, part))
        release.drop()


class _Release:
    """Calls ``visible`` at ``time`` or when the last of its transfers has arrived, whichever is later."""

    __slots__ = ("_events", "_left", "_time", "_visible")

    def __init__(self, events: EventQueue, time: float, visible: Callable[[], None]) -> None:
        self._events = events
        self._time = time
        self._visible = visible
        self._left = 1

    def hold(self, transfer: Transfer, amount: float) -> None:
        self._left += 1
        if transfer.when_arrived(amount, self.drop):
            self._left -= 1

    def drop(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._events.at(self._time, self._visible)
