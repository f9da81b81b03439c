"""The evaluation function of real runs: the cascade of ``cuco.verify``, then the clock.

In a search it runs in the disposable process of one evaluation (``evalproc``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuco.search.blobs import write_atomic
from cuco.search.evaluation import EvalRequest, Progress

if TYPE_CHECKING:
    from cuco.verify import MeasureOptions
    from cuco.workload import Workload

FUNCTION = "cuco.search.judging:evaluate"
TIMELINE = "timeline.json"


def evaluate(request: EvalRequest, progress: Progress) -> Mapping[str, Any]:
    """Verifies and, if accepted and to be timed, measures a candidate; its timeline and log go to its folder.

    ``options``: workload (folder), ranks, lsa_team, machine, link, size (of the measurement) and extra
    (parameters of a tuned host version). Correctness is judged at the tiny size and those that the effort
    adds; the clock runs at ``size``.
    """
    from cuco.verify import VerifyOptions, verify
    from cuco.workload import load_workload

    options = request.options
    workload = load_workload(options["workload"])
    source, folder = Path(request.main), Path(request.folder)
    verdict = verify(
        workload,
        source,
        VerifyOptions(
            effort=request.effort,  # type: ignore[arg-type]  # plain JSON has no Literal
            # Seeds of verification start at 1.
            seed=request.seed + 1,
            ranks=options["ranks"],
            lsa_team=options["lsa_team"],
            machine=options["machine"],
            extra=options.get("extra", {}),
        ),
        progress,
    )
    write_atomic(folder / "logs" / f"{request.effort}.candidate.log", verdict.log)
    result = {**verdict.as_dict(), "reason": verdict.reason()}
    if not verdict.accepted or not request.timed:
        return result
    progress("measure")
    return {**result, **_measured(workload, source, measure_options(options), folder)}


def measure_options(options: Mapping[str, Any]) -> MeasureOptions:
    """How the clock runs, from an evaluation's options."""
    from cuco.testbed.vtime import load_machine
    from cuco.testbed.vtime.link import with_link
    from cuco.verify import MeasureOptions

    return MeasureOptions(
        size=options["size"],
        ranks=options["ranks"],
        lsa_team=options["lsa_team"],
        machine=with_link(load_machine(options["machine"]), options.get("link")),
        extra=options.get("extra", {}),
    )


def _measured(workload: Workload, source: Path, options: MeasureOptions, folder: Path) -> dict[str, Any]:
    """The measurement as data; a rejection if the timed run finds something or the time cannot be."""
    from cuco.verify import measure
    from cuco.verify.measure import MeasurementRejected

    try:
        found = measure(workload, source, options)
    except MeasurementRejected as error:
        return _rejected(str(error), [finding.as_dict() for finding in error.findings])
    if found.findings:
        return _rejected(str(found.findings[0]), [finding.as_dict() for finding in found.findings])
    if found.size != options.size:
        # A time at another size compares with nothing of this run.
        reason = f"it cannot be timed at size {options.size}: {found.note}"
        return _rejected(reason, [{"kind": "unsupported", "rule": "other-size", "message": reason}])
    write_atomic(folder / TIMELINE, json.dumps(found.timeline.as_data()))
    return {**found.as_dict(), "accepted": True, "stage": "measure"}


def _rejected(reason: str, findings: list[dict[str, Any]]) -> dict[str, Any]:
    return {"accepted": False, "stage": "measure", "reason": reason, "findings": findings}
