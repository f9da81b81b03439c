"""Rows of the archive as typed values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuco.propose.protocol import Evidence, Operator
from cuco.search.schema import ACCEPTED, FREE
from cuco.space.directive import Directive

#: Efforts of the cascade in the order of their cost.
QUICK = "quick"
STANDARD = "standard"

Design = Mapping[str, Directive]


def design_to_json(design: Design) -> str:
    return json.dumps({edge: design[edge].to_json() for edge in sorted(design)}, sort_keys=True)


def design_from_json(text: str) -> dict[str, Directive]:
    return {edge: Directive.model_validate(value) for edge, value in json.loads(text).items()}


def design_key(design: Design) -> str:
    """One line that identifies the designs of all edges together."""
    return " || ".join(f"{edge}: {design[edge].key()}" for edge in sorted(design))


@dataclass(frozen=True)
class Draw:
    """What the search policy decided about an attempt, before anything is written for it."""

    operator: Operator
    island: int
    generation: int
    parents: tuple[str, ...] = ()
    design: Design = field(default_factory=dict)
    #: What people call the attempt where it has no design.
    label: str = ""


@dataclass(frozen=True)
class Attempt:
    """One row of the ledger."""

    number: int
    id: str
    draw: Draw
    state: str
    stage: str
    reason: str | None
    detail: str
    answer_sha256: str | None
    cost_usd: float
    leases: int
    failures: int

    @property
    def ended(self) -> bool:
        return self.state == "terminal"

    @property
    def evaluated(self) -> bool:
        """Whether it used up an evaluation: judged on evidence, whatever the outcome."""
        return self.ended and self.reason not in FREE

    @property
    def accepted(self) -> bool:
        return self.reason == ACCEPTED


@dataclass(frozen=True)
class Verdict:
    """The cascade's outcome at one effort.

    ``stage`` is the stage that decided (compile, lint, verify, measure); ``data`` holds everything else that
    the evaluation returned, as stored. Times in microseconds.
    """

    accepted: bool
    stage: str
    us: float | None
    data: Mapping[str, Any]

    @property
    def reason(self) -> str:
        return str(self.data.get("reason", ""))

    def evidence(self) -> Evidence:
        return Evidence(
            accepted=self.accepted,
            stage=self.stage,
            reason=self.reason,
            findings=tuple(self.data.get("findings", ())),
            us=self.us,
            compute_us=self.data.get("compute_us"),
            communication_us=self.data.get("communication_us"),
        )


@dataclass(frozen=True)
class Candidate:
    """An attempt that became code, with its verdicts by effort."""

    attempt: Attempt
    design: Design
    lineage: tuple[str, ...]
    rationale: str
    novelty: float
    verdicts: Mapping[str, Verdict]

    @property
    def id(self) -> str:
        return self.attempt.id

    @property
    def us(self) -> float | None:
        """The time the search selects by: that of the quick cascade."""
        verdict = self.verdicts.get(QUICK)
        return verdict.us if verdict is not None and verdict.accepted else None

    @property
    def is_host(self) -> bool:
        return self.attempt.draw.operator is Operator.HOST

    @property
    def searched(self) -> bool:
        """Whether it is part of the search: no host version, no stage A."""
        return self.attempt.draw.operator.searched
