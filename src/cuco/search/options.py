"""The designs a search may draw from: what the proposer can write, and the rules allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuco.errors import UsageError
from cuco.propose.protocol import Proposer
from cuco.search.problem import Problem
from cuco.search.records import Design
from cuco.space.directive import Directive
from cuco.space.enumerate import enumerate_directives
from cuco.space.rules import validate


@dataclass(frozen=True)
class Choices:
    """Designs per leading edge, and the edges that follow each leader."""

    options: Mapping[str, Sequence[Directive]]
    units: Mapping[str, Sequence[str]]

    def expand(self, design: Design) -> dict[str, Directive]:
        """A design of leading edges as one of all edges."""
        return {edge: directive for leader, directive in design.items() for edge in self.units[leader]}

    def reduce(self, design: Design) -> dict[str, Directive]:
        """A design of all edges as one of leading edges."""
        return {edge: directive for edge, directive in design.items() if edge in self.options}


def choices_for(proposer: Proposer, problem: Problem) -> Choices:
    """Designs per leading edge, in the proposer's order; edges it does not name get every valid design.

    Designs that the rules refuse are left out: a proposer may not widen the space. Raises UsageError if the
    proposer's units do not hold every edge exactly once.
    """
    units = {unit[0]: tuple(unit) for unit in proposer.units(problem.graph)}
    named = sorted(edge for unit in units.values() for edge in unit)
    if named != sorted(problem.contexts):
        raise UsageError(
            f"proposer {proposer.name} groups edges {named}, there are {sorted(problem.contexts)}"
        )
    offered = proposer.options(problem.graph, problem.contexts)
    found: dict[str, Sequence[Directive]] = {}
    for leader in units:
        context = problem.contexts[leader]
        if leader in offered:
            found[leader] = [one for one in dict.fromkeys(offered[leader]) if not validate(one, context)]
        else:
            found[leader] = list(enumerate_directives(context))
    return Choices(found, units)
