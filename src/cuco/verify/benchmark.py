"""The table of ``cuco bench``: host-driven baselines, tuned, and candidates, on one machine (contracts 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuco.errors import RejectedError
from cuco.verify import limits
from cuco.verify.measure import Measurement, MeasureOptions, measure
from cuco.workload import Workload


@dataclass(frozen=True)
class Entry:
    """Something to time: its name, its source and the parameters it gets beside the workload's."""

    name: str
    source: Path
    extra: Mapping[str, int | float]


@dataclass(frozen=True)
class Row:
    """One line of the table. ``measurement`` is None for what could not be timed; ``reason`` says why."""

    name: str
    measurement: Measurement | None
    reason: str = ""
    extra: Mapping[str, int | float] | None = None

    @property
    def us(self) -> float | None:
        """The time in microseconds, if there is one that may be believed."""
        if self.measurement is None or self.measurement.findings:
            return None
        return self.measurement.us


def baselines(workload: Workload, options: MeasureOptions) -> list[Row]:
    """The workload's host-driven versions, every tuned combination of each, in the workload's order."""
    return [time_entry(workload, Entry(b.name, b.source, b.extra), options) for b in workload.baselines()]


def best(rows: Sequence[Row]) -> Row | None:
    """The fastest row; the first of equals."""
    timed = [row for row in rows if row.us is not None]
    if len({row.measurement.size for row in timed if row.measurement}) > 1:
        raise ValueError("times of different sizes cannot be compared")
    return min(timed, key=lambda row: row.us or 0.0, default=None)


def time_entry(workload: Workload, entry: Entry, options: MeasureOptions) -> Row:
    """Times one entry; a rejection becomes the row's reason."""
    try:
        found = measure(workload, entry.source, replace(options, extra={**options.extra, **entry.extra}))
    except RejectedError as error:
        return Row(entry.name, None, str(error), entry.extra)
    if found.size != options.size:
        # A time at another size compares with nothing of this table.
        return Row(entry.name, None, f"it cannot be timed at size {options.size}: {found.note}", entry.extra)
    reason = str(found.findings[0]) if found.findings else ""
    return Row(entry.name, found, reason, entry.extra)


def bench(
    workload: Workload, candidates: Sequence[Path], options: MeasureOptions | None = None
) -> dict[str, Any]:
    """The contract's JSON object: baselines first, then the candidates; speed-ups over the best baseline.

    ``accepted`` here means that it could be timed; whether results are right is ``verify``'s word.
    """
    wanted = options or MeasureOptions()
    rows = baselines(workload, wanted)
    reference = best(rows)
    rows += [time_entry(workload, Entry(path.stem, path, {}), wanted) for path in candidates]
    leader = best(rows)
    timed = leader.measurement if leader else None
    base = reference.measurement if reference else None
    return {
        "rows": [_row(row, base) for row in rows],
        "baseline_name": reference.name if reference else None,
        "overlap_limit": timed.overlap_limit if timed else None,
        "roofline_limit": limits.roofline_limit(base.us, base.floor) if base else None,
        "compute_us": timed.compute_us if timed else None,
        "communication_us": timed.communication_us if timed else None,
        "floor_us": timed.floor.us if timed else None,
        "machine": timed.machine if timed else None,
        "fidelity": "modelled",
        "modelled": True,
    }


def _row(row: Row, base: Measurement | None) -> dict[str, Any]:
    found = row.measurement
    return {
        "name": row.name,
        "us": row.us,
        "ci95_us": [row.us, row.us] if row.us is not None else None,
        "accepted": row.us is not None,
        "speedup": base.us / row.us if base and row.us and found and found.size == base.size else None,
        "overlap_efficiency": found.overlap_efficiency if found else None,
        "compute_us": found.compute_us if found else None,
        "communication_us": found.communication_us if found else None,
        "size": found.size if found else None,
        "sliced": found.sliced if found else None,
        "note": found.note if found else "",
        "reason": row.reason,
        "parameters": dict(row.extra or {}),
    }
