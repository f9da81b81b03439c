"""What the evaluation function makes of a measurement: times of another size never compete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cuco.search import judging
from cuco.testbed.findings import Finding
from cuco.verify import Measurement, MeasureOptions
from cuco.verify.limits import Floor
from cuco.workload import load_workload

FOUND = Measurement(
    us=10.0, device_us=9.0, host_us=11.0, per_rank_us=(10.0,), compute_us=6.0, communication_us=5.0,
    floor=Floor(4.0, 3.0, 2.0), machine="m", ranks=4, lsa_team=4, size="full", params={"n": 8}, sliced=True,
    note="", events=1, seconds=0.1,
)  # fmt: skip
OPTIONS = MeasureOptions(size="full")


def measured(monkeypatch: pytest.MonkeyPatch, folder: Path, found: Measurement) -> dict[str, object]:
    monkeypatch.setattr("cuco.verify.measure", lambda *_: found)
    return judging._measured(load_workload("micro/ring_shift"), Path("candidate.cu"), OPTIONS, folder)


def test_a_time_at_the_size_asked_for_is_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = measured(monkeypatch, tmp_path, FOUND)
    assert data["accepted"] and data["us"] == 10.0 and data["floor_us"] == 4.0 and data["modelled"]
    assert (tmp_path / judging.TIMELINE).is_file()


def test_a_time_at_another_size_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = measured(monkeypatch, tmp_path, replace(FOUND, size="tiny", note="timed at size 'tiny': no slice"))
    assert not data["accepted"] and data["stage"] == "measure" and "us" not in data
    assert "cannot be timed at size full" in str(data["reason"])


def test_a_time_that_cannot_be_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    below = Finding("causality", "below-floor", "the step takes 1 us, its least work needs 4 us")
    data = measured(monkeypatch, tmp_path, replace(FOUND, us=1.0, findings=(below,)))
    assert not data["accepted"] and "least work" in str(data["reason"])
