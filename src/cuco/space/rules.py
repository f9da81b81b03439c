"""Validity rules: data in ``rules.toml``, judged here. A refused directive gets the rule's sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from cuco.errors import UsageError
from cuco.space.context import SpaceContext
from cuco.space.directive import Directive

Test = Literal["is", "not", "in", "not-in", "lt", "le", "gt", "ge", "set", "unset"]

#: Subjects that are a property of several dimensions at once: the dimensions they read.
DERIVED: Mapping[str, tuple[str, ...]] = {
    "gin_barrier": ("backend", "sync"),
    "fused_by_tile": ("placement", "granularity"),
}


@dataclass(frozen=True)
class Violation:
    """Why a directive is refused: the rule, its sentence for the user, and where the rule comes from."""

    rule: str
    sentence: str
    source: str

    def __str__(self) -> str:
        return f"{self.sentence} [{self.rule}]"


class Condition(BaseModel):
    """One comparison of a dimension or a context value with a constant or another context value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subject: str
    test: Test
    value: Any = None

    def fields(self) -> tuple[str, ...]:
        """The dimensions this condition reads; none for a context value."""
        if self.subject.startswith("context."):
            return ()
        return DERIVED.get(self.subject, (self.subject.split(".")[0],))

    def holds(self, choice: Mapping[str, Any], context: SpaceContext) -> bool:
        """Whether the condition holds. Raises UsageError where the rule file names something unknown."""
        value = self.value
        if isinstance(value, str) and value.startswith("@context."):
            value = _context_value(context, value.removeprefix("@context."))
        return _compare(self.test, _subject(self.subject, choice, context), value)


class Rule(BaseModel):
    """A directive is refused when all conditions of ``when`` hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    sentence: str
    source: str
    when: tuple[Condition, ...]
    example: str
    context: dict[str, Any]

    def fields(self) -> frozenset[str]:
        """The dimensions this rule reads."""
        return frozenset(field for condition in self.when for field in condition.fields())

    def refuses(self, choice: Mapping[str, Any], context: SpaceContext) -> bool:
        return all(condition.holds(choice, context) for condition in self.when)

    def violation(self) -> Violation:
        return Violation(self.id, self.sentence, self.source)


def _context_value(context: SpaceContext, name: str) -> Any:
    value = getattr(context, name)
    if isinstance(value, frozenset):
        return [item.value for item in value]
    return value


def _subject(subject: str, choice: Mapping[str, Any], context: SpaceContext) -> Any:
    if subject.startswith("context."):
        return _context_value(context, subject.removeprefix("context."))
    if subject == "gin_barrier":
        return choice["sync"] == "Barrier" and choice["backend"] != "LSA"
    if subject == "fused_by_tile":
        return choice["placement"] == "TileFused" or choice["granularity"].kind == "PerTile"
    head, _, part = subject.partition(".")
    return getattr(choice[head], part) if part else choice[head]


def _compare(test: Test, left: Any, right: Any) -> bool:
    if test == "set":
        return left is not None
    if test == "unset":
        return left is None
    if test in ("in", "not-in"):
        return (left in right) == (test == "in")
    if test in ("is", "not"):
        return bool(left == right) == (test == "is")
    if left is None or right is None:
        return False
    if isinstance(left, tuple | list):
        left, right = tuple(left), tuple(right)
    return bool({"lt": left < right, "le": left <= right, "gt": left > right, "ge": left >= right}[test])


def load_rules(text: str) -> tuple[Rule, ...]:
    """Rules from TOML text. Raises UsageError where the text is not a rule file or a rule is misspelled."""
    try:
        rules = tuple(Rule.model_validate(entry) for entry in tomllib.loads(text)["rule"])
    except (tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise UsageError(f"rule file: {str(error).splitlines()[0]}") from None
    known = set(Directive.model_fields) | set(DERIVED)
    for rule in rules:
        for condition in rule.when:
            name = condition.subject
            if name.startswith("context."):
                if not hasattr(SpaceContext, name.removeprefix("context.")) and (
                    name.removeprefix("context.") not in SpaceContext.model_fields
                ):
                    raise UsageError(f"rule {rule.id}: the context has no {name.removeprefix('context.')!r}")
            elif name.split(".")[0] not in known:
                raise UsageError(f"rule {rule.id}: there is no dimension {name!r}")
    return rules


@cache
def rules() -> tuple[Rule, ...]:
    """The rules that ship with CUCo."""
    return load_rules(files("cuco.space").joinpath("rules.toml").read_text(encoding="utf-8"))


def validate(
    directive: Directive, context: SpaceContext, rules_in_force: Sequence[Rule] | None = None
) -> list[Violation]:
    """Every rule that refuses ``directive`` in ``context``; empty when it is valid."""
    choice = {name: getattr(directive, name) for name in type(directive).model_fields}
    checked = rules() if rules_in_force is None else rules_in_force
    return [rule.violation() for rule in checked if rule.refuses(choice, context)]


def require_valid(directive: Directive, context: SpaceContext) -> None:
    """Raises UsageError with the first rule's sentence if ``directive`` is invalid in ``context``."""
    violations = validate(directive, context)
    if violations:
        raise UsageError(f"directive {directive.key()!r} is refused: {violations[0]}")
