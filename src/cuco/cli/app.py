"""All commands, grouped as a newcomer meets them. Importing a command's module loads no more than typer."""

from __future__ import annotations

from typing import Annotated

import typer

from cuco import __version__
from cuco.cli.inspect_commands import register as register_inspection
from cuco.cli.run_commands import register as register_runs
from cuco.cli.space_command import register as register_space
from cuco.cli.workload_commands import register as register_workloads

app = typer.Typer(
    name="cuco",
    help="Rewrites host-driven CUDA and NCCL code so that kernels communicate themselves, and proves it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"cuco {__version__}")
        raise typer.Exit()


@app.callback()
def cuco(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Common to all commands."""


for register in (register_inspection, register_workloads, register_runs, register_space):
    register(app)
