"""``cuco init``: a new workload folder, started from a bundled workload that verifies."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from cuco.errors import UsageError


def scaffold(folder: Path, template: str) -> list[str]:
    """Copies a bundled workload under a new name and returns the names of its files.

    Raises UsageError if the folder exists and is not empty, or cannot be written.
    """
    from cuco.workload import load_workload

    origin = load_workload(template)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", folder.resolve().name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder", fix="Name a new one")
    if origin.spec.include_dirs:
        raise UsageError(
            f"{template} includes files of its neighbours and cannot be copied alone",
            fix="Start from a micro workload, such as ring_shift or allgather",
        )
    try:
        shutil.copytree(
            origin.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        spec = folder / "workload.toml"
        text = spec.read_text(encoding="utf-8")
        spec.write_text(re.sub(r'(?m)^name = "[^"]*"', f'name = "{name}"', text, count=1), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from None
    load_workload(str(folder))
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
