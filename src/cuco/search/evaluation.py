"""What an evaluation is asked and what it answers: plain JSON, because it runs in a process of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cuco.search.records import Verdict
from cuco.search.schema import REJECTED

#: Called by an evaluation when it enters a stage of the cascade.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class EvalRequest:
    """One candidate to judge. ``folder`` holds its files, ``main`` is the one to compile, ``effort`` says how
    hard to look, ``timed`` whether the clock runs; ``options`` is what the evaluation function needs besides,
    as JSON."""

    candidate: str
    folder: str
    main: str
    effort: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    timed: bool = True

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> EvalRequest:
        return cls(**json.loads(text))


#: Judges a candidate. Returns at least ``accepted`` and ``stage``, and ``us`` when accepted and timed
#: (microseconds); ``reason`` and ``findings`` when not. Raises MissingError or UsageError where the run as a
#: whole cannot go on.
Evaluator = Callable[[EvalRequest, Progress], Mapping[str, Any]]


@dataclass(frozen=True)
class Judged:
    """The evaluation ended with a verdict."""

    verdict: Verdict


@dataclass(frozen=True)
class MachineFailed:
    """The evaluation ended without one: killed, out of memory, past its deadline, or a fault of CUCo."""

    why: str


@dataclass(frozen=True)
class RunFailed:
    """The run cannot go on: something is missing or malformed, and every evaluation would say so."""

    message: str
    exit_code: int


Outcome = Judged | MachineFailed | RunFailed


def verdict_of(data: Mapping[str, Any], *, timed: bool = True) -> Verdict:
    """A verdict from what an evaluation returned. Raises ValueError where it is not one."""
    accepted, stage, us = data.get("accepted"), data.get("stage"), data.get("us")
    if not isinstance(accepted, bool):
        raise ValueError("the evaluation does not say whether the candidate is accepted")
    if accepted and not timed:
        return Verdict(True, "verify", None, dict(data))
    if accepted:
        if not isinstance(us, int | float) or not math.isfinite(us) or us <= 0:
            raise ValueError(f"an accepted candidate needs its time in microseconds, not {us!r}")
        return Verdict(True, str(stage or "measure"), float(us), dict(data))
    if stage not in REJECTED:
        raise ValueError(f"a rejection names its stage ({', '.join(REJECTED)}), not {stage!r}")
    return Verdict(False, str(stage), None, dict(data))
