"""The designs that the built-in construction can write for an exchange, in a stable order.

Axes are few values each, from what expert systems use (few communicating thread blocks, a signal per chunk, a
barrier only at the ends; see the presets of ``cuco.space``), so that a search of some tens of candidates
reaches every idea."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from cuco.propose.builtin.config import edge_config
from cuco.propose.builtin.exchange import Exchange
from cuco.propose.builtin.source_map import Producer
from cuco.propose.protocol import ProposalRefused
from cuco.space import Directive, SpaceContext, validate
from cuco.space.dimensions import Backend, Placement, Sync

PIECES = (4, 8, 16, 32)
LSA_CTAS = (8, 16, 32)
ISSUERS = ("Thread", "Warp", "CTA", "WarpSpan(2)", "Tile(16)")
CONTEXTS = (1, 2, "N")
_FUSED = (Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED)


def conservative(exchange: Exchange, context: SpaceContext, backend: Backend) -> Directive:
    """The fast path's directive: CTA issuer, deferred, whole messages, barrier for collectives and signals
    for pairs."""
    return Directive.model_validate(
        {
            "backend": backend,
            "placement": "Deferred",
            "issuer": "CTA",
            "granularity": "Whole",
            "ordering": "AcqRel",
            "sync": "Barrier" if exchange.collective else "Signal",
            "scope": _scope(exchange, context),
            "contexts": None if backend is Backend.LSA else 1,
        }
    )


def _scope(exchange: Exchange, context: SpaceContext) -> str:
    return "World" if exchange.collective else "Pair"


def designs(exchange: Exchange, context: SpaceContext, producer: Producer | None) -> list[Directive]:
    """Every directive that is valid in ``context`` and that the construction covers, conservative ones
    first."""
    backends = [b for b in (Backend.LSA, Backend.GIN, Backend.HYBRID) if b in context.backends]
    found: dict[str, Directive] = {}
    for backend in backends:
        for directive in (
            conservative(exchange, context, backend),
            *_variants(exchange, context, producer, backend),
        ):
            if not validate(directive, context) and _constructible(directive, producer):
                found.setdefault(directive.key(), directive)
    return list(found.values())


def _constructible(directive: Directive, producer: Producer | None) -> bool:
    try:
        edge_config(
            0, 0, 1, directive, bytes_per_transfer=1 << 20, producer=producer.map if producer else None
        )
    except ProposalRefused:
        return False
    return True


def _variants(
    exchange: Exchange, context: SpaceContext, producer: Producer | None, backend: Backend
) -> Iterator[Directive]:
    base = conservative(exchange, context, backend)
    placements = [Placement.DEFERRED]
    if not exchange.reduces:
        placements.append(Placement.STREAM_SPLIT)
        placements += [p for p in _FUSED if producer is not None and producer.allows(p)]
    syncs = [Sync.SIGNAL, Sync.SIGNAL_SHADOW] + ([Sync.BARRIER] if exchange.collective else [])
    for placement, sync in product(placements, syncs):
        fused = placement in _FUSED
        for granularity in _granularities(fused, producer):
            changes = {
                "placement": placement,
                "sync": sync,
                "granularity": granularity,
                "readiness": "Counter" if fused else "None",
            }
            yield from _issue(base.replace(**changes), backend)


def _granularities(fused: bool, producer: Producer | None) -> Sequence[str]:
    if producer is None:
        return ("Whole",)
    chunks = [f"Chunk({max(256, -(-producer.bytes // pieces))})" for pieces in PIECES]
    return chunks if fused else ("Whole", *chunks)


def _issue(directive: Directive, backend: Backend) -> Iterator[Directive]:
    if backend is Backend.LSA:
        for ctas in LSA_CTAS:
            yield directive.replace(comm_ctas=ctas)
        return
    for issuer, contexts in product(ISSUERS, CONTEXTS):
        yield directive.replace(issuer=issuer, contexts=contexts)
