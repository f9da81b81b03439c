"""Runs a built candidate in the emulator: one runner process per run, raw results back.

Python holds the secrets: the runner gets a step's inputs only when the candidate's library is loaded, and
returns hashes and outputs over a pipe that the candidate is never told about. What the candidate prints is a
log. Nothing here judges values; ``cuco.verify`` does. A run that exceeds its wall-clock limit is a failure of
the infrastructure (CucoError), never a verdict: in the emulator a hang is found by the scheduler and reported
as a deadlock.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cuco.errors import EXIT_INTERNAL, CucoError
from cuco.testbed import process
from cuco.testbed.build import build_runner
from cuco.testbed.findings import Finding
from cuco.testbed.runner import Message, Runner
from cuco.testbed.toolchain import find_host_compiler
from cuco.workload import ROLES, BufferInfo

Array = npt.NDArray[Any]
Mode = Literal["chain", "isolated"]
Moment = Literal["in_stream", "quiet"]

#: Longest a run may take by the wall clock before it counts as an infrastructure failure.
LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class StepPlan:
    """One step: the key of its hashes, whether it is hashed at all (a warm-up is not), whether outputs are
    copied.
    """

    key: tuple[int, int] = (0, 0)
    checked: bool = True
    snapshot: bool = False


@dataclass(frozen=True)
class Segment:
    """``count`` consecutive steps in one mode (contracts 2)."""

    mode: Mode
    count: int


@dataclass(frozen=True)
class Job:
    """Everything a run needs. ``buffers[rank]`` in the order of the workload; ``supply(step)`` gives inputs
    per rank.

    ``settings`` are for the emulator: scheduling and delivery policies, limits of the machine
    (docs/emulator.md). Without ``data`` no inputs are supplied and nothing is poisoned, hashed or copied: for
    timing of what is sliced.
    """

    host_library: Path
    kernels_library: Path
    registers: Mapping[str, int]
    buffers: Sequence[Sequence[BufferInfo]]
    params: Mapping[str, int | float]
    lsa_team: int
    segments: Sequence[Segment]
    steps: Sequence[StepPlan]
    supply: Callable[[int], Sequence[Mapping[str, Array]]] | None = None
    seed: int = 1
    decoys: int = 0
    fixed_inputs: bool = False
    settings: Mapping[str, str | int] = field(default_factory=dict)
    trace: Path | None = None
    limit_seconds: float = LIMIT_SECONDS

    @property
    def ranks(self) -> int:
        return len(self.buffers)

    @property
    def data(self) -> bool:
        return self.supply is not None

    def text(self, results: int) -> str:
        """The job as ``native/driver/job.h`` describes it; ``results`` is the runner's descriptor for
        results.
        """
        lines = [f"host {self.host_library}", f"kernels {self.kernels_library}", f"results {results}"]
        lines += [
            f"ranks {self.ranks}",
            f"lsa_team {self.lsa_team}",
            f"seed {self.seed}",
            f"decoys {self.decoys}",
        ]
        lines += [f"data {int(self.data)}", f"fixed_inputs {int(self.fixed_inputs)}"]
        lines += [f"trace {self.trace}"] if self.trace else []
        for rank, buffers in enumerate(self.buffers):
            lines += [_buffer_line(rank, buffer) for buffer in buffers]
        for name, value in self.params.items():
            lines.append(f"param {name} {'float' if isinstance(value, float) else 'int'} {value!r}")
        lines += [f"segment {part.mode} {part.count}" for part in self.segments]
        lines += [f"step {s.key[0]} {s.key[1]} {int(s.checked)} {int(s.snapshot)}" for s in self.steps]
        lines += [f"set {key} {value}" for key, value in self.settings.items()]
        lines += [f"registers {kernel} {count}" for kernel, count in self.registers.items()]
        return "\n".join(lines) + "\n"


@dataclass
class RunResult:
    """Raw results. ``completed``: every step of every rank was run and nothing was found."""

    outputs: dict[tuple[int, int], dict[str, Array]] = field(default_factory=dict)
    """By (step, rank): snapshots of the output buffers, in their own data types."""
    hashes: dict[tuple[int, int, str, Moment], int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    completed: bool = False
    trace: Path | None = None
    log: str = ""
    seconds: float = 0.0


@lru_cache(maxsize=1)
def runner_path() -> Path:
    """The runner, built on first use; one process keeps to one, whatever happens to its sources meanwhile."""
    return build_runner()


def run(job: Job) -> RunResult:
    """Runs the job to its end; CucoError if the emulator itself fails or exceeds the wall-clock limit."""
    started = time.monotonic()
    result = RunResult(trace=job.trace)
    with tempfile.TemporaryFile(prefix="cuco-run-") as log:
        with Runner(runner_path(), log, job.limit_seconds) as runner:
            runner.send(Message.JOB, job.text(runner.results).encode())
            exchange = _Exchange(job, result, runner)
            while (message := runner.receive()) is not None:
                exchange.take(*message)
            status = runner.wait()
        log.seek(0)
        result.log = log.read(1 << 20).decode("utf-8", "replace")
    exchange.conclude(status)
    result.seconds = time.monotonic() - started
    return result


class _Exchange:
    """What the runner has said so far, put in its place."""

    def __init__(self, job: Job, result: RunResult, runner: Runner) -> None:
        self._job = job
        self._result = result
        self._runner = runner
        self._done: int | None = None
        self._stages: dict[int, str] = {}
        self._last = -1

    def take(self, kind: Message, payload: bytes) -> None:
        match kind:
            case Message.NEED:
                self._send_inputs(_words(payload, 1)[0])
            case Message.HASH:
                step, rank, index, moment = _words(payload, 4)
                name = self._job.buffers[rank][index].name
                value = int(np.frombuffer(payload[16:24], dtype="<u8")[0])
                self._result.hashes[step, rank, name, "quiet" if moment else "in_stream"] = value
            case Message.SNAPSHOT:
                step, rank, index = _words(payload, 3)
                buffer = self._job.buffers[rank][index]
                array = np.frombuffer(payload[12:], dtype=buffer.dtype.numpy).reshape(buffer.shape)
                self._result.outputs.setdefault((step, rank), {})[buffer.name] = array
            case Message.FINDING:
                self._result.findings.append(_finding(payload, self._job.kernels_library))
            case Message.COUNTER:
                low, high = _words(payload, 2)
                self._result.counters[payload[8:].decode()] = low | high << 32
            case Message.STAGE:
                rank, step = _words(payload, 2)
                self._stages[rank] = f"while rank {rank} was in {payload[8:].decode()} (step {step})"
                self._last = rank
            case Message.DONE:
                self._done = _words(payload, 1)[0]
            case Message.READY:
                pass

    def conclude(self, status: int) -> None:
        """Turns the way the process ended into findings or an error; never lets silence pass as success."""
        result = self._result
        if self._done is not None:
            result.completed = self._done == 1 and not result.findings
            if not result.completed and not result.findings:
                raise _fault("the run ended early without a finding", result.log)
        elif status == EXIT_INTERNAL:
            raise _fault("the runner failed", result.log)
        elif not result.findings:
            how = f"was ended by signal {-status}" if status < 0 else f"ended with exit code {status}"
            message = f"the candidate's process {how} {self._stage(self._last)}"
            result.findings.append(Finding("crash", "signal" if status < 0 else "exit", message))
        result.findings = [self._placed(finding) for finding in result.findings]

    def _stage(self, rank: int) -> str:
        return self._stages.get(rank, "before anything of the candidate was called")

    def _placed(self, finding: Finding) -> Finding:
        """A crash of host code carries no place of its own: what its rank was in tells more than nothing."""
        if finding.kind != "crash" or finding.file or "while rank" in finding.message:
            return finding
        rank = finding.rank if finding.rank >= 0 else self._last
        return dataclasses.replace(finding, rank=rank, message=f"{finding.message} {self._stage(rank)}")

    def _send_inputs(self, step: int) -> None:
        assert self._job.supply is not None
        parts = [np.array([step], dtype="<u4").tobytes()]
        for rank, arrays in enumerate(self._job.supply(step)):
            for buffer in self._job.buffers[rank]:
                if buffer.role in ("in", "inout"):
                    parts.append(np.ascontiguousarray(arrays[buffer.name]).tobytes())
        self._runner.send(Message.INPUTS, b"".join(parts))


def _buffer_line(rank: int, buffer: BufferInfo) -> str:
    shape = " ".join(str(extent) for extent in (len(buffer.shape), *buffer.shape))
    dtype = buffer.dtype
    return (
        f"buffer {rank} {buffer.name} {dtype.nccl} {ROLES[buffer.role]} {dtype.poison} {buffer.bytes} {shape}"
    )


def _words(payload: bytes, count: int) -> list[int]:
    return [int(word) for word in np.frombuffer(payload[: 4 * count], dtype="<u4")]


def _finding(payload: bytes, kernels: Path) -> Finding:
    fields = payload.decode("utf-8", "replace").split("\0")[:-1]
    kind, rule, rank, cta, thread, file, line, buffer, message, library, offset = fields[:11]
    if library == str(kernels) and not file:
        file, line = _place_in(library, int(offset))
    return Finding(
        kind, rule, message, rank=int(rank), cta=int(cta), thread=int(thread), file=file,
        line=max(0, int(line)), buffer=buffer, details=tuple(fields[11:]),
    )  # fmt: skip


def _place_in(library: str, offset: int) -> tuple[str, str]:
    """File and line behind an address of a compiled library (addr2line); empty where it carries none."""
    if not Path(library).is_file():
        return "", "0"
    command = ["addr2line", "-e", library, hex(offset)]
    done = process.run(command, cwd=Path("/"), env=find_host_compiler().env)
    file, _, line = done.output.strip().partition(" ")[0].rpartition(":")
    return (file, line) if done.status == 0 and line.isdigit() and not file.startswith("?") else ("", "0")


def _fault(what: str, log: str) -> CucoError:
    lines = [line for line in log.splitlines() if line.strip()]
    detail = f": {lines[-1]}" if lines else ""
    return CucoError(f"emulator: {what}{detail}", fix="This is a fault of CUCo.", exit_code=EXIT_INTERNAL)
