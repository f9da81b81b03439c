"""The fast path's two stages, by construction, one pair per backend.

Stage A adds the infrastructure (windows, device communicator, entry points around the user's own) and keeps
NCCL's calls; stage B replaces the calls by the conservative design. Both have the same frozen text: A is B
with its generated evolve blocks empty. The cascade judges A before B, so that what is wrong with the ground
is not looked for in an exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cuco.errors import RejectedError
from cuco.propose.builtin import BuiltinProposer
from cuco.propose.protocol import Operator, Proposal, ProposalRefused, ProposalRequest
from cuco.source import CommGraph
from cuco.space import SpaceContext
from cuco.space.dimensions import Backend
from cuco.workload import Workload


@dataclass(frozen=True)
class Stages:
    """What the fast path writes for one backend: stage A and stage B."""

    infrastructure: Proposal
    conservative: Proposal

    def after(self, stage_a: str) -> Proposal:
        """Stage B as the descendant of the candidate ``stage_a``."""
        return replace(self.conservative, lineage=(stage_a,))


@dataclass(frozen=True)
class FastPath:
    """Both stages of every backend that can be written, in a stable order, and why others cannot."""

    stages: Mapping[Backend, Stages]
    refused: Mapping[Backend, ProposalRefused]


def fast_path(
    workload: Workload, graph: CommGraph, contexts: Mapping[str, SpaceContext], seed: int
) -> FastPath:
    """The fast path's candidates for every backend that the edges' contexts allow.

    Raises RejectedError with line, reason and what would help, where no backend can be written; UsageError
    for malformed evolve markers in the user's source.
    """
    proposer = BuiltinProposer(workload.host_source)
    stages: dict[Backend, Stages] = {}
    refused: dict[Backend, ProposalRefused] = {}
    for backend in sorted({one for context in contexts.values() for one in context.backends}):
        try:
            request = ProposalRequest(
                workload=workload,
                graph=graph,
                contexts=contexts,
                directives=proposer.seed(graph, contexts, backend),
                operator=Operator.SEED,
                island=0,
                attempt=0,
                seed=seed,
            )
            stages[backend] = Stages(proposer.infrastructure(request), proposer.propose(request))
        except ProposalRefused as error:
            refused[backend] = error
    if not stages:
        raise not_constructible(workload.host_source, next(iter(refused.values())))
    return FastPath(stages, refused)


def not_constructible(source: Path, refused: ProposalRefused) -> RejectedError:
    """The error of a source that the built-in proposer cannot rewrite at all."""
    return RejectedError(f"{source} cannot be rewritten by construction: {refused.message}", fix=refused.fix)
