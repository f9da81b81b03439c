"""The main job on the real emulator: every workload ends with a candidate that the full cascade accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cuco
from cuco.api import transform
from cuco.propose.protocol import Operator
from cuco.report.model import read_run

MICRO = ["allgather", "alltoall", "allreduce", "ring_shift", "producer_consumer"]
#: Backend and ranks per NVLink domain, of 4 ranks.
REACHES = [("lsa", 4), ("gin", 4), ("auto", 2)]


def optimized(workload: str, run: Path, **options: object) -> dict[str, object]:
    """One small generation; the result, once it is held against what the run folder says."""
    result = cuco.optimize(workload, run_dir=run, generations=1, size="tiny", **options)
    assert result["best"] is not None, result
    verdict = json.loads((run / "candidates" / str(result["best"]) / "verdict-standard.json").read_text())
    assert verdict["accepted"] and verdict["compared"] > 0 and verdict["us"] == result["best_us"]
    assert (run / "report.html").is_file() and (run / "best" / "origin.json").is_file()
    return result


@pytest.mark.slow
@pytest.mark.parametrize("workload", MICRO)
@pytest.mark.parametrize(("backend", "lsa_team"), REACHES)
def test_micro_workloads_end_verified(tmp_path: Path, workload: str, backend: str, lsa_team: int) -> None:
    result = optimized(f"micro/{workload}", tmp_path / "run", ranks=4, lsa_team=lsa_team, backend=backend)
    used = {key.split(" | ")[0] for key in dict(result["best_directives"] or {}).values()}  # type: ignore[call-overload]
    assert used <= {"lsa": {"LSA"}, "gin": {"GIN"}, "auto": {"GIN", "Hybrid"}}[backend]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "lsa_team"), [("lsa", 2), ("gin", 1)])
def test_kv_transfer_ends_verified(tmp_path: Path, backend: str, lsa_team: int) -> None:
    optimized("kv_transfer", tmp_path / "run", backend=backend, lsa_team=lsa_team)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result(tmp_path: Path) -> None:
    results = [optimized("micro/allgather", tmp_path / name, seed=3) for name in ("one", "two")]
    for result in results:
        result.pop("run_dir")
        result.pop("seconds")
    assert results[0] == results[1]


@pytest.mark.slow
def test_evolve_begins_with_what_transform_wrote(tmp_path: Path) -> None:
    path, run = tmp_path / "device.cu", tmp_path / "run"
    fast = transform("micro/allgather", output=path)
    assert [(one["name"], one["accepted"]) for one in fast["stages"]] == [("A", True), ("B", True)]
    result = optimized("micro/allgather", run, candidates=[path])
    assert result["evaluations"] == 4 and result["stages"] == []
    attempts = read_run(run).attempts
    (given,) = (one for one in attempts if one.draw.operator is Operator.GIVEN)
    assert given.accepted and given.draw.label == "device.cu"
    stated = {edge: directive.key() for edge, directive in given.draw.design.items()}
    assert stated == fast["candidates"][0]["directives"]
    searched = [one for one in attempts if one.number > given.number]
    assert searched and all(one.draw.design != given.draw.design for one in searched)
    assert any(given.id in one.draw.parents for one in searched), "the search builds on what it was given"
