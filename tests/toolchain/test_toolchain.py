"""The compilers found are the environment's own, and what is missing is said with the fix."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuco.errors import MissingError
from cuco.testbed import toolchain
from cuco.testbed.toolchain import find_host_compiler, find_toolchain, nccl_version

PROGRAM = """
#include <cuda_runtime.h>
#include <cuda/atomic>
#include <cooperative_groups.h>
#include <nccl_device.h>
__global__ void k(int* p) { cuda::atomic_ref<int> a(*p); a.fetch_add(1); }
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    find_toolchain.cache_clear()
    find_host_compiler.cache_clear()
    monkeypatch.undo()


def test_wheels_come_before_any_system_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoy = tmp_path / "bin" / "nvcc"
    decoy.parent.mkdir()
    decoy.write_text("#!/bin/sh\nexit 99\n")
    decoy.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{decoy.parent}:{os.environ['PATH']}")
    tools = find_toolchain()
    assert tools.origin == "wheel"
    assert Path(sys.prefix) in tools.nvcc.parents
    assert Path(sys.prefix) in tools.nccl_include.parents
    assert tools.nccl_version.startswith("2.32.")
    assert tools.cuda_version.startswith("13.")
    assert str(tmp_path) not in " ".join(tools.env.values())


def test_environment_of_compilers_names_nothing_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CPATH", "CPLUS_INCLUDE_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/usr/local/cuda/include")
    assert set(find_toolchain().env) <= {"HOME", "TMPDIR", "USER", "PATH", "LC_ALL"}


def test_no_file_of_a_system_toolkit_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """strace sees every open of a whole compilation, with the variables set that would lead astray."""
    strace = shutil.which("strace")
    assert strace, "this test needs strace: apt-get install strace"
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    monkeypatch.setenv("CPATH", "/usr/local/cuda/include")
    source = tmp_path / "k.cu"
    source.write_text(PROGRAM)
    script = (
        "from pathlib import Path; import sys; from cuco.testbed.build import build_front;"
        "build_front(Path(sys.argv[1]))"
    )
    log = tmp_path / "opens"
    subprocess.run(
        [strace, "-f", "-qq", "-e", "trace=execve,open,openat", "-o", str(log)]
        + [sys.executable, "-c", script, str(source)],
        env={**os.environ, "CUCO_CACHE": str(tmp_path / "cache")},
        check=True,
        timeout=300,
    )
    lines = log.read_text(errors="replace").splitlines()
    paths = {os.path.normpath(path) for line in lines for path in re.findall(r'"(/[^"]+)"', line)}
    opened = {Path(p) for line in lines if "ENOENT" not in line for p in re.findall(r'"(/[^"]+)"', line)}
    parts = {"cuda_runtime.h", "cicc", "cudafe++", "ptxas", "nvcc", "nccl_device.h", "atomic"}
    toolkit = {path.resolve() for path in opened if path.name in parts and "c++" not in path.parts}
    assert {path.name for path in toolkit} == parts, "the trace does not show the whole compilation"
    assert [path for path in toolkit if Path(sys.prefix) not in path.parents] == []
    system = re.compile(r"/usr/local/cuda|/opt/(cuda|nvidia)|/usr/lib/(cuda|nvidia)|/usr/include/(cuda|nccl)")
    assert [path for path in paths if system.match(path)] == []


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MissingError, match=r"g\+\+ is not on PATH.*apt-get install"):
        find_host_compiler()


def test_old_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "g++"
    old.write_text("#!/bin/sh\necho 9.4.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    with pytest.raises(MissingError, match="version 9.4.0; g\\+\\+ 12 or later"):
        find_host_compiler()


def test_missing_toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    os.symlink(shutil.which("g++") or "", bare / "g++")
    monkeypatch.setattr(toolchain, "wheel_roots", lambda: [])
    monkeypatch.setenv("PATH", str(bare))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(MissingError, match=r"no nvcc .*pip install"):
        find_toolchain()


def test_incomplete_wheels_name_the_missing_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "cu13"
    (home / "bin").mkdir(parents=True)
    for tool in ("nvcc", "ptxas", "cudafe++"):
        (home / "bin" / tool).write_text("")
    monkeypatch.setattr(toolchain, "wheel_roots", lambda: [tmp_path])
    with pytest.raises(MissingError, match="no nvvm/bin/cicc.*nvidia-nvvm"):
        find_toolchain()


def test_nccl_version_is_read_from_the_header(tmp_path: Path) -> None:
    header = tmp_path / "nccl.h"
    header.write_text("#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 7\n")
    assert nccl_version(tmp_path) == "2.28.7"
    header.write_text("#define NCCL_MAJOR 2\n")
    with pytest.raises(MissingError, match="states no NCCL_MINOR"):
        nccl_version(tmp_path)


def test_other_nccl_series_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "nccl_version", lambda include: "2.28.7")
    with pytest.raises(MissingError, match=r"are 2\.28\.7; the emulator needs 2\.32\.x.*pip install"):
        find_toolchain()
