"""Directives are frozen values that survive every round trip and refuse what is not a value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cuco.errors import UsageError
from cuco.space import (
    Directive,
    Granularity,
    Issuer,
    SpaceContext,
    enumerate_directives,
    neighbours,
    parse_directive,
    validate,
)
from cuco.space.dimensions import Backend, Fence, Placement, Readiness
from cuco.space.enumerate import DEFAULT_CHOICES

TEXT = "LSA | Signal | Pipelined | World | CTA | Chunk(65536) | AcqRel | –; readiness=Counter; comm_ctas=4"

any_directive = st.builds(
    lambda **fields: Directive.model_validate(fields),
    **{name: st.sampled_from(values) for name, values in DEFAULT_CHOICES.items()},
    fence=st.sampled_from([None, *Fence]),
    comm_ctas=st.sampled_from([None, 1, 8]),
)


@given(any_directive)
def test_key_and_json_read_back(directive: Directive) -> None:
    assert parse_directive(directive.key()) == directive
    assert Directive.model_validate(json.loads(json.dumps(directive.to_json()))) == directive


def test_key_is_the_line_that_was_parsed() -> None:
    assert parse_directive(TEXT).key() == TEXT


def test_frozen_and_hashable() -> None:
    directive = parse_directive(TEXT)
    with pytest.raises(ValidationError):
        directive.backend = Backend.GIN  # type: ignore[misc]
    assert len({directive, parse_directive(TEXT)}) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("LSA | Barrier", "2 values where 8 belong"),
        (TEXT.replace("LSA", "NVSHMEM"), "NVSHMEM.*allowed: GIN, LSA, Hybrid"),
        (TEXT.replace("Chunk(65536)", "Chunk"), "size in bytes"),
        (TEXT.replace("Chunk(65536)", "Chunk(0)"), "at least one byte"),
        (TEXT.replace("CTA |", "Tile |"), "needs its width"),
        (TEXT.replace("CTA |", "CTA(4) |"), "has no width"),
        (TEXT.replace("World", "–"), "scope may not be left out"),
        (TEXT.replace("comm_ctas=4", "comm_ctas=0"), "comm_ctas"),
        (TEXT.replace("comm_ctas=4", "colour=4"), "no dimension called 'colour'"),
        (TEXT.replace("| –", "| 0"), "contexts is at least 1"),
    ],
)
def test_what_is_not_a_directive_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        parse_directive(text)
    assert "\n" not in str(caught.value)


def test_unknown_fields_are_errors() -> None:
    with pytest.raises(ValidationError):
        Directive.model_validate({**parse_directive(TEXT).to_json(), "colour": "blue"})


@pytest.mark.parametrize(
    "context",
    [
        SpaceContext(ranks=4),
        SpaceContext(ranks=4, lsa_team=2),
        SpaceContext(ranks=2, lsa_team=1, backends=frozenset({Backend.GIN}), data_dependent=True),
    ],
)
def test_enumeration_is_exactly_the_valid_ones(context: SpaceContext) -> None:
    small = {
        "issuer": [Issuer(kind="CTA")],
        "granularity": [Granularity(kind="Whole"), Granularity(kind="PerTile")],
        "contexts": [None, 1],
    }
    found = list(enumerate_directives(context, small))
    assert len(found) == len(set(found)) > 0
    everything = _product({**DEFAULT_CHOICES, **small})
    assert set(found) == {directive for directive in everything if not validate(directive, context)}


def _product(choices: dict) -> list[Directive]:
    partial: list[dict] = [{}]
    for name, values in choices.items():
        partial = [{**one, name: value} for one in partial for value in values]
    return [Directive.model_construct(**{**_defaults(), **one}) for one in partial]


def _defaults() -> dict:
    return {name: field.default for name, field in Directive.model_fields.items() if not field.is_required()}


def test_neighbours_are_valid_and_different() -> None:
    context = SpaceContext(ranks=4)
    space = list(enumerate_directives(context, {"scope": ["World"], "contexts": [None, 1]}))
    for directive in space[:: len(space) // 6]:
        near = neighbours(directive, context)
        assert near and directive not in near
        assert all(not validate(other, context) for other in near)


def test_neighbours_reach_overlapping_placements_from_a_deferred_design() -> None:
    start = parse_directive("LSA | Barrier | Deferred | World | CTA | PerPeer | AcqRel | –")
    reached = {other.placement for other in neighbours(start, SpaceContext())}
    assert reached >= {Placement.STREAM_SPLIT, Placement.PIPELINED, Placement.PERSISTENT}
    pipelined = [d for d in neighbours(start, SpaceContext()) if d.placement is Placement.PIPELINED]
    assert all(other.readiness is not Readiness.NONE for other in pipelined)
