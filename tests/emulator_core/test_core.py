"""The emulator's core, driven by kernels written in C++ against isa/abi.h (native/*.cpp)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cuco.testbed.native import build_executable
from cuco.testbed.vtime.trace import read_trace

HERE = Path(__file__).resolve().parent
SEEDS = range(8)
POLICIES = {"one_at_a_time": 0, "newest": 1, "oldest": 2}
SEEDLESS = (
    "barriers", "named-barriers", "warps", "diverged-warp", "barrier-counts", "exits", "idle-waits",
    "deadlock", "memory", "fault-null", "fault-wild", "fault-divide", "fault-stack", "fault-host",
    "fault-shared", "fault-strong", "fits", "does-not-fit", "copies", "bulk-stores", "order",
)  # fmt: skip


@pytest.fixture(scope="session")
def program() -> Path:
    return build_executable("core_tests", ("emulator/core",), extra=sorted((HERE / "native").glob("*.cpp")))


def run(program: Path, *arguments: object) -> str:
    done = subprocess.run(
        [str(program), *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{arguments}: status {done.returncode}\n{done.stderr}{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("name", SEEDLESS)
def test_holds(program: Path, name: str) -> None:
    run(program, name)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["ring", "counting", "lock", "odd-waits", "adders"])
def test_holds_on_every_seed(program: Path, name: str, policy: str) -> None:
    for seed in SEEDS:
        run(program, name, seed, POLICIES[policy])


def test_a_newest_reader_may_skip_values(program: Path) -> None:
    seen = {int(run(program, "counting", seed, POLICIES["newest"]).split()[1]) for seed in SEEDS}
    assert min(seen) < 20


@pytest.mark.parametrize("name", ["ring", "chain"])
def test_trace_does_not_depend_on_the_seed(program: Path, tmp_path: Path, name: str) -> None:
    traces = []
    for seed in SEEDS:
        path = tmp_path / f"{seed}.jsonl"
        run(program, name, seed, 0, path)
        traces.append(path.read_text())
    assert all(trace == traces[0] for trace in traces)


def test_trace_follows_its_schema(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    run(program, "ring", 1, 0, path)
    trace = read_trace(path)
    assert trace.ranks == 4 and trace.classes == ("int",)
    assert len(trace.launches) == 8 and all(len(rows) == 8 for rows in trace.ctas.values())
    work = sum(trace.phases[i].work[0] for rows in trace.ctas.values() for row in rows for i in row)
    # spend(2, n) costs n * 3 per thread and step, a wait 1 per iteration that ends it
    n = sum(1 + t % 3 + rank + step % 2 for rank in range(4) for step in range(12) for t in range(64)) * 8
    waits = 4 * 12 * 8 * 4 + 4 * 12 * 8
    assert work == 3 * n + waits
    written = sum(
        r[1] for rows in trace.ctas.values() for row in rows for i in row for r in trace.phases[i].remote
    )
    assert written == 4 * 8 * 12 * (64 * 4 + 3 * 4 + 3 * 4)
    kinds = {e[1] for p in trace.phases for s in p.strands for e in s.events}
    assert kinds == {"st", "add", "wait"}


def test_printf_formats_on_the_host(program: Path) -> None:
    assert "-05|  2.50|local|1099511627776|z|100%" in run(program, "printf")


def test_findings_are_json(program: Path) -> None:
    finding = json.loads(run(program, "fault-null").splitlines()[-1])
    assert (
        finding["kind"] == "out-of-bounds"
        and finding["object"].endswith("core_tests")
        and finding["offset"] > 0
    )


@pytest.mark.slow
def test_a_million_blocked_threads_fit_in_five_gigabytes(program: Path) -> None:
    run(program, "crowd")
