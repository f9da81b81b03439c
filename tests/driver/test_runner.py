"""The runner process: broken jobs and exceeded limits are faults of CUCo, never verdicts."""

from dataclasses import replace
from pathlib import Path

import pytest

from cuco.errors import EXIT_INTERNAL, CucoError
from cuco.testbed.emulator import Job, RunResult, Segment, StepPlan, run
from cuco.testbed.vtime.machine import load_machine
from cuco.verify.plan import Perturbation
from cuco.verify.runs import build, make_job
from cuco.workload import load_workload

WORKLOAD = load_workload("ring_shift")


@pytest.fixture(scope="module")
def job() -> Job:
    shape = Perturbation(0, 4, "tiny", 2, 2, steps=2)
    built = build(WORKLOAD, WORKLOAD.host_source, shape)
    params = WORKLOAD.params("tiny")
    return make_job(WORKLOAD, built, shape, params, machine=load_machine("h200-nvlink-8"))[0]


def same(a: RunResult, b: RunResult) -> bool:
    outputs = {
        key: {name: array.tobytes() for name, array in item.items()} for key, item in a.outputs.items()
    }
    others = {key: {name: array.tobytes() for name, array in item.items()} for key, item in b.outputs.items()}
    return a.hashes == b.hashes and outputs == others and a.counters == b.counters


def test_a_run_repeats_exactly(job: Job) -> None:
    first = run(job)
    assert first.completed and first.hashes and same(first, run(job))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {"delivery": "sometimes"}}, "unknown value 'sometimes'"),
        ({"settings": {"colour": "red"}}, "unknown setting 'colour'"),
        ({"steps": [StepPlan()]}, "segments and steps disagree"),
        ({"lsa_team": 3}, "bad ranks or lsa_team"),
        ({"kernels_library": Path("/nowhere.so")}, "does not load"),
        ({"host_library": Path("/nowhere.so")}, "cannot be read"),
    ],
)
def test_a_broken_job_is_a_fault_and_no_verdict(job: Job, change: dict[str, object], words: str) -> None:
    with pytest.raises(CucoError, match=words) as caught:
        run(replace(job, **change))  # type: ignore[arg-type]
    assert caught.value.exit_code == EXIT_INTERNAL


def test_the_wall_clock_is_no_verdict(job: Job) -> None:
    with pytest.raises(CucoError, match="this is no verdict") as caught:
        run(replace(job, limit_seconds=0.0))
    assert caught.value.exit_code == EXIT_INTERNAL


def test_without_data_nothing_is_supplied_or_returned(job: Job) -> None:
    result = run(replace(job, supply=None))
    assert result.completed and not result.outputs and not result.hashes


def test_warm_ups_are_run_and_not_checked(job: Job) -> None:
    steps = [StepPlan(checked=False), StepPlan((1, 2), True, True)]
    result = run(replace(job, segments=[Segment("isolated", 1), Segment("chain", 1)], steps=steps))
    assert {step for step, _ in result.outputs} == {1} and {key[0] for key in result.hashes} == {1}
