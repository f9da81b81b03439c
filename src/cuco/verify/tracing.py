"""From a source to a trace fit for timing: by timing slice where that is proven to count the same.

A slice executes only what decides control flow, synchronisation and remote addresses; the rest is counted. It
is used where no kernel that does arithmetic had to be translated whole, and where its trace of a small size
equals the trace of full execution, count by count. Otherwise a smaller size is executed whole, and the result
says so.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cuco.errors import RejectedError
from cuco.testbed.build import Build, build_candidate, build_runner
from cuco.testbed.cache import Cache, digest
from cuco.testbed.emulator import Job, Segment, StepPlan, run
from cuco.testbed.findings import Finding
from cuco.testbed.vtime.machine import Machine
from cuco.testbed.vtime.trace import Trace, read_trace
from cuco.verify.runs import machine_limits
from cuco.workload import Workload

Params = Mapping[str, int | float]

#: Size at which slice and full execution are compared.
PROOF_SIZE = "tiny"
#: Full execution is used up to about this many seconds of emulation.
FULL_SECONDS = 20.0
#: What full execution manages in a second, roughly: flops of mma, and bytes that threads move.
_FLOPS_PER_SECOND, _BYTES_PER_SECOND = 1.0e9, 1.0e9
_FORMAT = "slice proof 1"


class MeasurementRejected(RejectedError):
    """A candidate that cannot be timed because its run found something wrong."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__(f"it could not be timed: {findings[0]}")
        self.findings = tuple(findings)


@dataclass(frozen=True)
class Setting:
    """What is run: ranks, their domains, the machine whose limits hold, further parameters, the steps."""

    ranks: int
    lsa_team: int
    machine: Machine
    extra: Params
    warm_ups: int = 1
    steps: int = 1
    seed: int = 1


@dataclass(frozen=True)
class Traced:
    """A trace and how it came about. ``note`` says why it is not the asked size, or not a slice."""

    trace: Trace
    size: str
    params: Params
    sliced: bool
    note: str
    seconds: float
    warm_ups: int = 1


def trace_of(
    workload: Workload, source: Path, size: str, overrides: Params, setting: Setting, *,
    slicing: Literal["auto", "never"] = "auto", same_size: bool = True,
) -> Traced:  # fmt: skip
    """Runs ``source`` for its timing at ``size``; where that takes a slice that may not be used, at the
    largest smaller size that full execution affords, or not at all if ``same_size``.

    Raises MeasurementRejected if the run finds anything or the size would differ, and whatever building
    raises.
    """
    started = time.monotonic()
    reason = "slices were not asked for"
    if slicing == "auto":
        built = build_candidate(source, variant="slice", include=workload.include_dirs)
        reason = slice_refusal(workload, source, built, setting)
        if not reason:
            params = workload.params(size, overrides)
            try:
                trace = execute(workload, built, params, setting)
                return Traced(trace, size, params, True, "", time.monotonic() - started, setting.warm_ups)
            except MeasurementRejected as error:
                reason = slice_fault(error)
    used, params = _affordable(workload, size, overrides, setting.ranks)
    note = "" if used == size else f"timed at size '{used}' instead of '{size}': {reason}"
    if note and same_size:
        message = f"size '{size}' takes a timing slice, but {reason}"
        raise MeasurementRejected([Finding("unsupported", "no-slice", message)])
    built = build_candidate(source, variant="plain", include=workload.include_dirs)
    trace = execute(workload, built, params, setting)
    return Traced(trace, used, params, False, note, time.monotonic() - started, setting.warm_ups)


def execute(workload: Workload, built: Build, params: Params, setting: Setting) -> Trace:
    """Isolated steps after the warm-ups, without data: the trace. Raises MeasurementRejected."""
    steps = setting.warm_ups + setting.steps
    with tempfile.TemporaryDirectory(prefix="cuco-trace-") as folder:
        path = Path(folder) / "trace.jsonl"
        job = Job(
            host_library=built.host_so,
            kernels_library=built.kernels_so,
            registers=built.registers,
            buffers=[workload.buffers(rank, setting.ranks, params) for rank in range(setting.ranks)],
            params={**params, **setting.extra},
            lsa_team=setting.lsa_team,
            segments=[Segment("isolated", steps)],
            steps=[StepPlan(checked=False) for _ in range(steps)],
            seed=setting.seed,
            settings={**machine_limits(setting.machine), "reads": "history"},
            trace=path,
        )
        result = run(job)
        if result.findings or not result.completed:
            raise MeasurementRejected(
                result.findings or [Finding("crash", "run", "the timed run did not complete")]
            )
        return read_trace(path)


def slice_refusal(workload: Workload, source: Path, built: Build, setting: Setting) -> str:
    """Why the slice may not be used for timing; empty if it may. Proofs are kept in the cache."""
    params = workload.params(PROOF_SIZE)
    if not workload.allows(setting.ranks, params):
        return f"size '{PROOF_SIZE}' does not allow {setting.ranks} ranks, so that nothing is proven"
    shape = json.dumps(
        [setting.ranks, setting.lsa_team, sorted(params.items()), sorted(setting.extra.items())]
    )
    runner = str(build_runner())  # its path is its content's hash
    key = digest(_FORMAT, built.key, runner, setting.machine.name, shape)

    def prove(folder: Path) -> None:
        plain = build_candidate(source, variant="plain", include=workload.include_dirs)
        whole = execute(workload, plain, params, setting)
        try:
            sliced = execute(workload, built, params, setting)
            reason = heavy_refusal(whole, built.refusals) or first_difference(whole, sliced)
        except MeasurementRejected as error:
            reason = slice_fault(error)
        (folder / "reason.txt").write_text(reason, encoding="utf-8")

    entry = Cache().obtain("slice-proof", key, prove)
    return (entry / "reason.txt").read_text(encoding="utf-8")


def slice_fault(error: MeasurementRejected) -> str:
    """Why the slice itself failed: no fault of the candidate, which is run whole. Others are raised on."""
    for finding in error.findings:
        if (finding.kind, finding.rule) != ("unsupported", "slice"):
            raise error
    return str(error.findings[0].message)


def heavy_refusal(trace: Trace, refusals: Mapping[str, str]) -> str:
    """The refusal of a kernel that does arithmetic on tensor cores or floats, if any: it would run whole."""
    if not refusals:
        return ""
    heavy = [i for i, name in enumerate(trace.classes) if name.startswith(("mma_", "fp"))]
    for launch in trace.launches.values():
        kernel = trace.kernels.get(launch.kernel)
        if kernel is None or kernel.name not in refusals:
            continue
        used = {index for phases in trace.ctas.get(launch.id, ()) for index in phases}
        if any(trace.phases[index].work[slot] > 0 for index in used for slot in heavy):
            return f"kernel {kernel.name} cannot be sliced: {refusals[kernel.name]}"
    return ""


def first_difference(whole: Trace, sliced: Trace) -> str:
    """Where the counts, the synchronisation or the transfers of two traces first differ; empty if nowhere."""
    if whole.hosts != sliced.hosts or whole.launches != sliced.launches:
        return "the slice's host operations differ from those of full execution"
    if whole.nic != sliced.nic:
        return "the slice's network operations differ from those of full execution"
    for launch in whole.launches.values():
        kernel = whole.kernels.get(launch.kernel)
        mine, other = whole.ctas.get(launch.id, []), sliced.ctas.get(launch.id, [])
        for index in range(max(len(mine), len(other))):
            full = [whole.phases[i] for i in mine[index]] if index < len(mine) else None
            cut = [sliced.phases[i] for i in other[index]] if index < len(other) else None
            if full != cut:
                name = kernel.name if kernel else launch.kernel
                return f"the slice counts CTA {index} of kernel {name} differently from full execution"
    return ""


def _affordable(
    workload: Workload, size: str, overrides: Params, ranks: int
) -> tuple[str, dict[str, int | float]]:
    """The asked size if full execution of it is affordable, else the largest that is."""

    def seconds(params: Params) -> float:
        work = [workload.work(rank, ranks, params) for rank in range(ranks)]
        flops = sum(sum(item.flops.values()) for item in work)
        return flops / _FLOPS_PER_SECOND + sum(item.hbm_bytes for item in work) / _BYTES_PER_SECOND

    asked = workload.params(size, overrides)
    if seconds(asked) <= FULL_SECONDS:
        return size, asked
    found: tuple[float, str, dict[str, int | float]] | None = None
    for name in workload.spec.sizes:
        params = workload.params(name)
        cost = seconds(params)
        if workload.allows(ranks, params) and cost <= FULL_SECONDS and (found is None or cost > found[0]):
            found = (cost, name, params)
    if found is None:
        return PROOF_SIZE, workload.params(PROOF_SIZE)
    return found[1], found[2]
