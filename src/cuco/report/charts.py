"""Charts of a search as SVG: the best so far, and who descends from whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuco.report.model import RunData, best_verdict
from cuco.report.summary import Standing
from cuco.report.svg import drawing, element, label, line, microseconds, path, ticks
from cuco.search.records import Candidate

_WIDTH = 1000.0
Scale = Callable[[float], float]


def best_so_far(run: RunData, found: Standing, floor_us: float | None) -> str:
    """Times of candidates in the order they were assigned, the best so far, baselines and the floor."""
    evolved = [one for one in run.evolved() if one.attempt.ended]
    timed = [one for one in evolved if one.us is not None]
    marks = [("sequential", found.sequential), ("best host version", found.baseline)]
    lines = [(name, one.us) for name, one in marks if one is not None and one.us is not None]
    if len(lines) == 2 and lines[0][1] == lines[1][1]:
        lines = [("host version", lines[0][1])]
    if floor_us:
        lines.append(("floor: no schedule is faster", floor_us))
    values = [one.us for one in timed if one.us is not None] + [us for _, us in lines if us is not None]
    if not values or not evolved:
        return ""
    height, left, right, top, bottom = 300.0, 78.0, 16.0, 16.0, 34.0
    low, high = min(values), max(values)
    margin = (high - low or high) * 0.08
    low, high = max(0.0, low - margin), high + margin
    numbers = [one.attempt.number for one in evolved]
    first, last = min(numbers), max(numbers)

    def x(number: float) -> float:
        return left + (number - first + 0.5) * (_WIDTH - left - right) / (last - first + 1)

    def y(us: float) -> float:
        return top + (high - us) * (height - top - bottom) / (high - low)

    parts = []
    for tick in ticks(low, high):
        parts += [
            line(left, y(tick), _WIDTH - right, y(tick), "grid"),
            label(left - 8, y(tick) + 4, microseconds(tick), "end"),
        ]
    for name, us in lines:
        if us is not None:
            parts += [
                line(left, y(us), _WIDTH - right, y(us), "reference"),
                label(_WIDTH - right - 4, y(us) - 5, f"{name}, {microseconds(us)}", "end"),
            ]
    parts += _steps(timed, x, y, _WIDTH - right)
    for one in evolved:
        parts.append(
            _mark(
                one,
                x(one.attempt.number),
                y(one.us) if one.us is not None else height - bottom + 6,
                best=found.best is not None and one.id == found.best.id,
            )
        )
    parts.append(label(left, height - 6, "candidates in the order they were written; × rejected"))
    return drawing(_WIDTH, height, "Best time so far over the candidates of the search", parts)


def _steps(timed: Sequence[Candidate], x: Scale, y: Scale, right: float) -> list[str]:
    points: list[tuple[float, float]] = []
    best: float | None = None
    for one in timed:
        if one.us is not None and (best is None or one.us < best):
            here = x(one.attempt.number)
            if best is not None:
                points.append((here, y(best)))
            points.append((here, y(one.us)))
            best = one.us
    if best is not None:
        points.append((right, y(best)))
    return [path(points, "curve")] if points else []


def _mark(one: Candidate, x: float, y: float, *, best: bool) -> str:
    note = element("title", text=f"{one.id}: {_outcome(one)}")
    if one.us is None:
        cross = f"M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6"
        return element("path", note, d=cross, class_="failed")
    return element("circle", note, cx=x, cy=y, r=6 if best else 3.5, class_="best" if best else "accepted")


def _outcome(one: Candidate) -> str:
    if one.us is not None:
        return microseconds(one.us)
    return f"rejected by {one.attempt.reason}: {one.attempt.detail}"


def lineage(run: RunData, found: Standing) -> str:
    """Who descends from whom: one row per island and line of descent, time from left to right."""
    evolved = run.evolved()
    if not evolved:
        return ""
    rows = _rows(evolved, run.config.search.islands)
    left, right, step = 92.0, 20.0, 22.0
    first, last = evolved[0].attempt.number, evolved[-1].attempt.number
    place: dict[str, tuple[float, float]] = {}
    parts: list[str] = []
    height = 14.0
    for island, lanes in enumerate(rows):
        parts += [
            label(4, height + 12, f"island {island}"),
            line(4, height - 6, _WIDTH - right, height - 6, "divider"),
        ]
        for lane in lanes:
            for one in lane:
                share = (one.attempt.number - first) / max(1, last - first)
                place[one.id] = (left + share * (_WIDTH - left - right - 10), height + 8)
            height += step
        height += 8
    for one in evolved:
        x, y = place[one.id]
        for parent in one.lineage:
            if parent in place:
                px, py = place[parent]
                middle = (px + x) / 2
                bend = f"M{px:.1f} {py:.1f}C{middle:.1f} {py:.1f} {middle:.1f} {y:.1f} {x:.1f} {y:.1f}"
                parts.append(element("path", d=bend, class_="descent"))
    ancestors = _ancestors(found.best, {one.id: one for one in evolved})
    for one in evolved:
        best = found.best is not None and one.id == found.best.id
        mark = _mark(one, *place[one.id], best=best)
        parts.append(
            mark.replace('class="accepted"', 'class="accepted ancestor"') if one.id in ancestors else mark
        )
    return drawing(_WIDTH, height + 4, "Lineage of the candidates", parts)


def _rows(evolved: Sequence[Candidate], islands: int) -> list[list[list[Candidate]]]:
    """Per island a few lanes; a child goes beside its parent's lane where there is room."""
    rows: list[list[list[Candidate]]] = [[[] for _ in range(3)] for _ in range(islands)]
    lane_of: dict[str, int] = {}
    for one in evolved:
        island = one.attempt.draw.island
        wanted = [lane_of[parent] for parent in one.lineage if parent in lane_of]
        lanes = rows[island]
        lane = min(range(len(lanes)), key=lambda index: (len(lanes[index]), index not in wanted, index))
        lanes[lane].append(one)
        lane_of[one.id] = lane
    return rows


def _ancestors(best: Candidate | None, by_id: dict[str, Candidate]) -> set[str]:
    found: set[str] = set()
    waiting = list(best.lineage) if best else []
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in found:
            found.add(name)
            waiting += by_id[name].lineage
    return found


def verdict_text(run: RunData, one: Candidate) -> str:
    """One line about a candidate's verdict."""
    verdict = best_verdict(one, run.confirmed)
    if verdict is None:
        return one.attempt.detail or one.attempt.state
    return microseconds(verdict.us) if verdict.accepted and verdict.us else verdict.reason
