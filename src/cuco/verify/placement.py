"""Where a workload's ranks sit on a machine: how many share an NVLink domain."""

from __future__ import annotations

from collections.abc import Mapping

from cuco.testbed.vtime.machine import Machine
from cuco.workload import Workload


def ranks_per_domain(
    workload: Workload,
    machine: Machine,
    ranks: int,
    params: Mapping[str, int | float],
    wanted: int | None = None,
) -> int:
    """The LSA team of a run: what was asked for, else the workload's own on its own machine, and never more
    than the machine usually puts into a domain (its own file says how many that is).

    UsageError if what was asked for does not divide the ranks or exceeds the machine's domains.
    """
    team = workload.lsa_team(ranks, params, wanted)
    if wanted is not None:
        return machine.lsa_team(wanted, ranks)
    usual = machine.placement.ranks_per_domain
    if team <= usual:
        return team
    return next(size for size in range(usual, 0, -1) if ranks % size == 0)
