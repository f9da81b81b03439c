"""The design space: directives, the rules that refuse invalid ones, presets, and enumeration."""

from cuco.space.context import SpaceContext, make_context
from cuco.space.dimensions import DIMENSIONS, Granularity, Issuer
from cuco.space.directive import Directive, PartialDirective
from cuco.space.enumerate import enumerate_directives, neighbours
from cuco.space.notation import parse_choices, parse_directive, parse_row
from cuco.space.presets import Preset, preset, presets
from cuco.space.rules import Rule, Violation, require_valid, rules, validate

__all__ = [
    "DIMENSIONS",
    "PRESETS",
    "Directive",
    "Granularity",
    "Issuer",
    "PartialDirective",
    "Preset",
    "Rule",
    "SpaceContext",
    "Violation",
    "enumerate_directives",
    "make_context",
    "neighbours",
    "parse_choices",
    "parse_directive",
    "parse_row",
    "preset",
    "presets",
    "require_valid",
    "rules",
    "validate",
]

#: Expert systems by name (design 2): DeepEP (NVL), DeepEP (IB), FLUX, TokenWeave.
PRESETS = presets()
