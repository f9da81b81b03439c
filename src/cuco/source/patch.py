"""Search and replace patches inside evolve blocks.

    <<<<<<< SEARCH
    lines as they are
    =======
    lines as they shall be
    >>>>>>> REPLACE

A search text is looked for in the mutable spans only: first exactly, then with white space ignored, then by
likeness. Each way must find one place and no second one. A patch that changes nothing is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from cuco.errors import RejectedError
from cuco.source.evolve import Document

_OPEN, _MIDDLE, _CLOSE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
#: A likeness below this is no match; a second place nearly as alike makes the first one doubtful.
_LIKENESS, _MARGIN = 0.9, 0.05


class PatchError(RejectedError):
    """A patch that cannot be applied, with what to do about it."""


@dataclass(frozen=True)
class Patch:
    """One replacement. An empty ``search`` stands for a block that is empty."""

    search: str
    replace: str


def parse_patches(text: str) -> list[Patch]:
    """The patches in a text, whatever stands around them. PatchError for one that is not complete."""
    patches: list[Patch] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        mark = line.rstrip()
        if mark == _OPEN:
            if search is not None:
                raise PatchError(f"line {number}: {_OPEN} inside a patch")
            search, replace = [], None
        elif mark == _MIDDLE and search is not None and replace is None:
            replace = []
        elif mark == _CLOSE and search is not None:
            if replace is None:
                raise PatchError(f"line {number}: {_CLOSE} without {_MIDDLE}")
            patches.append(Patch("".join(search), "".join(replace)))
            search = replace = None
        elif search is not None:
            (search if replace is None else replace).append(line)
    if search is not None:
        raise PatchError("the last patch has no end", fix=f"End it with {_CLOSE}")
    return patches


def apply_patches(document: Document, patches: Sequence[Patch]) -> Document:
    """The document with all patches made, one after the other.

    PatchError where a search text is not found, is found twice, lies in frozen text, or nothing changes.
    """
    if not patches:
        raise PatchError("there is no patch", fix=f"Write one between {_OPEN} and {_CLOSE}")
    changed = document
    for index, patch in enumerate(patches, 1):
        block, start, end = _find(changed, patch, index)
        span = changed.block(block)
        new = span.text[:start] + _fitting(patch.replace, span.text[start:end]) + span.text[end:]
        changed = changed.replace(span, new)
    if changed.text == document.text:
        raise PatchError(
            "the patch changes nothing", fix="Write a replacement that differs from the search text"
        )
    return changed


def _fitting(new: str, old: str) -> str:
    """The replacement with a newline at its end exactly where the old text had one."""
    if old.endswith("\n") and new and not new.endswith("\n"):
        return new + "\n"
    return new.removesuffix("\n") if new.endswith("\n") and old and not old.endswith("\n") else new


def _find(document: Document, patch: Patch, index: int) -> tuple[str, int, int]:
    """Block, start and end of the place that a patch means."""
    if not patch.search.strip():
        empty = [span for span in document.blocks if not span.text.strip()]
        if len(empty) == 1:
            return empty[0].name, 0, len(empty[0].text)
        raise PatchError(f"patch {index} searches for nothing", fix="Quote the lines that are to be replaced")
    for way in (_exact, _loose, _alike):
        places = [(span.name, *place) for span in document.blocks for place in way(span.text, patch.search)]
        if way is _alike:
            places = _outstanding(document, places, patch.search)
        if len(places) == 1:
            return places[0]
        if places:
            raise PatchError(
                f"patch {index}: the search text is found {len(places)} times",
                fix="Quote more lines around it",
            )
    if any(patch.search.strip() in text for text in document.frozen):
        raise PatchError(f"patch {index}: the search text lies outside the evolve blocks, which is frozen")
    raise PatchError(
        f"patch {index}: the search text is not in any evolve block", fix="Quote lines exactly as they are"
    )


def _exact(text: str, search: str) -> list[tuple[int, int]]:
    wanted = search if search in text else search.removesuffix("\n")
    found, at = [], text.find(wanted)
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = text.find(wanted, at + 1)
    return found


def _lines(text: str) -> list[tuple[int, int, str]]:
    """Start, end (newline included) and the words of every line."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        found.append((at, at + len(line), " ".join(line.split())))
        at += len(line)
    return found


def _windows(text: str, size: int) -> list[tuple[int, int, list[str]]]:
    lines = [one for one in _lines(text) if one[2]]
    return [
        (lines[at][0], lines[at + size - 1][1], [one[2] for one in lines[at : at + size]])
        for at in range(len(lines) - size + 1)
    ]


def _loose(text: str, search: str) -> list[tuple[int, int]]:
    wanted = ["".join(one[2].split()) for one in _lines(search) if one[2]]
    return [
        (start, end)
        for start, end, lines in _windows(text, len(wanted))
        if ["".join(line.split()) for line in lines] == wanted
    ]


def _alike(text: str, search: str) -> list[tuple[int, int]]:
    wanted = [one[2] for one in _lines(search) if one[2]]
    if sum(map(len, wanted)) < 12:  # too little text to tell places apart
        return []
    return [
        (start, end)
        for start, end, lines in _windows(text, len(wanted))
        if _likeness(lines, wanted) >= _LIKENESS - _MARGIN
    ]


def _likeness(one: Sequence[str], two: Sequence[str]) -> float:
    return SequenceMatcher(None, "\n".join(one), "\n".join(two), autojunk=False).ratio()


def _outstanding(
    document: Document, places: Sequence[tuple[str, int, int]], search: str
) -> list[tuple[str, int, int]]:
    """The place that is alike enough and clearly more so than any other; all of them where none stands
    out."""
    wanted = [one[2] for one in _lines(search) if one[2]]
    scored = sorted(
        (
            (
                _likeness([one[2] for one in _lines(document.block(name).text[start:end]) if one[2]], wanted),
                (name, start, end),
            )
            for name, start, end in places
        ),
        reverse=True,
    )
    if not scored or scored[0][0] < _LIKENESS:
        return []
    rivals = [place for score, place in scored if score > scored[0][0] - _MARGIN]
    return [scored[0][1]] if len(rivals) == 1 else rivals
