"""Builds the emulator's runner from the C++ that ships with the package.

Every file becomes an object of its own in the cache, keyed by itself and the headers of ours that it reaches,
so an edit recompiles what it touches. Needs g++; the CUDA and NCCL rooms also need their headers.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cuco.errors import CucoError
from cuco.testbed import diagnostics, process
from cuco.testbed.cache import Cache, digest
from cuco.testbed.includes import SourceChanged, check_unchanged, closure
from cuco.testbed.ptx.flags import RUNTIME_CXX_FLAGS
from cuco.testbed.toolchain import HostCompiler, find_host_compiler, find_toolchain

NATIVE = Path(__file__).resolve().parent.parent / "native"
"""The C++ sources of the package."""

_ISA = NATIVE / "emulator" / "isa"
RUNNER_ROOMS = ("emulator/core", "emulator/isa", "emulator/cuda", "emulator/nccl", "driver")
_FLAGS = ["-std=c++20", "-O2", "-g1", "-fPIC", "-Wall", "-Wextra", "-fno-strict-aliasing"]
_LINK = ["-rdynamic", "-ldl", "-lpthread"]
_FORMAT = "native 4"
_COMMON = "precompiled.h"
_TRIES = 3


class NativeBuildError(CucoError):
    """The package's own C++ does not compile here: a fault of CUCo or an unsuited compiler, not of a
    candidate.
    """

    exit_code = 70


@dataclass(frozen=True)
class _Job:
    compiler: HostCompiler
    flags: tuple[str, ...]
    folders: tuple[Path, ...]
    identity: str
    cache: Cache


def build_runner(*, cache: Cache | None = None) -> Path:
    """The runner: core, libcudart, libnccl and the trusted driver in one executable that exports their
    symbols.

    Raises MissingError if a tool or header is absent, NativeBuildError if our code does not compile.
    """
    tools = find_toolchain()
    system = (tools.cuda_include, tools.nccl_include)
    return build_executable("runner", RUNNER_ROOMS, system=system, identity=tools.identity, cache=cache)


def build_executable(
    name: str,
    rooms: Sequence[str],
    *,
    system: Sequence[Path] = (),
    identity: str = "",
    extra: Sequence[Path] = (),
    cache: Cache | None = None,
) -> Path:
    """Compiles every ``.cpp`` and ``.cc`` under ``rooms`` (folders of ``NATIVE``) plus ``extra``; links them
    to ``name``.

    ``system``: include folders whose content ``identity`` stands for (headers that are not ours). Additional
    compiler flags may be given in ``$CUCO_NATIVE_FLAGS``; they are part of the key.
    """
    compiler = find_host_compiler()
    sources = [path for room in rooms for path in sorted((NATIVE / room).rglob("*.c*")) if _is_source(path)]
    sources += extra
    flags = (*_FLAGS, *shlex.split(os.environ.get("CUCO_NATIVE_FLAGS", "")))
    includes = (NATIVE, NATIVE / "include", NATIVE / "emulator", *(NATIVE / room for room in rooms))
    store = cache or Cache()
    common = _precompile(compiler, flags, store)
    job = _Job(
        compiler=compiler,
        flags=(*flags, *(f"-isystem{path}" for path in system), "-include", str(common)),
        folders=includes,
        identity=digest(_FORMAT, compiler.identity, identity, common.parent.name, *flags, *RUNTIME_CXX_FLAGS),
        cache=store,
    )
    workers = max(1, len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(workers) as pool:
        objects = list(pool.map(lambda source: _object(job, source), sources))

    def link(folder: Path) -> None:
        names = [str(path) for path in objects]
        command = [str(compiler.path), "-o", name, *names, *_LINK]
        done = process.run(command, cwd=folder, env=compiler.env)
        if done.status != 0:
            lacking = sorted(set(re.findall(r"undefined reference to `([^']+)'", done.output)))
            detail = f"undefined: {', '.join(lacking)}" if lacking else first_line(done.output)
            raise NativeBuildError(f"{name} does not link: {detail}")

    key = digest(job.identity, name, *(path.parent.name for path in objects))
    return job.cache.obtain(name, key, link) / name


def _precompile(compiler: HostCompiler, flags: Sequence[str], cache: Cache) -> Path:
    """The header to include first: a third of the compilers' time is spent on standard headers.

    g++ takes the compiled form beside it where the flags agree, and reads the text where they do not.
    """
    content = (NATIVE / _COMMON).read_bytes()

    def make(folder: Path) -> None:
        (folder / _COMMON).write_bytes(content)
        command: list[str | Path] = [compiler.path, *flags, "-w", "-x", "c++-header", _COMMON]
        done = process.run([*command, "-o", f"{_COMMON}.gch"], cwd=folder, env=compiler.env)
        if done.status != 0:
            raise NativeBuildError(f"{_COMMON} does not compile: {first_line(done.output)}")

    return cache.obtain("headers", digest(_FORMAT, compiler.identity, content, *flags), make) / _COMMON


def _object(job: _Job, source: Path) -> Path:
    for _ in range(_TRIES):
        try:
            return _object_once(job, source)
        except SourceChanged:
            continue
    raise NativeBuildError(f"{source} keeps changing while it is compiled")


def _object_once(job: _Job, source: Path) -> Path:
    content = source.read_bytes()
    tree = closure(source, content, job.folders)

    def compile_one(folder: Path) -> None:
        own = RUNTIME_CXX_FLAGS if source.is_relative_to(_ISA) else ()
        command: list[str | Path] = [job.compiler.path, *job.flags, *own]
        command += [f"-I{path}" for path in job.folders]
        done = process.run([*command, "-c", source, "-o", "unit.o"], cwd=folder, env=job.compiler.env)
        if done.status != 0:
            found = diagnostics.parse(done.output, {})
            detail = diagnostics.summary(found, str(source)) if found else first_line(done.output)
            raise NativeBuildError(f"the emulator's own code does not compile: {detail}")
        check_unchanged(source, source.read_bytes(), job.folders, tree)

    return job.cache.obtain("object", digest(job.identity, tree.key), compile_one) / "unit.o"


def _is_source(path: Path) -> bool:
    return path.suffix in (".cpp", ".cc")


def first_line(output: str) -> str:
    """The line of a compiler's output that says most: its first error, else its first line."""
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line or "undefined reference" in line]
    return (errors or lines or ["the compiler said nothing"])[0].strip()
