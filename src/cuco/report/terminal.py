"""What ``cuco optimize`` shows while it works, and its summary at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cuco.propose.protocol import Operator
from cuco.report.summary import IMPROVED
from cuco.report.svg import microseconds
from cuco.search.records import Attempt, Candidate, Verdict
from cuco.search.schema import NO_INFRASTRUCTURE

if TYPE_CHECKING:
    from rich.console import RenderableType

_ROWS = 12
_BARE = {"assigned": "writing", "answered": "written", "patched": "waiting", "terminal": "done"}
#: What is being done to a candidate, by the stage of the cascade that its evaluation has entered.
_DOING = {"compile": "building", "verify": "verifying", "measure": "timing"}


class Watch:
    """Follows a search: a live table on a terminal, one line per stage and outcome elsewhere, all on stderr.

    The table shows what the archive says, so nothing is called verified before its verdict is stored.
    """

    def __init__(self, title: str, *, live: bool | None = None) -> None:
        self._title = title
        self._live_wanted = sys.stderr.isatty() if live is None else live
        self._attempts: dict[int, Attempt] = {}
        self._times: dict[int, float] = {}
        self._floor: float | None = None
        self._note = ""
        #: Per running attempt what is done to it, and since when.
        self._doing: dict[int, tuple[str, float]] = {}
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
        doing = _DOING.get(attempt.stage, "") if attempt.state == "leased" else ""
        before, _ = self._doing.pop(attempt.number, ("", 0.0))
        if doing:
            self._doing[attempt.number] = (doing, time.monotonic())
        if attempt.ended or (doing and doing != before):
            self._say(self._line(attempt))

    def confirming(self, candidate: Candidate, verdict: Verdict | None, stage: str = "") -> None:
        what = f"full cascade on {_called(candidate.attempt)}"
        if verdict is not None:
            what += ": held" if verdict.accepted else f": failed: {verdict.reason}"
        elif stage in _DOING:
            what += f": {_DOING[stage]}"
        self.note(what)

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        """What is going on besides candidates."""
        self._note = text
        self._say(text)

    def _say(self, line: str) -> None:
        if not self._live_wanted:
            print(line, file=sys.stderr, flush=True)

    # What people see

    def _line(self, attempt: Attempt) -> str:
        outcome = self._outcome(attempt) if attempt.ended else self._stage(attempt)
        return f"{attempt.id}  {attempt.draw.operator.label:8} {_design(attempt)}  {outcome}"

    def _outcome(self, attempt: Attempt) -> str:
        us = self._times.get(attempt.number)
        if us is not None:
            return microseconds(us)
        if attempt.accepted:
            return "holds"
        return f"{_why(attempt)}: {attempt.detail}"

    def _stage(self, attempt: Attempt) -> str:
        """What is being done to an attempt, or its state."""
        if attempt.ended:
            return _why(attempt)
        doing, _ = self._doing.get(attempt.number, ("", 0.0))
        return doing or _BARE.get(attempt.state, "starting")

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
        if attempt.ended and not attempt.accepted:
            style = "red" if attempt.reason not in ("duplicate", "refused") else "dim"
        shown = microseconds(us) if us else "not timed" if attempt.accepted else attempt.detail
        if attempt.number in self._doing:
            shown = f"for {time.monotonic() - self._doing[attempt.number][1]:.0f} s"
        cells = (
            str(attempt.draw.generation),
            attempt.id,
            attempt.draw.operator.label,
            _design(attempt),
            self._stage(attempt),
            shown,
        )
        return [Text(cell, style=style) for cell in cells]

    def _best(self) -> int | None:
        timed = {
            number: us for number, us in self._times.items() if self._attempts[number].draw.operator.searched
        }
        return min(timed, key=lambda number: (timed[number], number), default=None)

    def _footer(self, best: int | None) -> str:
        hosts = [
            us for number, us in self._times.items() if self._attempts[number].draw.operator is Operator.HOST
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
    return " + ".join(keys) or attempt.draw.label or "design not stated"


def _called(attempt: Attempt) -> str:
    """An attempt's id, and its name if it has one."""
    return f"{attempt.draw.label} ({attempt.id})" if attempt.draw.label else attempt.id


def _why(attempt: Attempt) -> str:
    """An ended attempt's reason. Stage A says whose infrastructure it is about, and which stage decided."""
    if attempt.reason == NO_INFRASTRUCTURE:
        return f"infrastructure of the candidate rejected by {attempt.stage}"
    return attempt.reason or ""


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
        ("fast path", "; ".join(_fast_path(numbers.get("stages", ())))),
        ("judged", f"{numbers['evaluations']} candidates; rejected: {rejected or 'none'}"),
        ("not judged", skipped),
        ("search ended", str(numbers.get("ended") or "")),
        ("times", f"{numbers['fidelity']} on {numbers['machine']}"),
        ("run folder", numbers["run_dir"]),
        ("report", f"{numbers['run_dir']}/report.html"),
    ]
    return [(name, str(text)) for name, text in pairs if text]


def _fast_path(stages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in stages:
        outcome = "held" if one["accepted"] else f"rejected by {one['stage']}: {one['reason']}"
        yield f"stage {one['name']} on {one['backend']} {outcome}"


def print_summary(numbers: Mapping[str, Any]) -> None:
    """The summary on stdout."""
    width = max(len(name) for name, _ in summary_lines(numbers))
    for name, text in summary_lines(numbers):
        print(f"{name:{width}}  {text}")
    for edge, key in (numbers.get("best_directives") or {}).items():
        print(f"{'design of ' + edge:{width}}  {key}")
    for warning in numbers.get("warnings", ()):
        print(f"{'warning':{width}}  {warning}")
