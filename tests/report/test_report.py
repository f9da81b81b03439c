"""The page and the summary say what the archive says, no more, and need nothing from outside."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cuco.cli import main
from cuco.report.diff import as_html, unified
from cuco.report.model import read_run
from cuco.report.page import render, write_report
from cuco.report.summary import overlap_efficiency, overlap_limit, standing, summarise
from cuco.report.svg import element, microseconds, ticks
from cuco.report.timeline import draw

CONTRACT = {
    "status", "workload", "testbed", "machine", "modelled", "ranks", "lsa_team", "baseline_us",
    "baseline_name", "best_us", "ci95_us", "speedup", "speedup_sequential", "overlap_limit", "roofline_limit",
    "overlap_efficiency", "fidelity", "best", "run_dir", "evaluations", "rejected", "cost_usd", "seed",
}  # fmt: skip
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balanced(HTMLParser):
    """Collects what is wrong with the nesting of a page, and everything it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag in ("script", "iframe", "object", "link", "img"):
            self.wrong.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag}")


@pytest.fixture
def run_copy(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def change(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / "archive.sqlite")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_the_page_is_well_formed_and_self_contained(finished_run: Path) -> None:
    page = render(read_run(finished_run))
    parser = Balanced()
    parser.feed(page)
    assert parser.wrong == [] and parser.open == [] and parser.loads == []
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "") and "url(" not in page


def test_the_page_shows_everything_that_was_asked_for(finished_run: Path) -> None:
    run = read_run(finished_run)
    page, found = render(run), standing(run)
    assert found.best is not None
    for heading in ("One step", "Best so far", "Lineage", "Designs", "What changed in the code",
                    "Rejected candidates", "About this run"):  # fmt: skip
        assert f"<h2>{heading}</h2>" in page
    assert page.count(found.best.id) > 3 and "prefers-color-scheme: dark" in page
    for candidate in run.evolved():
        assert candidate.id in page
    assert "expected ;" in page or "deadlock" in page


def test_candidate_text_cannot_become_markup(run_copy: Path) -> None:
    evil = "<script>alert(1)</script>"
    change(run_copy, "UPDATE attempt SET detail = ?", evil)
    findings = json.dumps([{"kind": evil, "message": evil, "file": evil, "line": 3, "rank": 1}])
    edit = "UPDATE verdict SET data = json_set(data, '$.reason', ?, '$.findings', json(?)) WHERE accepted = 0"
    change(run_copy, edit, evil, findings)
    page = render(read_run(run_copy))
    assert "<script" not in page and "&lt;script&gt;" in page


def test_the_summary_has_the_contracts_keys_and_honest_numbers(finished_run: Path) -> None:
    numbers = summarise(read_run(finished_run))
    assert set(numbers) >= CONTRACT
    assert numbers["status"] == "improved" and numbers["baseline_us"] == 120.0
    assert numbers["speedup"] == pytest.approx(120.0 / numbers["best_us"])
    assert numbers["ci95_us"] == [numbers["best_us"], numbers["best_us"]]
    assert numbers["evaluations"] == 14 and set(numbers["rejected"]) == {
        "compile",
        "lint",
        "verify",
        "measure",
    }
    assert numbers["overlap_limit"] is None  # the fake machine does not say C and M: nothing is made up
    json.dumps(numbers, allow_nan=False)


def test_nothing_is_called_improved_before_the_full_cascade(run_copy: Path) -> None:
    change(run_copy, "DELETE FROM verdict WHERE effort = 'standard'")
    numbers = summarise(read_run(run_copy))
    assert numbers["status"] == "kept-host" and numbers["best"] is None and numbers["speedup"] is None
    assert "No candidate has held under the full cascade" in render(read_run(run_copy))


def test_a_small_gain_keeps_the_host(run_copy: Path) -> None:
    best = summarise(read_run(run_copy))["best"]
    change(run_copy, "UPDATE verdict SET us = 118.0 WHERE id = ?", best)
    host = "(SELECT id FROM attempt WHERE operator = 'host')"
    change(run_copy, f"DELETE FROM verdict WHERE effort = 'standard' AND id NOT IN (?, {host})", best)
    numbers = summarise(read_run(run_copy))
    assert numbers["status"] == "kept-host" and numbers["best_us"] == 118.0 and numbers["speedup"] > 1
    assert "so the host version stays" in render(read_run(run_copy))


def test_intervals_that_touch_keep_the_host(run_copy: Path) -> None:
    best = summarise(read_run(run_copy))["best"]
    change(
        run_copy,
        "UPDATE verdict SET data = json_set(data, '$.ci95_us', json('[10, 125]')) WHERE id = ?",
        best,
    )
    assert summarise(read_run(run_copy))["status"] == "kept-host"


def test_a_champion_that_fell_is_named(run_copy: Path) -> None:
    best = summarise(read_run(run_copy))["best"]
    failed = "accepted = 0, us = NULL, stage = 'verify', data = json_set(data, '$.reason', 'race on chain 7')"
    change(run_copy, f"UPDATE verdict SET {failed} WHERE effort = 'standard' AND id = ?", best)
    page = render(read_run(run_copy))
    assert f"{best} was accepted in the search but failed the full cascade: race on chain 7" in page
    assert summarise(read_run(run_copy))["rejected"]["verify"] >= 1


def test_the_report_command(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (finished_run / "report.html").unlink(missing_ok=True)
    assert main(["report", str(finished_run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workload"] == "fake"
    assert (finished_run / "report.html").stat().st_size > 10_000
    assert main(["report", str(finished_run)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^status +improved$", text, re.M) and "over the best host version" in text


def test_a_report_of_a_damaged_run_names_the_damage(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_copy / "archive.sqlite").write_bytes(b"x" * 5000)
    assert main(["report", str(run_copy)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_writing_replaces_the_page_at_once(run_copy: Path) -> None:
    (run_copy / "report.html").write_text("old")
    assert write_report(run_copy).read_text().startswith("<!doctype html>")
    assert not [path for path in run_copy.iterdir() if path.name.startswith(".report")]


@pytest.mark.parametrize(
    ("us", "compute", "communication", "efficiency"),
    [
        (100.0, 100.0, 80.0, 1.0),
        (180.0, 100.0, 80.0, 0.0),
        (140.0, 100.0, 80.0, 0.5),
        (190.0, 100.0, 80.0, -0.125),
    ],
)
def test_overlap_formulas(us: float, compute: float, communication: float, efficiency: float) -> None:
    assert overlap_efficiency(us, compute, communication) == pytest.approx(efficiency)
    assert overlap_limit(compute, communication) == pytest.approx(1.8)
    assert overlap_efficiency(us, 0.05, 75.0) is None  # nothing to hide
    assert overlap_limit(compute, None) is None and overlap_efficiency(us, 0.0, 3.0) is None


def test_timelines_share_an_axis_and_merge_what_nobody_sees() -> None:
    many = [{"start": i * 0.01, "end": i * 0.01 + 0.005, "label": "put"} for i in range(5000)]
    lane = {"rank": 0, "kind": "egress", "name": "out", "intervals": many}
    drawn = draw({"lanes": [lane]}, "t", 100.0)
    assert drawn.count("<rect") < 50 and "×" in drawn
    single = {
        "rank": 0,
        "kind": "stream",
        "name": "s",
        "intervals": [{"start": 0.0, "end": 50.0, "label": "k"}],
    }
    half = re.search(r'<rect x="150" y="26" width="([\d.]+)"', draw({"lanes": [single]}, "t", 100.0))
    full = re.search(r'<rect x="150" y="26" width="([\d.]+)"', draw({"lanes": [single]}, "t", 50.0))
    assert half and full and float(full[1]) == pytest.approx(2 * float(half[1]), rel=1e-3)


def test_diff() -> None:
    html = as_html("a\nb\nc\n", "a\n<b>\nc\n")
    assert html.count('class="gone"') == 1 and html.count('class="new"') == 1 and "&lt;b&gt;" in html
    assert "same" in as_html("x\n", "x\n")
    assert unified("a\n", "b\n", "old", "new").splitlines()[:2] == ["--- old", "+++ new"]


def test_small_pieces() -> None:
    assert [microseconds(us) for us in (0.5, 12.345, 1234.0, 2.5e6)] == [
        "0.5 µs",
        "12.3 µs",
        "1.23 ms",
        "2.5 s",
    ]
    assert ticks(0, 100, 5) == [0, 20, 40, 60, 80, 100] and ticks(3, 3) == [3]
    assert element("text", text='<&"', class_="a", x=1.5) == '<text class="a" x="1.5">&lt;&amp;&quot;</text>'
