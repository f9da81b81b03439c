"""Which files of ours a C++ or CUDA source is made of: the cache's key of a source.

Directives are read textually, whatever ``#if`` encloses them, and every place where a header could lie is
looked at, present or not. So the closure errs on the side of too many files: a header that appears in front
of another, or inside a branch that is not taken, changes the key, and never the other way round. Headers
found in none of the given folders belong to the toolchain, whose version is in the key by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuco.errors import CucoError
from cuco.testbed.cache import digest

_INCLUDE = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*(?:include|include_next|embed)\b[ \t]*(.*)$", re.MULTILINE)
_PROBE = re.compile(rb"__has_(?:include|include_next|embed)[ \t]*\([ \t]*(.*)$", re.MULTILINE)
_NAME = re.compile(rb'"([^"\n]+)"|<([^>\n]+)>')


class SourceChanged(CucoError):
    """A file was edited while it was compiled: what was built belongs to no key."""


@dataclass(frozen=True)
class Closure:
    """``files``: every file read, the source first, with its content; ``key`` identifies all of it."""

    files: dict[Path, bytes]
    key: str
    computed: bool
    """An include names a macro: what it reads is unknown, so a build must not be taken from the cache."""


def closure(source: Path, content: bytes, folders: Sequence[Path]) -> Closure:
    """The closure of ``source`` (whose bytes are ``content``) over ``folders``, searched as ``-I`` is.

    Paths enter the key relative to the source's folder or to the folder they were found in, so equal trees in
    two places have one key.
    """
    files: dict[Path, bytes] = {source: content}
    parts: list[str | bytes] = [source.name, content]
    waiting, computed = [source], False
    while waiting:
        including = waiting.pop()
        for quoted, name, unknown in _includes(files[including]):
            computed |= unknown
            if not name:
                continue
            places = ([including.parent] if quoted else []) + [source.parent, *folders]
            for index, place in enumerate(places):
                path = place / name
                data = files.get(path)
                if data is None:
                    data = _read(path)
                    if data is not None:
                        files[path] = data
                        waiting.append(path)
                parts += [f"{including.name}>{index}:{name}", b"-" if data is None else b"+" + data]
    return Closure(files=files, key=digest(*parts), computed=computed)


def check_unchanged(source: Path, content: bytes, folders: Sequence[Path], before: Closure) -> None:
    """Raises SourceChanged unless the closure on disk is still ``before``. Call it after compiling."""
    if closure(source, content, folders).key != before.key:
        raise SourceChanged(f"{source} or a header of it was edited during its compilation", fix="try again")


def _includes(content: bytes) -> list[tuple[bool, str, bool]]:
    """(quoted, name, computed) of every ``#include``, ``#embed`` and ``__has_include`` in a text."""
    text = content.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    found: list[tuple[bool, str, bool]] = []
    for match in (*_INCLUDE.finditer(text), *_PROBE.finditer(text)):
        name = _NAME.match(match.group(1))
        if name is None:
            found.append((False, "", True))
        else:
            quoted, angled = name.groups()
            found.append((quoted is not None, (quoted or angled).decode("utf-8", "replace"), False))
    return found


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
