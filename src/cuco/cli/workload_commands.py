"""``cuco init``, ``verify`` and ``bench``: make a workload, judge a candidate, compare times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuco.cli.options import (
    Effort,
    EffortName,
    Json,
    Link,
    LsaTeam,
    Machine,
    Ranks,
    Seed,
    Size,
    Testbed,
    TestbedName,
    WorkloadArgument,
)

if TYPE_CHECKING:
    from cuco.verify import Verdict

_PANEL = "Workloads"


def register(app: typer.Typer) -> None:
    app.command("init", rich_help_panel=_PANEL)(init)
    app.command("verify", rich_help_panel=_PANEL)(verify)
    app.command("bench", rich_help_panel=_PANEL)(bench)


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The new workload's folder.")],
    template: Annotated[
        str, typer.Option("--from", metavar="NAME", help="The bundled workload to start from.")
    ] = "ring_shift",
    source: Annotated[
        Path | None,
        typer.Option("--source", metavar="FILE", help="Your own CUDA and NCCL program to start from."),
    ] = None,
    json: Json = False,
) -> None:
    """A new workload folder: host.cu, problem.py and workload.toml to edit.

    From a bundled workload it already verifies; from your own program it takes the launches and NCCL calls.
    """
    from cuco.cli.output import emit, say
    from cuco.cli.scaffold import scaffold
    from cuco.fastpath.adopt import adopt

    files = adopt(source, folder) if source is not None else scaffold(folder, template)
    if json:
        emit({"folder": str(folder), "files": files})
        return
    print("\n".join(str(folder / name) for name in files))
    say(f"Edit these, then: cuco verify {folder}, and: cuco optimize {folder}")


def verify(
    workload: WorkloadArgument,
    candidate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The candidate; the host version if left out.")
    ] = None,
    size: Size = None,
    ranks: Ranks = None,
    lsa_team: LsaTeam = None,
    machine: Machine = None,
    testbed: Testbed = TestbedName.emulator,
    seed: Seed = 1,
    effort: Effort = EffortName.standard,
    json: Json = False,
) -> None:
    """Judges a candidate: does it compile, communicate correctly, and compute the right result?

    Exits 1 if it is rejected.
    """
    from cuco.cli.inspect_commands import readable
    from cuco.cli.output import emit
    from cuco.config import require_testbed
    from cuco.errors import EXIT_REJECTED
    from cuco.verify import VerifyOptions
    from cuco.verify import verify as judge
    from cuco.workload import load_workload

    require_testbed(testbed.value)
    loaded = load_workload(workload)
    source = loaded.host_source if candidate is None else readable(candidate)
    options = VerifyOptions(
        size=size or "tiny", ranks=ranks, lsa_team=lsa_team, seed=seed, effort=effort.value, machine=machine
    )
    verdict = judge(loaded, source, options)
    if json:
        emit(verdict.as_dict())
    else:
        _print_verdict(source, verdict)
    if not verdict.accepted:
        raise typer.Exit(EXIT_REJECTED)


def _print_verdict(source: Path, verdict: Verdict) -> None:
    print(f"{source}: {verdict.reason()}")
    for finding in verdict.findings:
        print(f"  {finding}")
        for detail in finding.details:
            print(f"    {detail}")
    for declined in verdict.declined:
        print(f"  not supported by the candidate: {declined}")


def bench(
    workload: WorkloadArgument,
    candidate: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A candidate to compare; repeatable.")
    ] = None,
    size: Size = None,
    ranks: Ranks = None,
    lsa_team: LsaTeam = None,
    machine: Machine = None,
    link: Link = None,
    testbed: Testbed = TestbedName.emulator,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Times of the host versions, tuned ones included, and of candidates; each is verified first."""
    from cuco.cli.inspect_commands import readable
    from cuco.cli.output import emit
    from cuco.comparison import compare
    from cuco.config import make_options
    from cuco.workload import load_workload

    options = make_options(
        testbed=testbed.value,
        size=size,
        ranks=ranks,
        lsa_team=lsa_team,
        machine=machine,
        link=link,
        seed=seed,
    )
    result = compare(load_workload(workload), [readable(file) for file in candidate or []], options)
    if json:
        emit(result)
    else:
        _print_bench(result)


def _print_bench(result: dict[str, Any]) -> None:
    from cuco.cli.output import say, table
    from cuco.report.svg import microseconds

    table(
        "",
        ["version", "time", "speed-up", "overlap efficiency", "verified"],
        [
            (
                row["name"],
                microseconds(row["us"]) if row["us"] else None,
                f"{row['speedup']:.2f}×" if row["speedup"] else None,
                f"{row['overlap_efficiency']:.0%}" if row["overlap_efficiency"] is not None else None,
                "yes" if row["accepted"] else f"no: {row['reason']}",
            )
            for row in result["rows"]
        ],
    )
    limits = [
        (f"overlap can gain at most {result['overlap_limit']:.2f}×" if result["overlap_limit"] else ""),
        (f"no schedule gains more than {result['roofline_limit']:.2f}×" if result["roofline_limit"] else ""),
    ]
    say("; ".join(["times are " + result["fidelity"], f"machine {result['machine']}", *filter(None, limits)]))
