"""``cuco optimize``, ``transform``, ``evolve``, ``resume`` and ``report``: the main job and its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cuco.cli.options import (
    Backend,
    BackendName,
    BudgetSeconds,
    BudgetUsd,
    Effort,
    EffortName,
    Generations,
    Json,
    Link,
    LsaTeam,
    Machine,
    Model,
    Ranks,
    RunArgument,
    RunDir,
    Seed,
    Size,
    Testbed,
    TestbedName,
    WorkloadArgument,
)

_PANEL = "Optimize"


def register(app: typer.Typer) -> None:
    for name, command in (
        ("optimize", optimize),
        ("transform", transform),
        ("evolve", evolve),
        ("resume", resume),
        ("report", report),
    ):
        app.command(name, rich_help_panel=_PANEL)(command)


def optimize(
    workload: WorkloadArgument,
    testbed: Testbed = TestbedName.emulator,
    ranks: Ranks = None,
    lsa_team: LsaTeam = None,
    backend: Backend = BackendName.auto,
    size: Size = None,
    machine: Machine = None,
    link: Link = None,
    model: Model = None,
    seed: Seed = 0,
    generations: Generations = None,
    budget_usd: BudgetUsd = None,
    budget_seconds: BudgetSeconds = None,
    effort: Effort = EffortName.standard,
    run_dir: RunDir = None,
    json: Json = False,
) -> None:
    """The main job: rewrite a host-driven workload, improve it, prove it, report it.

    Exits 0 with a result, also when nothing is gained and the host version stays.
    """
    given = {
        "testbed": testbed.value,
        "ranks": ranks,
        "lsa_team": lsa_team,
        "backend": backend.value,
        "size": size,
        "machine": machine,
        "link": link,
        "model": model,
        "seed": seed,
        "generations": generations,
        "budget_usd": budget_usd,
        "budget_seconds": budget_seconds,
        "effort": effort.value,
    }
    _run("optimize", workload, given, run_dir, (), json)


def evolve(
    workload: WorkloadArgument,
    candidate: Annotated[
        list[Path], typer.Option(metavar="FILE", help="A candidate to start from; repeatable.")
    ],
    testbed: Testbed = TestbedName.emulator,
    ranks: Ranks = None,
    lsa_team: LsaTeam = None,
    backend: Backend = BackendName.auto,
    size: Size = None,
    machine: Machine = None,
    link: Link = None,
    model: Model = None,
    seed: Seed = 0,
    generations: Generations = None,
    budget_usd: BudgetUsd = None,
    budget_seconds: BudgetSeconds = None,
    effort: Effort = EffortName.standard,
    run_dir: RunDir = None,
    json: Json = False,
) -> None:
    """The slow path alone: search from candidates you give instead of those of the fast path."""
    from cuco.cli.inspect_commands import readable

    given = {
        "testbed": testbed.value,
        "ranks": ranks,
        "lsa_team": lsa_team,
        "backend": backend.value,
        "size": size,
        "machine": machine,
        "link": link,
        "model": model,
        "seed": seed,
        "generations": generations,
        "budget_usd": budget_usd,
        "budget_seconds": budget_seconds,
        "effort": effort.value,
    }
    _run("evolve", workload, given, run_dir, [readable(file) for file in candidate], json)


def _run(
    command: str, workload: str, given: dict[str, Any], run_dir: Path | None, candidates: Any, json: bool
) -> None:
    from cuco.api import optimize as job
    from cuco.report.terminal import Watch

    with Watch(f"cuco {command} {Path(workload).name}", live=False if json else None) as watch:
        numbers = job(workload, run_dir=run_dir, candidates=candidates, watcher=watch, **given)
    _show(numbers, json)


def _show(numbers: dict[str, Any], json: bool) -> None:
    from cuco.cli.output import emit
    from cuco.report.terminal import print_summary

    if json:
        emit(numbers)
    else:
        print_summary(numbers)


def resume(run: RunArgument, json: Json = False) -> None:
    """Continues an interrupted run where it stopped; a finished one is reported again."""
    from cuco.api import resume as job
    from cuco.report.terminal import Watch

    with Watch(f"cuco resume {run.name}", live=False if json else None) as watch:
        numbers = job(run, watcher=watch)
    _show(numbers, json)


def report(run: RunArgument, json: Json = False) -> None:
    """The result of a run, and its page again, also while it is running."""
    from cuco.report.model import read_run
    from cuco.report.page import write_report
    from cuco.report.summary import summarise

    data = read_run(run)
    write_report(run, data)
    _show(summarise(data), json)


def _print_stages(result: dict[str, Any]) -> None:
    """One line per stage and backend, then what the candidates do."""
    what = {"A": "infrastructure under the host's own calls", "B": "device-initiated candidate"}
    for one in result["stages"]:
        verdict = "verified" if one["accepted"] else f"rejected at {one['stage']}: {one['reason']}"
        where = f"  {one['file']}" if one["file"] else ""
        print(f"stage {one['name']}  {one['backend']}  {what[one['name']]}  {verdict}{where}")
    for one in result["refused"]:
        print(f"{one['backend']}  not written: {one['reason']}")
    for one in result["candidates"]:
        print(one["file"])
        for edge, key in one["directives"].items():
            print(f"  {edge}: {key}")


def transform(
    workload: WorkloadArgument,
    testbed: Testbed = TestbedName.emulator,
    ranks: Ranks = None,
    lsa_team: LsaTeam = None,
    backend: Backend = BackendName.auto,
    size: Size = None,
    machine: Machine = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write the candidate.")
    ] = None,
    json: Json = False,
) -> None:
    """The fast path alone: a conservative device-initiated candidate, verified. Exits 1 if none holds."""
    from cuco.api import transform as job
    from cuco.cli.output import emit
    from cuco.errors import EXIT_REJECTED

    result = job(
        workload,
        output=output,
        testbed=testbed.value,
        ranks=ranks,
        lsa_team=lsa_team,
        backend=backend.value,
        size=size,
        machine=machine,
        seed=seed,
    )
    if json:
        emit(result)
    else:
        _print_stages(result)
    if not any(one["accepted"] for one in result["candidates"]):
        raise typer.Exit(EXIT_REJECTED)
