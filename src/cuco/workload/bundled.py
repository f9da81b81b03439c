"""Finding workloads: a folder, or the name of a bundled one."""

from __future__ import annotations

from pathlib import Path

import cuco
from cuco.errors import UsageError
from cuco.workload.load import Workload

_PACKAGE = Path(cuco.__file__).resolve().parent
#: Inside an installed wheel; in a clone (editable install) the repository's own folder.
_PLACES = (_PACKAGE / "workloads", _PACKAGE.parents[1] / "workloads")


def bundled_root() -> Path | None:
    """The folder of bundled workloads, or None if this installation has none."""
    return next((place for place in _PLACES if place.is_dir()), None)


def bundled_workloads() -> dict[str, Path]:
    """Bundled workloads by name; micro workloads as ``micro/NAME``."""
    root = bundled_root()
    if root is None:
        return {}
    return {str(path.parent.relative_to(root)): path.parent for path in sorted(root.rglob("workload.toml"))}


def load_workload(name_or_path: str | Path) -> Workload:
    """Loads a workload from a folder, or a bundled one by name (``gemm_allgather``, ``micro/ring_shift``,
    ``ring_shift``).
    """
    folder = Path(name_or_path)
    if folder.is_dir():
        return Workload(folder)
    if folder.name == "workload.toml" and folder.is_file():
        return Workload(folder.parent)
    known = bundled_workloads()
    wanted = str(name_or_path)
    for candidate in (wanted, f"micro/{wanted}"):
        if candidate in known:
            return Workload(known[candidate])
    raise UsageError(
        f"there is no workload '{wanted}'",
        fix="Give a folder with a workload.toml, or a bundled one: "
        + (", ".join(known) or "none installed")
        + ".",
    )
