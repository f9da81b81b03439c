"""A directive: the design of one communication edge, chosen before its code is written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cuco.space.dimensions import (
    Backend,
    BackPressure,
    ConsumeOrder,
    Contexts,
    Direction,
    Fence,
    Granularity,
    Issuer,
    Mover,
    Ordering,
    Placement,
    Readiness,
    Scope,
    Strength,
    Sync,
    spelled,
)

#: The paper's eight dimensions, in the order of its Table 3.
CORE_FIELDS = ("backend", "sync", "placement", "scope", "issuer", "granularity", "ordering", "contexts")
EXTENSION_FIELDS = (
    "readiness",
    "direction",
    "mover",
    "strength",
    "fence",
    "back_pressure",
    "order",
    "comm_ctas",
)
_ENUMS = {
    "backend": Backend,
    "sync": Sync,
    "placement": Placement,
    "scope": Scope,
    "ordering": Ordering,
    "readiness": Readiness,
    "direction": Direction,
    "mover": Mover,
    "strength": Strength,
    "fence": Fence,
    "back_pressure": BackPressure,
    "order": ConsumeOrder,
}


class _DirectiveFields(BaseModel):
    """What full and partial directives share: immutability and tolerant spelling of values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator(*_ENUMS, mode="before", check_fields=False)
    @classmethod
    def _spelling(cls, value: Any, info: Any) -> Any:
        if isinstance(value, str):
            return spelled(_ENUMS[info.field_name], value)
        return value

    @field_validator("contexts", check_fields=False)
    @classmethod
    def _contexts(cls, value: Contexts) -> Contexts:
        if isinstance(value, int) and value < 1:
            raise ValueError("contexts is at least 1, N for as many as the communicator has, or unset on LSA")
        return value


class PartialDirective(_DirectiveFields):
    """Some design choices, as the paper's Table 4 lists them. ``complete`` fills in the rest."""

    backend: Backend | None = None
    sync: Sync | None = None
    placement: Placement | None = None
    scope: Scope | None = None
    issuer: Issuer | None = None
    granularity: Granularity | None = None
    ordering: Ordering | None = None
    contexts: Contexts = None
    readiness: Readiness | None = None
    direction: Direction | None = None
    mover: Mover | None = None
    strength: Strength | None = None
    fence: Fence | None = None
    back_pressure: BackPressure | None = None
    order: ConsumeOrder | None = None
    comm_ctas: int | None = Field(default=None, ge=1)

    def chosen(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}

    def complete(self, rest: Directive) -> Directive:
        """A full directive: these choices, everything else from ``rest``."""
        return rest.replace(**self.chosen())


class Directive(_DirectiveFields):
    """The design of one communication edge. Frozen, hashable, and valid only after ``cuco.space.validate``.

    The eight dimensions are the paper's; the others are extensions that expert systems needed and are unset
    unless a design needs them. ``contexts`` is unset on LSA, where contexts do not exist.
    """

    backend: Backend
    sync: Sync
    placement: Placement
    scope: Scope
    issuer: Issuer
    granularity: Granularity
    ordering: Ordering
    contexts: Contexts = None
    readiness: Readiness = Readiness.NONE
    direction: Direction | None = None
    mover: Mover | None = None
    strength: Strength | None = None
    fence: Fence | None = None
    back_pressure: BackPressure | None = None
    order: ConsumeOrder | None = None
    comm_ctas: int | None = Field(default=None, ge=1)

    def replace(self, **changes: Any) -> Self:
        """A copy with ``changes``, checked as any directive is (``model_copy`` would not check)."""
        data: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(data | changes)

    def extensions(self) -> dict[str, Any]:
        """The extension fields that are set, readiness None counting as unset."""
        values = {name: getattr(self, name) for name in EXTENSION_FIELDS}
        if self.readiness is Readiness.NONE:
            del values["readiness"]
        return {name: value for name, value in values.items() if value is not None}

    def key(self) -> str:
        """One line that identifies this directive: the eight dimensions in the paper's order, then
        extensions.

        ``notation.parse_directive`` reads it back.
        """
        return _key(self)

    def cell(self) -> tuple[str, str, str, str]:
        """The archive cell: designs of one cell are variants, of different cells different ideas."""
        return (self.backend.value, self.placement.value, self.sync.value, self.granularity.kind)

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the unset fields left out; ``Directive.model_validate`` reads it back."""
        return self.model_dump(mode="json", exclude_none=True)

    def __str__(self) -> str:
        return self.key()


@lru_cache(maxsize=1 << 16)
def _key(directive: Directive) -> str:
    """The key, kept: a search asks for the same directives' keys over and over."""
    values = (getattr(directive, name) for name in CORE_FIELDS)
    core = " | ".join("–" if value is None else str(value) for value in values)
    return core + "".join(f"; {name}={value}" for name, value in directive.extensions().items())
