"""Prints how long a candidate's timing takes: the slice's run, reading its trace, and the three replays."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cuco.testbed.build import build_candidate
from cuco.verify.measure import chosen_machine, time_traced
from cuco.verify.placement import ranks_per_domain
from cuco.verify.tracing import Setting, Traced, execute, slice_refusal
from cuco.workload import load_workload


def main() -> None:
    """One row per source: the workload's host version and whatever is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", type=Path, help="candidates beside the host version")
    parser.add_argument("--workload", default="gemm_allgather")
    parser.add_argument("--size", default="full")
    arguments = parser.parse_args()
    workload = load_workload(arguments.workload)
    machine = chosen_machine(workload, None)
    params = workload.params(arguments.size)
    ranks = workload.spec.ranks.default
    team = ranks_per_domain(workload, machine, ranks, params)
    setting = Setting(ranks, team, machine, {})
    print("| source | size | CTAs | run and read s | replays s | total s | modelled us | refused |")
    print("|---|---|---|---|---|---|---|---|")
    for source in [workload.host_source, *arguments.sources]:
        built = build_candidate(source, variant="slice", include=workload.include_dirs)
        refused = slice_refusal(workload, source, built, setting)
        started = time.monotonic()
        trace = execute(workload, built, params, setting)
        read = time.monotonic()
        found = time_traced(workload, Traced(trace, arguments.size, params, True, "", 0.0), machine)
        ended = time.monotonic()
        ctas = sum(len(rows) for rows in trace.ctas.values())
        print(
            f"| {source.name} | {arguments.size} | {ctas} | {read - started:.2f} | {ended - read:.2f} "
            f"| {ended - started:.2f} | {found.us:.1f} | {refused or 'no'} |"
        )


if __name__ == "__main__":
    main()
