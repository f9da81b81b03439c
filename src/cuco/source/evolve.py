"""Evolve blocks: the parts of a source that proposals may change, between two comments.

    // EVOLVE-BLOCK-START exchange
    ...                                    <- mutable
    // EVOLVE-BLOCK-END

The name is optional. Everything else, the marker lines included, is frozen: whatever is put into a block,
the frozen text stays byte for byte, and text that would move, hide or add a marker is refused. Markers count
only in comments; one inside a string or a raw string is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cuco.errors import UsageError

START, END = "EVOLVE-BLOCK-START", "EVOLVE-BLOCK-END"
#: What begins a comment, a string or a character.
_OPENING = re.compile(r"//|/\*|\"|'")


@dataclass(frozen=True)
class Marker:
    """A marker line: ``kind`` is START or END, ``name`` "" where none is given. Characters [start, end) are
    the whole line, newline included; ``word_end`` is where the kind's word ends."""

    kind: str
    name: str
    start: int
    end: int
    word_end: int
    line: int


@dataclass(frozen=True)
class Span:
    """A stretch of the text: characters [start, end), beginning on ``line`` (from 1). Mutable ones have a
    name."""

    kind: Literal["frozen", "mutable"]
    start: int
    end: int
    line: int
    text: str
    name: str = ""

    @property
    def mutable(self) -> bool:
        return self.kind == "mutable"


@dataclass(frozen=True)
class Document:
    """A text as alternating spans that cover it without gap: frozen, mutable, frozen, ..., frozen."""

    text: str
    spans: tuple[Span, ...]

    @property
    def blocks(self) -> tuple[Span, ...]:
        """The mutable spans."""
        return tuple(span for span in self.spans if span.mutable)

    @property
    def frozen(self) -> tuple[str, ...]:
        """The frozen texts, which no edit changes."""
        return tuple(span.text for span in self.spans if not span.mutable)

    def block(self, name: str) -> Span:
        """The mutable span of this name; UsageError where there is none."""
        for span in self.blocks:
            if span.name == name:
                return span
        known = ", ".join(span.name for span in self.blocks) or "none"
        raise UsageError(f"there is no evolve block {name}", fix=f"The blocks are: {known}")

    def replace(self, span: Span | str, new_text: str) -> Document:
        """The document with one block's text replaced; a missing last newline is added.

        UsageError for a frozen span, and for text that does not leave markers and frozen text as they are.
        """
        found = self.block(span) if isinstance(span, str) else span
        return self.replace_all({found.name: new_text}) if found in self.spans else _foreign(found)

    def replace_all(self, texts: dict[str, str]) -> Document:
        """The document with several blocks replaced, by name, at once."""
        for name, text in texts.items():
            self.block(name)
            if not _conditionals_close(text):
                raise UsageError(
                    f"the new text of {name} opens or ends a preprocessor condition that lies outside",
                    fix="Close every #if inside the block",
                )
        pieces = [
            _closed(texts[span.name]) if span.mutable and span.name in texts else span.text
            for span in self.spans
        ]
        try:
            changed = parse("".join(pieces))
        except UsageError as error:
            raise UsageError(f"the new text breaks the evolve blocks: {error.message}") from None
        if changed.frozen != self.frozen or [one.name for one in changed.blocks] != [
            one.name for one in self.blocks
        ]:
            raise UsageError(
                "the new text would change what is frozen",
                fix="A block must close its comments, strings and braces, and contain no evolve marker",
            )
        return changed


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _conditionals_close(text: str) -> bool:
    """Whether every #if of a block is ended inside it, so that none reaches the frozen text."""
    bare, at = [], 0
    for start, end in comments(text):
        bare += [text[at:start], " "]
        at = end
    depth = 0
    for line in "".join([*bare, text[at:]]).splitlines():
        words = line.strip().removeprefix("#").split() if line.strip().startswith("#") else []
        name = words[0].partition("(")[0].partition("!")[0] if words else ""
        if name in ("if", "ifdef", "ifndef"):
            depth += 1
        elif name in ("else", "elif", "elifdef", "elifndef", "endif"):
            if depth == 0:
                return False
            depth -= name == "endif"
    return depth == 0


def _foreign(span: Span) -> Document:
    raise UsageError(f"the span at line {span.line} is not a block of this document")


def parse(text: str) -> Document:
    """Split a text at its markers. UsageError, with the line, for an unmatched, nested or repeated marker."""
    spans: list[Span] = []
    names: set[str] = set()
    at, line = 0, 1
    opened: tuple[str, int] | None = None
    for marker in markers(text):
        name, start, end, marker_line = marker.name, marker.start, marker.end, marker.line
        if marker.kind == START:
            if opened is not None:
                raise UsageError(
                    f"line {marker_line}: {START} inside the block that starts at line {opened[1]}",
                    fix="Blocks do not nest: close the first one with " + END,
                )
            name = name or f"block-{len(names) + 1}"
            if name in names:
                raise UsageError(f"line {marker_line}: there is already an evolve block {name}")
            names.add(name)
            spans.append(Span("frozen", at, end, line, text[at:end]))
            opened, at = (name, marker_line), end
        else:
            if opened is None:
                raise UsageError(f"line {marker_line}: {END} without {START}")
            spans.append(Span("mutable", at, start, line, text[at:start], opened[0]))
            opened, at = None, start
        line = 1 + text.count("\n", 0, at)
    if opened is not None:
        raise UsageError(f"line {opened[1]}: {START} without {END}", fix=f"End the block with // {END}")
    spans.append(Span("frozen", at, len(text), line, text[at:]))
    return Document(text, tuple(spans))


def annotate(text: str, regions: Iterable[tuple[int, int, str]]) -> str:
    """Put markers around lines. A region is (first line, last line, name), from 1, both included.

    UsageError for regions that overlap or lie outside, and for a text where the result is not what was asked.
    """
    lines = text.splitlines(keepends=True)
    ordered = sorted(regions)
    _check_regions(ordered, len(lines))
    done: list[str] = []
    at = 0
    for first, last, name in ordered:
        done += lines[at : first - 1]
        body = lines[first - 1 : last]
        indent = _indent(body)
        if body and not body[-1].endswith("\n"):
            body[-1] += "\n"
        done += [f"{indent}// {START}{' ' + name if name else ''}\n", *body, f"{indent}// {END}\n"]
        at = last
    result = "".join(done + lines[at:])
    if len(parse(result).blocks) != len(parse(text).blocks) + len(ordered):
        raise UsageError("an evolve block would begin or end inside a comment or a string")
    return result


def strip(text: str) -> str:
    """The text without its marker lines."""
    kept, at = [], 0
    for marker in markers(text):
        kept.append(text[at : marker.start])
        at = marker.end
    return "".join([*kept, text[at:]])


def _check_regions(regions: Sequence[tuple[int, int, str]], lines: int) -> None:
    before = 0
    for first, last, name in regions:
        if not before < first <= last <= lines:
            raise UsageError(
                f"evolve block {name or '?'} at lines {first} to {last} overlaps another or lies outside"
            )
        if name.split() not in ([], [name]):
            raise UsageError(f"the name of an evolve block is one word, not {name!r}")
        before = last


def _indent(lines: Sequence[str]) -> str:
    for line in lines:
        if line.strip():
            return line[: len(line) - len(line.lstrip())]
    return ""


def markers(text: str) -> Iterator[Marker]:
    """The marker lines in order. UsageError, with the line, for one that does not stand alone."""
    for start, end in comments(text):
        words = text[start:end].strip("/* \t\r\n").split()
        if not words or words[0] not in (START, END):
            continue
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        last = len(text) if last < 0 else last + 1
        number = 1 + text.count("\n", 0, start)
        if text[first:start].strip() or text[end:last].strip() or "\n" in text[start:end]:
            raise UsageError(f"line {number}: {words[0]} must stand alone on its line")
        if len(words) > 2:
            raise UsageError(f"line {number}: {words[0]} takes one name, not {' '.join(words[1:])!r}")
        word_end = text.index(words[0], start) + len(words[0])
        yield Marker(words[0], words[1] if len(words) == 2 else "", first, last, word_end, number)


def comments(text: str) -> Iterable[tuple[int, int]]:
    """The comments of C++ source, by position; strings, characters and raw strings are passed over."""
    at, size = 0, len(text)
    while (found := _OPENING.search(text, at)) is not None:
        at, opening = found.start(), found.group()
        if opening == "//":
            end = _line_comment_end(text, at)
            yield at, end
            at = end
        elif opening == "/*":
            end = text.find("*/", at + 2)
            end = size if end < 0 else end + 2
            yield at, end
            at = end
        elif opening == '"' and _is_raw(text, at):
            at = _raw_end(text, at)
        elif opening == '"' or not (at and text[at - 1].isalnum()):  # else a digit separator
            at = _quoted_end(text, at)
        else:
            at += 1


def _line_comment_end(text: str, at: int) -> int:
    """The end of a ``//`` comment; a backslash before the newline continues it."""
    end = text.find("\n", at)
    while end > 0 and text[:end].rstrip("\r").endswith("\\"):
        end = text.find("\n", end + 1)
    return len(text) if end < 0 else end


def _is_raw(text: str, quote: int) -> bool:
    start = quote
    while start and text[start - 1] in "RLuU8":
        start -= 1
    prefix = text[start:quote]
    return prefix.endswith("R") and not (start and (text[start - 1].isalnum() or text[start - 1] == "_"))


def _raw_end(text: str, quote: int) -> int:
    opening = text.find("(", quote)
    if opening < 0:
        return len(text)
    closing = ")" + text[quote + 1 : opening] + '"'
    end = text.find(closing, opening)
    return len(text) if end < 0 else end + len(closing)


def _quoted_end(text: str, at: int) -> int:
    """The end of a string or character; one that is not closed ends with its line."""
    quote, at = text[at], at + 1
    while at < len(text) and text[at] not in (quote, "\n"):
        at += 2 if text[at] == "\\" else 1
    return at + 1
