"""Prints the modelled time of the workloads' GEMM beside what one H200 takes (bench/gpu/constants.cu).

The kernel runs in the emulator at two depths; the rest of the inner loop is the difference, so the large
shapes need no large run.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from cuco.testbed.build import build_candidate
from cuco.testbed.vtime import Trace, load_machine, replay
from cuco.testbed.vtime.trace import HostOp, Phase
from cuco.verify.tracing import Setting, execute
from cuco.workload import load_workload

#: (rows, columns, depth) -> microseconds on one H200 (driver 580, median of nine; two runs, the slower one).
MEASURED_US = {
    (1024, 4096, 4096): 109.8,
    (1536, 6144, 6144): 384.6,
    (2048, 8192, 8192): 802.3,
    (8192, 2048, 7168): 691.6,
}
_DEPTHS = (128, 256)


def tile_phases() -> tuple[Trace, list[Phase]]:
    """A trace of one GEMM kernel, and a tile's work at both depths."""
    workload = load_workload("gemm_allgather")
    machine = load_machine("h200-nvlink-8")
    built = build_candidate(workload.host_source, include=workload.include_dirs)
    setting = Setting(ranks=2, lsa_team=2, machine=machine, extra={}, warm_ups=0)
    phases = []
    for depth in _DEPTHS:
        trace = execute(workload, built, {"m": 256, "n": 128, "k": depth}, setting)
        launch = next(iter(trace.launches.values()))
        phases += [trace.phases[index] for index in trace.ctas[launch.id][0]]
    assert len(phases) == 2, "a tile is expected to be one phase"
    return trace, phases


def modelled_us(trace: Trace, tile: list[Phase], shape: tuple[int, int, int]) -> float:
    """GPU time of the kernel at a shape: tiles of the extrapolated depth, launched alone on one rank."""
    rows, columns, depth = shape
    shallow, deep = tile
    more = (depth - _DEPTHS[0]) / (_DEPTHS[1] - _DEPTHS[0])
    work = tuple(a + (b - a) * more for a, b in zip(shallow.work, deep.work, strict=True))
    progress = shallow.max_progress + (deep.max_progress - shallow.max_progress) * more
    launch = next(iter(trace.launches.values()))
    tiles = (rows // 128) * (columns // 128)
    footprint = (2.0 * (rows * depth + columns * depth), 2.0 * rows * columns)
    alone = Trace(ranks=1, lsa_team=1, classes=trace.classes, kernels=trace.kernels)
    alone.phases = [Phase(work, max_progress=progress)]
    alone.launches = {0: replace(launch, id=0, rank=0, grid=(tiles, 1, 1), footprint=footprint)}
    alone.ctas = {0: [(0,)] * tiles}
    marks = [HostOp("mark", 0, {"name": name, "step": 0}) for name in ("begin", "end")]
    alone.hosts = [[marks[0], HostOp("launch", 0, {"id": 0}), marks[1], HostOp("device_sync")]]
    return replay(alone, load_machine("h200-nvlink-8")).steps[0].max_device_us


def main() -> None:
    """One row per shape."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    trace, tile = tile_phases()
    print("| rows x columns x depth | H200 us | modelled us | error |\n|---|---|---|---|")
    for shape, measured in MEASURED_US.items():
        us = modelled_us(trace, tile, shape)
        print(f"| {' x '.join(map(str, shape))} | {measured:.1f} | {us:.1f} | {us / measured - 1:+.0%} |")


if __name__ == "__main__":
    main()
