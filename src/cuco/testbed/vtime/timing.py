"""What a replay returns: step times per rank and the timeline. All times in microseconds, all of them
modelled."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Interval:
    """Something that lasted: on a lane, from start to end."""

    start: float
    end: float
    label: str


@dataclass(frozen=True)
class Lane:
    """One row of a timeline. ``kind``: host, stream, egress, ingress, nic-egress, nic-ingress, proxy."""

    rank: int
    kind: str
    name: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Occupancy:
    """CTAs resident on a rank's GPU: (time, count) at every change."""

    rank: int
    points: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Timeline:
    """Lanes and SM occupancy of a replay, as plain data for reports."""

    lanes: tuple[Lane, ...] = ()
    occupancy: tuple[Occupancy, ...] = ()

    def window(self, start: float, end: float) -> Timeline:
        """The part between two times, moved so that ``start`` is 0."""
        lanes = []
        for lane in self.lanes:
            kept = tuple(
                Interval(max(item.start, start) - start, min(item.end, end) - start, item.label)
                for item in lane.intervals
                if item.end > start and item.start < end
            )
            if kept:
                lanes.append(Lane(lane.rank, lane.kind, lane.name, kept))
        return Timeline(tuple(lanes), tuple(_clip(item, start, end) for item in self.occupancy))

    def as_data(self) -> dict[str, Any]:
        """Lists and dictionaries only."""
        return {
            "lanes": [asdict(lane) for lane in self.lanes],
            "occupancy": [
                {"rank": item.rank, "points": [list(point) for point in item.points]}
                for item in self.occupancy
            ],
        }


def _clip(item: Occupancy, start: float, end: float) -> Occupancy:
    before = [count for time, count in item.points if time <= start]
    points = [(0.0, before[-1] if before else 0)]
    points += [(time - start, count) for time, count in item.points if start < time <= end]
    return Occupancy(item.rank, tuple(points))


@dataclass(frozen=True)
class StepTime:
    """One step. Per rank: ``us`` from the common start to the end of the rank's last stream work;
    ``device_us`` from its first stream work to that end; ``host_us`` until the host knows. ``window``: when
    it was."""

    step: int
    us: tuple[float, ...]
    device_us: tuple[float, ...]
    host_us: tuple[float, ...]
    window: tuple[float, float]

    @property
    def max_us(self) -> float:
        """The step's time: the slowest rank's."""
        return max(self.us)

    @property
    def max_device_us(self) -> float:
        """The slowest rank's device time."""
        return max(self.device_us)


@dataclass(frozen=True)
class PortUse:
    """Bytes and busy time of one port and direction, for checks: busy time never exceeds the replay's
    length."""

    rank: int
    kind: str
    bytes: float
    busy_us: float


@dataclass(frozen=True)
class Timing:
    """A replay's result."""

    machine: str
    steps: tuple[StepTime, ...]
    total_us: float
    events: int
    ports: tuple[PortUse, ...] = ()
    timeline: Timeline = field(default_factory=Timeline)

    def step(self, number: int) -> StepTime:
        """The step with that number."""
        for item in self.steps:
            if item.step == number:
                return item
        raise KeyError(number)

    @property
    def us(self) -> float:
        """The last step's time (the earlier ones warm up), or the whole replay's where no step is marked."""
        return self.steps[-1].max_us if self.steps else self.total_us
