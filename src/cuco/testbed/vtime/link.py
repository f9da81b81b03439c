"""``--link``: the same machine with another network between its NVLink domains."""

from __future__ import annotations

import re

from cuco.errors import UsageError
from cuco.testbed.vtime.machine import Machine, Port, Protocol, load_machine, machine_names

_SPEC = re.compile(r"^(?P<gbit>\d+(?:\.\d+)?)g(?:,(?P<latency>\d+(?:\.\d+)?)us)?$", re.IGNORECASE)


def with_link(machine: Machine, link: str | None) -> Machine:
    """``machine`` with the NIC of another machine (its name), or of a rate: ``100g``, or ``100g,5us`` with
    the one-way latency in microseconds. None changes nothing.

    A rate keeps the share of the line rate that this machine's NIC reaches, and scales what NCCL gets.
    UsageError for anything else.
    """
    if link is None:
        return machine
    if link in machine_names():
        other = load_machine(link)
        nccl = machine.nccl.model_copy(update={"nic": other.nccl.nic, "p2p_nic": other.nccl.p2p_nic})
        return machine.model_copy(
            update={"nic": other.nic, "nccl": nccl, "name": f"{machine.name} with {link}"}
        )
    found = _SPEC.match(link)
    if found is None or float(found["gbit"]) <= 0:
        raise UsageError(
            f"link {link!r} is neither a machine nor a rate",
            fix=f"Give a rate as 100g or 100g,5us, or one of: {', '.join(machine_names())}",
        )
    peak = float(found["gbit"]) / 8
    ratio = peak / machine.nic.peak_gbs
    latency = float(found["latency"]) if found["latency"] else machine.nic.latency_us
    if latency <= 0:
        raise UsageError(f"link {link!r} has no latency", fix="Give one above 0, as in 100g,5us")
    nic = Port(
        gbs=machine.nic.gbs * ratio,
        peak_gbs=peak,
        latency_us=latency,
        messages_per_us=machine.nic.messages_per_us,
    )
    nccl = machine.nccl.model_copy(
        update={
            name: tuple(_scaled(one, ratio, latency - machine.nic.latency_us) for one in protocols)
            for name, protocols in (("nic", machine.nccl.nic), ("p2p_nic", machine.nccl.p2p_nic))
        }
    )
    return machine.model_copy(update={"nic": nic, "nccl": nccl, "name": f"{machine.name} with {link}"})


def _scaled(protocol: Protocol, ratio: float, more_us: float) -> Protocol:
    """A protocol on a link ``ratio`` times as fast whose latency is ``more_us`` longer, never below zero."""
    return protocol.model_copy(
        update={"gbs": protocol.gbs * ratio, "step_us": max(0.0, protocol.step_us + more_us)}
    )
