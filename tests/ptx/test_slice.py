"""The timing slice: the same counts as full execution, nothing of the value work, and reasons where it
cannot be.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from ptx_machine import Machine, Program, Result

from cuco.testbed.toolchain import find_toolchain

SOURCE = Path(__file__).with_name("slices.cu")


@pytest.fixture(scope="module")
def programs(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, Program]:
    tools = find_toolchain()
    ptx = tmp_path_factory.mktemp("slices") / "slices.ptx"
    command = [tools.nvcc, "-std=c++17", "-arch=compute_90", "-lineinfo", "-ptx", SOURCE, "-o", ptx]
    subprocess.run([str(x) for x in command], check=True, env=tools.env)
    text = ptx.read_text()
    return machine.build(text), machine.build(text, variant="slice")


def both(
    programs: tuple[Program, Program], kernel: str, make: object, **launch: object
) -> tuple[Result, Result]:
    """Run the full program and the slice on equal data; counts, progress and strong events must agree."""
    results = []
    for program in programs:
        result = program.run(kernel, make(), **launch)  # type: ignore[operator, arg-type]
        assert not result.failure, result.failure
        results.append(result)
    full, sliced = results
    assert np.array_equal(full.blocks, sliced.blocks)
    assert full.progress == sliced.progress and full.classes == sliced.classes
    return full, sliced


def verdict(programs: tuple[Program, Program], kernel: str) -> str:
    info = next(k for k in programs[1].translation.kernels if k.name == kernel)
    assert info.sliced == (not info.refusal)
    return info.refusal


def matrices(k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-3, 4, (128, k)).astype(np.float32) for _ in range(2))
    return ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))  # type: ignore[return-value]


GRID = {"grid": (2, 2, 1), "block": (128, 1, 1)}


@pytest.mark.parametrize("k", [32, 64, 320])
def test_gemm_counts_are_those_of_full_execution(programs: tuple[Program, Program], k: int) -> None:
    assert verdict(programs, "gemm") == ""
    a, b = matrices(k)
    products: list[np.ndarray] = []

    def make() -> list[object]:
        products.append(np.full((128, 128), -1, np.float32))
        return [a, b, products[-1], 128, k]

    full, _ = both(programs, "gemm", make, **GRID)
    wide = [(x.astype(np.uint32) << 16).view(np.float32) for x in (a, b)]
    assert np.array_equal(products[0], wide[0] @ wide[1].T)  # the full program computes
    assert (products[1] == -1).all()  # the slice does not
    assert full.classes["mma_bf16"] == 2 * 128 * 128 * k
    assert full.classes["bar"] == 512 * 2 * (k // 32)


def test_gemm_pointers_are_guarded(programs: tuple[Program, Program]) -> None:
    info = next(k for k in programs[1].translation.kernels if k.name == "gemm")
    assert info.guards == ((0, False), (8, False), (16, True))


def test_the_loop_is_run_once_and_remembered(programs: tuple[Program, Program]) -> None:
    assert "memo_" in programs[1].translation.cpp
    source = programs[1].translation.cpp
    body = source[source.index("static void K_gemm(EmuThread* T_, const char* P_) {") :]
    body = body[: body.index("\n}")]
    assert "isa_mma" not in body and "emu_cp_async" not in body and body.count("emu_bar_sync") == 1


def test_remote_stores_and_flags_stay(programs: tuple[Program, Program]) -> None:
    assert verdict(programs, "gemm_and_send") == ""
    a, b = matrices(64)
    c, remote, flag = (
        np.zeros((128, 128), np.float32),
        np.zeros((128, 128), np.float32),
        np.zeros(1, np.uint32),
    )
    peer = np.array([remote.ctypes.data, flag.ctypes.data], np.uint64)
    arena = (peer.ctypes.data, peer.ctypes.data + 16)  # everything but the table of peers is remote
    _, sliced = both(programs, "gemm_and_send", lambda: [a, b, c, 128, 64, peer], arena=arena, **GRID)
    events = sliced.events.split()
    assert events.count("dropped4") == 128 * 128
    assert flag[0] == 8  # four blocks in either run
    assert "control8" in events and sum(e.startswith("at") for e in events) == 4


def test_control_by_numbers_is_refused_with_its_line(programs: tuple[Program, Program]) -> None:
    reason = verdict(programs, "branch_on_data")
    line = 1 + SOURCE.read_text()[: SOURCE.read_text().index("if (x[i] > 0.5f)")].count("\n")
    assert "computed value" in reason and "a predicate" in reason and f"slices.cu:{line}" in reason


def test_control_by_products_is_refused(programs: tuple[Program, Program]) -> None:
    reason = verdict(programs, "branch_on_product")
    assert "reaches" in reason and "slices.cu" in reason


def test_refused_kernels_are_translated_whole(programs: tuple[Program, Program]) -> None:
    x = np.linspace(0, 1, 64, dtype=np.float32)
    outs: list[np.ndarray] = []

    def make() -> list[object]:
        outs.append(np.zeros(64, np.float32))
        return [x, outs[-1], 64]

    both(programs, "branch_on_data", make, block=(32, 1, 1))
    assert np.array_equal(outs[0], outs[1]) and outs[0].any()


def test_calls_are_refused(programs: tuple[Program, Program]) -> None:
    assert "calls" in verdict(programs, "with_call")


def test_schedules_that_do_not_depend_on_data_are_kept(programs: tuple[Program, Program]) -> None:
    assert verdict(programs, "scheduler") == ""
    y = np.ones(64 * 32, np.float32)
    full, _ = both(
        programs, "scheduler", lambda: [np.zeros(1, np.uint32), 20, y], grid=(3, 1, 1), block=(32, 1, 1)
    )
    assert full.classes["warp"] == 20 * 32 * 8


def test_state_that_control_reads_is_written(programs: tuple[Program, Program]) -> None:
    assert verdict(programs, "epoch") == ""
    states: list[np.ndarray] = []

    def make() -> list[object]:
        states.append(np.array([5], np.uint32))
        return [states[-1], np.ones(64, np.float32)]

    _, sliced = both(programs, "epoch", make, block=(64, 1, 1))
    assert [int(s[0]) for s in states] == [6, 6] and sliced.events.split().count("control4") == 64


def test_a_single_barrier_separates_what_lies_around_a_counted_loop(
    programs: tuple[Program, Program],
) -> None:
    """gemm_and_send: the loop's barriers become one, those after it stay."""
    source = programs[1].translation.cpp
    body = source[source.index("static void K_gemm_and_send(EmuThread* T_, const char* P_) {") :]
    assert body[: body.index("\n}")].count("emu_bar_sync") == 3


def test_syncwarp_stays(programs: tuple[Program, Program]) -> None:
    flag, y = np.ones(1, np.uint32), np.zeros(64, np.float32)
    both(programs, "warp_wait", lambda: [flag, y])
    source = programs[1].translation.cpp
    body = source[source.index("static void K_warp_wait(EmuThread* T_, const char* P_) {") :]
    assert "emu_warp_call(T_, nullptr" in body[: body.index("\n}")]


def test_counters_in_memory_are_state_and_stay(programs: tuple[Program, Program]) -> None:
    states: list[np.ndarray] = []

    def make() -> list[object]:
        states.append(np.array([2**40], np.uint64))
        return [states[-1], np.ones(32, np.float32), np.zeros(32, np.float32)]

    both(programs, "count_up", make)
    assert [int(s[0]) for s in states] == [2**40 + 1] * 2
    info = next(k for k in programs[1].translation.kernels if k.name == "count_up")
    assert info.guards == ((8, False), (16, True))


def test_counters_behind_pointers_in_memory_stay_too(programs: tuple[Program, Program]) -> None:
    states: list[np.ndarray] = []

    def make() -> list[object]:
        states.append(np.array([7], np.uint64))
        table = np.array([states[-1].ctypes.data], np.uint64)
        states.append(table)
        return [table, np.ones(32, np.float32), np.zeros(32, np.float32)]

    _, sliced = both(programs, "count_far", make)
    assert [int(s[0]) for s in states[::2]] == [8, 8] and "dropped" not in sliced.events
