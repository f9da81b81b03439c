"""What commands print: one JSON object or a table on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def emit(result: Mapping[str, Any]) -> None:
    """Prints ``result`` as the one JSON object of this command."""
    print(json.dumps(result, ensure_ascii=False, allow_nan=False))


def stdout() -> Console:
    """The console for results."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def stderr() -> Console:
    """The console for logs and live tables."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table. On a terminal it is drawn, elsewhere it is tab-separated lines that tools can read."""
    lines = [["–" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        print("\n".join("\t".join(line) for line in [list(columns), *lines]))
        return
    from rich.markup import escape
    from rich.table import Table

    drawn = Table(title=title or None, title_justify="left")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for line in lines:
        drawn.add_row(*(escape(cell) for cell in line))
    stdout().print(drawn)


def say(text: str) -> None:
    """A line for people, on stderr."""
    print(text, file=sys.stderr)
