"""The values a directive is made of, one type per dimension, and what each dimension means.

Values are written as in the CUCo paper's Table 2 where it has them; ``spelled`` reads the paper's typography
(``Tile-fused``, ``Per-peer``, ``Tile⟨N⟩``, ``Local``) as well as NCCL's (``acq_rel``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, model_serializer, model_validator


class Backend(StrEnum):
    GIN = "GIN"
    LSA = "LSA"
    HYBRID = "Hybrid"


class Sync(StrEnum):
    """How a rank learns that a peer's data is there. On LSA, Signal is a flag word in the peer's window."""

    BARRIER = "Barrier"
    SIGNAL = "Signal"
    SIGNAL_SHADOW = "SignalShadow"
    COUNTER = "Counter"


class Readiness(StrEnum):
    """How the sender learns, on its own rank, that a piece is produced."""

    NONE = "None"
    COUNTER = "Counter"
    FLAG = "Flag"


class Placement(StrEnum):
    DEFERRED = "Deferred"
    STREAM_SPLIT = "StreamSplit"
    PIPELINED = "Pipelined"
    TILE_FUSED = "TileFused"
    PERSISTENT = "Persistent"


class Scope(StrEnum):
    PAIR = "Pair"
    LSA = "Lsa"
    RAIL = "Rail"
    WORLD = "World"


class Ordering(StrEnum):
    RELAXED = "Relaxed"
    ACQUIRE = "Acquire"
    RELEASE = "Release"
    ACQ_REL = "AcqRel"


class Direction(StrEnum):
    PUSH = "Push"
    PULL = "Pull"


class Mover(StrEnum):
    SM = "SM"
    COPY_ENGINE = "CopyEngine"
    NIC = "NIC"


class Strength(StrEnum):
    """Strong settles all earlier puts of the context to that peer, weak only the put it is bundled with."""

    STRONG = "Strong"
    WEAK = "Weak"


class Fence(StrEnum):
    NONE = "None"
    PUT = "Put"
    GET = "Get"
    PUT_GET = "PutGet"


class BackPressure(StrEnum):
    NONE = "None"
    CREDITS = "Credits"
    DOUBLE_BUFFER = "DoubleBuffer"


class ConsumeOrder(StrEnum):
    LOCAL_FIRST = "LocalFirst"
    REMOTE_FIRST = "RemoteFirst"
    ARRIVAL = "Arrival"


IssuerKind = Literal["Thread", "Warp", "WarpSpan", "Tile", "CTA", "Device"]
GranularityKind = Literal["Whole", "PerPeer", "Chunk", "PerTile"]
Contexts = int | Literal["N"] | None

E = TypeVar("E", bound=StrEnum)

#: Spellings of the paper and of NCCL that are not the value itself.
_ALIASES = {
    ("scope", "local"): "lsa",
    ("ordering", "acquirerelease"): "acqrel",
    ("mover", "ce"): "copyengine",
}
_PARAMETER = re.compile(r"^\s*([A-Za-z_ -]+?)\s*[(<⟨]\s*(\d+|N)\s*[)>⟩]\s*$")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def spelled(kind: type[E], text: str) -> E:
    """The value of ``kind`` that ``text`` spells, whatever its case, hyphens or spaces.

    Raises ValueError naming the allowed values.
    """
    plain = _plain(text)
    plain = _ALIASES.get((kind.__name__.lower(), plain), plain)
    for value in kind:
        if _plain(value.value) == plain:
            return value
    allowed = ", ".join(value.value for value in kind)
    raise ValueError(f"{text!r} is not a value of {kind.__name__}; allowed: {allowed}")


class _Parametrised(BaseModel):
    """A value with an optional parameter, written ``Tile(16)``; as JSON it is that string."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_serializer
    def _as_text(self) -> str:
        return str(self)


def _split(text: str, names: tuple[str, ...], what: str) -> tuple[str, int | Literal["N"] | None]:
    match = _PARAMETER.match(text)
    head, raw = (match.group(1), match.group(2)) if match else (text, None)
    for name in names:
        if _plain(name) == _plain(head):
            return name, None if raw is None else "N" if raw == "N" else int(raw)
    raise ValueError(f"{text!r} is not a value of {what}; allowed: {', '.join(names)}")


class Issuer(_Parametrised):
    """The threads that issue a transfer together: lanes of a Tile, warps of a WarpSpan.

    ``Tile(N)`` leaves the width to whoever writes the code; ``Device`` (the paper's Table 4) leaves it all.
    """

    kind: IssuerKind
    width: int | Literal["N"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        kind, width = _split(value, ("Thread", "Warp", "WarpSpan", "Tile", "CTA", "Device"), "Issuer")
        return {"kind": kind, "width": width}

    @model_validator(mode="after")
    def _widths(self) -> Issuer:
        if self.kind == "Tile" and self.width is None:
            raise ValueError("a Tile issuer needs its width: Tile(1), Tile(2) .. Tile(32) or Tile(N)")
        if self.kind not in ("Tile", "WarpSpan") and self.width is not None:
            raise ValueError(f"a {self.kind} issuer has no width")
        return self

    def __str__(self) -> str:
        return self.kind if self.width is None else f"{self.kind}({self.width})"


class Granularity(_Parametrised):
    """What one transfer carries. ``bytes`` belongs to Chunk alone."""

    kind: GranularityKind
    bytes: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        kind, size = _split(value, ("Whole", "PerPeer", "Chunk", "PerTile"), "Granularity")
        return {"kind": kind, "bytes": size}

    @model_validator(mode="after")
    def _size(self) -> Granularity:
        if (self.kind == "Chunk") != (self.bytes is not None):
            raise ValueError("Chunk, and only Chunk, carries its size in bytes, as in Chunk(65536)")
        if self.bytes is not None and self.bytes <= 0:
            raise ValueError("a Chunk carries at least one byte")
        return self

    def __str__(self) -> str:
        return self.kind if self.bytes is None else f"{self.kind}({self.bytes})"


@dataclass(frozen=True)
class Dimension:
    """One dimension of the design space as ``cuco space`` prints it."""

    letter: str
    field: str
    meaning: str
    values: tuple[str, ...]
    extension: bool = False


def _names(kind: type[StrEnum]) -> tuple[str, ...]:
    return tuple(value.value for value in kind)


DIMENSIONS: tuple[Dimension, ...] = (
    Dimension(
        "B",
        "backend",
        "how peers are reached: network puts, loads and stores, or each where it fits",
        _names(Backend),
    ),
    Dimension("M", "sync", "how a rank learns that a peer's data has arrived", _names(Sync)),
    Dimension("P", "placement", "where communication sits relative to the computation", _names(Placement)),
    Dimension("S", "scope", "which ranks a synchronisation spans", _names(Scope)),
    Dimension(
        "I",
        "issuer",
        "which threads issue a transfer together",
        ("Thread", "Warp", "WarpSpan", "Tile(N)", "CTA"),
    ),
    Dimension(
        "G", "granularity", "what one transfer carries", ("Whole", "PerPeer", "Chunk(bytes)", "PerTile")
    ),
    Dimension(
        "O", "ordering", "memory order of the synchronisation that publishes the data", _names(Ordering)
    ),
    Dimension("K", "contexts", "GIN contexts (queues per peer) in use; none on LSA", ("1", "2", "N")),
    Dimension(
        "",
        "readiness",
        "how the sender learns on its own rank that a piece is produced",
        _names(Readiness),
        True,
    ),
    Dimension("", "direction", "the producer pushes or the consumer pulls", _names(Direction), True),
    Dimension("", "mover", "what moves the bytes", _names(Mover), True),
    Dimension("", "strength", "what a GIN signal settles", _names(Strength), True),
    Dimension("", "fence", "what a GIN barrier drains", _names(Fence), True),
    Dimension(
        "", "back_pressure", "how a sender knows that a landing place is free", _names(BackPressure), True
    ),
    Dimension("", "order", "which piece is produced or consumed first", _names(ConsumeOrder), True),
    Dimension("", "comm_ctas", "thread blocks that only communicate", ("1..",), True),
)
