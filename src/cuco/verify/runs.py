"""From a perturbation to a job, and to its judgement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cuco.testbed.build import Build, build_candidate
from cuco.testbed.emulator import Job, RunResult, Segment, StepPlan, run
from cuco.testbed.vtime.machine import Machine
from cuco.verify.data import StepData
from cuco.verify.judge import Judgement, judge
from cuco.verify.plan import Perturbation
from cuco.workload import Workload, hash_key, run_secret, secret_steps

#: Share of an exact output's steps that are copied whole; the others are compared by their hash.
SNAPSHOT_SHARE = 0.5


def build(workload: Workload, source: Path, perturbation: Perturbation) -> Build:
    """The candidate as this run needs it (cached)."""
    return build_candidate(source, variant=perturbation.variant, include=workload.include_dirs)


def make_job(
    workload: Workload,
    built: Build,
    perturbation: Perturbation,
    params: Mapping[str, int | float],
    *,
    machine: Machine,
    extra: Mapping[str, int | float] | None = None,
    trace: Path | None = None,
) -> tuple[Job, StepData]:
    """The job of a run and the data it is judged by."""
    p = perturbation
    secret = run_secret(p.seed)
    data = StepData(workload, secret, p.ranks, params)
    steps = [StepPlan(checked=False) for _ in range(p.warm_ups)]
    exact = all(output.exact for output in workload.spec.outputs.values())
    copied = set(secret_steps(secret, p.steps, SNAPSHOT_SHARE if exact else 1.0))
    for index in range(p.steps):
        steps.append(StepPlan(hash_key(secret, p.warm_ups + index), True, index in copied))
    segments = [Segment("isolated", p.warm_ups)] if p.warm_ups else []
    job = Job(
        host_library=built.host_so,
        kernels_library=built.kernels_so,
        registers=built.registers,
        buffers=[workload.buffers(rank, p.ranks, params) for rank in range(p.ranks)],
        params={**params, **(extra or {})},
        lsa_team=p.lsa_team,
        segments=[*segments, Segment(p.mode, p.steps)],
        steps=steps,
        supply=data.inputs,
        seed=p.seed,
        decoys=p.decoys,
        settings={**machine_limits(machine), **_policies(p)},
        trace=trace,
    )
    return job, data


def run_and_judge(job: Job, data: StepData) -> tuple[RunResult, Judgement]:
    """Runs the job and compares what came back."""
    result = run(job)
    return result, judge(job, result, data)


def machine_limits(machine: Machine) -> dict[str, str | int]:
    """The machine's limits as settings of the emulator: they decide which CTAs are resident together."""
    sm = machine.sm
    return {
        "sms": sm.count,
        "threads_per_sm": sm.threads,
        "blocks_per_sm": sm.blocks,
        "registers_per_sm": sm.registers,
        "shared_per_sm": sm.shared_bytes,
        "shared_per_block": sm.shared_bytes_per_block,
        "clock_mhz": int(sm.clock_ghz * 1000),
    }


def _policies(p: Perturbation) -> dict[str, str | int]:
    settings: dict[str, str | int] = {"delivery": p.delivery, "reads": p.reads}
    if p.slow_ctas:
        settings["slow_ctas"] = p.slow_ctas
    if p.hold:
        settings["hold"] = ",".join(str(rank) for rank in p.hold)
    if p.stutter:
        settings["stutter"] = 1
    return settings
