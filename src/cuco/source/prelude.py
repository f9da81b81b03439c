"""The headers that every source includes, parsed once per process.

A search reads dozens of candidates, and most of a reading is the same system headers. From the second
reading on they come from a precompiled header in a temporary folder of this process, so that nothing can be
stale.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from clang import cindex

_HEADERS = ("nccl.h", "cstring", "cstdio", "vector", "functional", "thread")
_OPTIONS = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | cindex.TranslationUnit.PARSE_INCOMPLETE


class Prelude:
    """Precompiled headers by the options that they were made with."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()
        self._made: dict[tuple[str, ...], Path | None] = {}
        self._folder: Path | None = None

    def options(self, arguments: Sequence[str], syntax: Path) -> list[str]:
        """What brings in CUDA's syntax: the precompiled header, or the plain file the first time."""
        plain = ["-include", str(syntax)]
        key = (*arguments, str(syntax))
        if key not in self._seen:
            self._seen.add(key)
            return plain
        if key not in self._made:
            self._made[key] = self._make(arguments, syntax)
        made = self._made[key]
        return plain if made is None else ["-include-pch", str(made)]

    def forget(self, arguments: Sequence[str], syntax: Path) -> None:
        """Use the plain file for these options from now on."""
        self._made[(*arguments, str(syntax))] = None

    def _make(self, arguments: Sequence[str], syntax: Path) -> Path | None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="cuco-headers-"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        source = self._folder / f"prelude{len(self._made)}.h"
        lines = [f'#include "{syntax}"', *(f"#include <{name}>" for name in _HEADERS)]
        try:
            source.write_text("\n".join(lines) + "\n", encoding="utf-8")
            unit = cindex.Index.create().parse(str(source), list(arguments), options=_OPTIONS)
            if any(one.severity >= cindex.Diagnostic.Error for one in unit.diagnostics):
                return None
            target = source.with_suffix(".pch")
            unit.save(str(target))
        except (OSError, cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
            return None
        return target
