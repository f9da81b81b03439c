"""Builds a candidate for the emulator: one nvcc run, then PTX to C++ to a kernels library.

A candidate becomes four things (``Build``): the host library (nvcc's host object, linked with nothing, so
that its CUDA and NCCL calls resolve to the runner that loads it), the PTX, the kernels library of one
variant, and the registers that ptxas gives each kernel. The first stage (``front``) is shared by all
variants. Both stages are cached by content.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import get_args

from cuco.errors import CompileError, UsageError
from cuco.testbed import diagnostics, process
from cuco.testbed.cache import Cache, digest
from cuco.testbed.includes import Closure, check_unchanged, closure
from cuco.testbed.kernels import Variant, build_kernels
from cuco.testbed.native import NATIVE, build_runner
from cuco.testbed.toolchain import Toolchain, find_host_compiler, find_toolchain

__all__ = [
    "ARCHITECTURE",
    "Build",
    "Front",
    "Variant",
    "build_candidate",
    "build_front",
    "build_runner",
    "missing_symbols",
    "undefined_symbols",
]

ARCHITECTURE = "90"
"""The virtual architecture compiled for (compute_90), and the real one whose registers are counted (sm_90).
"""

_DEFINES = {
    # GIN goes through NCCL's CPU proxy, whose descriptors the emulator's NIC reads; the other backends drive
    # hardware.
    "NCCL_GIN_GDAKI_ENABLE": "0",
    "NCCL_GIN_GPI_ENABLE": "0",
    "NCCL_GIN_EFA_GDA_ENABLE": "0",
}
_FLAGS = [
    "-std=c++20",
    f"-arch=compute_{ARCHITECTURE}",
    f"-code=compute_{ARCHITECTURE}",
    "-lineinfo",
    "--extended-lambda",  # NCCL's reduce and copy functions require it
    "-default-stream=per-thread",
    "-allow-unsupported-compiler",
    "-Xcompiler=-fPIC,-fno-gnu-unique",
]
_FORMAT = "front 3"
"""Part of the key: change it when the files below or how they are made change."""


@dataclass(frozen=True)
class Build:
    """A built candidate; every path lies in the cache and must not be written to."""

    host_so: Path
    kernels_so: Path
    ptx: Path
    registers: dict[str, int]
    """Registers a thread, by mangled kernel name, from ptxas for sm_90."""
    sites: Path
    """JSON: what each site of the kernels library stands for (PTX line, source line, call chain)."""
    undefined: frozenset[str]
    """What the host library expects from whoever loads it."""
    key: str
    variant: Variant
    refusals: dict[str, str] = field(default_factory=dict)
    """Of the slice: why a kernel is translated whole, by kernel; those not in it are sliced."""


@dataclass(frozen=True)
class Front:
    """What nvcc and ptxas make of a source, whatever the variant; fields as in ``Build``."""

    host_so: Path
    ptx: Path
    registers: dict[str, int]
    undefined: frozenset[str]
    key: str


def build_candidate(
    source: Path,
    *,
    variant: Variant = "plain",
    include: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    cache: Cache | None = None,
) -> Build:
    """Compiles ``source`` for the emulator.

    ``include`` and ``defines`` are given to nvcc in addition to ``cuco.h``, NCCL and the toolkit. Raises
    CompileError (``diagnostics``: file, line, message) if nvcc refuses the source, UsageError if it cannot be
    read, MissingError if a tool is absent, and the translator's error where PTX cannot be translated.
    """
    if variant not in get_args(Variant):
        raise UsageError(f"unknown build variant {variant!r}; known: {', '.join(get_args(Variant))}")
    store = cache or Cache()
    front = build_front(source, include=include, defines=defines, cache=store)
    kernels = build_kernels(front.ptx, variant=variant, cache=store)
    return Build(
        host_so=front.host_so,
        kernels_so=kernels.library,
        ptx=front.ptx,
        registers=front.registers,
        sites=kernels.sites,
        undefined=front.undefined,
        key=digest(front.key, kernels.key),
        variant=variant,
        refusals=kernels.refusals,
    )


def build_front(
    source: Path,
    *,
    include: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    cache: Cache | None = None,
) -> Front:
    """The first stage alone: what nvcc makes of ``source``. Arguments and errors as ``build_candidate``."""
    try:
        content = source.read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from error
    tools = find_toolchain()
    folders = [NATIVE / "include", *(path.absolute() for path in include)]
    wanted = {**_DEFINES, **(defines or {})}
    tree = closure(source.absolute(), content, folders)
    # What a computed include reads is unknown: such a source is compiled anew each time.
    salt = os.urandom(16) if tree.computed else b""
    key = digest(_FORMAT, tools.identity, tree.key, json.dumps(sorted(wanted.items())), *_FLAGS, salt)
    job = _Compilation(source, content, tree, folders, wanted, tools)
    entry = (cache or Cache()).obtain("front", key, job.make)
    facts = json.loads((entry / "facts.json").read_text(encoding="utf-8"))
    return Front(
        host_so=entry / "host.so",
        ptx=entry / "kernels.ptx",
        registers={name: int(count) for name, count in facts["registers"].items()},
        undefined=frozenset(facts["undefined"]),
        key=key,
    )


def undefined_symbols(library: Path) -> frozenset[str]:
    """Names that a shared library leaves to its loader, without version suffixes and without weak ones."""
    return frozenset(name for kind, name in _dynamic_symbols(library) if kind == "U")


def missing_symbols(undefined: Iterable[str], runner: Path) -> list[str]:
    """Functions of CUDA and NCCL among ``undefined`` that ``runner`` does not have: the emulator lacks them.

    A candidate that needs one cannot be loaded; the verdict is ``unsupported`` with these names.
    """
    wanted = {name for name in undefined if re.match(r"(__)?(cuda|p?nccl|cu[A-Z]|nvtx)", name)}
    return sorted(wanted - _exports(runner, runner.stat().st_mtime_ns)) if wanted else []


@lru_cache(maxsize=8)
def _exports(runner: Path, changed: int) -> frozenset[str]:
    return frozenset(name for kind, name in _dynamic_symbols(runner) if kind in "TWDBRViu")


def _dynamic_symbols(library: Path) -> list[tuple[str, str]]:
    """(kind as ``nm`` writes it, name) of every dynamic symbol."""
    path = library.absolute()
    done = process.run(["nm", "-D", path], cwd=path.parent, env=find_host_compiler().env)
    if done.status != 0:
        raise UsageError(f"{library} is not a shared library: {done.output.strip()}")
    rows = (line.split()[-2:] for line in done.output.splitlines())
    return [(kind, name.split("@")[0]) for kind, name in rows]


@dataclass(frozen=True)
class _Compilation:
    """The nvcc run and what follows from it, in a scratch folder."""

    source: Path
    content: bytes
    tree: Closure
    folders: list[Path]
    defines: dict[str, str]
    tools: Toolchain

    def make(self, folder: Path) -> None:
        name = self.source.name if self.source.suffix == ".cu" else self.source.name + ".cu"
        (folder / name).write_bytes(self.content)
        stem = name.removesuffix(".cu")
        self._compile(folder, name)
        check_unchanged(self.source.absolute(), self.content, self.folders, self.tree)
        text = (folder / f"{stem}.ptx").read_text(encoding="utf-8")
        (folder / "kernels.ptx").write_text(self._rename_files(text, folder), encoding="utf-8")
        with ThreadPoolExecutor(2) as pool:
            registers = pool.submit(self._registers, folder)
            self._link(folder)
            undefined = sorted(undefined_symbols(folder / "host.so"))
            facts = {"registers": registers.result(), "undefined": undefined}
        (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
        for path in folder.iterdir():
            if path.name not in ("host.so", "kernels.ptx", "facts.json"):
                path.unlink()

    def _compile(self, folder: Path, name: str) -> None:
        tools = self.tools
        quoted = [self.source.absolute().parent, *self.folders, tools.nccl_include]
        command: list[str | Path] = [tools.nvcc, *_FLAGS, f"-ccbin={tools.cxx}", "--keep", "--keep-dir=."]
        command += [f"-I{path}" for path in quoted]
        command += [f"-D{key}={value}" if value else f"-D{key}" for key, value in self.defines.items()]
        done = process.run([*command, "-c", name, "-o", "host.o"], cwd=folder, env=tools.env)
        if done.status != 0:
            self._fail(done.output, folder, name)

    def _fail(self, output: str, folder: Path, name: str) -> None:
        names = {name: str(self.source), str(folder / name): str(self.source)}
        found = diagnostics.parse(output, names)
        ptx = folder / (name.removesuffix(".cu") + ".ptx")
        if ptx.is_file():
            located = diagnostics.source_lines(ptx.read_text(encoding="utf-8"), names)
            found = [diagnostics.relocate(item, ptx.name, located) for item in found]
        message = diagnostics.summary(found, str(self.source))
        if not found:
            message += f": {output.strip().splitlines()[-1] if output.strip() else 'nvcc said nothing'}"
        raise CompileError(message, found)

    def _rename_files(self, text: str, folder: Path) -> str:
        """``.file`` entries as the user knows them: the source by its name, its neighbours relative to it."""
        staged, home = f"{folder}/", f"{self.source.absolute().parent}/"

        def shorten(match: re.Match[str]) -> str:
            path = match.group(2).removeprefix(staged).removeprefix(home)
            return f'{match.group(1)}"{path}"'

        return re.sub(r'^(\s*\.file\s+\d+\s+)"([^"]*)"', shorten, text, flags=re.MULTILINE)

    def _link(self, folder: Path) -> None:
        command: list[str | Path] = [self.tools.cxx, "-shared", "-Wl,-Bsymbolic", "host.o", "-o", "host.so"]
        done = process.run(command, cwd=folder, env=self.tools.env)
        if done.status != 0:
            raise CompileError(
                f"{self.source} does not link: {done.output.strip().splitlines()[-1]}",
                diagnostics.parse(done.output, {}),
            )

    def _registers(self, folder: Path) -> dict[str, int]:
        architecture = f"-arch=sm_{ARCHITECTURE}"
        command: list[str | Path] = [self.tools.ptxas, architecture, "-v"]
        command += ["kernels.ptx", "-o", "kernels.cubin"]
        done = process.run(command, cwd=folder, env=self.tools.env)
        if done.status != 0:
            found = diagnostics.parse(done.output, {})
            raise CompileError(diagnostics.summary(found, str(self.source)), found)
        registers: dict[str, int] = {}
        kernel = ""
        for line in done.output.splitlines():
            entry = re.search(r"Compiling entry function '([^']+)'", line)
            used = re.search(r"\bUsed (\d+) registers", line)
            if entry:
                kernel = entry.group(1)
            elif used and kernel:
                registers[kernel], kernel = int(used.group(1)), ""
        return registers
