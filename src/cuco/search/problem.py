"""What a search works on, and what it tells whoever watches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from cuco.search.records import Attempt, Candidate, Verdict
from cuco.space.context import SpaceContext
from cuco.space.dimensions import Backend

if TYPE_CHECKING:
    from cuco.source import CommGraph
    from cuco.workload import Workload


@dataclass(frozen=True)
class Problem:
    """The user's function: its workload, what communicates in it, where, and how candidates are judged.

    ``evaluator`` names the judging function (``module:name``, see ``evaluation.Evaluator``), ``options`` is
    handed to it with every candidate.
    """

    workload: Workload
    graph: CommGraph
    contexts: Mapping[str, SpaceContext]
    evaluator: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def within(self, backends: Iterable[Backend]) -> Problem:
        """The problem with no other backends than these."""
        allowed = frozenset(backends)
        contexts = {
            edge: context.model_copy(update={"backends": context.backends & allowed})
            for edge, context in self.contexts.items()
        }
        return replace(self, contexts=contexts)


class Observer(Protocol):
    """Told of every step, from the search's thread. Must return quickly and change nothing."""

    def changed(self, attempt: Attempt, verdict: Verdict | None) -> None:
        """The attempt entered another state, or its evaluation another stage."""

    def confirming(self, candidate: Candidate, verdict: Verdict | None, stage: str = "") -> None:
        """The standard cascade begins for a candidate, enters a stage, or has ended with a verdict."""

    def tick(self) -> None:
        """Some time has passed."""


class Silent:
    """An observer that does nothing."""

    def changed(self, attempt: Attempt, verdict: Verdict | None) -> None:
        pass

    def confirming(self, candidate: Candidate, verdict: Verdict | None, stage: str = "") -> None:
        pass

    def tick(self) -> None:
        pass
