"""``cuco transform``: two stages per backend, both with their verdicts. Real sources, a fake cascade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuco.cli import main
from cuco.source import evolve
from cuco.testbed.findings import Finding
from cuco.verify import Verdict, VerifyOptions

GATHER = ["transform", "micro/allgather", "--lsa-team", "2"]


@pytest.fixture
def cascade(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Rejects every text that ``state['rejected']`` is part of."""
    state: dict[str, Any] = {"rejected": "nothing at all", "efforts": []}

    def verify(_: Any, source: Path, options: VerifyOptions) -> Verdict:
        state["efforts"].append(options.effort)
        text = source.read_text(encoding="utf-8")
        if state["rejected"] in text:
            return Verdict(False, "verify", (Finding("crash", "", "no window"),))
        return Verdict(True, "verify", steps=4, perturbations=2, compared=7)

    monkeypatch.setattr("cuco.verify.verify", verify)
    return state


def test_both_stages_are_reported(
    cascade: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "device.cu"
    assert main([*GATHER, "-o", str(path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["backend"], one["accepted"]) for one in result["stages"]] == [
        ("A", "GIN", True), ("B", "GIN", True), ("A", "Hybrid", True), ("B", "Hybrid", True)]  # fmt: skip
    assert cascade["efforts"] == ["quick", "standard", "quick", "standard"]
    assert [one["file"] for one in result["candidates"]] == [str(path), str(tmp_path / "device-2.cu")]
    for one in result["candidates"]:
        assert one["accepted"] and one["directives"]["allgather_0"].startswith(one["backend"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["device-2.cu", "device.cu"]
    assert "cuco_gen::edge0_AllGather" in evolve.parse(path.read_text()).block("cuco_launch").text


def test_a_rejected_stage_a_stops_its_backend_and_is_kept(
    cascade: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cascade["rejected"] = "kBackend = Backend::Hybrid;"
    assert main([*GATHER, "-o", str(tmp_path / "device.cu")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1].startswith("stage B  GIN  device-initiated candidate  verified")
    assert out[2].startswith("stage A  Hybrid  ") and "  rejected at verify: crash" in out[2]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["device-2-infrastructure.cu", "device.cu"]
    assert "ncclAllGather(" in (tmp_path / "device-2-infrastructure.cu").read_text()


def test_no_accepted_candidate_is_exit_1(
    cascade: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cascade["rejected"] = "cuco_prepare"
    assert main([*GATHER, "-o", str(tmp_path / "device.cu"), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["candidates"] == [] and [one["name"] for one in result["stages"]] == ["A", "A"]
    assert result["stages"][0]["findings"][0]["kind"] == "crash"


def test_what_cannot_be_written_is_refused_with_line_reason_and_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    assert main(["init", str(folder), "--from", "allgather"]) == 0
    host = folder / "host.cu"
    host.write_text(host.read_text().replace("ncclAllGather(", "GATHER(").replace(
        '#include "cuco.h"', '#include "cuco.h"\n#define GATHER ncclAllGather'))  # fmt: skip
    capsys.readouterr()
    assert main(["transform", str(folder), "-o", str(tmp_path / "device.cu")]) == 1
    line = 1 + host.read_text().split("GATHER(")[0].count("\n")
    assert f"host.cu cannot be rewritten by construction: line {line}: " in capsys.readouterr().err
