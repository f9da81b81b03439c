"""Where a directive is to be used: the machine's reach, and what the edge and its neighbours are."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from cuco.errors import UsageError
from cuco.space.dimensions import Backend


class SpaceContext(BaseModel):
    """What validity depends on besides the directive itself.

    ``ranks`` and ``lsa_team`` are the world and the ranks per NVLink domain; ``peers`` says where the edge's
    peers are when that is known better than from these two (a pair inside one domain). ``data_dependent``:
    sizes or peers are known only at run time. ``nccl`` is the version of the device headers. ``sms``: SMs of
    one GPU, where known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ranks: int = Field(default=4, ge=2)
    lsa_team: int | None = Field(default=None, ge=1)
    backends: frozenset[Backend] = frozenset(Backend)
    op: str = "AllGather"
    peers: Literal["inside", "outside", "both"] | None = None
    data_dependent: bool = False
    publishes_data: bool = True
    has_producer: bool = True
    has_consumer: bool = True
    nccl: tuple[int, int, int] = (2, 32, 3)
    gin_connection: Literal["FULL", "RAIL", "NONE"] = "FULL"
    strong_signals: bool = True
    sms: int | None = Field(default=None, ge=1)

    @field_validator("backends", mode="before")
    @classmethod
    def _backends(cls, value: Any) -> Any:
        return frozenset(value) if isinstance(value, list | tuple | set) else value

    @model_validator(mode="after")
    def _domains(self) -> SpaceContext:
        if self.lsa_team is not None and self.ranks % self.lsa_team:
            raise ValueError(f"LSA teams of {self.lsa_team} do not divide {self.ranks} ranks")
        return self

    @property
    def team(self) -> int:
        """Ranks per LSA team; all of them where nothing is said."""
        return self.ranks if self.lsa_team is None else self.lsa_team

    @property
    def reach(self) -> str:
        """Where the edge's peers are: inside the LSA team, outside it, or both."""
        if self.peers is not None:
            return self.peers
        if self.team == self.ranks:
            return "inside"
        return "outside" if self.team == 1 else "both"

    @property
    def peers_in_team(self) -> bool:
        return self.reach == "inside"

    @property
    def both_kinds_of_peer(self) -> bool:
        return self.reach == "both"

    @property
    def one_team(self) -> bool:
        return self.team == self.ranks

    @property
    def has_neighbour(self) -> bool:
        return self.has_producer or self.has_consumer


def make_context(**values: Any) -> SpaceContext:
    """A context from a user's options. Raises UsageError in one line where they contradict each other."""
    try:
        return SpaceContext.model_validate(
            {name: value for name, value in values.items() if value is not None}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where + ': ' if where else ''}{reason}") from None
