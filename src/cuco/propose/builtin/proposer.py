"""The built-in proposer: every directive it offers, it can write; no model, no network, no randomness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cuco.propose.builtin.construct import Construction, construct
from cuco.propose.builtin.designs import conservative, designs
from cuco.propose.builtin.exchange import Exchange, exchanges
from cuco.propose.builtin.source_map import Producer
from cuco.propose.protocol import (
    MAIN_FILE,
    STAGE_A_LABEL,
    Operator,
    Proposal,
    ProposalRefused,
    ProposalRequest,
)
from cuco.source.edit import SourceFile
from cuco.space import Directive, SpaceContext
from cuco.space.dimensions import Backend

if TYPE_CHECKING:
    from cuco.source import CommGraph


class BuiltinProposer:
    """Writes candidates by construction from the CommGraph.

    ``source`` is the file of the user's host-driven code; ``producers`` maps an exchange's leading edge id to
    the kernel that writes what it sends, where one was found and traced (see ``cuco.fastpath.tracing``);
    without it an edge is not overlapped below kernel granularity. ``transfer_bytes``: largest transfer per
    leading edge id, bytes, at the optimised size."""

    name = "builtin"

    def __init__(
        self,
        source: Path,
        *,
        producers: Mapping[str, Producer] | None = None,
        transfer_bytes: Mapping[str, int] | None = None,
    ) -> None:
        self._source = source
        self._producers = dict(producers or {})
        self._bytes = dict(transfer_bytes or {})

    @cached_property
    def _text(self) -> SourceFile:
        """The user's code, parsed once."""
        return SourceFile.read(self._source)

    def options(
        self, graph: CommGraph, contexts: Mapping[str, SpaceContext]
    ) -> Mapping[str, Sequence[Directive]]:
        """The designs of every edge; edges of one exchange share its leader's."""
        found: dict[str, Sequence[Directive]] = {}
        for exchange in exchanges(graph):
            offered = designs(exchange, contexts[exchange.leader], self._producers.get(exchange.leader))
            found.update({call: offered for call in exchange.calls})
        return found

    def units(self, graph: CommGraph) -> Sequence[Sequence[str]]:
        """The edges of every exchange: its leader's directive is everyone's."""
        return [exchange.calls for exchange in exchanges(graph)]

    def seed(
        self, graph: CommGraph, contexts: Mapping[str, SpaceContext], backend: Backend
    ) -> dict[str, Directive]:
        """The fast path's conservative directives on ``backend``."""
        return {
            call: conservative(exchange, contexts[exchange.leader], backend)
            for exchange in exchanges(graph)
            for call in exchange.calls
        }

    def propose(self, request: ProposalRequest) -> Proposal:
        """The candidate for the request's directives; the leading edge of an exchange decides for all its
        edges."""
        found, chosen, text = self._construct(request, replace=True)
        directives = {call: chosen[one.leader] for one in found for call in one.calls}
        return Proposal(
            sources={MAIN_FILE: text},
            directives=directives,
            operator=request.operator,
            rationale=rationale(found, chosen),
            lineage=tuple(p.candidate for p in request.parents),
        )

    def infrastructure(self, request: ProposalRequest) -> Proposal:
        """Stage A of the candidate for the request's directives: its ground, under NCCL's own calls."""
        _, chosen, text = self._construct(request, replace=False)
        backends = "+".join(dict.fromkeys(directive.backend for directive in chosen.values()))
        return Proposal(
            sources={MAIN_FILE: text},
            directives={},
            operator=Operator.STAGE_A,
            rationale="Windows, device communicator and entry points; NCCL's own calls stay.",
            label=STAGE_A_LABEL + backends,
        )

    def _construct(
        self, request: ProposalRequest, *, replace: bool
    ) -> tuple[list[Exchange], dict[str, Directive], str]:
        """The exchanges, the directive of each by its leader, and the text."""
        found = exchanges(request.graph)
        missing = [one.leader for one in found if one.leader not in request.directives]
        if missing:
            raise ProposalRefused(f"no directive was given for edge {missing[0]}")
        chosen = {one.leader: request.directives[one.leader] for one in found}
        known = Construction(self._producers, self._bytes, replace)
        return found, chosen, construct(self._text, request.graph, found, chosen, known)


def rationale(found: Sequence[Exchange], chosen: Mapping[str, Directive]) -> str:
    """One sentence per exchange: what it is and how it is done."""
    return " ".join(
        f"{'+'.join(dict.fromkeys(one.ops))} ({', '.join(one.calls)}): {chosen[one.leader].key()}."
        for one in found
    )
