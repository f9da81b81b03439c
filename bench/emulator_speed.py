"""Prints the emulator's speed: threads a second, a barrier's price per thread, memory of blocked threads."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from cuco.testbed.build import Build, build_candidate
from cuco.testbed.emulator import Job, Segment, StepPlan, run
from cuco.testbed.vtime import load_machine
from cuco.verify.runs import machine_limits
from cuco.workload import load_workload

_SOURCE = Path(__file__).parent / "programs" / "speed.cu"
_THREADS, _BARRIERS = 1024, 64


def seconds(built: Build, ranks: int, what: int, ctas: int) -> float:
    """Wall time of a run with one step, less that of a run whose step launches a single CTA."""

    def once(count: int) -> float:
        workload = load_workload("micro/allgather")
        params = workload.params("tiny")
        job = Job(
            host_library=built.host_so,
            kernels_library=built.kernels_so,
            registers=built.registers,
            buffers=[workload.buffers(rank, ranks, params) for rank in range(ranks)],
            params={"what": what, "ctas": count},
            lsa_team=ranks,
            segments=[Segment("isolated", 1)],
            steps=[StepPlan(checked=False)],
            settings=machine_limits(load_machine("h200-nvlink-8")),
        )
        started = time.monotonic()
        result = run(job)
        assert result.completed, (result.findings, result.log)
        return time.monotonic() - started

    empty = once(1)
    return max(1e-9, once(ctas) - empty)


def main() -> None:
    """One line per figure."""
    built = build_candidate(_SOURCE, variant="plain")
    ctas = 8192
    free = seconds(built, 2, 0, ctas)
    print(f"threads that never block: {2 * ctas * _THREADS / free / 1e6:.1f} M a second")
    held = seconds(built, 2, 1, 512)
    per_barrier = held / (2 * 512 * _THREADS * _BARRIERS) * 1e9
    print(f"__syncthreads: {per_barrier:.0f} ns per thread ({_THREADS}-thread blocks)")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    blocked = seconds(built, 4, 2, 132 * 2)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(
        f"4 ranks x 132 SMs x 2048 threads, all waiting: {blocked:.1f} s, "
        f"{peak / 2**20:.2f} GiB at most ({before / 2**20:.2f} before)"
    )


if __name__ == "__main__":
    main()
