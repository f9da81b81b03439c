"""Builds the test programs with the product's own toolchain and runs them on the emulator."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cuco.testbed.build import Build, build_candidate
from cuco.testbed.native import build_executable
from cuco.testbed.toolchain import find_toolchain

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
ROOMS = ("emulator/core", "emulator/isa", "emulator/cuda", "emulator/nccl")


@dataclass(frozen=True)
class Run:
    """What a run of a test program left behind."""

    status: int
    output: str
    findings: tuple[dict[str, Any], ...]

    @property
    def passed(self) -> bool:
        return self.status == 0

    def finding(self) -> dict[str, Any]:
        assert self.findings, f"no finding; the program said:\n{self.output}"
        return self.findings[0]


@lru_cache(maxsize=1)
def runner() -> Path:
    tools = find_toolchain()
    system = (tools.cuda_include, tools.nccl_include)
    extra = [HERE / "native" / "harness.cpp"]
    return build_executable("nccl-harness", ROOMS, system=system, identity=tools.identity, extra=extra)


def build(program: str, **defines: int | str) -> Build:
    return build_candidate(
        PROGRAMS / f"{program}.cu",
        include=[PROGRAMS],
        defines={name: str(value) for name, value in defines.items()},
    )


def run(
    built: Build,
    ranks: int,
    *,
    lsa_team: int | None = None,
    seed: int = 0,
    delivery: str = "random",
    trace: Path | None = None,
    env: dict[str, str] | None = None,
) -> Run:
    command = [str(runner()), str(built.host_so), str(built.kernels_so), str(ranks), str(lsa_team or ranks)]
    command += [str(seed), delivery]
    if trace is not None:
        command.append(str(trace))
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **(env or {})}
    )
    output = done.stdout + done.stderr
    assert done.returncode in (0, 1), f"the harness broke ({done.returncode}):\n{output}"
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return Run(done.returncode, output, tuple(found))
