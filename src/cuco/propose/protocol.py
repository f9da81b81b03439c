"""What the search asks of whoever writes candidates, and what it gets back.

The search chooses the directive of every communication edge *before* code is written; the proposer writes
code for it, or says in one sentence why it cannot. The built-in synthesizer, a model, an agent and a
recording all stand behind the same ``Proposer``. A proposer judges nothing: only ``cuco.verify`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cuco.space.context import SpaceContext
from cuco.space.directive import Directive

if TYPE_CHECKING:
    from cuco.source import CommGraph
    from cuco.workload import Workload

#: The file of a candidate that is compiled; other files of a proposal are its includes.
MAIN_FILE = "candidate.cu"
#: Labels of stage A are this and the backend.
STAGE_A_LABEL = "infrastructure for "


class Operator(StrEnum):
    """How a candidate came about.

    ``HOST`` is the user's own code. ``STAGE_A`` and ``SEED`` come from the fast path: infrastructure under
    the user's own NCCL calls, and the conservative candidate that replaces them (stage B). ``GIVEN`` was
    handed over by the user. The others are what the search does.
    """

    HOST = "host"
    STAGE_A = "stage-a"
    SEED = "seed"
    GIVEN = "given"
    EXPLORE = "explore"
    MUTATE = "mutate"
    CROSS = "cross"

    @property
    def label(self) -> str:
        """What people read."""
        return {Operator.STAGE_A: "seed A", Operator.SEED: "seed B"}.get(self, self.value)

    @property
    def searched(self) -> bool:
        """Whether candidates of this origin take part in the search. Host versions are its yardstick, and
        stage A has no design of its own."""
        return self not in (Operator.HOST, Operator.STAGE_A)


@dataclass(frozen=True)
class Evidence:
    """What the cascade found about one candidate.

    ``stage`` is the stage that decided (compile, lint, verify, measure), ``reason`` one sentence,
    ``findings`` the JSON findings of contracts 5. Times are in microseconds and None where they were not
    measured.
    """

    accepted: bool
    stage: str
    reason: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()
    us: float | None = None
    compute_us: float | None = None
    communication_us: float | None = None


@dataclass(frozen=True)
class Parent:
    """A candidate that a proposal may build on, with its evidence."""

    candidate: str
    sources: Mapping[str, str]
    directives: Mapping[str, Directive]
    evidence: Evidence


@dataclass(frozen=True)
class ProposalRequest:
    """One attempt: write a candidate for ``directives`` (edge id of the CommGraph to its design).

    ``parents`` is empty for a fresh design, has one entry for a mutation and two for a crossover.
    ``failures`` are rejected candidates of the same or a near design, to learn from. ``attempt`` counts from
    0 within the run; all randomness of a proposer must come from ``(seed, attempt)``, so that a resumed run
    writes the same.
    """

    workload: Workload
    graph: CommGraph
    contexts: Mapping[str, SpaceContext]
    directives: Mapping[str, Directive]
    operator: Operator
    island: int
    attempt: int
    seed: int
    parents: tuple[Parent, ...] = ()
    failures: tuple[Parent, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A candidate as written: file name to text (``MAIN_FILE`` is compiled), and the directive of every edge.

    ``directives`` is what the code really implements; it may differ from the request where the proposer had
    to fall back, and ``rationale`` then says why. ``lineage`` holds the ids of the candidates it builds on.
    ``cost_usd`` is what writing it cost; ``record`` is kept with the candidate (a model's raw answer, say).
    ``label`` is what people call it where it has no directives: a host version's name, say.
    """

    sources: Mapping[str, str]
    directives: Mapping[str, Directive]
    rationale: str
    operator: Operator
    lineage: tuple[str, ...] = ()
    cost_usd: float = 0.0
    record: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


class ProposalRefused(Exception):
    """The proposer cannot write this design: one sentence, with the ``line`` of the user's source that it is
    about, and what would help (``fix``). Not a failure of the run."""

    def __init__(self, reason: str, *, line: int | None = None, fix: str = "") -> None:
        super().__init__(reason)
        self.reason, self.line, self.fix = reason, line, fix

    @property
    def message(self) -> str:
        """The reason with its line, without what would help."""
        return self.reason if self.line is None else f"line {self.line}: {self.reason}"

    def __str__(self) -> str:
        return f"{self.message}. {self.fix}" if self.fix else self.message


@runtime_checkable
class Proposer(Protocol):
    """Writes candidates."""

    @property
    def name(self) -> str:
        """How the proposer is called in the archive and the report."""

    def options(
        self, graph: CommGraph, contexts: Mapping[str, SpaceContext]
    ) -> Mapping[str, Sequence[Directive]]:
        """The designs this proposer can write, per edge id, in a stable order.

        The search draws from these (all must be valid in the edge's context). An edge that is left out may be
        given any valid directive of the design space.
        """

    def units(self, graph: CommGraph) -> Sequence[Sequence[str]]:
        """Edges that share one directive (a group of sends and receives), leader first; each edge once."""

    def propose(self, request: ProposalRequest) -> Proposal:
        """A candidate for ``request``. Raises ProposalRefused where the design cannot be written.

        Called from a worker thread. Any other exception counts as an infrastructure failure of this attempt,
        except MissingError and UsageError, which end the run with their line.
        """
