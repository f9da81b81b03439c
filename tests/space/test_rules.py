"""Rules are data: each refuses its own example, alone, with a sentence and a source."""

from __future__ import annotations

import pytest

from cuco.errors import UsageError
from cuco.space import Rule, SpaceContext, make_context, parse_directive, require_valid, rules, validate
from cuco.space.rules import load_rules


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_each_rule_alone_refuses_its_example(rule: Rule) -> None:
    violations = validate(parse_directive(rule.example), make_context(**rule.context))
    assert [violation.rule for violation in violations] == [rule.id]
    assert violations[0].sentence.endswith(".") and rule.source


def test_rule_ids_are_unique() -> None:
    names = [rule.id for rule in rules()]
    assert len(names) == len(set(names))


def test_counter_across_ranks_is_refused_with_the_sentence() -> None:
    directive = parse_directive("GIN | Counter | Deferred | World | CTA | PerPeer | AcqRel | 1")
    with pytest.raises(UsageError, match=r"tells the receiver nothing.*\[counter-is-local\]") as caught:
        require_valid(directive, SpaceContext())
    assert caught.value.exit_code == 2


def test_a_valid_directive_stops_being_valid_where_the_peers_are_elsewhere() -> None:
    directive = parse_directive("LSA | Barrier | Deferred | World | CTA | PerPeer | AcqRel | –")
    assert validate(directive, SpaceContext(ranks=4)) == []
    assert [v.rule for v in validate(directive, SpaceContext(ranks=4, lsa_team=2))] == ["lsa-peer-in-team"]
    assert validate(directive, SpaceContext(ranks=4, lsa_team=2, peers="inside")) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense = [", "rule file"),
        ("[[rule]]\nid = 'x'", "rule file"),
        (
            "[[rule]]\nid='x'\nsentence='s.'\nsource='s'\nexample=''\ncontext={}\n"
            "when=[{subject='colour', test='set'}]",
            "no dimension 'colour'",
        ),
        (
            "[[rule]]\nid='x'\nsentence='s.'\nsource='s'\nexample=''\ncontext={}\n"
            "when=[{subject='context.moon', test='set'}]",
            "context has no 'moon'",
        ),
    ],
)
def test_bad_rule_files_are_named(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        load_rules(text)


def test_a_context_that_contradicts_itself_is_bad_usage() -> None:
    with pytest.raises(UsageError, match="LSA teams of 3 do not divide 4 ranks"):
        make_context(ranks=4, lsa_team=3)
    with pytest.raises(UsageError, match="ranks"):
        make_context(ranks=1)
