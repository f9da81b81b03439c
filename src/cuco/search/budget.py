"""The gate of every budget: asked once, when an attempt is assigned. What has begun is finished."""

from __future__ import annotations

from collections.abc import Sequence

from cuco.search.records import Attempt
from cuco.search.settings import Budget

#: Attempts per evaluation after which a search that keeps producing duplicates gives up.
_ATTEMPTS_PER_EVALUATION = 8


def counts(attempt: Attempt) -> bool:
    """Whether an attempt has used up an evaluation, or will unless the machine fails.

    Host versions and stage A of the fast path do not count: they are the yardstick and the ground, not the
    search.
    """
    if not attempt.draw.operator.searched:
        return False
    return attempt.evaluated or not attempt.ended


def used(attempts: Sequence[Attempt]) -> int:
    """Evaluations used up or under way."""
    return sum(counts(attempt) for attempt in attempts)


def spent(attempts: Sequence[Attempt]) -> float:
    """US dollars charged so far."""
    return sum(attempt.cost_usd for attempt in attempts)


def closed(budget: Budget, attempts: Sequence[Attempt], seconds: float) -> str | None:
    """Why no further attempt may be assigned, or None. ``seconds`` is the working time so far."""
    if budget.evaluations is not None:
        if used(attempts) >= budget.evaluations:
            return f"the budget of {budget.evaluations} evaluations is used up"
        if len(attempts) >= _ATTEMPTS_PER_EVALUATION * budget.evaluations + 8:
            return "the proposer keeps writing candidates that were judged already"
    if budget.seconds is not None and seconds >= budget.seconds:
        return f"the time budget of {budget.seconds:g} s is used up"
    # A free proposer never meets this gate, so a budget of 0 allows it and nothing else.
    if budget.usd is not None and spent(attempts) > 0 and spent(attempts) >= budget.usd:
        return f"the budget of ${budget.usd:.2f} is used up"
    return None
