"""The common options of contracts 4, as types that commands annotate their parameters with."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class TestbedName(StrEnum):
    emulator = "emulator"
    cuda = "cuda"
    cluster = "cluster"


class BackendName(StrEnum):
    auto = "auto"
    lsa = "lsa"
    gin = "gin"
    hybrid = "hybrid"


class EffortName(StrEnum):
    quick = "quick"
    standard = "standard"
    deep = "deep"


_RUN = "Where it runs"
_SEARCH = "How it searches"

WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD", help="A workload folder, or the name of a bundled one (gemm_allgather)."
    ),
]
SourceArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A CUDA source file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Testbed = Annotated[TestbedName, typer.Option(help="Where candidates run.", rich_help_panel=_RUN)]
Ranks = Annotated[
    int | None, typer.Option(metavar="N", help="Ranks; the workload's default.", rich_help_panel=_RUN)
]
LsaTeam = Annotated[
    int | None,
    typer.Option(metavar="N", help="Ranks per NVLink domain; divides the ranks.", rich_help_panel=_RUN),
]
Backend = Annotated[
    BackendName,
    typer.Option(
        help="How kernels reach their peers; auto takes what the domains allow.", rich_help_panel=_RUN
    ),
]
Size = Annotated[
    str | None, typer.Option(metavar="NAME", help="One of the workload's sizes.", rich_help_panel=_RUN)
]
Machine = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="The machine to model.", rich_help_panel=_RUN)
]
Link = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|SPEC", help="Another link between domains than the machine's.", rich_help_panel=_RUN
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A model that writes candidates; without it the built-in proposer does.",
        rich_help_panel=_SEARCH,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Same seed, same run.", rich_help_panel=_SEARCH)]
Generations = Annotated[
    int | None, typer.Option(metavar="N", help="Generations of candidates.", rich_help_panel=_SEARCH)
]
BudgetUsd = Annotated[
    float | None,
    typer.Option("--budget-usd", metavar="X", help="Most that models may cost.", rich_help_panel=_SEARCH),
]
BudgetSeconds = Annotated[
    float | None,
    typer.Option(
        "--budget-seconds", metavar="X", help="Longest that the search may work.", rich_help_panel=_SEARCH
    ),
]
Effort = Annotated[EffortName, typer.Option(help="How hard to look.", rich_help_panel=_SEARCH)]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        metavar="DIR",
        help="The run folder; by default runs/<name>-<timestamp>.",
        rich_help_panel=_SEARCH,
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
