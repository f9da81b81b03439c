"""What nvcc makes of a source, how fast a second time, and what a user reads when it does not compile."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuco.errors import CompileError, UsageError
from cuco.testbed import process
from cuco.testbed.build import build_front, undefined_symbols
from cuco.testbed.cache import Cache

SOURCE = """
#include <cuda_runtime.h>
#include "width.h"
__global__ void scale(float* p, float x) { p[threadIdx.x] *= x * WIDTH; }
extern "C" int run(float* p, cudaStream_t s) {
  scale<<<1, 32, 0, s>>>(p, 2.f);
  return cudaGetLastError();
}
"""


@pytest.fixture()
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture()
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "width.h").write_text("#define WIDTH 4\n")
    path = folder / "host.cu"
    path.write_text(SOURCE)
    return path


def test_one_run_gives_ptx_registers_and_a_host_library(source: Path, cache: Cache) -> None:
    front = build_front(source, cache=cache)
    text = front.ptx.read_text()
    assert ".entry _Z5scalePff" in text and ".target sm_90" in text
    assert re.search(r'\.file\s+\d+ "host\.cu"', text), "source lines must not name scratch folders"
    assert 4 <= front.registers["_Z5scalePff"] <= 32
    assert {"__cudaRegisterFatBinary", "__cudaLaunchKernel_ptsz", "cudaGetLastError"} <= front.undefined
    assert undefined_symbols(front.host_so) == front.undefined
    with pytest.raises(OSError, match="undefined symbol"):
        ctypes.CDLL(str(front.host_so), mode=os.RTLD_NOW)


def test_nothing_runs_when_nothing_changed(
    source: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_front(source, cache=cache)
    monkeypatch.setattr(process, "run", lambda *a, **k: pytest.fail("a compiler was started"))
    assert build_front(source, cache=cache) == first


def test_a_header_is_part_of_the_key(source: Path, cache: Cache) -> None:
    first = build_front(source, cache=cache)
    (source.parent / "width.h").write_text("#define WIDTH 8\n")
    second = build_front(source, cache=cache)
    assert first.key != second.key
    assert first.ptx.read_text() != second.ptx.read_text()


def test_defines_and_folders_reach_nvcc(source: Path, cache: Cache, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (source.parent / "width.h").rename(other / "width.h")
    (other / "width.h").write_text("#define WIDTH FROM_OUTSIDE\n")
    with pytest.raises(CompileError, match="width.h"):
        build_front(source, cache=cache)
    assert build_front(source, include=[other], defines={"FROM_OUTSIDE": "3"}, cache=cache).registers


def test_equal_sources_in_two_places_are_built_once(source: Path, cache: Cache, tmp_path: Path) -> None:
    first = build_front(source, cache=cache)
    copy = tmp_path / "elsewhere" / "host.cu"
    copy.parent.mkdir()
    copy.write_text(SOURCE)
    (copy.parent / "width.h").write_text("#define WIDTH 4\n")
    assert build_front(copy, cache=cache).ptx == first.ptx


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("__global__ void k(int* p) {\n  *p = absent;\n}\n", 2, 'identifier "absent" is undefined'),
        ('int a;\n#include "absent.h"\n', 2, "absent.h: No such file or directory"),
        ('__global__ void k() {\n\n  asm volatile("foo.bar;");\n}\n', 3, "foo"),
        ("int f() {\n  static_assert(sizeof(int) == 5, \"odd\");\n  return 0; }\n", 2, "odd"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, cache: Cache, text: str, line: int, message: str) -> None:
    path = tmp_path / "bad.cu"
    path.write_text(text)
    with pytest.raises(CompileError) as caught:
        build_front(path, cache=cache)
    first = caught.value.diagnostics[0]
    assert (first.file, first.line) == (str(path), line)
    assert any(message in item.message for item in caught.value.diagnostics)
    assert str(caught.value).startswith(f"{path}:{line}: ") and "\n" not in str(caught.value)
    assert caught.value.exit_code == 1
    assert not list(cache.root.glob("entries/front/*/*")), "a failed build must leave no entry"


def test_too_much_static_shared_memory_is_a_compile_error(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "big.cu"
    path.write_text(
        "__global__ void k(int* p) { __shared__ int s[60000]; s[threadIdx.x] = p[0]; __syncthreads();"
        " p[1] = s[5]; }\n"
    )
    with pytest.raises(CompileError, match="too much shared data"):
        build_front(path, cache=cache)


def test_unreadable_source_is_bad_usage(tmp_path: Path, cache: Cache) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        build_front(tmp_path / "absent.cu", cache=cache)


def test_a_builder_killed_half_way_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "shared"
    script = (
        "import sys; from pathlib import Path; from cuco.testbed.build import build_front;"
        "build_front(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(source)]
    env = {**os.environ, "CUCO_CACHE": str(root)}
    doomed = subprocess.Popen(command, env=env)
    while not list(root.glob("scratch/front-*/*.ii")):
        assert doomed.poll() is None, "it finished before it could be killed"
        time.sleep(0.01)
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    assert not list(root.glob("entries/front/*/*"))
    builders = [subprocess.Popen(command, env=env) for _ in range(2)]
    assert [builder.wait(timeout=300) for builder in builders] == [0, 0]
    assert len(list(root.glob("entries/front/*/*"))) == 1
