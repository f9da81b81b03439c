"""``cuco bench``: host versions and candidates side by side. What is not verified has no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuco.config import Config, Options, resolve
from cuco.search.judging import measure_options
from cuco.verify import Verdict, VerifyOptions, verify
from cuco.verify.benchmark import bench

if TYPE_CHECKING:
    from cuco.workload import Workload

_SIZE = "full"


def compare(workload: Workload, candidates: Sequence[Path], options: Options) -> dict[str, Any]:
    """The object of ``cuco bench --json``: host versions in the workload's order, then candidates.

    Each is verified at quick effort first; rejected ones are not timed and keep their reason. Speed-ups are
    over the best host version.
    """
    config = resolve(workload, options, default_size=_SIZE)
    verdicts = {path: _verdict(workload, path, {}, config) for path in candidates}
    sound = [path for path in candidates if verdicts[path].accepted]
    result = bench(workload, sound, measure_options(config.judging()))
    rows: list[dict[str, Any]] = result["rows"]
    hosts = workload.baselines()
    for row, host in zip(rows, hosts, strict=False):
        verdict = _verdict(workload, host.source, host.extra, config)
        if not verdict.accepted:
            row.update(_without_time(verdict))
    timed = iter(rows[len(hosts) :])
    result["rows"] = rows[: len(hosts)] + [
        next(timed) if verdicts[path].accepted else {"name": path.stem, **_without_time(verdicts[path])}
        for path in candidates
    ]
    return {**result, "machine": result["machine"] or config.machine}


def _verdict(workload: Workload, source: Path, extra: Mapping[str, int | float], config: Config) -> Verdict:
    return verify(
        workload,
        source,
        VerifyOptions(
            effort="quick",
            ranks=config.ranks,
            lsa_team=config.lsa_team,
            machine=config.machine,
            extra=extra,
            seed=config.search.seed + 1,
        ),
    )


def _without_time(verdict: Verdict) -> dict[str, Any]:
    return {
        "accepted": False,
        "reason": verdict.reason(),
        "us": None,
        "ci95_us": None,
        "speedup": None,
        "overlap_efficiency": None,
    }
