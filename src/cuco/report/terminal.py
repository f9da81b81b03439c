"""What ``cuco optimize`` shows while it works, and its summary at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cuco.report.summary import IMPROVED
from cuco.report.svg import microseconds
from cuco.search.records import Attempt, Candidate, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

_ROWS = 12
_BARE = {"assigned": "writing", "answered": "written", "patched": "waiting", "terminal": "done"}


class Watch:
    """Follows a search: a live table on a terminal, one line per outcome elsewhere. Everything on stderr.

    ``names`` gives host versions their names. The table shows what the archive says, so nothing is called
    verified before its verdict is stored.
    """

    def __init__(self, title: str, *, live: bool | None = None) -> None:
        self._title = title
        self._live_wanted = sys.stderr.isatty() if live is None else live
        self._attempts: dict[int, Attempt] = {}
        self._times: dict[int, float] = {}
        self._floor: float | None = None
        self._note = ""
        self._began = time.monotonic()
        self._live: Any = None

    def __enter__(self) -> Self:
        if self._live_wanted:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                get_renderable=self.table, console=Console(stderr=True), refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    # The search tells

    def known(self, attempt: Attempt, verdict: Verdict | None) -> None:
        """Takes in what an earlier session did."""
        self._attempts[attempt.number] = attempt
        if verdict is not None and verdict.accepted and verdict.us is not None:
            self._times[attempt.number] = verdict.us
            self._floor = verdict.data.get("floor_us", self._floor)

    def changed(self, attempt: Attempt, verdict: Verdict | None) -> None:
        self.known(attempt, verdict)
        if attempt.ended and not self._live_wanted:
            print(self._line(attempt), file=sys.stderr)

    def confirming(self, candidate: Candidate, verdict: Verdict | None) -> None:
        if verdict is None:
            self._note = f"full cascade on {candidate.id}"
        else:
            held = "held" if verdict.accepted else f"failed: {verdict.reason}"
            self._note = f"full cascade on {candidate.id}: {held}"
        if not self._live_wanted:
            print(self._note, file=sys.stderr)

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        """What is going on besides candidates."""
        self._note = text
        if not self._live_wanted:
            print(text, file=sys.stderr)

    # What people see

    def _line(self, attempt: Attempt) -> str:
        us = self._times.get(attempt.number)
        outcome = microseconds(us) if us else f"{attempt.reason}: {attempt.detail}"
        return f"{attempt.id}  {attempt.draw.operator.value:8} {_design(attempt)}  {outcome}"

    def table(self) -> RenderableType:
        """The live table: latest candidates, best so far, and what is going on."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self._title, title_justify="left", expand=True)
        for name in ("gen", "candidate", "by", "design", "stage", "time"):
            table.add_column(name, overflow="ellipsis", no_wrap=True, ratio=3 if name == "design" else None)
        best = self._best()
        for number in sorted(self._attempts)[-_ROWS:]:
            table.add_row(*self._row(self._attempts[number], best))
        return Group(table, Text(self._footer(best), style="dim"))

    def _row(self, attempt: Attempt, best: int | None) -> list[Any]:
        from rich.text import Text

        us = self._times.get(attempt.number)
        style = "bold green" if attempt.number == best else ""
        if attempt.ended and us is None:
            style = "red" if attempt.reason not in ("duplicate", "refused") else "dim"
        stage = attempt.reason if attempt.ended else _BARE.get(attempt.state, attempt.stage or attempt.state)
        shown = microseconds(us) if us else attempt.detail if attempt.ended else ""
        cells = (
            str(attempt.draw.generation),
            attempt.id,
            attempt.draw.operator.value,
            _design(attempt),
            stage or "",
            shown,
        )
        return [Text(cell, style=style) for cell in cells]

    def _best(self) -> int | None:
        timed = {
            number: us
            for number, us in self._times.items()
            if self._attempts[number].draw.operator.value != "host"
        }
        return min(timed, key=lambda number: (timed[number], number), default=None)

    def _footer(self, best: int | None) -> str:
        hosts = [
            us for number, us in self._times.items() if self._attempts[number].draw.operator.value == "host"
        ]
        parts = [f"{time.monotonic() - self._began:.0f} s"]
        if hosts:
            parts.append(f"best host version {microseconds(min(hosts))}")
        if best is not None:
            gain = f", {min(hosts) / self._times[best]:.2f}× of it" if hosts else ""
            parts.append(f"best candidate {microseconds(self._times[best])}{gain} (quick cascade)")
        if self._floor:
            parts.append(f"limit {microseconds(self._floor)}")
        return " · ".join([*parts, self._note] if self._note else parts)


def _design(attempt: Attempt) -> str:
    keys = dict.fromkeys(
        f"{one.backend}/{one.placement}/{one.sync}/{one.issuer}/{one.granularity}"
        for one in attempt.draw.design.values()
    )
    return " + ".join(keys) or "the host version"


def summary_lines(numbers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The summary as (name, text) pairs; what is not known is left out."""

    def time_of(key: str) -> str:
        return microseconds(numbers[key]) if numbers.get(key) else ""

    def ratio(key: str) -> str:
        return f"{numbers[key]:.2f}×" if numbers.get(key) else ""

    efficiency = numbers.get("overlap_efficiency")
    rejected = ", ".join(f"{count} by {stage}" for stage, count in numbers["rejected"].items() if count)
    skipped = ", ".join(f"{count} {reason}" for reason, count in numbers["skipped"].items() if count)
    status = "improved" if numbers["status"] == IMPROVED else "host version kept"
    if not numbers.get("ended"):
        status = f"not finished; continue with: cuco resume {numbers['run_dir']}"
    pairs = [
        ("status", status),
        ("best", f"{numbers['best']}  {time_of('best_us')}" if numbers["best"] else "no candidate held"),
        ("best host version", f"{numbers['baseline_name']}  {time_of('baseline_us')}"),
        ("sequential version", time_of("sequential_us")),
        (
            "speed-up",
            ratio("speedup")
            and f"{ratio('speedup')} over the best host version, "
            f"{ratio('speedup_sequential') or '–'} over the sequential one",
        ),
        (
            "overlap",
            efficiency is not None
            and f"{efficiency:.0%} of what could be hidden; overlap gains at most {ratio('overlap_limit')}"
            or "",
        ),
        (
            "limit of any schedule",
            ratio("roofline_limit") and f"{ratio('roofline_limit')} over the best host version",
        ),
        ("judged", f"{numbers['evaluations']} candidates; rejected: {rejected or 'none'}"),
        ("not judged", skipped),
        ("search ended", str(numbers.get("ended") or "")),
        ("times", f"{numbers['fidelity']} on {numbers['machine']}"),
        ("run folder", numbers["run_dir"]),
        ("report", f"{numbers['run_dir']}/report.html"),
    ]
    return [(name, str(text)) for name, text in pairs if text]


def print_summary(numbers: Mapping[str, Any]) -> None:
    """The summary on stdout."""
    width = max(len(name) for name, _ in summary_lines(numbers))
    for name, text in summary_lines(numbers):
        print(f"{name:{width}}  {text}")
    for edge, key in (numbers.get("best_directives") or {}).items():
        print(f"{'design of ' + edge:{width}}  {key}")
    for warning in numbers.get("warnings", ()):
        print(f"{'warning':{width}}  {warning}")
