"""Named directives of published expert systems."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from cuco.errors import UsageError
from cuco.space.directive import Directive
from cuco.space.notation import parse_directive


@dataclass(frozen=True)
class Preset:
    """A published system's design: its directive, where the mapping comes from, and what it does."""

    name: str
    title: str
    directive: Directive
    source: str
    note: str


@cache
def presets() -> Mapping[str, Preset]:
    """All presets by name."""
    text = files("cuco.space").joinpath("presets.toml").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            name: Preset(
                name, entry["title"], parse_directive(entry["directive"]), entry["source"], entry["note"]
            )
            for name, entry in tomllib.loads(text).items()
        }
    )


def preset(name: str) -> Preset:
    """The preset called ``name``. Raises UsageError naming those that exist."""
    found = presets().get(name.lower())
    if found is None:
        raise UsageError(f"there is no preset {name!r}; known: {', '.join(presets())}")
    return found
