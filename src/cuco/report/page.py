"""``report.html``: one self-contained page, readable offline, light and dark, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from cuco import __version__
from cuco.report import diff, timeline
from cuco.report.charts import best_so_far, lineage, verdict_text
from cuco.report.model import RunData, best_verdict, read_run
from cuco.report.summary import IMPROVED, Standing, stage_backend, standing, summarise
from cuco.report.svg import microseconds
from cuco.search.blobs import write_atomic
from cuco.search.records import Candidate, Verdict
from cuco.search.schema import NO_INFRASTRUCTURE
from cuco.space.directive import CORE_FIELDS

PAGE = "report.html"
_FINDINGS_SHOWN = 4


def write_report(folder: Path, run: RunData | None = None) -> Path:
    """Writes ``report.html`` of a run folder and returns its path."""
    path = folder / PAGE
    write_atomic(path, render(run or read_run(folder)))
    return path


def render(run: RunData) -> str:
    """The page as HTML text."""
    found, numbers = standing(run), summarise(run)
    sections = [
        _head(run, numbers),
        _tiles(numbers),
        _account(run, found, numbers),
        _timelines(run, found),
        _section("Best so far", best_so_far(run, found, numbers["floor_us"])),
        _section("Lineage", lineage(run, found), _lineage_note(run)),
        _fast_path(run),
        _designs(run, found),
        _diff(run, found),
        _rejections(run),
        _skips(run),
        _about(run, numbers),
    ]
    style = files("cuco.report").joinpath("style.css").read_text(encoding="utf-8")
    title = escape(f"{run.config.name}: {numbers['status']}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · CUCo</title><style>{style}</style></head>"
        f"<body><main>{''.join(sections)}</main></body></html>\n"
    )


def _section(title: str, body: str, note: str = "") -> str:
    if not body:
        return ""
    return f"<h2>{escape(title)}</h2>{f'<p class=soft>{note}</p>' if note else ''}{body}"


def _head(run: RunData, numbers: Mapping[str, Any]) -> str:
    improved = numbers["status"] == IMPROVED
    badge = "improved" if improved else "host version kept"
    unfinished = "" if run.outcome else " · the search has not ended"
    where = (
        f"{run.config.ranks} ranks in NVLink domains of {run.config.lsa_team} · size {run.config.size} · "
        f"machine {run.config.machine} · {run.config.testbed} testbed{unfinished}"
    )
    return (
        f'<h1>{escape(run.config.name)}<span class="status {"improved" if improved else "kept"}">{badge}'
        f"</span></h1><p class=soft>{escape(where)}</p>"
    )


def _tiles(numbers: Mapping[str, Any]) -> str:
    tiles: list[tuple[str | None, str]] = [
        (_time(numbers["best_us"]), "best verified candidate"),
        (_time(numbers["baseline_us"]), f"best host version ({numbers['baseline_name']})"),
        (_times(numbers["speedup"]), "speed-up over it"),
        (_times(numbers["speedup_sequential"]), "over the sequential version"),
        (_times(numbers["overlap_limit"]), "most that overlap could gain"),
        (_share(numbers["overlap_efficiency"]), "of what could be hidden is hidden"),
        (_times(numbers["roofline_limit"]), "limit of any schedule, over the best host version"),
        (str(numbers["evaluations"]), "candidates judged"),
    ]
    drawn = "".join(
        f"<div class=tile><b>{escape(value or '–')}</b><span>{escape(name)}</span></div>"
        for value, name in tiles
    )
    note = "All times are modelled on the machine named above, not measured." if numbers["modelled"] else ""
    return f"<div class=tiles>{drawn}</div>" + (f"<p class=soft>{note}</p>" if note else "")


def _time(us: float | None) -> str | None:
    return None if us is None else microseconds(us)


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.2f}×"


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.0%}"


def _account(run: RunData, found: Standing, numbers: Mapping[str, Any]) -> str:
    """What happened, in sentences."""
    if found.best is None:
        text = "No candidate has held under the full cascade, so the host version stays."
    elif numbers["status"] == IMPROVED:
        text = (
            f"Candidate {found.best.id} replaces the host version: it passed the full cascade and is "
            f"{_times(numbers['speedup'])} as fast as the best host version."
        )
    else:
        text = (
            f"Candidate {found.best.id} passed the full cascade at {_times(numbers['speedup'])} of the best "
            f"host version's speed; {run.improve:.0%} is the least that counts, so the host version stays."
        )
    demoted = [
        one
        for one in run.evolved()
        if run.confirmed in one.verdicts and not one.verdicts[run.confirmed].accepted
    ]
    more = "".join(
        f"<p>{escape(one.id)} was accepted in the search but failed the full cascade: "
        f"{escape(one.verdicts[run.confirmed].reason)}</p>"
        for one in demoted
    )
    warnings = "".join(f'<p class="bad">{escape(str(warning))}</p>' for warning in numbers["warnings"])
    return f"<p>{escape(text)}</p>{more}{warnings}"


def _timelines(run: RunData, found: Standing) -> str:
    shown = [
        (name, one, data)
        for name, one in (("Best host version", found.baseline), ("Best candidate", found.best))
        if one is not None and (data := run.timeline(one)) is not None
    ]
    span = max((timeline.length(data) for _, _, data in shown), default=0.0)
    if not shown or not span:
        return ""
    key = "".join(
        f'<i style="background:var(--{colour})"></i>{name}'
        for colour, name in (
            ("stream", "kernels and copies"),
            ("out", "link out"),
            ("in", "link in"),
            ("proxy", "NIC queue"),
        )
    )
    body = "".join(
        f"<h3>{escape(f'{name}, {verdict_text(run, one)}')}</h3>"
        f"<div class=scroll>{timeline.draw(data, name, span)}</div>"
        for name, one, data in shown
    )
    return _section("One step", f'<p class="soft key">{key}</p>{body}', "Both on the same time axis.")


def _lineage_note(run: RunData) -> str:
    moves = [
        f"{escape(move.candidate)} visited island {move.target} in generation {move.generation}"
        for move in run.migrations
    ]
    return "; ".join(moves) if moves else ""


def _fast_path(run: RunData) -> str:
    """Stage A and stage B of the fast path, per backend."""
    rows = [
        f"<tr><td>{escape(one.attempt.draw.operator.label)}</td><td>{escape(stage_backend(one))}</td>"
        f"<td class=mono>{escape(one.id)}</td>"
        f'<td class="{"good" if one.attempt.accepted else "bad"}">{escape(_stage_outcome(one))}</td></tr>'
        for one in run.fast_path()
    ]
    note = (
        "Seed A adds windows and the device communicator and keeps NCCL's own calls; seed B replaces them by "
        "the conservative design. Seed A is verified and not timed."
    )
    return _section("Fast path", _table(["stage", "backend", "candidate", "outcome"], rows), note)


def _stage_outcome(one: Candidate) -> str:
    if not one.attempt.ended:
        return one.attempt.state
    if one.attempt.accepted:
        return microseconds(one.us) if one.us is not None else "holds"
    if not one.verdicts:
        return f"{one.attempt.reason}: {one.attempt.detail}"
    whose = "infrastructure of the candidate " if one.attempt.reason == NO_INFRASTRUCTURE else ""
    return f"{whose}rejected by {one.attempt.stage}: {one.attempt.detail}"


def _designs(run: RunData, found: Standing) -> str:
    """All candidates with their directives, fastest first, rejected ones last."""
    ordered = sorted(
        run.evolved(), key=lambda one: (_reported_us(run, one) or float("inf"), one.attempt.number)
    )
    rows = []
    for one in ordered:
        best = ' class="is-best"' if found.best is not None and one.id == found.best.id else ""
        rows += [
            f"<tr{best}>{''.join(_cells(run, one, edge, index == 0))}</tr>"
            for index, edge in enumerate(one.design or {"": None})
        ]
    names = ["candidate", "by", "outcome", "edge", *(name for name in CORE_FIELDS), "more"]
    return _section("Designs", _table(names, rows), "One line per communication edge, fastest first.")


def _reported_us(run: RunData, one: Candidate) -> float | None:
    verdict = best_verdict(one, run.confirmed)
    return verdict.us if verdict is not None and verdict.accepted else None


def _cells(run: RunData, one: Candidate, edge: str, first: bool) -> Iterable[str]:
    verdict = best_verdict(one, run.confirmed)
    if first:
        yield f"<td class=mono>{escape(one.id)}</td><td>{escape(_origin(one))}</td>"
        yield f"<td class={_tone(verdict)}>{escape(_outcome(run, one, verdict))}</td>"
    else:
        yield "<td></td><td></td><td></td>"
    directive = one.design.get(edge)
    yield f"<td>{escape(edge)}</td>"
    for name in CORE_FIELDS:
        value = getattr(directive, name) if directive else None
        yield f"<td>{'–' if value is None else escape(str(value))}</td>"
    extra = directive.extensions() if directive else {}
    yield f"<td>{escape(', '.join(f'{name} {value}' for name, value in extra.items()))}</td>"


def _origin(one: Candidate) -> str:
    """How a candidate came about, with the name of the file that was given."""
    return " ".join(filter(None, (one.attempt.draw.operator.label, one.attempt.draw.label)))


def _tone(verdict: Verdict | None) -> str:
    return "soft" if verdict is None else "good" if verdict.accepted else "bad"


def _outcome(run: RunData, one: Candidate, verdict: Verdict | None) -> str:
    if verdict is None:
        return one.attempt.reason or one.attempt.state
    return verdict_text(run, one) if verdict.accepted else f"rejected by {verdict.stage}"


def _table(names: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    return (
        f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _diff(run: RunData, found: Standing) -> str:
    host = found.sequential or found.baseline
    if found.best is None or host is None:
        return ""
    body = diff.files_as_html(run.sources(host), run.sources(found.best))
    return _section(
        "What changed in the code",
        f"<details><summary>Show the difference</summary><div class=scroll>{body}</div></details>",
    )


def _rejections(run: RunData) -> str:
    rows = []
    for one in run.evolved():
        verdict = best_verdict(one, run.confirmed)
        if verdict is None or verdict.accepted:
            continue
        design = "; ".join(dict.fromkeys(directive.key() for directive in one.design.values()))
        reason = "".join(f"<p>{escape(text)}</p>" for text in _reasons(verdict))
        rows.append(
            f"<tr><td class=mono>{escape(one.id)}</td><td>{escape(verdict.stage)}</td>"
            f"<td>{reason}</td><td class=soft>{escape(design)}</td></tr>"
        )
    body = _table(["candidate", "stage", "evidence", "design"], rows)
    return _section("Rejected candidates", body)


def _reasons(verdict: Verdict) -> list[str]:
    findings: Sequence[Mapping[str, Any]] = list(verdict.data.get("findings", ()))
    texts = [_finding(finding) for finding in findings[:_FINDINGS_SHOWN]]
    if len(findings) > _FINDINGS_SHOWN:
        texts.append(f"and {len(findings) - _FINDINGS_SHOWN} more")
    return texts or [verdict.reason]


def _finding(finding: Mapping[str, Any]) -> str:
    place = [f"rank {finding['rank']}"] if finding.get("rank") is not None else []
    if finding.get("line") is not None:
        place.append(f"{Path(str(finding.get('file') or 'candidate.cu')).name}:{finding['line']}")
    where = f" ({', '.join(place)})" if place else ""
    return f"{finding.get('kind', 'finding')}{where}: {finding.get('message', '')}"


def _skips(run: RunData) -> str:
    rows = [
        f"<tr><td class=mono>{escape(one.id)}</td><td>{escape(one.reason or '')}</td>"
        f"<td>{escape(one.detail)}</td></tr>"
        for one in run.attempts
        if one.reason in ("duplicate", "refused", "infrastructure")
    ]
    return _section("Not judged", _table(["attempt", "why", "detail"], rows))


def _about(run: RunData, numbers: Mapping[str, Any]) -> str:
    facts = {
        "run folder": str(run.folder),
        "seed": str(run.config.search.seed),
        "effort": run.config.effort,
        "working time": f"{run.seconds:.0f} s",
        "cost": f"${numbers['cost_usd']:.2f}",
        "the search ended because": str(run.outcome.get("ended", "it has not ended")),
        "fidelity of times": str(numbers["fidelity"]),
        "CUCo": __version__,
    }
    rows = [
        f"<tr><td class=soft>{escape(name)}</td><td>{escape(value)}</td></tr>"
        for name, value in facts.items()
    ]
    return _section("About this run", f"<table><tbody>{''.join(rows)}</tbody></table>")
