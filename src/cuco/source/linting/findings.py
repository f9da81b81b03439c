"""Lint rules as data, and findings."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from cuco.source.clang_ast import Node

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Rule:
    """A rule of ``knowledge/lint_rules.toml``; ``doubt`` is its sentence where it is not certain."""

    id: str
    severity: Severity
    sentence: str
    source: str
    doubt: str = ""


@dataclass(frozen=True)
class LintFinding:
    """One finding; ``severity`` error means wrong on every input."""

    rule: str
    severity: Severity
    line: int
    message: str
    file: str = ""


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """All rules by id."""
    text = files("cuco.knowledge").joinpath("lint_rules.toml").read_text(encoding="utf-8")
    found = [Rule(**one) for one in tomllib.loads(text)["rule"]]
    return {one.id: one for one in found}


class Findings:
    """Findings of one run, each reported once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], LintFinding] = {}

    def add(self, rule_id: str, node: Node, *, doubtful: bool = False, **names: object) -> None:
        """Report a rule at a node's line; ``names`` fill the sentence. A doubtful finding is a warning."""
        rule = rules()[rule_id]
        sentence = rule.doubt if doubtful and rule.doubt else rule.sentence
        severity: Severity = "warning" if doubtful else rule.severity
        message = sentence.format(**{name: str(value) for name, value in names.items()})
        key = (rule_id, node.file, node.line)
        old = self._found.get(key)
        if old is None or (old.severity == "warning" and severity == "error"):
            self._found[key] = LintFinding(rule_id, severity, node.line, message, node.file)

    def sorted(self) -> list[LintFinding]:
        return sorted(self._found.values(), key=lambda one: (one.file, one.line, one.rule))
