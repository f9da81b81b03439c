"""Reports of unexpected exceptions: a file with the traceback instead of a traceback on the terminal."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

from cuco import __version__


def write_report(arguments: list[str], error: BaseException) -> str:
    """Writes what a maintainer needs, without the environment; returns the file's path."""
    text = "\n".join(
        [
            f"cuco {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: cuco {' '.join(arguments)}",
            f"folder: {Path.cwd()}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    name = f"cuco-crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    for folder in (Path(tempfile.gettempdir()), Path.cwd()):
        try:
            (folder / name).write_text(text, encoding="utf-8")
            return str(folder / name)
        except OSError:
            continue
    print(text, file=sys.stderr)
    return "the lines above"
