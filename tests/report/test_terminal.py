"""The live table and the lines that stand for it where there is no terminal."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from search_fakes import SEED_DESIGN

from cuco.propose.protocol import Operator
from cuco.report.terminal import Watch, summary_lines
from cuco.search.records import Attempt, Candidate, Draw, Verdict


def attempt(number: int, state: str, operator: Operator = Operator.EXPLORE, **values: Any) -> Attempt:
    design = {} if operator is Operator.HOST else {"ag": SEED_DESIGN}
    fields = {
        "stage": "",
        "reason": None,
        "detail": "",
        "answer_sha256": "ab",
        "cost_usd": 0.0,
        "leases": 1,
        "failures": 0,
    }
    label = "" if design else "chunked[chunks=2]" if operator is Operator.HOST else "mine.cu"
    draw = Draw(operator, 0, 1, (), design, label)
    return Attempt(number, f"{number:04d}-abc", draw, state, **{**fields, **values})


def good(us: float) -> Verdict:
    return Verdict(True, "measure", us, {"floor_us": 10.0})


def shown(watch: Watch) -> str:
    console = Console(width=150, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(watch.table())
    return console.export_text()


def test_the_table_follows_the_search() -> None:
    watch = Watch("optimize fake", live=True)
    watch.changed(attempt(0, "terminal", Operator.HOST, reason="accepted"), good(100.0))
    watch.changed(attempt(1, "leased", stage="verify"), None)
    text = shown(watch)
    assert (
        "chunked[chunks=2]" in text
        and "100 µs" in text
        and "verifying" in text
        and "for 0 s" in text
        and "best candidate" not in text
    )
    watch.changed(attempt(1, "terminal", reason="accepted"), good(50.0))
    watch.changed(attempt(2, "terminal", reason="verify", detail="race on buffer recv"), None)
    watch.changed(attempt(3, "assigned"), None)
    text = shown(watch)
    for expected in ("LSA/Deferred/Barrier/CTA/PerPeer", "race on buffer recv", "writing",
                     "2.00× of it", "limit 10 µs"):  # fmt: skip
        assert expected in text
    assert "verified" not in text and "quick cascade" in text


def test_the_full_cascade_is_told() -> None:
    watch = Watch("x", live=True)
    watch.changed(attempt(1, "terminal", reason="accepted"), good(50.0))
    candidate = Candidate(attempt(1, "terminal", reason="accepted"), {}, (), "", 0.0, {})
    watch.confirming(candidate, None)
    assert "full cascade on 0001-abc" in shown(watch)
    watch.confirming(candidate, None, "measure")
    assert "full cascade on 0001-abc: timing" in shown(watch)
    watch.confirming(candidate, Verdict(False, "verify", None, {"reason": "late write"}))
    assert "0001-abc: failed: late write" in shown(watch)


def test_without_a_terminal_there_is_one_line_per_stage_and_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Watch("x", live=False) as watch:
        for stage in ("quick", "compile", "verify", "verify", "measure"):
            watch.changed(attempt(1, "leased", stage=stage), None)
        watch.changed(attempt(1, "terminal", reason="accepted"), good(50.0))
        watch.changed(attempt(2, "terminal", reason="compile", detail="line 3"), None)
    captured = capsys.readouterr()
    ends = [line.rpartition("  ")[2] for line in captured.err.splitlines()]
    assert captured.out == "" and ends == ["building", "verifying", "timing", "50 µs", "compile: line 3"]


def test_the_stages_of_the_fast_path_have_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    held = Verdict(True, "verify", None, {})
    with Watch("x", live=False) as watch:
        watch.changed(attempt(1, "terminal", Operator.STAGE_A, reason="accepted", stage="verify"), held)
        watch.changed(attempt(2, "terminal", Operator.SEED, reason="accepted"), good(50.0))
        watch.changed(
            attempt(3, "terminal", Operator.STAGE_A, reason="stage-a", stage="compile", detail="x"), None
        )
    first, second, third = capsys.readouterr().err.splitlines()
    assert "seed A" in first and first.endswith("holds") and "seed B" in second
    assert third.endswith("infrastructure of the candidate rejected by compile: x")
    text = shown(watch)
    assert "best candidate 50 µs" in text and text.count("seed A") == 2 and text.count("not timed") == 1


def test_markup_in_a_reason_is_shown_as_it_is() -> None:
    watch = Watch("x", live=True)
    watch.changed(attempt(2, "terminal", reason="compile", detail="[bold]a[0][/bold]"), None)
    assert "[bold]a[0][/bold]" in shown(watch)


def test_the_summary_leaves_out_what_is_not_known() -> None:
    nothing: dict[str, Any] = {
        "status": "kept-host", "best": None, "baseline_name": "sequential", "baseline_us": 12.0,
        "evaluations": 3,
        "rejected": {"compile": 3}, "skipped": {"duplicate": 1}, "fidelity": "modelled", "machine": "m",
        "run_dir": "r",
    }  # fmt: skip
    assert "cuco resume r" in dict(summary_lines(nothing))["status"]
    lines = dict(summary_lines({**nothing, "ended": "the budget is used up"}))
    assert lines["status"] == "host version kept"
    assert lines["best"] == "no candidate held" and "3 by compile" in lines["judged"]
    assert "speed-up" not in lines and "overlap" not in lines and lines["not judged"] == "1 duplicate"
