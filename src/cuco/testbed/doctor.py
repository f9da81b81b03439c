"""What this machine can run: testbeds, tools, NCCL, GPUs, and which model keys are set (contracts.md 5).

Nothing is compiled, installed or contacted. Keys are named, their values are never read into the report.
"""

from __future__ import annotations

import csv
import ctypes
import os
import platform
import shutil
import subprocess
from typing import Any

from cuco.errors import CucoError
from cuco.testbed.cache import default_root
from cuco.testbed.toolchain import Toolchain, find_host_compiler, find_toolchain

MODEL_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
}
"""Environment variables that would give access to a provider's models."""
LAUNCHERS = ("mpirun", "srun", "torchrun")

_GPU_FIELDS = ("name", "memory.total", "driver_version", "compute_cap")


def examine() -> dict[str, Any]:
    """The whole report, ready for JSON. Never raises for something that is missing: that is its content."""
    tools, problem = _toolchain()
    gpus, gpu_problem = _gpus()
    return {
        "testbeds": {
            "emulator": _emulator(problem),
            "cuda": _cuda(gpus, gpu_problem),
            "cluster": _cluster(),
        },
        "tools": _tools(tools),
        "nccl": {
            "version": tools.nccl_version if tools else None,
            "headers": str(tools.nccl_include) if tools else None,
        },
        "gpus": gpus,
        "models": [
            {"provider": provider, "variable": name, "present": bool(os.environ.get(name))}
            for provider, names in MODEL_KEYS.items()
            for name in names
        ],
    }


def _toolchain() -> tuple[Toolchain | None, CucoError | None]:
    try:
        return find_toolchain(), None
    except CucoError as error:
        return None, error


def _testbed(reason: str, fix: str) -> dict[str, Any]:
    return {"ready": not reason, "reason": reason, "fix": fix}


def _emulator(problem: CucoError | None) -> dict[str, Any]:
    if problem is not None:
        return _testbed(problem.message, problem.fix)
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
        return _testbed(
            f"the emulator switches fibers in x86-64 Linux assembly; this is {platform.system()} "
            f"on {platform.machine()}",
            "use an x86-64 Linux machine",
        )
    root = default_root()
    nearest = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        return _testbed(f"the cache folder {root} cannot be written", "set CUCO_CACHE to a writable folder")
    return _testbed("", "")


def _cuda(gpus: list[dict[str, str]], problem: str) -> dict[str, Any]:
    if not gpus:
        return _testbed(problem, "use --testbed emulator, or a machine with an NVIDIA GPU and its driver")
    return _testbed("this version has no cuda testbed yet, although GPUs are here", "use --testbed emulator")


def _cluster() -> dict[str, Any]:
    found = [name for name in LAUNCHERS if shutil.which(name)]
    if not found:
        return _testbed(f"none of {', '.join(LAUNCHERS)} is on PATH", "use --testbed emulator")
    return _testbed(
        f"this version has no cluster testbed yet, although {', '.join(found)} is here",
        "use --testbed emulator",
    )


def _tools(tools: Toolchain | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "python": {"path": os.path.realpath("/proc/self/exe"), "version": platform.python_version()},
        "nvcc": None,
        "ptxas": None,
        "g++": None,
    }
    if tools is not None:
        found["nvcc"] = {"path": str(tools.nvcc), "version": tools.cuda_version, "origin": tools.origin}
        found["ptxas"] = {"path": str(tools.ptxas), "version": tools.cuda_version, "origin": tools.origin}
    try:
        compiler = find_host_compiler()
        found["g++"] = {"path": str(compiler.path), "version": compiler.version}
    except CucoError:
        pass
    return found


def _gpus() -> tuple[list[dict[str, str]], str]:
    """The GPUs that the driver shows, and why there are none."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [], "no NVIDIA driver: libcuda.so.1 cannot be loaded"
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return [], "libcuda.so.1 is here but nvidia-smi is not, so the GPUs cannot be listed"
    query = [smi, f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader"]
    try:
        run = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi failed: {error}"
    if run.returncode != 0:
        return [], f"nvidia-smi failed: {' '.join((run.stdout + run.stderr).split())[:200]}"
    rows = csv.reader(run.stdout.splitlines(), skipinitialspace=True)
    names = ("name", "memory", "driver", "compute_capability")
    return [dict(zip(names, row, strict=False)) for row in rows if row], "nvidia-smi lists no GPU"
