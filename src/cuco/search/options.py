"""The designs a search may draw from: what the proposer can write, and the rules allow."""

from __future__ import annotations

from collections.abc import Sequence

from cuco.propose.protocol import Proposer
from cuco.search.problem import Problem
from cuco.space.directive import Directive
from cuco.space.enumerate import enumerate_directives
from cuco.space.rules import validate


def options_for(proposer: Proposer, problem: Problem) -> dict[str, Sequence[Directive]]:
    """Designs per edge, in the proposer's order; edges it does not name get every valid design.

    Designs that the rules refuse are left out: a proposer may not widen the space.
    """
    offered = proposer.options(problem.graph, problem.contexts)
    found: dict[str, Sequence[Directive]] = {}
    for edge, context in problem.contexts.items():
        if edge in offered:
            found[edge] = [one for one in dict.fromkeys(offered[edge]) if not validate(one, context)]
        else:
            found[edge] = list(enumerate_directives(context))
    return found
