"""The tolerance audit: bundled workloads pass, tolerances that accept a lazy result are named."""

from pathlib import Path

import pytest

from cuco.verify.data import StepData
from cuco.verify.tolerance import audit_tolerance
from cuco.workload import Workload, bundled_workloads, load_workload, run_secret


def audit(workload: Workload) -> list[str]:
    ranks = workload.spec.ranks.default
    data = StepData(workload, run_secret(2), ranks, workload.params("tiny"))
    return [finding.message for finding in audit_tolerance(data)]


@pytest.mark.parametrize("name", list(bundled_workloads()))
def test_bundled_tolerances_tell_right_from_wrong(name: str) -> None:
    assert audit(load_workload(name)) == []


def test_a_loose_tolerance_is_named(tmp_path: Path) -> None:
    source = load_workload("allreduce").folder
    for name in ("host.cu", "problem.py", "workload.toml"):
        (tmp_path / name).write_text((source / name).read_text())
    path = tmp_path / "workload.toml"
    path.write_text(path.read_text().replace("atol = 1e-5", "atol = 20.0"))
    found = audit(load_workload(tmp_path))
    assert "the tolerance of 'recv' accepts zeros" in found
    assert any("without the data of rank 2" in message for message in found)
