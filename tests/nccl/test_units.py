"""Types, data movement, descriptors, resource layout and configuration, without a runner."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuco.testbed.native import NATIVE
from cuco.testbed.toolchain import find_host_compiler, find_toolchain

HERE = Path(__file__).resolve().parent
ROOM = NATIVE / "emulator" / "nccl"
PURE = ("datatype", "movement", "gfd", "resources", "config", "requirements_api")


def compile_room(sources: list[Path], output: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    tools, compiler = find_toolchain(), find_host_compiler()
    command = [str(compiler.path), "-std=c++20", "-O1", "-Wall", "-Wextra", f"-I{ROOM}", *flags]
    command += ["-isystem", str(tools.cuda_include), "-isystem", str(tools.nccl_include)]
    command += [*(str(source) for source in sources), "-o", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_parts_that_need_no_runner(tmp_path: Path) -> None:
    errors = tmp_path / "errors.cpp"  # reject() without a scheduler behind it
    errors.write_text(
        '#include "errors.h"\n'
        "ncclResult_t cuco::nccl::reject(ncclResult_t code, const char*, ...) { return code; }\n"
    )
    sources = [HERE / "native" / "units.cpp", *(ROOM / f"{name}.cpp" for name in PURE), errors]
    program = tmp_path / "units"
    done = compile_room(sources, program)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert " 0 failures" in ran.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("CUCO_SIZE(ncclDevComm, 248)", "CUCO_SIZE(ncclDevComm, 240)", "size of ncclDevComm in NCCL 2."),
        (
            "CUCO_AT(ncclWindow_vidmem, stride4G, 24)",
            "CUCO_AT(ncclWindow_vidmem, stride4G, 28)",
            "stride4G in NCCL 2.",
        ),
        ("GFD_VERSION == 2", "GFD_VERSION == 3", "descriptor version in NCCL 2."),
    ],
)
def test_a_moved_field_stops_the_build_and_names_the_version(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = (ROOM / "layout.cpp").read_text()
    assert old in text
    changed = tmp_path / "layout.cpp"
    changed.write_text(text.replace(old, new))
    done = compile_room([changed], tmp_path / "layout.o", "-c")
    assert done.returncode != 0
    assert said in done.stderr and "install nvidia-nccl-cu13==2.32.3" in done.stderr


def test_the_layout_is_that_of_the_installed_headers(tmp_path: Path) -> None:
    done = compile_room([ROOM / "layout.cpp"], tmp_path / "layout.o", "-c")
    assert done.returncode == 0, done.stderr
