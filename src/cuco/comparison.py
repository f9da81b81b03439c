"""``cuco bench``: host versions and candidates side by side, verified first, with the limits they stand under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuco.config import Options, resolve
from cuco.report.summary import overlap_efficiency, overlap_limit
from cuco.search.evaluation import EvalRequest
from cuco.search.judging import judge_files

if TYPE_CHECKING:
    from cuco.workload import Workload

_SIZE = "full"


def compare(workload: Workload, candidates: Sequence[Path], options: Options) -> dict[str, Any]:
    """The object of ``cuco bench --json``. Speed-ups are over the sequential host version, limits belong to the
    fastest accepted row; what is rejected has no time."""
    config = resolve(workload, options, default_size=_SIZE)
    common = {"workload": str(workload.folder), "ranks": config.ranks, "lsa_team": config.lsa_team,
              "machine": config.machine, "link": config.link, "size": config.size}
    versions = [(one.name, one.source, dict(one.extra)) for one in workload.baselines()]
    versions += [(str(path), path, {}) for path in candidates]
    rows = []
    for name, source, extra in versions:
        request = EvalRequest(name, "", str(source), "quick", config.search.seed, {**common, "extra": extra})
        rows.append(_row(name, judge_files(request)))
    return _with_limits(rows, len(workload.baselines()), config.machine)


def _row(name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    us = data.get("us") if data["accepted"] else None
    return {
        "name": name, "accepted": data["accepted"], "stage": data["stage"], "reason": data.get("reason", ""),
        "us": us, "ci95_us": data.get("ci95_us"), "compute_us": data.get("compute_us"),
        "communication_us": data.get("communication_us"), "floor_us": data.get("floor_us"),
        "fidelity": data.get("fidelity"), "modelled": data.get("modelled"),
        "overlap_efficiency": overlap_efficiency(us, data.get("compute_us"), data.get("communication_us")),
    }


def _with_limits(rows: list[dict[str, Any]], host_versions: int, machine: str) -> dict[str, Any]:
    sequential = rows[0]["us"]
    for row in rows:
        row["speedup"] = sequential / row["us"] if sequential and row["us"] else None
    timed = [row for row in rows if row["us"]]
    best = min(timed, key=lambda row: float(row["us"]), default=None)
    hosts = [row["us"] for row in rows[:host_versions] if row["us"]]
    shown: Mapping[str, Any] = best or {}
    floor = shown.get("floor_us")
    return {
        "rows": rows,
        "overlap_limit": overlap_limit(shown.get("compute_us"), shown.get("communication_us")),
        "roofline_limit": min(hosts) / floor if hosts and floor else None,
        "compute_us": shown.get("compute_us"),
        "communication_us": shown.get("communication_us"),
        "machine": machine,
        "fidelity": shown.get("fidelity") or "modelled",
        "modelled": bool(shown.get("modelled", True)),
    }
