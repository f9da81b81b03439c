"""Every bundled workload: each host-driven version computes what the reference says, under an adversarial
schedule.
"""

import pytest

from cuco.testbed.vtime.machine import load_machine
from cuco.verify import VerifyOptions, verify
from cuco.verify.plan import Perturbation
from cuco.verify.runs import build, make_job, run_and_judge
from cuco.workload import bundled_workloads, load_workload

VERSIONS = [
    (name, baseline.name) for name in bundled_workloads() for baseline in load_workload(name).baselines()
]


@pytest.mark.parametrize(("name", "version"), VERSIONS)
@pytest.mark.parametrize("size", ["tiny", "odd"])
def test_host_versions_are_right(name: str, version: str, size: str) -> None:
    workload = load_workload(name)
    if size not in workload.spec.sizes:
        pytest.fail(f"{name} has no size {size}")
    baseline = next(item for item in workload.baselines() if item.name == version)
    params, ranks = workload.params(size), workload.spec.ranks.default
    team = workload.lsa_team(ranks, params)
    run = Perturbation(0, 11, size, ranks, team, steps=3, stutter=True, decoys=1)
    job, data = make_job(
        workload, build(workload, baseline.source, run), run, params,
        machine=load_machine(workload.spec.machine), extra=baseline.extra,
    )  # fmt: skip
    result, judgement = run_and_judge(job, data)
    assert judgement.findings == [], str(judgement.findings[0])
    assert result.completed and judgement.steps == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", list(bundled_workloads()))
def test_host_code_passes_the_standard_verification(name: str) -> None:
    workload = load_workload(name)
    verdict = verify(workload, workload.host_source, VerifyOptions(effort="standard"))
    assert verdict.accepted, verdict.reason()
    assert not verdict.declined
