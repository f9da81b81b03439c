"""Times a candidate in virtual time, and says beside the time what physics would allow.

``compute_us`` (C) and ``communication_us`` (M) are replays of the candidate's own trace, once without and
once with nothing but its communication: the same CTAs on the same machine, waits and transfers removed, or
phases without remote traffic or synchronisation taking no time. All three are modelled, and labelled so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cuco.testbed.findings import Finding
from cuco.testbed.vtime import Machine, Timeline, load_machine, replay
from cuco.verify import limits, statistics
from cuco.verify.placement import ranks_per_domain
from cuco.verify.tracing import MeasurementRejected, Setting, Traced, trace_of
from cuco.workload import Workload

__all__ = ["MeasureOptions", "Measurement", "MeasurementRejected", "measure", "time_traced"]


@dataclass(frozen=True)
class MeasureOptions:
    """``ranks``, ``lsa_team`` and ``machine`` default to the workload's. ``extra``: a tuned baseline's
    parameters.

    ``machine`` may be a Machine, so that an overridden one can be timed. ``warm_ups`` isolated steps are run
    before the ``steps`` that count. With ``same_size`` a source that cannot be timed at ``size`` is rejected;
    without it a smaller size is timed, and the result's ``size`` and ``note`` say so: never compare times of
    different sizes.
    """

    size: str = "full"
    ranks: int | None = None
    lsa_team: int | None = None
    machine: str | Machine | None = None
    overrides: Mapping[str, int | float] = field(default_factory=dict)
    extra: Mapping[str, int | float] = field(default_factory=dict)
    warm_ups: int = 1
    steps: int = 1
    seed: int = 1
    slicing: Literal["auto", "never"] = "auto"
    same_size: bool = True


@dataclass(frozen=True)
class Measurement:
    """A timed candidate; times in microseconds, of a step, maximum over ranks unless said.

    ``us`` runs from the common start to the end of the last rank's stream work, ``device_us`` from the first
    stream work, ``host_us`` includes the host's own calls. ``findings`` is not empty where the time cannot
    be.
    """

    us: float
    device_us: float
    host_us: float
    per_rank_us: tuple[float, ...]
    compute_us: float
    communication_us: float
    floor: limits.Floor
    machine: str
    ranks: int
    lsa_team: int
    size: str
    params: Mapping[str, int | float]
    sliced: bool
    note: str
    events: int
    seconds: float
    findings: tuple[Finding, ...] = ()
    timeline: Timeline = field(default_factory=Timeline, repr=False, compare=False)
    traced: Traced | None = field(default=None, repr=False, compare=False)

    @property
    def interval(self) -> statistics.Interval:
        """The interval of ``us``: a point, for modelled times have no spread."""
        return statistics.modelled(self.us)

    @property
    def overlap_limit(self) -> float:
        """(C + M) / max(C, M) of this candidate."""
        return limits.overlap_limit(self.compute_us, self.communication_us)

    @property
    def overlap_efficiency(self) -> float | None:
        """(C + M - us) / min(C, M) of this candidate; None where there is nothing to hide."""
        return limits.overlap_efficiency(self.compute_us, self.communication_us, self.us)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON and the archive (without timeline and trace)."""
        point = self.interval
        return {
            "us": self.us,
            "ci95_us": [point.low, point.high],
            "ci95_note": point.note,
            "device_us": self.device_us,
            "host_us": self.host_us,
            "per_rank_us": list(self.per_rank_us),
            "compute_us": self.compute_us,
            "communication_us": self.communication_us,
            "overlap_limit": self.overlap_limit,
            "overlap_efficiency": self.overlap_efficiency,
            "floor_us": self.floor.us,
            "machine": self.machine,
            "ranks": self.ranks,
            "lsa_team": self.lsa_team,
            "size": self.size,
            "params": dict(self.params),
            "sliced": self.sliced,
            "note": self.note,
            "fidelity": "modelled",
            "modelled": True,
            "events": self.events,
            "seconds": round(self.seconds, 3),
        }


def measure(workload: Workload, source: Path, options: MeasureOptions | None = None) -> Measurement:
    """Builds, runs and replays ``source``.

    Raises MeasurementRejected (with ``findings``) if the run finds something, CompileError if it does not
    compile, UsageError for options the workload or the machine does not allow.
    """
    wanted = options or MeasureOptions()
    machine = chosen_machine(workload, wanted.machine)
    params = workload.params(wanted.size, wanted.overrides)
    ranks = wanted.ranks or workload.spec.ranks.default
    workload.check_ranks(ranks, params)
    team = ranks_per_domain(workload, machine, ranks, params, wanted.lsa_team)
    setting = Setting(ranks, team, machine, wanted.extra, wanted.warm_ups, wanted.steps, wanted.seed)
    traced = trace_of(
        workload,
        source,
        wanted.size,
        wanted.overrides,
        setting,
        slicing=wanted.slicing,
        same_size=wanted.same_size,
    )
    return time_traced(workload, traced, machine)


def chosen_machine(workload: Workload, machine: str | Machine | None) -> Machine:
    """The machine asked for, by name, path or itself; else the workload's."""
    if isinstance(machine, Machine):
        return machine
    return load_machine(machine or workload.spec.machine)


def time_traced(workload: Workload, traced: Traced, machine: Machine) -> Measurement:
    """Replays a trace on a machine; also for a changed machine (``Machine.override``), without running again.

    The step's time is the mean over the steps after the warm-up; C and M are device times of the same steps.
    """
    trace = traced.trace
    work = [workload.work(rank, trace.ranks, traced.params) for rank in range(trace.ranks)]
    footprint = [item.hbm_bytes for item in work]
    whole = replay(trace, machine, footprint=footprint)
    parts = {
        part: replay(trace, machine, part=part, footprint=footprint) for part in ("compute", "communication")
    }
    counted = whole.steps[traced.warm_ups :] or whole.steps
    numbers = [step.step for step in counted]

    def alone(part: str) -> float:
        return _mean([parts[part].step(number).max_device_us for number in numbers])

    least = limits.floor(work, machine, trace.lsa_team)
    us = _mean([step.max_us for step in counted])
    finding = limits.below_floor(us, least)
    last = counted[-1]
    return Measurement(
        us=us,
        device_us=_mean([step.max_device_us for step in counted]),
        host_us=_mean([max(step.host_us) for step in counted]),
        per_rank_us=tuple(_mean([step.us[rank] for step in counted]) for rank in range(trace.ranks)),
        compute_us=alone("compute"),
        communication_us=alone("communication"),
        floor=least,
        machine=machine.name,
        ranks=trace.ranks,
        lsa_team=trace.lsa_team,
        size=traced.size,
        params=dict(traced.params),
        sliced=traced.sliced,
        note=traced.note,
        events=whole.events,
        seconds=traced.seconds,
        findings=(finding,) if finding else (),
        timeline=whole.timeline.window(*last.window),
        traced=traced,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
