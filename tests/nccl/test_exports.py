"""The runner exports what NCCL's headers declare and the real library exports."""

from __future__ import annotations

import re
import shutil
import subprocess

import harness
import pytest

from cuco.testbed.toolchain import find_toolchain

# Declared for Windows only; exported by the real library, called by nobody's Linux program.
NOT_FOR_LINUX = {"ncclGinInboxA2ACreateRequirement", "ncclGinOutboxCreateRequirement"}


def declared() -> set[str]:
    """Functions of nccl.h and nccl_device/host.h, by a reading that keeps to lines that begin a
    declaration."""
    found: set[str] = set()
    for name in ("nccl.h", "nccl_device/host.h"):
        text = (find_toolchain().nccl_include / name).read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        pattern = r"(?:ncclResult_t|const\s+char\s*\*|void|int|ncclTeam_t)\s+\*?(p?nccl[A-Z]\w+)\s*\("
        found |= set(re.findall(pattern, text))
    return found - NOT_FOR_LINUX


@pytest.fixture(scope="module")
def exported() -> set[str]:
    nm = shutil.which("nm")
    if nm is None:
        pytest.fail("nm is missing; it comes with binutils, which g++ needs anyway")
    listing = subprocess.run(
        [nm, "-D", "--defined-only", str(harness.runner())], capture_output=True, text=True, check=True
    )
    return {line.split()[-1] for line in listing.stdout.splitlines() if line.strip()}


def test_every_declared_function_is_there(exported: set[str]) -> None:
    names = declared()
    assert len(names) > 160  # the reading found the headers' declarations, not a few of them
    assert sorted(names - exported) == []


def test_every_function_has_its_profiling_twin(exported: set[str]) -> None:
    plain = {name for name in exported if re.fullmatch(r"nccl[A-Z]\w+", name)}
    device_host = {"ncclCftBarrierCreateRequirement"}
    assert sorted(name for name in plain - device_host if f"p{name}" not in exported) == []
