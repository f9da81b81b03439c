"""How a search is run: one model, stored with the run, unknown keys are errors."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Budget(BaseModel):
    """What a run may use up. None means no limit.

    ``evaluations`` counts candidates judged on evidence; duplicates, refusals and failures of the machine do
    not count. ``seconds`` is working time summed over resumed sessions. ``usd`` is what proposers charge.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluations: int | None = Field(default=20, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, ge=0)


class SearchSettings(BaseModel):
    """The search policy's numbers.

    A generation is ``generation_size`` attempts. ``lanes`` evaluations run at once; the draw of an attempt
    sees the results of all attempts but the last ``lanes - 1``, so it does not depend on which lane is
    faster.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0)
    islands: int = Field(default=2, ge=1)
    generation_size: int = Field(default=4, ge=1)
    lanes: int = Field(default=1, ge=1)
    #: Share of the budget in which new ideas come before the refinement of good ones.
    explore_fraction: float = Field(default=0.4, ge=0, le=1)
    #: Parents are drawn with weight rank ** -rank_power, the best being rank 1.
    rank_power: float = Field(default=1.5, ge=0)
    #: How much more often a parent unlike the others is drawn.
    novelty_weight: float = Field(default=0.25, ge=0)
    #: Shares of refinement that cross two parents, and that start from a new idea all the same.
    cross_share: float = Field(default=0.25, ge=0, le=1)
    restart_share: float = Field(default=0.1, ge=0, le=1)
    #: The best of an island visits the next one after this many generations; 0: never.
    migrate_every: int = Field(default=2, ge=0)
    #: Whether a design that was judged already may be written again (for proposers that write anew each
    #: time).
    repeat_designs: bool = False
    #: Deadlines of one evaluation at quick and at standard effort, in seconds.
    quick_deadline_s: float = Field(default=300, gt=0)
    standard_deadline_s: float = Field(default=1800, gt=0)
    #: How often one attempt may fail for reasons of the machine, and how many such failures in a row end a
    #: run.
    attempt_failures: int = Field(default=2, ge=1)
    breaker_failures: int = Field(default=3, ge=1)
    #: Failures shown to the proposer with each request.
    failures_shown: int = Field(default=3, ge=0)
    budget: Budget = Budget()
