"""Judging raw results: every checked step counts, and silence never passes."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuco.errors import CucoError
from cuco.testbed.emulator import Job, RunResult
from cuco.testbed.findings import Finding
from cuco.testbed.hashing import keyed_hash
from cuco.testbed.vtime.machine import load_machine
from cuco.verify.data import StepData
from cuco.verify.judge import judge
from cuco.verify.plan import Perturbation
from cuco.verify.runs import make_job
from cuco.workload import load_workload

RANKS = 3


@pytest.fixture
def case() -> tuple[Job, StepData]:
    workload = load_workload("ring_shift")
    built: Any = SimpleNamespace(host_so=Path("/h"), kernels_so=Path("/k"), registers={})
    run = Perturbation(0, 9, "tiny", RANKS, RANKS, steps=4)
    return make_job(workload, built, run, workload.params("tiny"), machine=load_machine("h200-nvlink-8"))


def honest(job: Job, data: StepData) -> RunResult:
    result = RunResult(completed=True)
    for step, plan in enumerate(job.steps):
        for rank in range(RANKS):
            value = data.inputs(step)[(rank - 1) % RANKS]["send"].copy()
            result.hashes[step, rank, "recv", "in_stream"] = keyed_hash(value, plan.key)
            if plan.snapshot:
                result.outputs[step, rank] = {"recv": value}
    last = len(job.steps) - 1
    for rank in range(RANKS):
        result.hashes[last, rank, "recv", "quiet"] = result.hashes[last, rank, "recv", "in_stream"]
    return result


def test_plan_copies_first_and_last_and_hashes_all(case: tuple[Job, StepData]) -> None:
    job, _ = case
    assert job.steps[0].snapshot and job.steps[-1].snapshot and all(step.checked for step in job.steps)
    assert len({step.key for step in job.steps}) == len(job.steps)


def test_honest_run_passes(case: tuple[Job, StepData]) -> None:
    job, data = case
    judgement = judge(job, honest(job, data), data)
    assert judgement.findings == [] and judgement.steps == 4 and judgement.compared == 4 * RANKS * 1024


@pytest.mark.parametrize("copied", [True, False])
def test_wrong_value_is_found_in_every_step(case: tuple[Job, StepData], copied: bool) -> None:
    job, data = case
    job = replace(job, steps=[replace(step, snapshot=copied) for step in job.steps])
    for step in range(4):
        result = honest(job, data)
        wrong = data.inputs(step)[0]["send"].copy()
        wrong[7] += 1
        result.hashes[step, 1, "recv", "in_stream"] = keyed_hash(wrong, job.steps[step].key)
        result.hashes[step, 1, "recv", "quiet"] = keyed_hash(wrong, job.steps[step].key)
        if copied:
            result.outputs[step, 1] = {"recv": wrong}
        (finding,) = judge(job, result, data).findings
        assert finding.kind == "wrong-result" and finding.rank == 1 and f"step {step}" in finding.message
        assert ("[7]" in finding.message) == copied


def test_stale_data_is_named(case: tuple[Job, StepData]) -> None:
    job, data = case
    result = honest(job, data)
    stale = data.reference(2)[0]["recv"].astype(np.float32)
    result.outputs[3, 0] = {"recv": stale}
    result.hashes[3, 0, "recv", "in_stream"] = result.hashes[3, 0, "recv", "quiet"] = keyed_hash(
        stale, job.steps[3].key
    )
    (finding,) = judge(job, result, data).findings
    assert finding.rule == "stale-data" and "earlier step 2" in finding.message


def test_late_writes(case: tuple[Job, StepData]) -> None:
    job, data = case
    result = honest(job, data)
    result.hashes[3, 2, "recv", "quiet"] ^= 1
    (finding,) = judge(job, result, data).findings
    assert finding.kind == "late-write" and finding.rank == 2
    result = honest(job, data)
    result.hashes[0, 2, "recv", "in_stream"] ^= 1
    assert any(finding.rule == "copy" for finding in judge(job, result, data).findings)


@pytest.mark.parametrize("what", ["hash", "copy", "everything"])
def test_missing_evidence_is_no_pass(case: tuple[Job, StepData], what: str) -> None:
    job, data = case
    result = honest(job, data)
    if what == "hash":
        del result.hashes[1, 1, "recv", "in_stream"]
    elif what == "copy":
        del result.outputs[0, 1]
    else:
        result = RunResult(completed=True)
    with pytest.raises(CucoError, match="no evidence"):
        judge(job, result, data)


def test_a_run_that_ended_early_keeps_its_finding(case: tuple[Job, StepData]) -> None:
    job, data = case
    finding = Finding("deadlock", "stuck", "nothing can run")
    assert judge(job, RunResult(findings=[finding]), data).findings == [finding]
