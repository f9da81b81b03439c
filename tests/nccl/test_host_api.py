"""The host API in the emulator: values, error codes, life cycle; and what the real library answers."""

from __future__ import annotations

import ctypes
from pathlib import Path

import harness
import pytest

from cuco.testbed.toolchain import find_toolchain

WORLDS = [(2, 2), (3, 3), (4, 4), (4, 2)]


@pytest.mark.parametrize("delivery", ["lazy", "eager", "random"])
@pytest.mark.parametrize(("ranks", "lsa_team"), WORLDS)
def test_every_collective_type_and_reduction(ranks: int, lsa_team: int, delivery: str) -> None:
    built = harness.build("collectives")
    for seed in range(3):
        ran = harness.run(built, ranks, lsa_team=lsa_team, seed=seed, delivery=delivery)
        assert ran.passed, ran.output


@pytest.mark.parametrize(("ranks", "lsa_team"), [(2, 2), (4, 2)])
def test_wrong_use_gets_nccls_codes(ranks: int, lsa_team: int) -> None:
    ran = harness.run(harness.build("errors"), ranks, lsa_team=lsa_team)
    assert ran.passed, ran.output


@pytest.mark.parametrize(("ranks", "lsa_team"), WORLDS)
def test_life_of_a_communicator(ranks: int, lsa_team: int) -> None:
    for seed in range(3):
        ran = harness.run(harness.build("lifecycle"), ranks, lsa_team=lsa_team, seed=seed)
        assert ran.passed, ran.output


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    built = harness.build("collectives")
    traces = []
    for name in ("a", "b"):
        ran = harness.run(built, 3, seed=11, trace=tmp_path / name)
        assert ran.passed, ran.output
        traces.append((tmp_path / name).read_bytes())
    assert traces[0] == traces[1]
    assert b'"op":"nccl"' in traces[0].replace(b" ", b"")


def real_library() -> ctypes.CDLL | None:
    folder = find_toolchain().nccl_include.parent / "lib"
    found = sorted(folder.glob("libnccl.so*"))
    return ctypes.CDLL(str(found[0])) if found else None


# Calls whose answer NCCL gives without a GPU: (function, arguments).
ASKED = [
    ("ncclCommCount", (None, None)),
    ("ncclCommUserRank", (None, None)),
    ("ncclCommCuDevice", (None, None)),
    ("ncclCommDestroy", (None,)),
    ("ncclCommFinalize", (None,)),
    ("ncclCommAbort", (None,)),
    ("ncclCommRevoke", (None, 0)),
    ("ncclCommGetAsyncError", (None, None)),
    ("ncclCommWindowRegister", (None, None, 0, None, 0)),
    ("ncclCommWindowDeregister", (None, None)),
    ("ncclDevCommCreate", (None, None, None)),
    ("ncclDevCommDestroy", (None, None)),
    ("ncclCommQueryProperties", (None, None)),
    ("ncclAllReduce", (None, None, 1, 7, 0, None, None)),
    ("ncclGroupEnd", ()),
    ("ncclGroupSimulateEnd", (None,)),
    ("ncclRedOpDestroy", (0, None)),
    ("ncclRedOpDestroy", (7, None)),
    ("ncclRedOpDestroy", (-1, None)),
    ("ncclGetLsaDevicePointer", (None, 0, 0, None)),
    ("ncclGetLsaMultimemDevicePointer", (None, 0, None)),
    ("ncclWinGetUserPtr", (None, None, None)),
    ("ncclGetUniqueId", (None,)),
    ("ncclGetVersion", (None,)),
    ("ncclCommMemStats", (None, 0, None)),
    ("ncclCommSuspend", (None, 1)),
    ("ncclCommResume", (None,)),
    ("ncclCommDeregister", (None, None)),
    ("ncclParamBind", (None, None)),
    ("ncclLLA2ACalcSlots", (10, 12)),
]


def test_answers_equal_those_of_the_real_library() -> None:
    """Codes of wrong calls, and error strings, from the wheel's libnccl itself."""
    library = real_library()
    if library is None:
        pytest.fail("the NCCL wheel has headers but no library to compare with; install nvidia-nccl-cu13")
    ran = harness.run(harness.build("answers"), 1)
    assert ran.passed, ran.output
    ours = dict(line.split("=", 1) for line in ran.output.splitlines() if "=" in line)
    for index, (name, arguments) in enumerate(ASKED):
        theirs = getattr(library, name)(*arguments)
        assert ours[f"{index} {name}"] == str(theirs), name
    library.ncclGetErrorString.restype = ctypes.c_char_p
    for code in range(-1, 11):
        assert ours[f"error {code}"] == library.ncclGetErrorString(code).decode()
