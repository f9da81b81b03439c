"""The result of a run as contracts 5 names it: what was gained over which baseline, how near the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuco.propose.protocol import STAGE_A_LABEL, Operator
from cuco.report.model import RunData, best_verdict
from cuco.search import budget
from cuco.search.population import rank_key
from cuco.search.records import Candidate, Verdict
from cuco.search.schema import REJECTED

#: The least share of the longer of C and M that the shorter must be to speak of hiding it.
_WORTH_HIDING = 0.01
IMPROVED, KEPT_HOST = "improved", "kept-host"


@dataclass(frozen=True)
class Standing:
    """The candidates that the result is about. ``best`` held at the confirming effort, if any did."""

    baseline: Candidate | None
    sequential: Candidate | None
    best: Candidate | None
    status: str


def overlap_limit(compute_us: float | None, communication_us: float | None) -> float | None:
    """(C + M) / max(C, M): what hiding the shorter behind the longer can gain at most."""
    if not compute_us or not communication_us:
        return None
    return (compute_us + communication_us) / max(compute_us, communication_us)


def overlap_efficiency(
    us: float | None, compute_us: float | None, communication_us: float | None
) -> float | None:
    """(C + M - T) / min(C, M): the share of what could be hidden that is; below 0 where T exceeds C + M.

    None where the shorter is less than a hundredth of the longer: there is nothing to hide, and the quotient
    would be noise.
    """
    if us is None or not compute_us or not communication_us:
        return None
    if min(compute_us, communication_us) < _WORTH_HIDING * max(compute_us, communication_us):
        return None
    return (compute_us + communication_us - us) / min(compute_us, communication_us)


def standing(run: RunData) -> Standing:
    """Which baseline counts, which candidate is best, and whether it replaces the host version."""
    hosts = sorted((one for one in run.hosts() if one.us is not None), key=rank_key)
    baseline = hosts[0] if hosts else None
    sequential = next((one for one in hosts if run.baseline_names[one.id] == "sequential"), None)
    held = [
        one for one in run.evolved() if run.confirmed in one.verdicts and one.verdicts[run.confirmed].accepted
    ]
    best = min(held, key=lambda one: (one.verdicts[run.confirmed].us or 0, one.attempt.number), default=None)
    status = IMPROVED if _improves(run, baseline, best) else KEPT_HOST
    return Standing(baseline, sequential, best, status)


def _improves(run: RunData, baseline: Candidate | None, best: Candidate | None) -> bool:
    """At least ``improve`` faster, with intervals that do not touch."""
    if baseline is None or best is None:
        return False
    old, new = best_verdict(baseline, run.confirmed), best_verdict(best, run.confirmed)
    if old is None or new is None or not old.us or not new.us:
        return False
    return old.us / new.us >= 1 + run.improve and interval(new)[1] < interval(old)[0]


def interval(verdict: Verdict) -> tuple[float, float]:
    """The 95 % interval in microseconds; a modelled time is one number."""
    given = verdict.data.get("ci95_us")
    if isinstance(given, Sequence) and len(given) == 2:
        return float(given[0]), float(given[1])
    return float(verdict.us or 0), float(verdict.us or 0)


def summarise(run: RunData) -> dict[str, Any]:
    """The object that ``cuco optimize --json`` prints. Unknown numbers are None, never a guess."""
    found = standing(run)
    base, new = _verdict(run, found.baseline), _verdict(run, found.best)
    first = _verdict(run, found.sequential)
    us = new.us if new else None
    shown = new or base
    data: Mapping[str, Any] = shown.data if shown else {}
    compute, communication = data.get("compute_us"), data.get("communication_us")
    base_us = base.us if base else None
    floor = data.get("floor_us")
    return {
        "status": found.status,
        "workload": run.config.name,
        "testbed": run.config.testbed,
        "machine": run.config.machine,
        "modelled": data.get("modelled", run.config.testbed == "emulator"),
        "ranks": run.config.ranks,
        "lsa_team": run.config.lsa_team,
        "size": run.config.size,
        "baseline_us": base_us,
        "baseline_name": run.baseline_names[found.baseline.id] if found.baseline else None,
        "sequential_us": first.us if first else None,
        "best_us": us,
        "ci95_us": list(interval(new)) if new else None,
        "speedup": _ratio(base_us, us),
        "speedup_sequential": _ratio(first.us if first else None, us),
        "compute_us": compute,
        "communication_us": communication,
        "overlap_limit": overlap_limit(compute, communication),
        "roofline_limit": _ratio(base_us, floor),
        "floor_us": floor,
        "overlap_efficiency": overlap_efficiency(us, compute, communication),
        "fidelity": data.get("fidelity", "modelled" if run.config.testbed == "emulator" else "physical"),
        "best": found.best.id if found.best else None,
        "best_directives": _designs(found.best),
        "run_dir": str(run.folder),
        "evaluations": budget.used(run.attempts),
        "rejected": _rejected(run),
        "skipped": _skipped(run),
        "stages": _stages(run),
        "cost_usd": budget.spent(run.attempts),
        "seed": run.config.search.seed,
        "seconds": run.seconds,
        "ended": run.outcome.get("ended"),
        "warnings": list(data.get("warnings", ())),
    }


def _verdict(run: RunData, candidate: Candidate | None) -> Verdict | None:
    return best_verdict(candidate, run.confirmed) if candidate else None


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over and under else None


def _designs(candidate: Candidate | None) -> dict[str, str] | None:
    return {edge: directive.key() for edge, directive in candidate.design.items()} if candidate else None


def _rejected(run: RunData) -> dict[str, int]:
    """Candidates rejected by stage, those included that only the confirming cascade rejected."""
    counts = dict.fromkeys(REJECTED, 0)
    for candidate in run.evolved():
        verdict = best_verdict(candidate, run.confirmed)
        if verdict is not None and not verdict.accepted:
            counts[verdict.stage] += 1
    return counts


def _stages(run: RunData) -> list[dict[str, Any]]:
    """The fast path's verdicts: stage A per backend, then the stages B that followed."""
    return [
        {
            "name": "A" if one.attempt.draw.operator is Operator.STAGE_A else "B",
            "backend": stage_backend(one),
            "candidate": one.id,
            "accepted": one.attempt.accepted,
            "stage": one.attempt.stage,
            "reason": one.attempt.detail,
        }
        for one in run.fast_path()
        if one.attempt.reason != "cancelled"
    ]


def stage_backend(one: Candidate) -> str:
    """The backend that a candidate of the fast path is for."""
    named = dict.fromkeys(directive.backend.value for directive in one.design.values())
    return "+".join(named) or one.attempt.draw.label.removeprefix(STAGE_A_LABEL)


def _skipped(run: RunData) -> dict[str, int]:
    counts = dict.fromkeys(("duplicate", "refused", "infrastructure"), 0)
    for attempt in run.attempts:
        if attempt.reason in counts:
            counts[attempt.reason] += 1
    return counts
