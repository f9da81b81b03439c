"""Enumerates the valid directives of a context, and the neighbours of one directive in it.

Choices are made one dimension after the other, and every rule is judged as soon as the dimensions it reads
are chosen, so invalid branches are left early.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cuco.space.context import SpaceContext
from cuco.space.dimensions import Backend, Granularity, Issuer, Ordering, Placement, Readiness, Scope, Sync
from cuco.space.directive import CORE_FIELDS, Directive
from cuco.space.rules import Rule, rules, validate

#: Values that enumeration tries, per field. Chunk sizes and widths are samples of a larger set.
DEFAULT_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "backend": tuple(Backend),
    "sync": tuple(Sync),
    "placement": tuple(Placement),
    "scope": tuple(Scope),
    "issuer": tuple(
        Issuer.model_validate(name) for name in ("Thread", "Warp", "WarpSpan", "Tile(16)", "CTA")
    ),
    "granularity": tuple(
        Granularity.model_validate(name)
        for name in ("Whole", "PerPeer", "Chunk(65536)", "Chunk(1048576)", "PerTile")
    ),
    "ordering": tuple(Ordering),
    "contexts": (None, 1, 2, "N"),
    "readiness": tuple(Readiness),
}
_UNSET = {name: field.default for name, field in Directive.model_fields.items() if not field.is_required()}


def enumerate_directives(
    context: SpaceContext, choices: Mapping[str, Sequence[Any]] | None = None
) -> Iterator[Directive]:
    """Every valid directive whose fields take values of ``choices`` (defaults above; fields not named:
    unset).

    The order is that of the choices, so it is the same on every run.
    """
    options = {name: tuple(values) for name, values in {**DEFAULT_CHOICES, **(choices or {})}.items()}
    order = [
        *(name for name in CORE_FIELDS if name in options),
        *(n for n in options if n not in CORE_FIELDS),
    ]
    fixed = {name: value for name, value in _UNSET.items() if name not in options}
    due = _due(order, set(fixed))
    if any(rule.refuses(fixed, context) for rule in due[0]):
        return
    for choice in _descend(order, options, due[1:], dict(fixed), context, 0):
        yield Directive.model_validate(choice)


def _due(order: Sequence[str], known: set[str]) -> list[list[Rule]]:
    """Rules by the step after which all they read is chosen; step 0 is before the first choice."""
    steps: list[list[Rule]] = [[] for _ in range(len(order) + 1)]
    place = {name: index + 1 for index, name in enumerate(order)}
    for rule in rules():
        steps[max((place[field] for field in rule.fields() if field not in known), default=0)].append(rule)
    return steps


def _descend(
    order: Sequence[str],
    options: Mapping[str, tuple[Any, ...]],
    due: Sequence[Sequence[Rule]],
    choice: dict[str, Any],
    context: SpaceContext,
    depth: int,
) -> Iterator[dict[str, Any]]:
    if depth == len(order):
        yield dict(choice)
        return
    for value in options[order[depth]]:
        choice[order[depth]] = value
        if not any(rule.refuses(choice, context) for rule in due[depth]):
            yield from _descend(order, options, due, choice, context, depth + 1)


def neighbours(
    directive: Directive, context: SpaceContext, choices: Mapping[str, Sequence[Any]] | None = None
) -> list[Directive]:
    """Valid directives that differ from ``directive`` in one field, or in the smallest repair that makes it
    valid.

    Changing the placement often needs another readiness or granularity with it; such pairs count as one step.
    """
    options = {**DEFAULT_CHOICES, **(choices or {})}
    found: dict[str, Directive] = {}
    for field, values in options.items():
        for value in values:
            if getattr(directive, field) == value:
                continue
            changed = directive.replace(**{field: value})
            if not validate(changed, context):
                found.setdefault(changed.key(), changed)
                continue
            for repaired in _repairs(changed, field, options, context):
                found.setdefault(repaired.key(), repaired)
    found.pop(directive.key(), None)
    return list(found.values())


def _repairs(
    directive: Directive, kept: str, options: Mapping[str, Sequence[Any]], context: SpaceContext
) -> Iterator[Directive]:
    """The first valid value of each other field that repairs ``directive`` without touching ``kept``."""
    for field, values in options.items():
        if field == kept:
            continue
        for value in values:
            candidate = directive.replace(**{field: value})
            if not validate(candidate, context):
                yield candidate
                break
