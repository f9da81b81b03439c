"""A whole candidate: kernels library per variant, and the functions that the runner would lack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuco.errors import UsageError
from cuco.testbed import process
from cuco.testbed.build import build_candidate, missing_symbols
from cuco.testbed.cache import Cache
from cuco.testbed.native import NativeBuildError, build_executable

SOURCE = """
#include <cuda_runtime.h>
__global__ void scale(float* p, float x) { p[threadIdx.x] *= x; }
extern "C" int run(float* p, cudaStream_t s) { scale<<<1, 32, 0, s>>>(p, 2.f); return cudaGetLastError(); }
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "host.cu"
    path.write_text(SOURCE)
    return path


def test_variants_share_the_nvcc_run(source: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build_candidate(source, cache=cache)
    started: list[str] = []
    real = process.run

    def watched(command, **kwargs):  # type: ignore[no-untyped-def]
        started.append(Path(str(command[0])).name)
        return real(command, **kwargs)

    monkeypatch.setattr(process, "run", watched)
    hooks = build_candidate(source, variant="hooks", cache=cache)
    assert "nvcc" not in started and started, "only the kernels library is built anew"
    assert hooks.host_so == plain.host_so and hooks.kernels_so != plain.kernels_so
    assert hooks.key != plain.key
    started.clear()
    assert build_candidate(source, variant="hooks", cache=cache) == hooks and started == []


def test_the_kernels_library_needs_only_the_emulator(source: Path, cache: Cache) -> None:
    build = build_candidate(source, cache=cache)
    assert build.sites.stat().st_size > 0 and "host.cu" in build.sites.read_text()
    # In a process of its own: other tests may have loaded what exports these symbols.
    load = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(build.kernels_so)!r})"]
    done = subprocess.run(load, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "undefined symbol: emu_" in done.stderr


def test_unknown_variant(source: Path, cache: Cache) -> None:
    with pytest.raises(UsageError, match="unknown build variant 'fast'.*plain, hooks, slice"):
        build_candidate(source, variant="fast", cache=cache)  # type: ignore[arg-type]


def test_executables_recompile_what_changed(tmp_path: Path, cache: Cache) -> None:
    main = tmp_path / "main.cpp"
    (tmp_path / "answer.h").write_text("#define ANSWER 3\n")
    main.write_text(
        '#include "answer.h"\nextern "C" int cudaExported() { return ANSWER; }\n'
        "int main() { return cudaExported(); }\n"
    )
    other = tmp_path / "other.cpp"
    other.write_text("int other() { return 1; }\n")

    def build() -> Path:
        return build_executable("small", (), extra=(main, other), cache=cache)

    first = build()
    assert process.run([first], cwd=tmp_path, env={}).status == 3
    assert build() == first
    objects = set(cache.root.glob("entries/object/*/*"))
    (tmp_path / "answer.h").write_text("#define ANSWER 4\n")
    assert process.run([build()], cwd=tmp_path, env={}).status == 4
    assert len(set(cache.root.glob("entries/object/*/*")) - objects) == 1
    wanted = {"cudaExported", "ncclAbsent", "printf", "cuAbsent"}
    assert missing_symbols(wanted, build()) == ["cuAbsent", "ncclAbsent"]
    main.write_text("int main() {\n  return absent;\n}\n")
    with pytest.raises(NativeBuildError, match=r"main\.cpp:2: .absent. was not declared"):
        build()


def test_what_changes_while_it_is_compiled_is_not_kept(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, main = tmp_path / "answer.h", tmp_path / "main.cpp"
    header.write_text("#define ANSWER 3\n")
    main.write_text('#include "answer.h"\nint main() { return ANSWER; }\n')
    real, edits = process.run, ["#define ANSWER 5\n"]

    def edited(command, **kwargs):  # type: ignore[no-untyped-def]
        done = real(command, **kwargs)
        if edits and "-c" in command:
            header.write_text(edits.pop())
        return done

    monkeypatch.setattr(process, "run", edited)
    built = build_executable("small", (), extra=(main,), cache=cache)
    assert real([built], cwd=tmp_path, env={}).status == 5
    header.write_text("#define ANSWER 3\n")
    assert real([build_executable("small", (), extra=(main,), cache=cache)], cwd=tmp_path, env={}).status == 3
