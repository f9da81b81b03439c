"""Physical limits: what a step must at least take, and what overlapping can gain.

All functions are plain arithmetic on microseconds; ``floor`` takes the workload's own statement of its least
work and the vendor's peaks, so that no correct program on that machine can be faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuco.testbed.findings import Finding
from cuco.testbed.vtime.machine import Machine
from cuco.workload.problem import Work

#: The fastest units that may do a data type's arithmetic; float32 may be done in tf32 where tolerances allow.
_UNITS = {
    "bfloat16": ("mma_bf16",),
    "float16": ("mma_f16",),
    "float32": ("fp32", "mma_tf32"),
    "float64": ("fp64", "mma_fp64"),
    "int8": ("mma_int8",),
    "uint8": ("mma_int8",),
}
#: A modelled or measured time this far below the floor is a finding; the rest is rounding.
FLOOR_TOLERANCE = 0.97


@dataclass(frozen=True)
class Floor:
    """Least time of a step, microseconds: arithmetic, device memory, links, and the greatest of them."""

    compute_us: float
    memory_us: float
    communication_us: float

    @property
    def us(self) -> float:
        """No correct step is faster."""
        return max(self.compute_us, self.memory_us, self.communication_us)


def floor(work: Sequence[Work], machine: Machine, lsa_team: int) -> Floor:
    """The floor of a step from every rank's least work, the machine's peaks and its links.

    Bytes may leave and enter by NVLink and NIC at once where ranks share domains and there are several; a
    rank alone in its domain has its NIC only.
    """
    compute = max((_compute_us(item, machine) for item in work), default=0.0)
    memory = max((item.hbm_bytes / (machine.peaks.hbm_gbs * 1e3) for item in work), default=0.0)
    rate = machine.nvlink.peak_gbs if lsa_team > 1 else 0.0
    rate += machine.nic.peak_gbs if lsa_team < len(work) else 0.0
    most = max((max(item.bytes_out, item.bytes_in) for item in work), default=0.0)
    return Floor(compute, memory, most / (rate * 1e3) if rate > 0 else 0.0)


def _compute_us(work: Work, machine: Machine) -> float:
    """All data types at once, each on units of its own: a lower bound whatever they share."""
    return max((flops / (_peak(dtype, machine) * 1e6) for dtype, flops in work.flops.items()), default=0.0)


def _peak(dtype: str, machine: Machine) -> float:
    """Tflop/s of the fastest units for a data type; of the fastest of all for an unknown one."""
    names = _UNITS.get(dtype)
    if names is None and dtype.startswith("float8"):
        names = ("mma_fp8",)
    if names is None:
        names = tuple(name for name in type(machine.peaks).model_fields if name != "hbm_gbs")
    return max(float(getattr(machine.peaks, name)) for name in names)


def overlap_limit(compute_us: float, communication_us: float) -> float:
    """(C + M) / max(C, M): what hiding the shorter behind the longer can gain at most. 1 without either."""
    longest = max(compute_us, communication_us)
    return (compute_us + communication_us) / longest if longest > 0 else 1.0


def overlap_efficiency(compute_us: float, communication_us: float, best_us: float) -> float | None:
    """(C + M - best) / min(C, M): the share of the hideable time that is hidden; None where nothing can
    be."""
    shortest = min(compute_us, communication_us)
    return (compute_us + communication_us - best_us) / shortest if shortest > 0 else None


def roofline_limit(baseline_us: float, least: Floor) -> float | None:
    """The baseline over the floor: no rewrite gains more. None where the floor is unknown."""
    return baseline_us / least.us if least.us > 0 else None


def below_floor(us: float, least: Floor) -> Finding | None:
    """The finding for a time that physics does not allow, or None."""
    if least.us <= 0 or us >= FLOOR_TOLERANCE * least.us:
        return None
    return Finding(
        kind="causality",
        rule="below-floor",
        message=f"the step takes {us:.1f} us, but its least work needs {least.us:.1f} us on this machine "
        f"(arithmetic {least.compute_us:.1f}, memory {least.memory_us:.1f}, links "
        f"{least.communication_us:.1f}): something was not done or not counted",
    )
