"""Tickets: additions whose old value a thread reads with acquire semantics (a trace writes a wait for what
was counted before, then the addition).

An atomic never blocks. The order of tickets in a trace is one legal order, and only the CTA that goes on to
communicate because its ticket was the telling one (the last, as a rule) depends on the others' additions. So
a ticket's wait is kept where communication follows in its CTA, and dropped where none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cuco.testbed.vtime.trace import Event, Phase, Strand


def without_idle_tickets(phases: Sequence[Phase]) -> list[Phase]:
    """The phases of a CTA without the waits of tickets that nothing depends on."""
    kept: list[Phase] = []
    later = False
    for phase in reversed(phases):
        strands = tuple(_relaxed(strand, later) for strand in phase.strands)
        later = later or bool(phase.remote) or any(_communicates(strand.events) for strand in strands)
        kept.append(replace(phase, strands=strands) if strands != phase.strands else phase)
    kept.reverse()
    return kept


def _is_ticket(events: Sequence[Event], at: int) -> bool:
    """Whether a wait and the next event are one atomic: same position, same word, an addition."""
    if at + 1 >= len(events):
        return False
    wait, add = events[at], events[at + 1]
    same = (wait[0], wait[2]) == (add[0], add[2])
    return bool(same and wait[1] == "wait" and wait[3] == "ge" and add[1] == "add")


def _relaxed(strand: Strand, later: bool) -> Strand:
    events = strand.events
    kept: list[Event] = []
    at = len(events) - 1
    while at >= 0:
        if at > 0 and _is_ticket(events, at - 1):
            kept.append(events[at])
            if later:
                kept.append(events[at - 1])
            at -= 2
        else:
            kept.append(events[at])
            later = True
            at -= 1
    kept.reverse()
    return replace(strand, events=tuple(kept)) if len(kept) != len(events) else strand


def _communicates(events: Sequence[Event]) -> bool:
    """Anything but additions: what a lone addition tells others does not depend on its own ticket."""
    return any(event[1] != "add" for event in events)
