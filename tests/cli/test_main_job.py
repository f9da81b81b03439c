"""``cuco optimize`` from the command to the run folder, with a fake machine."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest
import search_fakes

import cuco
from cuco import session
from cuco.cli import main
from cuco.errors import RejectedError

RING = "micro/ring_shift"


def optimize(run: Path, *more: str) -> int:
    return main(["optimize", RING, "--run-dir", str(run), "--generations", "2", "--json", *more])


def test_a_run_leaves_everything_behind(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert optimize(run) == 0
    captured = capsys.readouterr()
    numbers = json.loads(captured.out)
    assert numbers["status"] == "improved" and numbers["evaluations"] == 8 and numbers["run_dir"] == str(run)
    assert (
        numbers["baseline_name"]
        and numbers["sequential_us"] == 120.0
        and "reading the host version" in captured.err
    )
    assert {"config.toml", "archive.sqlite", "candidates", "best", "report.html"} <= set(os.listdir(run))
    config = tomllib.loads((run / "config.toml").read_text())
    assert config["ranks"] == 4 and config["search"]["budget"]["evaluations"] == 8
    best = json.loads((run / "best" / "origin.json").read_text())
    assert best["candidate"] == numbers["best"] and best["status"] == "improved"
    text = (run / "best" / "candidate.cu").read_text()
    assert text == (run / "candidates" / numbers["best"] / "candidate.cu").read_text()
    for candidate in (run / "candidates").iterdir():
        assert {"answer.json", "candidate.cu", "directive.json", "verdict.json"} <= set(os.listdir(candidate))


def test_python_returns_what_the_command_prints(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert optimize(tmp_path / "one") == 0
    printed = json.loads(capsys.readouterr().out)
    returned = cuco.optimize(RING, run_dir=tmp_path / "two", generations=2)
    for numbers in (printed, returned):
        numbers.pop("run_dir")
        numbers.pop("seconds")
    assert json.loads(json.dumps(returned)) == printed
    assert capsys.readouterr() == ("", "")


def test_the_summary_for_people(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", RING, "--run-dir", str(tmp_path / "run"), "--generations", "2"]) == 0
    out = capsys.readouterr().out
    for expected in (
        "status",
        "best host version",
        "speed-up",
        "judged",
        "rejected:",
        "report.html",
        "design of ag",
    ):
        assert expected in out


def test_ctrl_c_and_resume(fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    undisturbed, run = tmp_path / "calm", tmp_path / "run"
    assert optimize(undisturbed) == 0
    expected = json.loads(capsys.readouterr().out)
    behave = fake_machine["proposer"].behave

    def interrupt(request: Any) -> str:
        if request.attempt == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return ""

    fake_machine["proposer"].behave = interrupt
    assert optimize(run) == 130
    captured = capsys.readouterr()
    assert f"cuco resume {run}" in captured.err and json.loads(captured.out)["exit_code"] == 130
    assert (run / "report.html").exists() and "the search has not ended" in (run / "report.html").read_text()
    fake_machine["proposer"].behave = behave
    assert main(["resume", str(run), "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    ignored = {"run_dir", "seconds"}
    assert {k: v for k, v in numbers.items() if k not in ignored} == {
        k: v for k, v in expected.items() if k not in ignored
    }
    assert main(["resume", str(run), "--json"]) == 0  # a finished run is reported again
    assert json.loads(capsys.readouterr().out)["best"] == numbers["best"]


def test_ctrl_c_outside_the_search_is_resumable_too(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session, "make_proposer", interrupted)
        assert optimize(tmp_path) == 130
    assert f"cuco resume {tmp_path}" in capsys.readouterr().err
    assert main(["resume", str(tmp_path), "--json"]) == 0


def test_a_run_folder_is_never_overwritten(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert optimize(tmp_path) == 0
    capsys.readouterr()
    assert optimize(tmp_path) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_resume_of_a_damaged_archive_changes_nothing(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert optimize(tmp_path) == 0
    connection = sqlite3.connect(tmp_path / "archive.sqlite")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    path = tmp_path / "archive.sqlite"
    path.write_bytes(path.read_bytes()[:9000])
    before = path.read_bytes()
    capsys.readouterr()
    assert main(["resume", str(tmp_path)]) == 2
    assert "is damaged" in capsys.readouterr().err and path.read_bytes() == before


def test_a_rejected_host_version_is_exit_1(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_machine["evaluator"] = "search_fakes:reject_everything"
    assert optimize(tmp_path / "run") == 1
    assert (
        "the host version of ring_shift is rejected (compile): line 9: expected ;" in capsys.readouterr().err
    )


def test_no_accepted_candidate_keeps_the_host(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_machine["evaluator"] = "search_fakes:reject_candidates"
    assert optimize(tmp_path / "run") == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["status"] == "kept-host" and numbers["best"] is None and numbers["rejected"]["verify"] == 8
    assert json.loads((tmp_path / "run" / "best" / "origin.json").read_text())["status"] == "kept-host"


def test_time_that_ends_before_anything_verified_is_exit_4(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_machine["evaluator"] = "search_fakes:reject_candidates"
    assert optimize(tmp_path / "run", "--budget-seconds", "0.3") == 4
    assert "no candidate was accepted before that" in capsys.readouterr().err


def test_evolve_starts_from_given_candidates(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, mine = tmp_path / "run", tmp_path / "mine.cu"
    design = fake_machine["proposer"].options(None, {"ag": None})["ag"][0]
    mine.write_text(search_fakes.source(design))
    fake_machine["evaluator"] = "search_fakes:judge_given"
    arguments = ["evolve", RING, "--candidate", str(mine), "--run-dir", str(run), "--generations", "2"]
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    numbers = json.loads(captured.out)
    assert numbers["evaluations"] == 8 and numbers["stages"] == [] and "given" in captured.err
    assert (run / "candidates").is_dir() and "mine.cu" in (run / "report.html").read_text()
    assert main(["resume", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == numbers["best"]


def test_given_candidates_are_judged_even_if_nobody_can_write_more(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RejectedError("line 3: ncclX has no construction")

    monkeypatch.setattr(session, "make_proposer", refuse)
    fake_machine["evaluator"] = "search_fakes:judge_given"
    (tmp_path / "mine.cu").write_text("void mine() {}\n")
    arguments = ["evolve", RING, "--candidate", str(tmp_path / "mine.cu"), "--run-dir", str(tmp_path / "run")]
    assert main([*arguments, "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["evaluations"] == 1 and numbers["best"] is not None
    assert numbers["ended"] == "nobody can write further candidates: line 3: ncclX has no construction"


def test_stage_a_is_judged_first_and_is_no_candidate_of_the_search(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert optimize(run) == 0
    captured = capsys.readouterr()
    numbers = json.loads(captured.out)
    first, second = numbers["stages"]
    assert (first["name"], first["backend"], first["accepted"], first["stage"]) == (
        "A",
        "LSA",
        True,
        "verify",
    )
    assert (second["name"], second["backend"], second["accepted"]) == ("B", "LSA", True)
    assert numbers["evaluations"] == 8 and numbers["best"] not in (None, first["candidate"])
    answer = json.loads(
        (run / "candidates" / second["candidate"] / "answer.json").read_text().split("\n", 1)[1]
    )
    assert answer["lineage"] == [first["candidate"]]
    verdict = json.loads((run / "candidates" / first["candidate"] / "verdict.json").read_text())
    assert verdict["accepted"] and "us" not in verdict
    for expected in (
        "seed A   infrastructure for LSA  holds",
        "seed B   LSA/Deferred",
        "host     sequential  120",
    ):
        assert expected in captured.err
    page = (run / "report.html").read_text()
    assert "Fast path" in page and "seed A" in page and "seed B" in page


def test_a_rejected_stage_a_is_kept_and_ends_the_fast_path(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    fake_machine["evaluator"] = "search_fakes:reject_stage_a"
    assert optimize(run) == 0
    captured = capsys.readouterr()
    numbers = json.loads(captured.out)
    assert numbers["status"] == "kept-host" and numbers["evaluations"] == 0
    assert numbers["rejected"] == {"compile": 0, "lint": 0, "verify": 0, "measure": 0}
    assert numbers["ended"] == "no infrastructure of a candidate holds, the first: rank 0 has no window"
    (stage,) = numbers["stages"]
    assert not stage["accepted"] and (run / "candidates" / stage["candidate"] / "candidate.cu").is_file()
    said = "infrastructure of the candidate rejected by verify: rank 0 has no window"
    assert said in captured.err and said in (run / "report.html").read_text()
    assert main(["report", str(run)]) == 0
    assert "stage A on LSA rejected by verify: rank 0 has no window" in capsys.readouterr().out
    assert main(["resume", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"] == numbers["stages"]


def test_a_broken_machine_is_exit_3(
    fake_machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_machine["evaluator"] = "search_fakes:evaluate_badly"
    fake_machine["options"] = {"how": "raise"}
    assert optimize(tmp_path / "run") == 3
    err = capsys.readouterr().err
    assert "failed for reasons of this machine, the last: RuntimeError: the disk is full. Logs are" in err
