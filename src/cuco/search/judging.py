"""The evaluation function of real runs: the cascade of ``cuco.verify``, then the clock.

In a search it runs in the disposable process of one evaluation (``evalproc``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuco.search.blobs import write_atomic
from cuco.search.evaluation import EvalRequest, Progress

FUNCTION = "cuco.search.judging:evaluate"
TIMELINE = "timeline.json"


def evaluate(request: EvalRequest, progress: Progress) -> Mapping[str, Any]:
    """Judges one candidate of a search; its timeline and its log go to its folder."""
    data = judge_files(request, progress)
    folder = Path(request.folder)
    write_atomic(folder / "logs" / f"{request.effort}.candidate.log", str(data.pop("log", "")))
    timeline = data.pop("timeline", None)
    if timeline is not None:
        write_atomic(folder / TIMELINE, json.dumps(timeline))
    return data


def judge_files(request: EvalRequest, progress: Progress = lambda stage: None) -> dict[str, Any]:
    """Verifies and, if accepted, measures one candidate.

    ``options``: workload (folder), ranks, lsa_team, machine, link, size (of the measurement) and extra
    (parameters of a tuned host version). Correctness is judged at the tiny size and the others that
    the effort adds; the clock runs at ``size``.
    """
    from cuco.verify import VerifyOptions, verify
    from cuco.workload import load_workload

    options = request.options
    workload = load_workload(options["workload"])
    source = Path(request.main)
    common: dict[str, Any] = {name: options[name] for name in ("ranks", "lsa_team", "machine")}
    common["extra"] = options.get("extra", {})
    progress("verify")
    # Seeds of verification start at 1.
    verdict = verify(
        workload, source, VerifyOptions(effort=_effort(request), seed=request.seed + 1, **common)
    )
    result = {**verdict.as_dict(), "reason": verdict.reason(), "log": verdict.log}
    if not verdict.accepted:
        return result
    progress("measure")
    return {**result, **_measured(request, workload, source, common)}


def _effort(request: EvalRequest) -> Any:
    return request.effort


def _measured(request: EvalRequest, workload: Any, source: Path, common: Mapping[str, Any]) -> dict[str, Any]:
    raise NotImplementedError
