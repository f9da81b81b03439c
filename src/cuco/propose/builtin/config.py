"""What generated code is made for: one ``EdgeConfig`` per exchange, read from its directive.

A directive's ``Chunk(bytes)`` becomes a number of pieces at the size being optimised, so that the same code
has the same structure at the small sizes at which it is verified."""

from __future__ import annotations

from dataclasses import dataclass

from cuco.propose.protocol import ProposalRefused
from cuco.space import Directive
from cuco.space.dimensions import Backend, Placement, Sync

#: Thread blocks that communicate, where the directive leaves it open: enough loads and stores in flight to
#: fill NVLink from SMs (expert systems use 4 to 24); a NIC needs only somebody to post.
DEFAULT_CTAS = {Backend.LSA: 16, Backend.HYBRID: 16, Backend.GIN: 4}
MAX_PIECES = 256
THREADS = 256


@dataclass(frozen=True)
class ProducerMap:
    """CTA ``i`` along ``axis`` of the producer writes only bytes ``[i * unit, (i + 1) * unit)`` of the sent
    buffer.

    ``axis``: 0 x, 1 y, 2 z, 3 linear. ``unit`` in bytes; 0 means the buffer's bytes divided by the grid along
    ``axis``."""

    axis: int
    unit: int


@dataclass(frozen=True)
class EdgeConfig:
    """Constants of one exchange's generated code. ``slots``: concurrent transfers per pair of ranks."""

    index: int
    slot_base: int
    slots: int
    backend: Backend
    sync: Sync
    placement: Placement
    issuer: str
    width: int
    ctas: int
    threads: int
    pieces: int
    contexts: int
    producer: ProducerMap | None

    @property
    def name(self) -> str:
        return f"Edge{self.index}"

    def render(self) -> str:
        """The C++ struct that the templates take as ``Edge``."""
        axis, unit = (self.producer.axis, self.producer.unit) if self.producer else (3, 0)
        lines = [
            f"struct {self.name} {{",
            f"  static constexpr int kId = {self.index}, kSlotBase = {self.slot_base};",
            f"  static constexpr int kSlotCount = {self.slots};",
            f"  static constexpr int kCtas = {self.ctas}, kThreads = {self.threads};",
            f"  static constexpr int kPieces = {self.pieces};",
            f"  static constexpr int kContexts = {self.contexts}, kWidth = {self.width}, kAxis = {axis};",
            f"  static constexpr unsigned long long kUnit = {unit};",
            f"  static constexpr Backend kBackend = Backend::{_cxx(self.backend.value)};",
            f"  static constexpr Sync kSync = Sync::{self.sync.value};",
            f"  static constexpr Placement kPlacement = Placement::{self.placement.value};",
            f"  static constexpr Issuer kIssuer = Issuer::{_cxx(self.issuer)};",
            "};",
        ]
        return "\n".join(lines) + "\n"


def _cxx(value: str) -> str:
    return {"LSA": "Lsa", "GIN": "Gin", "CTA": "Cta"}.get(value, value)


def edge_config(
    index: int,
    slot_base: int,
    slots: int,
    directive: Directive,
    *,
    bytes_per_transfer: int,
    producer: ProducerMap | None,
    threads: int = THREADS,
) -> EdgeConfig:
    """The constants for ``directive``; ``bytes_per_transfer`` is its largest transfer at the optimised size.

    Raises ProposalRefused for designs that this code generator does not write.
    """
    if directive.sync is Sync.COUNTER:
        raise ProposalRefused("a counter cannot synchronise ranks", fix="Use Barrier, Signal or SignalShadow")
    fused = directive.placement in (Placement.PIPELINED, Placement.PERSISTENT, Placement.TILE_FUSED)
    if fused and producer is None:
        raise ProposalRefused(
            "no map from the producer's thread blocks to the bytes they complete was found",
            fix="Let each thread block write one stretch of what is sent, or use Deferred or StreamSplit",
        )
    if directive.placement is Placement.TILE_FUSED and directive.sync is Sync.BARRIER:
        raise ProposalRefused(
            "the thread block that finishes a tile cannot wait in a barrier of the whole grid",
            fix="Use Signal or SignalShadow",
        )
    kind, width = _issuer(directive)
    return EdgeConfig(
        index=index,
        slot_base=slot_base,
        slots=slots,
        backend=directive.backend,
        sync=directive.sync,
        placement=directive.placement,
        issuer=kind,
        width=width,
        ctas=directive.comm_ctas or DEFAULT_CTAS[directive.backend],
        threads=threads,
        pieces=_pieces(directive, bytes_per_transfer),
        contexts=_contexts(directive),
        producer=producer,
    )


def _issuer(directive: Directive) -> tuple[str, int]:
    kind = directive.issuer.kind
    if kind == "Device":
        kind = "CTA"
    width = directive.issuer.width
    if kind == "Tile":
        return kind, width if isinstance(width, int) else 16
    if kind == "WarpSpan":
        return kind, width if isinstance(width, int) else 2
    return kind, 1


def _pieces(directive: Directive, bytes_per_transfer: int) -> int:
    if directive.granularity.kind == "PerTile":
        raise ProposalRefused(
            "the built-in proposer sends whole chunks of tiles", fix="Use granularity Chunk(bytes)"
        )
    if directive.granularity.bytes is None:
        return 1
    return max(1, min(MAX_PIECES, -(-bytes_per_transfer // directive.granularity.bytes)))


def _contexts(directive: Directive) -> int:
    if directive.backend is Backend.LSA:
        return 1
    contexts = 4 if directive.contexts == "N" else int(directive.contexts or 1)
    if directive.backend is Backend.HYBRID and directive.sync is Sync.BARRIER and contexts > 1:
        raise ProposalRefused("a hybrid barrier drains one context only", fix="Use one context, or signals")
    return contexts
