"""Reads directives as the CUCo paper writes them (Tables 2 to 4) and as ``Directive.key`` writes them."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from cuco.errors import UsageError
from cuco.space.dimensions import DIMENSIONS
from cuco.space.directive import CORE_FIELDS, Directive, PartialDirective

_LETTERS = {dimension.letter: dimension.field for dimension in DIMENSIONS if dimension.letter}
_UNSET = {"", "-", "–", "—"}
_MATH = re.compile(r"\$?\\mathcal\{([A-Z])\}\$?|\$([^$]*)\$")
_NOTE = re.compile(r"\(([^()]*)\)")
_COMM_CTAS = re.compile(r"(\d+)\s*comm\b")


def _without_math(text: str) -> str:
    return _MATH.sub(lambda match: match.group(1) or match.group(2), text).strip()


def _usage(error: ValidationError | ValueError, text: str) -> UsageError:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        reason = first["msg"].removeprefix("Value error, ")
        return UsageError(f"directive {text!r}: {where + ': ' if where else ''}{reason}")
    return UsageError(f"directive {text!r}: {error}")


def parse_value(field: str, text: str) -> Any:
    """One value of one dimension, as Table 2 writes it (``Tile⟨N⟩``, ``$1$``, ``SignalShadow``).

    Returns None for the paper's dash. Raises UsageError naming the allowed values.
    """
    plain = _without_math(text)
    if plain in _UNSET:
        return None
    raw: Any = int(plain) if plain.isdigit() else plain
    try:
        return getattr(PartialDirective.model_validate({field: raw}), field)
    except ValidationError as error:
        raise _usage(error, text) from None


def parse_dimension(line: str) -> tuple[str, list[Any]]:
    """A row of Table 2, ``$\\mathcal{B}$ : Backend<tab>GIN | LSA``: the field name and its values."""
    head, _, values = line.partition("\t")
    letter = _without_math(head).split(":")[0].strip()
    if letter not in _LETTERS or not values:
        raise UsageError(f"not a dimension row: {line!r}")
    field = _LETTERS[letter]
    return field, [parse_value(field, value) for value in re.split(r"\\?\|", values)]


def _extensions(parts: list[str], text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"directive {text!r}: {part.strip()!r} is not name=value")
        name = name.strip()
        if name not in PartialDirective.model_fields:
            raise UsageError(f"directive {text!r}: there is no dimension called {name!r}")
        found[name] = parse_value(name, value.strip())
    return found


def parse_directive(text: str) -> Directive:
    """A full directive: eight values in the order of Table 3, between ``|`` or tabs, then ``; name=value``.

    Raises UsageError with what is wrong in it.
    """
    core, *rest = text.split(";")
    cells = [cell.strip() for cell in re.split(r"[|\t]", core)]
    if len(cells) != len(CORE_FIELDS):
        names = " | ".join(CORE_FIELDS)
        raise UsageError(f"directive {text!r}: {len(cells)} values where {len(CORE_FIELDS)} belong ({names})")
    fields = {field: parse_value(field, cell) for field, cell in zip(CORE_FIELDS, cells, strict=True)}
    fields |= _extensions(rest, text)
    missing = [name for name in CORE_FIELDS if fields[name] is None and name != "contexts"]
    if missing:
        raise UsageError(f"directive {text!r}: {missing[0]} may not be left out")
    try:
        return Directive.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise _usage(error, text) from None


def parse_row(line: str) -> tuple[str, Directive]:
    """A row of Table 3: the system's name, a tab, then its eight values."""
    name, _, values = line.partition("\t")
    return name.strip(), parse_directive(values)


def parse_choices(text: str) -> PartialDirective:
    """The key design choices of a Table 4 row, ``P : tile-fused; M : counter; I : CTA (1 comm + 80
    compute)``.

    A parenthesis is a note, except for the number of communicating CTAs, which it may give. ``LSA (intra) /
    GIN (inter)`` is Hybrid. The row's ``M : counter`` is readiness on the sender's own rank: a Counter is
    local completion and tells no other rank anything.
    """
    fields: dict[str, Any] = {}
    for part in _without_math(text).split(";"):
        letter, colon, value = part.partition(":")
        field = _LETTERS.get(letter.strip())
        if not colon or field is None:
            raise UsageError(
                f"design choices {text!r}: {part.strip()!r} does not start with a dimension's letter"
            )
        notes = " ".join(_NOTE.findall(value))
        plain = value.strip() if re.search(r"\(\s*(\d+|N)\s*\)", value) else _NOTE.sub("", value).strip()
        if field == "backend" and "/" in plain:
            several = {parse_value("backend", one).value for one in plain.split("/")}
            plain = "Hybrid" if several == {"LSA", "GIN"} else plain
        if field == "sync" and plain.lower() == "counter":
            field = "readiness"
        fields[field] = parse_value(field, plain)
        if field == "issuer" and (count := _COMM_CTAS.search(notes)):
            fields["comm_ctas"] = int(count.group(1))
    return PartialDirective.model_validate(fields)
