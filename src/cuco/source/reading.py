"""From a path to a parsed translation unit: headers, libclang's options, and what counts as an error.

The real cuda_runtime.h and nccl.h are used, with CUDA's syntax and the device API declared by ``stubs/``.
The stubs are loose, so libclang alone may complain about a correct program: where nvcc is at hand, nvcc
decides.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from clang import cindex

from cuco.errors import CompileError, MissingError, UsageError
from cuco.source.clang_ast import Unit
from cuco.source.prelude import Prelude

_STUBS = Path(__file__).parent / "stubs"
_CUCO_HEADERS = Path(__file__).parents[1] / "native" / "include"
_NEARBY = ("", "include", "inc", "src", "common", "common/include", "utils")


_PRELUDE = Prelude()


@dataclass(frozen=True)
class Headers:
    """Where headers are, and the compiler that decides in doubt (None: libclang's word is all there is)."""

    include_dirs: tuple[Path, ...]
    nvcc: Path | None = None
    environment: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Diagnostic:
    """One complaint of a compiler; ``file`` is as the compiler names it."""

    file: str
    line: int
    message: str
    syntax: bool
    fatal: bool


@dataclass
class Reading:
    """A parsed source: the tree, the user's own files in it, and libclang's remaining complaints."""

    path: Path
    text: str
    unit: Unit
    own_files: frozenset[str]
    diagnostics: list[Diagnostic]


def toolchain_headers() -> Headers:
    """The headers of the installed toolchain. MissingError where there is none."""
    try:
        from cuco.testbed.toolchain import find_toolchain
    except ImportError as error:
        raise MissingError(
            "no CUDA and NCCL headers are known", fix="give their folders with include_dirs"
        ) from error
    found = find_toolchain()
    dirs: list[Path] = []
    for entry in (found.cuda_include, found.nccl_include):
        dirs.extend([Path(entry)] if isinstance(entry, str | Path) else [Path(one) for one in entry])
    return Headers(tuple(dirs), Path(found.nvcc), dict(found.env or {}))


@lru_cache(maxsize=1)
def _compiler_headers() -> tuple[str, ...]:
    """The C and C++ header folders of the host compiler (PyPI's libclang ships none of its own)."""
    for compiler in (os.environ.get("CXX"), "g++", "c++", "clang++"):
        if not compiler:
            continue
        try:
            done = subprocess.run(
                [compiler, "-x", "c++", "-E", "-v", "-"],
                input="",
                text=True,
                capture_output=True,
                env={**os.environ, "LC_ALL": "C"},
                timeout=60,
                check=False,
            )
        except OSError:
            continue
        inside, found = False, []
        for line in done.stderr.splitlines():
            if line.startswith("#include <...>"):
                inside = True
            elif line.startswith("End of search list"):
                break
            elif inside:
                found.append(line.strip())
        if found:
            return tuple(found)
    raise MissingError(
        "no C++ compiler was found, and its headers are needed to read CUDA source",
        fix="Install g++ (Debian: apt install g++)",
    )


def read_source(path: str | Path) -> str:
    """The text of a source file; a file that is not there or not text is bad usage (exit 2)."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text", fix="Give a CUDA or C++ source file") from None
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", fix="Check the path of the source file"
        ) from None


def read(
    path: str | Path, headers: Headers | None = None, *, defines: Sequence[str] = (), text: str | None = None
) -> Reading:
    """Parse one source. ``text`` replaces the file's content (unsaved edits).

    Raises UsageError for a missing file, CompileError with the compiler's line for a source that does not
    compile.
    """
    place = Path(path)
    content = read_source(place) if text is None else text
    headers = headers or toolchain_headers()
    nearby = _nearby_headers(place)
    tu = _parse(place, content, headers, nearby, defines)
    diagnostics = _diagnostics(tu)
    own = _own_files(tu, place)
    _judge(place, content, diagnostics, own, headers, nearby, defines)
    unit = Unit(tu, str(place), {str(place): content.encode("utf-8")}, own)
    return Reading(place, content, unit, own, diagnostics)


def _parse(place: Path, content: str, headers: Headers, nearby: Sequence[str], defines: Sequence[str]) -> Any:
    """libclang's translation unit."""
    common = _common_arguments(headers)
    own = [f"-I{place.parent}", *(f"-I{folder}" for folder in nearby), *(f"-D{name}" for name in defines)]
    syntax = _STUBS / "cuda_syntax.h"
    start = ["-include", str(syntax)] if defines else _PRELUDE.options(common, syntax)
    options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | 0x200  # 0x200: keep going
    try:
        index = cindex.Index.create()
        for begin in (start, ["-include", str(syntax)]):
            try:
                return index.parse(
                    str(place),
                    [*own, *common, *begin],
                    unsaved_files=[(str(place), content)],
                    options=options,
                )
            except cindex.TranslationUnitLoadError:
                _PRELUDE.forget(common, syntax)
    except cindex.LibclangError as error:
        raise MissingError(
            f"libclang cannot be loaded: {error}", fix="Install the libclang package"
        ) from None
    raise UsageError(f"cannot parse {place}", fix="Give a CUDA or C++ source file")


def _common_arguments(headers: Headers) -> list[str]:
    """Options that are the same for every source."""
    arguments = [
        "-x",
        "cuda",
        "--cuda-host-only",
        "-nocudainc",
        "-nocudalib",
        "-std=c++17",
        "-ferror-limit=0",
    ]
    arguments += ["-nostdinc", "-nostdinc++", "-Wno-everything", "-DCUCO_READING=1"]
    arguments += [f"-I{_CUCO_HEADERS}", f"-I{_STUBS}"]
    for folder in (*headers.include_dirs, *_compiler_headers()):
        arguments += ["-isystem", str(folder)]
    return [*arguments, "-idirafter", str(_STUBS / "fallback")]


def _nearby_headers(place: Path) -> list[str]:
    """Folders beside and above the source where a project usually keeps its headers."""
    found, folder = [], place.resolve().parent
    for _ in range(4):
        found += [str(folder / name) for name in _NEARBY if name and (folder / name).is_dir()]
        if (folder / ".git").exists() or folder == folder.parent:
            break
        folder = folder.parent
    return found


def _diagnostics(tu: Any) -> list[Diagnostic]:
    found = []
    for one in tu.diagnostics:
        if one.severity < cindex.Diagnostic.Error:
            continue
        file = str(one.location.file.name) if one.location.file else ""
        found.append(
            Diagnostic(
                file,
                int(one.location.line),
                str(one.spelling),
                one.category_name == "Parse Issue",
                str(one.spelling).endswith("file not found"),
            )
        )
    return found


def _own_files(tu: Any, place: Path) -> frozenset[str]:
    """The source and the headers that it brings along: everything not found through a system folder."""
    own = {str(place)}
    known = (str(_STUBS), str(_CUCO_HEADERS))
    for inclusion in tu.get_includes():
        name = str(inclusion.include.name)
        location = cindex.SourceLocation.from_offset(tu, inclusion.include, 0)
        if not location.is_in_system_header and not name.startswith(known):
            own.add(name)
    return frozenset(own)


def _judge(
    place: Path,
    content: str,
    diagnostics: list[Diagnostic],
    own: frozenset[str],
    headers: Headers,
    nearby: Sequence[str],
    defines: Sequence[str],
) -> None:
    """Raise CompileError where the source is wrong, and return where only our loose reading of it is."""
    mine = [one for one in diagnostics if one.file in own]
    if not mine:
        return
    if headers.nvcc is None:
        wrong = [one for one in mine if one.syntax or one.fatal]
        if wrong:
            fix = "Give the folder of this header as an include folder" if wrong[0].fatal else ""
            raise CompileError(_line_of(wrong[0], place, content), diagnostics, fix=fix)
        return
    complaint = _ask_nvcc(place, content, headers, nearby, defines)
    if complaint:
        raise CompileError(complaint, diagnostics)


def _line_of(one: Diagnostic, place: Path, content: str) -> str:
    lines = content.splitlines() if one.file == str(place) else []
    shown = f": `{lines[one.line - 1].strip()}`" if 0 < one.line <= len(lines) else ""
    return f"{one.file}:{one.line}: error: {one.message}{shown}"


def _ask_nvcc(
    place: Path, content: str, headers: Headers, nearby: Sequence[str], defines: Sequence[str]
) -> str:
    """nvcc's first error line, or an empty string where it compiles the source."""
    with tempfile.TemporaryDirectory(prefix="cuco-read-") as folder:
        copy = Path(folder) / (place.stem + ".cu")
        copy.write_text(f'#line 1 "{place}"\n{content}', encoding="utf-8")
        command = [
            str(headers.nvcc),
            "-c",
            str(copy),
            "-o",
            str(Path(folder) / "out.o"),
            "-std=c++20",
            "-arch=compute_90",
            "-code=compute_90",
            "--extended-lambda",
            "-w",
            f"-I{place.resolve().parent}",
            f"-I{_CUCO_HEADERS}",
            *[f"-I{one}" for one in (*nearby, *headers.include_dirs)],
            *[f"-D{name}" for name in defines],
            "-DNCCL_GIN_GDAKI_ENABLE=0",
            "-DNCCL_GIN_GPI_ENABLE=0",
            "-DNCCL_GIN_EFA_GDA_ENABLE=0",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **headers.environment}
        )
    if done.returncode == 0:
        return ""
    for line in (done.stderr + done.stdout).splitlines():
        if "error" in line:
            return line.strip()
    return f"{place}: nvcc failed without saying why (exit {done.returncode})"
