"""Virtual time: what a traced run would take on a machine that is not here. Every time is modelled, in
microseconds."""

from cuco.testbed.vtime.machine import Machine, load_machine, machine_names
from cuco.testbed.vtime.replay import replay
from cuco.testbed.vtime.timing import StepTime, Timeline, Timing
from cuco.testbed.vtime.trace import Trace, TraceError, read_trace

__all__ = [
    "Machine",
    "StepTime",
    "Timeline",
    "Timing",
    "Trace",
    "TraceError",
    "load_machine",
    "machine_names",
    "read_trace",
    "replay",
]
