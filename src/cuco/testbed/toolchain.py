"""Finds the compilers: nvcc and NCCL's headers from the wheels of this environment, g++ from the system.

The order is fixed: wheels of the running environment (`pip install 'cuco[emulator]'`) first; only where their
nvcc is absent, ``$CUDA_HOME``/``$CUDA_PATH`` and then ``nvcc`` on ``PATH``. When the wheels are used, the
environment given to every compiler names no other toolkit, so that no file of a system CUDA is read.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cuco.errors import MissingError

CUDA_MAJOR = 13
"""The toolkit's major version whose compiler output and headers the emulator knows."""
NCCL_SERIES = (2, 32)
"""The NCCL series whose device structures the emulator fills in (``native/emulator/nccl`` asserts their
layout).
"""
CXX_MINIMUM = 12
INSTALL = "pip install 'cuco[emulator]' (in a checkout: make venv)"

_KEPT_VARIABLES = ("HOME", "TMPDIR", "USER")


@dataclass(frozen=True)
class Toolchain:
    """Everything a build calls or includes; all paths exist. ``identity`` changes when any version does."""

    nvcc: Path
    ptxas: Path
    cxx: Path
    cxx_version: str
    cuda_version: str
    """nvcc's own, such as ``13.5.37``."""
    cuda_include: Path
    nccl_include: Path
    nccl_version: str
    """Read from ``nccl.h``, such as ``2.32.3``."""
    origin: str
    """``wheel`` or ``system``: where nvcc comes from."""
    env: dict[str, str] = field(compare=False)
    """The whole environment of every compiler process."""

    @property
    def identity(self) -> str:
        return (
            f"nvcc {self.cuda_version} ({self.origin}); NCCL {self.nccl_version}; "
            f"{self.cxx.name} {self.cxx_version}; {self.nvcc}; {self.nccl_include}"
        )


@dataclass(frozen=True)
class HostCompiler:
    """A C++ compiler by itself: all that the emulator's core needs."""

    path: Path
    version: str
    env: dict[str, str] = field(compare=False)

    @property
    def identity(self) -> str:
        return f"{self.path.name} {self.version}"


def wheel_roots() -> list[Path]:
    """The ``nvidia`` folders of this environment's packages, in import order."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [Path(location) for location in spec.submodule_search_locations]


@lru_cache(maxsize=1)
def find_toolchain() -> Toolchain:
    """Finds every tool of the emulator's builds.

    Raises MissingError, with the command that mends it, if anything is absent or of a version the emulator
    does not know. Nothing is compiled.
    """
    compiler = find_host_compiler()
    root, origin = _find_cuda()
    nvcc, ptxas = root / "bin" / "nvcc", root / "bin" / "ptxas"
    version = _cuda_version(nvcc)
    if int(version.split(".")[0]) != CUDA_MAJOR:
        raise MissingError(f"{nvcc} is CUDA {version}; the emulator needs {CUDA_MAJOR}.x", fix=INSTALL)
    nccl_include = _find_nccl()
    nccl = nccl_version(nccl_include)
    if tuple(int(part) for part in nccl.split(".")[:2]) != NCCL_SERIES:
        series = ".".join(map(str, NCCL_SERIES))
        raise MissingError(
            f"NCCL's headers in {nccl_include} are {nccl}; the emulator needs {series}.x", fix=INSTALL
        )
    return Toolchain(
        nvcc=nvcc,
        ptxas=ptxas,
        cxx=compiler.path,
        cxx_version=compiler.version,
        cuda_version=version,
        cuda_include=root / "include",
        nccl_include=nccl_include,
        nccl_version=nccl,
        origin=origin,
        env=_environment(compiler.path, root / "bin"),
    )


@lru_cache(maxsize=1)
def find_host_compiler() -> HostCompiler:
    """The C++ compiler: ``$CXX`` if set, else ``g++``. Raises MissingError if absent or older than g++ 12."""
    wanted = os.environ.get("CXX") or "g++"
    found = shutil.which(wanted)
    if found is None:
        raise MissingError(f"no C++ compiler: {wanted} is not on PATH", fix="apt-get install g++")
    path = Path(found)
    env = _environment(path)
    version = _output([str(path), "-dumpfullversion", "-dumpversion"], env).strip()
    if not re.match(r"\d+", version):
        raise MissingError(f"{path} did not say its version", fix="set CXX to g++ 12 or later")
    if int(version.split(".")[0]) < CXX_MINIMUM:
        raise MissingError(
            f"{path} is version {version}; g++ {CXX_MINIMUM} or later is needed for C++20",
            fix="apt-get install g++-12 and set CXX=g++-12",
        )
    return HostCompiler(path=path, version=version, env=env)


def nccl_version(include: Path) -> str:
    """The version that ``nccl.h`` in ``include`` states. Raises MissingError if it states none."""
    header = include / "nccl.h"
    try:
        text = header.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MissingError(f"{header} cannot be read: {error.strerror}", fix=INSTALL) from error
    numbers = []
    for part in ("MAJOR", "MINOR", "PATCH"):
        match = re.search(rf"^\s*#\s*define\s+NCCL_{part}\s+(\d+)", text, re.MULTILINE)
        if match is None:
            raise MissingError(f"{header} states no NCCL_{part}", fix=INSTALL)
        numbers.append(match.group(1))
    return ".".join(numbers)


def _find_cuda() -> tuple[Path, str]:
    for root in wheel_roots():
        home = root / f"cu{CUDA_MAJOR}"
        if (home / "bin" / "nvcc").is_file():
            return _complete(home), "wheel"
    candidates = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    on_path = shutil.which("nvcc")
    if on_path is not None:
        candidates.append(_home_of(Path(on_path)))
    for home in candidates:
        if (home / "bin" / "nvcc").is_file():
            return _complete(home), "system"
    raise MissingError("no nvcc in this Python environment, in $CUDA_HOME or on PATH", fix=INSTALL)


def _home_of(nvcc: Path) -> Path:
    """The toolkit of an nvcc on PATH, which may be a link or a wrapper: nvcc itself knows."""
    listing = _output([str(nvcc), "--dryrun", "-c", "-x", "cu", "/dev/null"], dict(os.environ), errors=True)
    match = re.search(r"^#\$ CUDA_ROOT=(.+)$|^#\$ TOP=(.+)$", listing, re.MULTILINE)
    if match is None:
        return nvcc.resolve().parent.parent
    return Path(match.group(1) or match.group(2)).resolve()


def _complete(home: Path) -> Path:
    """``home``, if the parts that separate wheels bring are there. Raises MissingError naming the wheel."""
    needed = {
        "bin/ptxas": "nvidia-cuda-nvcc",
        "bin/cudafe++": "nvidia-cuda-nvcc",
        "nvvm/bin/cicc": "nvidia-nvvm",
        "include/crt/host_config.h": "nvidia-cuda-crt",
        "include/cuda_runtime.h": "nvidia-cuda-runtime",
        "include/cccl/cuda/atomic": "nvidia-cuda-cccl",
    }
    for path, wheel in needed.items():
        if not (home / path).exists():
            raise MissingError(
                f"the CUDA toolkit in {home} has no {path}", fix=f"pip install '{wheel}>={CUDA_MAJOR}'"
            )
    return home


def _find_nccl() -> Path:
    places = [root / "nccl" / "include" for root in wheel_roots()]
    for name in ("NCCL_HOME", "NCCL_ROOT"):
        if os.environ.get(name):
            places.append(Path(os.environ[name]) / "include")
    for include in places:
        if (include / "nccl_device.h").is_file():
            return include
    raise MissingError("NCCL's headers (nccl.h, nccl_device.h) are missing", fix=INSTALL)


def _cuda_version(nvcc: Path) -> str:
    text = _output([str(nvcc), "--version"], _environment(nvcc))
    match = re.search(r"\bV(\d+\.\d+\.\d+)", text)
    if match is None:
        raise MissingError(f"{nvcc} --version gave no version", fix=INSTALL)
    return match.group(1)


def _environment(cxx: Path, *folders: Path) -> dict[str, str]:
    """What compilers are given: no CPATH, NVCC_PREPEND_FLAGS, CUDA_HOME, LD_LIBRARY_PATH or foreign PATH."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = [str(folder) for folder in (*folders, cxx.parent)] + ["/usr/bin", "/bin"]
    return {**kept, "PATH": ":".join(dict.fromkeys(path)), "LC_ALL": "C"}


def _output(command: list[str], env: dict[str, str], *, errors: bool = False) -> str:
    try:
        run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{command[0]} cannot be run: {error}", fix="check its installation") from error
    return run.stdout + (run.stderr if errors else "")
