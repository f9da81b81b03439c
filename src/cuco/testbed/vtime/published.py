"""Published NCCL figures that the machine files are held against, and the model's answer to each.

``gate`` figures must be met within 20 %. The model's side is a replay of twenty calls in a row on every rank,
divided by twenty, as nccl-tests measures.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuco.testbed.vtime.machine import Machine, load_machine
from cuco.testbed.vtime.replay import replay
from cuco.testbed.vtime.trace import HostOp, Trace

MIB = 2**20
_XLA = "OpenXLA gpu/model/collective_interpolator_data.h, sm_90 (8 x H100): bytes over throughput"
_MEGATRON = "NVIDIA/Megatron-LM pull request 5596: ring all-gather kernel, 8 x H100, minimum over ranks"
_SKYPILOT = "SkyPilot examples/gcp_gpu_direct_tcpx: nccl-tests all_gather_perf, 2 x 8 H200, RoCE, NCCL 2.26.6"


@dataclass(frozen=True)
class Figure:
    """One published time of an all-gather of ``bytes`` in all (nccl-tests' size) on ``ranks`` GPUs."""

    machine: str
    ranks: int
    lsa_team: int
    bytes: int
    us: float
    source: str
    gate: bool = False

    @property
    def busbw(self) -> float:
        """nccl-tests' bus bandwidth, GB/s."""
        return self.bytes * (self.ranks - 1) / self.ranks / self.us / 1e3


FIGURES = (
    Figure("h200-nvlink-8", 8, 8, 1 * MIB, 24.6, _XLA, gate=True),
    Figure("h200-nvlink-8", 8, 8, 2 * MIB, 20.2, _MEGATRON, gate=True),
    Figure("h200-nvlink-8", 8, 8, 2 * MIB, 33.5, _XLA),
    Figure("h200-nvlink-8", 8, 8, 8 * MIB, 43.4, _MEGATRON, gate=True),
    Figure("h200-nvlink-8", 8, 8, 16 * MIB, 86.2, _XLA, gate=True),
    Figure("h200-nvlink-8", 8, 8, 32 * MIB, 118.9, _MEGATRON, gate=True),
    Figure("h200-nvlink-8", 8, 8, 32 * MIB, 144.4, _XLA, gate=True),
    Figure("h200-nvlink-8", 8, 8, 64 * MIB, 214.1, _XLA, gate=True),
    Figure("h200-nvlink-8", 8, 8, 128 * MIB, 385.3, _MEGATRON, gate=True),
    Figure("h200-nvlink-8", 8, 8, 128 * MIB, 397.1, _XLA, gate=True),
    Figure("h200-nvlink-8", 8, 8, 256 * MIB, 729.4, _XLA, gate=True),
    Figure("h200-nvlink-8", 8, 8, 1024 * MIB, 2745.9, _XLA, gate=True),
    Figure("h200-nvlink-8", 16, 8, 1 * MIB, 54.7, _SKYPILOT, gate=True),
    Figure("h200-nvlink-8", 16, 8, 4 * MIB, 77.4, _SKYPILOT, gate=True),
    Figure("h200-nvlink-8", 16, 8, 16 * MIB, 117.6, _SKYPILOT, gate=True),
    Figure("h200-nvlink-8", 16, 8, 64 * MIB, 277.8, _SKYPILOT, gate=True),
    Figure("h200-nvlink-8", 16, 8, 256 * MIB, 876.1, _SKYPILOT, gate=True),
    Figure("h200-nvlink-8", 16, 8, 1024 * MIB, 3126.8, _SKYPILOT, gate=True),
)


def all_gather_trace(ranks: int, lsa_team: int, size: float, calls: int) -> Trace:
    """``calls`` all-gathers of ``size`` bytes in all, one after another on every rank."""
    trace = Trace(ranks=ranks, lsa_team=lsa_team, classes=())
    for _ in range(ranks):
        ops = [HostOp("barrier", 0, {"id": 0}), HostOp("mark", 0, {"name": "begin", "step": 0})]
        ops += [
            HostOp(
                "nccl", 0, {"coll": "AllGather", "bytes": size / ranks, "comm": 0, "seq": call, "group": None}
            )
            for call in range(calls)
        ]
        ops += [HostOp("mark", 0, {"name": "end", "step": 0}), HostOp("device_sync")]
        trace.hosts.append(ops)
    return trace


def modelled_us(figure: Figure, machine: Machine | None = None, calls: int = 20) -> float:
    """The model's time for a figure, microseconds per call."""
    chosen = machine or load_machine(figure.machine)
    trace = all_gather_trace(figure.ranks, figure.lsa_team, figure.bytes, calls)
    return replay(trace, chosen).us / calls
