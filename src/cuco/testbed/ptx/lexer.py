"""PTX text -> tokens with line numbers. Debug sections are cut out first: they are data, and large."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cuco.testbed.ptx.model import PtxError

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f]+|//[^\n]*|/\*.*?\*/)
      | (?P<newline>\n)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
      | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
      | (?P<word>[A-Za-z_$%][\w$]*(?:(?:\.|::)[\w$]+)*)
      | (?P<directive>\.[A-Za-z_]\w*(?:(?:\.|::)\w+)*)
      | (?P<punct>[\[\]{}(),;:+\-!|@=<>*~&^/?])""",
    re.X | re.S,
)

_SECTION = re.compile(r"^[ \t]*\.section[ \t]+(\.?[\w$]+)\s*(\{)?", re.M)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """word, directive, int, float, string or punct."""
    text: str
    line: int
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Split PTX text; raises PtxError at a character that starts no token."""
    tokens: list[Token] = []
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        if match.start() != position:
            raise PtxError(f"unexpected character {text[position]!r}", line)
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "newline":
            line += 1
        elif kind == "space":
            line += match.group().count("\n")
        else:
            tokens.append(Token(kind, match.group(), line, match.start(), position))
    if position != len(text):
        raise PtxError(f"unexpected character {text[position]!r}", line)
    return tokens


def cut_sections(text: str) -> tuple[str, dict[str, str]]:
    """Blank out `.section` blocks (lines are kept), and return the strings of .debug_str by their label."""
    strings: dict[str, str] = {}
    for match in _SECTION.finditer(text):
        end = text.find("}", match.end())
        end = len(text) if end < 0 else end
        body = text[match.end() : end]
        if match.group(1) == ".debug_str":
            strings = _debug_strings(body)
        stop = end + 1 if match.group(2) or "{" in body[:16] else end
        blank = re.sub(r"[^\n]", " ", text[match.start() : stop])
        text = text[: match.start()] + blank + text[stop:]
    return text, strings


def _debug_strings(body: str) -> dict[str, str]:
    """Labels of a .debug_str section -> the C string that starts there."""
    strings: dict[str, str] = {}
    label, data = "", bytearray()
    for raw in body.splitlines():
        line = raw.strip()
        if line.endswith(":"):
            if label:
                strings[label] = bytes(data).split(b"\0", 1)[0].decode("utf-8", "replace")
            label, data = line[:-1], bytearray()
        elif line.startswith(".b8"):
            data.extend(int(x) & 255 for x in line[3:].split(",") if x.strip())
    if label:
        strings[label] = bytes(data).split(b"\0", 1)[0].decode("utf-8", "replace")
    return strings
