"""Judging a run's raw results: every checked step of every rank is compared, or the run does not count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from cuco.errors import EXIT_INTERNAL, CucoError
from cuco.testbed.emulator import Job, RunResult
from cuco.testbed.findings import Finding
from cuco.testbed.hashing import keyed_hash
from cuco.verify.data import StepData
from cuco.workload import BufferInfo, Comparison, Suspicions

Array = npt.NDArray[Any]

#: Findings shown of one run: the first wrong steps say more than all of them.
MOST_FINDINGS = 8
_RULES = (
    ("poison", "never-written"),
    ("zero", "zeros"),
    ("input", "input-copied"),
    ("earlier step", "stale-data"),
    ("of rank", "data-of-another-rank"),
)


@dataclass
class Judgement:
    """What the comparison of a run gave. ``steps``: checked steps, each compared on every rank."""

    findings: list[Finding] = field(default_factory=list)
    steps: int = 0
    compared: int = 0


def judge(job: Job, result: RunResult, data: StepData) -> Judgement:
    """Compares a completed run with the references; a run that did not complete keeps its own findings."""
    judgement = Judgement(list(result.findings))
    if not result.completed:
        return judgement
    for step, plan in enumerate(job.steps):
        if not plan.checked:
            continue
        judgement.steps += 1
        for rank in range(job.ranks):
            _judge_rank(job, result, data, step, rank, judgement)
        if len(judgement.findings) >= MOST_FINDINGS:
            break
    if not judgement.findings and judgement.compared == 0:
        raise CucoError("verify: a run ended without anything compared", exit_code=EXIT_INTERNAL)
    return judgement


def _judge_rank(
    job: Job, result: RunResult, data: StepData, step: int, rank: int, judgement: Judgement
) -> None:
    want = data.reference(step)[rank]
    for buffer in job.buffers[rank]:
        if buffer.role not in ("out", "inout") or buffer.bytes == 0:
            continue
        _judge_hashes(job, result, step, rank, buffer, judgement)
        if buffer.name not in want:
            continue
        if job.steps[step].snapshot:
            got = result.outputs.get((step, rank), {}).get(buffer.name)
            if got is None:
                raise _missing(step, rank, buffer)
            _compare(data, step, rank, buffer, got, judgement)
        else:
            _compare_hash(job, result, data, step, rank, buffer, judgement)


def _judge_hashes(
    job: Job, result: RunResult, step: int, rank: int, buffer: BufferInfo, judgement: Judgement
) -> None:
    first = result.hashes.get((step, rank, buffer.name, "in_stream"))
    if first is None:
        raise _missing(step, rank, buffer)
    again = result.hashes.get((step, rank, buffer.name, "quiet"))
    if again is not None and again != first:
        message = f"'{buffer.name}' of rank {rank} changed after step {step} had ended in its stream"
        judgement.findings.append(Finding("late-write", "hash", message, rank=rank, buffer=buffer.name))
    snapshot = result.outputs.get((step, rank), {}).get(buffer.name)
    if snapshot is not None and keyed_hash(snapshot, job.steps[step].key) != first:
        message = (
            f"'{buffer.name}' of rank {rank} changed between its hash and its copy at the end of step {step}"
        )
        judgement.findings.append(Finding("late-write", "copy", message, rank=rank, buffer=buffer.name))


def _compare(
    data: StepData, step: int, rank: int, buffer: BufferInfo, got: Array, judgement: Judgement
) -> None:
    want = {buffer.name: data.reference(step)[rank][buffer.name]}
    suspicions = Suspicions(
        buffer.dtype.poison if buffer.role == "out" else None, data.suspects(step, rank, buffer)
    )
    for comparison in data.workload.compare(rank, {buffer.name: got}, want, {buffer.name: suspicions}):
        judgement.compared += comparison.compared
        if not comparison.ok:
            judgement.findings.append(_wrong(step, comparison))


def _compare_hash(
    job: Job,
    result: RunResult,
    data: StepData,
    step: int,
    rank: int,
    buffer: BufferInfo,
    judgement: Judgement,
) -> None:
    # Without a snapshot only exact outputs can be compared; the plan takes snapshots of every step of all
    # others.
    if not data.workload.spec.outputs[buffer.name].exact:
        raise _missing(step, rank, buffer)
    expected = data.reference(step)[rank][buffer.name].astype(buffer.dtype.numpy)
    judgement.compared += buffer.elements
    if keyed_hash(expected, job.steps[step].key) != result.hashes[step, rank, buffer.name, "in_stream"]:
        message = f"step {step}: rank {rank} '{buffer.name}': the hash is not that of the expected result"
        judgement.findings.append(Finding("wrong-result", "hash", message, rank=rank, buffer=buffer.name))


def _wrong(step: int, comparison: Comparison) -> Finding:
    rule = next((rule for word, rule in _RULES if word in comparison.guess), "values")
    return Finding(
        "wrong-result", rule, f"step {step}: {comparison}", rank=comparison.rank, buffer=comparison.buffer
    )


def _missing(step: int, rank: int, buffer: BufferInfo) -> CucoError:
    return CucoError(
        f"verify: no evidence came back for '{buffer.name}' of rank {rank} in step {step}",
        exit_code=EXIT_INTERNAL,
    )
