"""The arrows of the house: who may import whom. Read from the source, lazy imports included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "cuco"

#: Rooms from the ground up; a room imports from lower floors, and rooms of the ground from each other.
FLOORS: list[set[str]] = [
    {"errors", "space", "knowledge", "source", "workload", ""},
    {"testbed", "native"},
    {"propose", "verify"},
    {"fastpath", "search"},
    {"config"},
    {"report"},
    {"session", "comparison"},
    {"api"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
#: Importing these from anywhere is a mistake of its own, whatever the floors say.
FORBIDDEN = {("verify", "propose"): "who writes code cannot judge it"}
#: Single imports against the arrows, each with its reason.
EXCEPTIONS = {
    (
        "source/reading.py",
        "cuco.testbed.toolchain",
    ): "libclang reads the headers that candidates are compiled with",
}


def room_of(module: str) -> str:
    """The room of a module inside the package; the package itself is ``""``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE.parent).with_suffix("")
    return ".".join(part for part in relative.parts if part != "__init__")


def imports_of(path: Path) -> list[tuple[int, str]]:
    """(line, module) of every import of this package, also inside functions and for type checking."""
    found = []
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *filter(None, [node.module])])
            # ``from cuco import api`` names a room in its list of names.
            found += [
                (node.lineno, f"{base}.{alias.name}" if base == "cuco" else base) for alias in node.names
            ]
    return sorted({(number, name) for number, name in found if name.split(".")[0] == "cuco"})


def wrong(importer: str, imported: str) -> str | None:
    """Why a room may not import another; None if it may."""
    if importer == imported:
        return None
    if (importer, imported) in FORBIDDEN:
        return FORBIDDEN[importer, imported]
    if FLOOR[imported] < FLOOR[importer] or FLOOR[imported] == FLOOR[importer] == 0:
        return None
    return f"{importer or 'cuco'} lies below or beside {imported}"


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(module_of(path)) for path in files()}
    assert rooms <= set(FLOOR), (
        f"give {rooms - set(FLOOR)} a floor in this test, and a line in the architecture"
    )


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    importer = room_of(module_of(path))
    for number, name in imports_of(path):
        if importer == "" and "__getattr__" in path.read_text(encoding="utf-8"):
            continue  # the package's own lazy entry points
        imported = room_of(name)
        if imported not in FLOOR:
            continue  # a name of the package itself, as __version__
        if (str(path.relative_to(PACKAGE)), name) in EXCEPTIONS:
            continue
        reason = wrong(importer, imported)
        assert reason is None, f"{path.name}:{number} imports {name}: {reason}"


def test_exceptions_are_still_needed() -> None:
    for name, imported in EXCEPTIONS:
        assert imported in {module for _, module in imports_of(PACKAGE / name)}


def test_the_check_can_fail() -> None:
    assert wrong("verify", "propose") == "who writes code cannot judge it"
    assert wrong("search", "cli") and wrong("testbed", "verify") and wrong("propose", "verify")
    assert wrong("search", "fastpath") and wrong("space", "testbed")
    assert wrong("search", "verify") is None and wrong("cli", "search") is None
