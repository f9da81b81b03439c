"""What compilers print, as data: nvcc's front ends, g++, ptxas and the linker, in the order printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One error. ``text`` is everything the compiler said about it, source line and caret included."""

    file: str
    line: int
    message: str
    text: str


_PATTERNS = (
    # EDG, in cudafe++ and cicc: x.cu(12): error: ...
    re.compile(
        r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): "
        r"(?:catastrophic )?error(?: #[\w-]+)?: (?P<message>.*)$"
    ),
    # g++: x.cu:12:3: error: ...
    re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<message>.*)$"),
    # ptxas x.ptx, line 44; error   : ...
    re.compile(r"^ptxas (?P<file>.+), line (?P<line>\d+); (?:error|fatal)\s*: (?P<message>.*)$"),
)
_BARE = re.compile(r"^(?:ptxas|nvcc|nvlink|cicc|g\+\+|gcc|cc1plus)\b.*?(?:error|fatal)\s*: (?P<message>.*)$")
_NOISE = re.compile(r"^(?:\d+ errors? detected in|compilation terminated|In file included from)")
_WARNING = re.compile(r"^\S.*(?:\(\d+\)|:\d+(?::\d+)?): (?:warning|note|remark)\b")


def parse(output: str, names: Mapping[str, str]) -> list[Diagnostic]:
    """The errors in a compiler's output. ``names`` maps the paths compiled to those the user knows."""
    found: list[Diagnostic] = []
    lines: list[str] = []
    head: tuple[str, int, str] | None = None

    def close() -> None:
        if head is not None:
            file, line, message = head
            found.append(Diagnostic(file, line, message, "\n".join(lines).rstrip()))

    for text in output.splitlines():
        match = next((m for m in (pattern.match(text) for pattern in _PATTERNS) if m), None)
        bare = None if match else _BARE.match(text)
        if match or bare or _NOISE.match(text) or _WARNING.match(text):
            close()
            head, lines = None, []
        if match:
            file = match["file"].removeprefix("./")
            head = (names.get(file, file), int(match["line"]), match["message"].strip())
            lines = [text.replace(match["file"], head[0], 1)]
        elif bare:
            head, lines = ("", 0, bare["message"].strip()), [text]
        elif head is not None:
            lines.append(text)
    close()
    return found


def summary(diagnostics: list[Diagnostic], source: str) -> str:
    """One line for the user: the first error with its place, and how many there are."""
    if not diagnostics:
        return f"{source} does not compile"
    first = diagnostics[0]
    place = f"{first.file}:{first.line}" if first.line else first.file or source
    more = f" (and {len(diagnostics) - 1} more)" if len(diagnostics) > 1 else ""
    return f"{place}: {first.message}{more}"


def source_lines(ptx: str, names: Mapping[str, str]) -> list[tuple[int, str, int]]:
    """(PTX line, file, line) of every ``.loc``, in order: where the PTX after it comes from."""
    files = {
        int(number): names.get(path, path)
        for number, path in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.MULTILINE)
    }
    found = []
    for index, text in enumerate(ptx.splitlines(), start=1):
        match = re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", text)
        if match and int(match.group(1)) in files:
            found.append((index, files[int(match.group(1))], int(match.group(2))))
    return found


def relocate(item: Diagnostic, ptx: str, located: list[tuple[int, str, int]]) -> Diagnostic:
    """``item`` at its CUDA source line, if it speaks of the file named ``ptx`` (an error in inline assembly).
    """
    if item.file.rsplit("/", 1)[-1] != ptx:
        return item
    before = [entry for entry in located if entry[0] <= item.line]
    if not before:
        return item
    _, file, line = before[-1]
    return Diagnostic(file, line, f"{item.message} (PTX line {item.line})", item.text)
