"""The difference between the host version and the best candidate, as HTML."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from html import escape

_CONTEXT = 3


def unified(old: str, new: str, old_name: str, new_name: str) -> str:
    """A unified diff as text."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), old_name, new_name, n=_CONTEXT, lineterm=""
    )
    return "\n".join(lines) + "\n"


def as_html(old: str, new: str) -> str:
    """A table of changed lines with their numbers; unchanged stretches are left out."""
    before, after = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    rows: list[str] = []
    for index, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if index:
            rows.append('<tr class="skip"><td colspan="3">⋯</td></tr>')
        for tag, first, last, start, end in group:
            if tag == "equal":
                rows += [_row(" ", first + i, start + i, before[first + i]) for i in range(last - first)]
                continue
            rows += [_row("-", number, None, before[number]) for number in range(first, last)]
            rows += [_row("+", None, number, after[number]) for number in range(start, end)]
    if not rows:
        return "<p>The files are the same.</p>"
    return f'<table class="diff">{"".join(rows)}</table>'


_ROW_CLASSES = {" ": "same", "-": "gone", "+": "new"}


def _row(sign: str, old: int | None, new: int | None, text: str) -> str:
    numbers = "".join(f"<td class=number>{'' if n is None else n + 1}</td>" for n in (old, new))
    return f'<tr class="{_ROW_CLASSES[sign]}">{numbers}<td><code>{sign} {escape(text)}</code></td></tr>'


def files_as_html(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """The main files against each other; further files of the candidate in full."""
    old_name, old_text = next(iter(old.items()))
    new_name, new_text = next(iter(new.items()))
    parts = [
        f"<h3>{escape(old_name)} of the host version → {escape(new_name)}</h3>",
        as_html(old_text, new_text),
    ]
    for name, text in list(new.items())[1:]:
        if old.get(name) != text:
            parts += [f"<h3>{escape(name)}</h3>", as_html(old.get(name, ""), text)]
    return "".join(parts)
