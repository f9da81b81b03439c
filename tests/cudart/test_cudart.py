"""libcudart, by real programs: nvcc compiles them, the emulator runs them, on several ranks and seeds."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cuco.testbed.build import build_candidate
from cuco.testbed.native import build_executable
from cuco.testbed.toolchain import find_toolchain

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


@pytest.fixture(scope="session")
def runner() -> Path:
    tools = find_toolchain()
    return build_executable(
        "cudart-tests",
        ("emulator/core", "emulator/isa", "emulator/cuda"),
        system=(tools.cuda_include,),
        identity=tools.identity,
        extra=(HERE / "main.cpp",),
    )


@dataclass
class Outcome:
    """What a run printed, what each rank returned, and what the emulator found."""

    printed: list[str] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)


def execute(
    runner: Path, source: Path, *, ranks: int = 1, seed: int = 0, trace: Path | None = None
) -> Outcome:
    build = build_candidate(source)
    registers = [f"{name}={count}" for name, count in build.registers.items()]
    command = [runner, build.host_so, build.kernels_so, str(ranks), str(seed), str(trace or ""), *registers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"rc {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    lines = done.stdout.splitlines()
    findings = [json.loads(line) for line in lines if line.startswith("{")]
    rest = [line for line in lines if not line.startswith("{")]
    return Outcome(rest[:-ranks], [int(line) for line in rest[-ranks:]], findings)


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("name", ["streams", "graphs", "cooperative"])
def test_programs_that_check_themselves(runner: Path, name: str, seed: int) -> None:
    outcome = execute(runner, PROGRAMS / f"{name}.cu", ranks=2, seed=seed)
    assert outcome.printed == []
    assert outcome.findings == []
    assert outcome.results == [0, 0]


def test_answers_are_those_of_a_gpu(runner: Path) -> None:
    """errors.expected was printed by errors.cu on an H200 (driver 580, runtime 13.0)."""
    outcome = execute(runner, PROGRAMS / "errors.cu")
    assert outcome.findings == []
    assert outcome.printed == (PROGRAMS / "errors.expected").read_text().splitlines()
    assert outcome.results == [0]


FAULTS = {
    "copy beyond the end": (
        "cudaMemset(p, 0, 1024 + 4);",
        ("out-of-bounds", "cudaMemset writes 1028 bytes"),
    ),
    "copy from freed memory": (
        "cudaMallocAsync(&q, 512, s); cudaFreeAsync(q, s);"
        "cudaMemcpyAsync(p, q, 512, cudaMemcpyDefault, s);",
        ("out-of-bounds", "cudaMemcpyAsync reads 512 bytes"),
    ),
    "cluster launch": (
        "cudaLaunchConfig_t c = {}; c.gridDim = 2; c.blockDim = 32; cudaLaunchAttribute a = {};"
        "a.id = cudaLaunchAttributeClusterDimension; a.val.clusterDim.x = 2; a.val.clusterDim.y = 1;"
        "a.val.clusterDim.z = 1; c.attrs = &a; c.numAttrs = 1; cudaLaunchKernelEx(&c, nop, (int*)p);",
        ("unsupported", "clusters of 2x1x1"),
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_are_findings(runner: Path, tmp_path: Path, case: str) -> None:
    body, (kind, words) = FAULTS[case]
    source = tmp_path / "fault.cu"
    source.write_text(
        "#include <cuda_runtime.h>\n__global__ void nop(int*) {}\n"
        'extern "C" int run(int, int) { void *p, *q; cudaStream_t s; cudaStreamCreate(&s);'
        f" cudaMalloc(&p, 1024); (void)q; {body} return cudaDeviceSynchronize(); }}\n"
    )
    outcome = execute(runner, source)
    assert [finding["kind"] for finding in outcome.findings] == [kind]
    assert words in outcome.findings[0]["message"]
    assert outcome.findings[0]["rank"] == 0


def test_trace_holds_the_host_timeline(runner: Path, tmp_path: Path) -> None:
    traces = []
    for seed in (0, 3):
        path = tmp_path / f"trace{seed}"
        execute(runner, PROGRAMS / "streams.cu", ranks=2, seed=seed, trace=path)
        records = [json.loads(line) for line in path.read_text().splitlines()]
        traces.append([record for record in records if record.get("h") == 1])
    assert traces[0] == traces[1], "a rank's host timeline must not depend on the seed"
    ops = [record["op"] for record in traces[0]]
    streamed = {"launch", "record", "wait_event", "memcpy", "memset", "host_fn"}
    assert streamed | {"stream_sync", "device_sync"} <= set(ops)
    launch = next(record for record in traces[0] if record["op"] == "launch")
    assert set(launch) >= {"stream", "id", "kernel", "grid", "block", "smem", "coop", "priority"}
    ids = [record["id"] for record in traces[0] if record["op"] == "launch"]
    assert len(ids) == len(set(ids))
