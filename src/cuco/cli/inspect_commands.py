"""``cuco doctor``, ``analyze`` and ``lint``: what is here, and what a source does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from cuco.cli.options import Json, SourceArgument

if TYPE_CHECKING:
    from pathlib import Path

_PANEL = "Find out"


def register(app: typer.Typer) -> None:
    app.command("doctor", rich_help_panel=_PANEL)(doctor)
    app.command("analyze", rich_help_panel=_PANEL)(analyze)
    app.command("lint", rich_help_panel=_PANEL)(lint)


def doctor(json: Json = False) -> None:
    """What this machine can run, what is missing, and how to get it. Exits 3 if no testbed is ready."""
    from cuco.cli.output import emit
    from cuco.errors import EXIT_MISSING
    from cuco.testbed.doctor import examine

    report = examine()
    if json:
        emit(report)
    else:
        _print_doctor(report)
    if not any(testbed["ready"] for testbed in report["testbeds"].values()):
        raise typer.Exit(EXIT_MISSING)


def _print_doctor(report: dict[str, Any]) -> None:
    from cuco.cli.output import table

    table(
        "Testbeds",
        ["testbed", "ready", "reason", "fix"],
        [
            (name, "yes" if one["ready"] else "no", one["reason"], one["fix"])
            for name, one in report["testbeds"].items()
        ],
    )
    table("Tools", ["tool", "found"], [(name, _shown(value)) for name, value in report["tools"].items()])
    nccl = report["nccl"]
    table("NCCL", ["version", "headers"], [(nccl["version"] or "missing", nccl["headers"] or "missing")])
    if report["gpus"]:
        table("GPUs", list(report["gpus"][0]), [list(gpu.values()) for gpu in report["gpus"]])
    if report["models"]:
        columns = list(report["models"][0])
        table(
            "Model keys", columns, [[_shown(model[name]) for name in columns] for model in report["models"]]
        )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return "missing" if value is None or value == "" else str(value)


def analyze(file: SourceArgument, json: Json = False) -> None:
    """Kernels, communication, buffers and what depends on what in a CUDA source."""
    from cuco.cli.output import emit
    from cuco.source import analyze as read

    graph = read(readable(file))
    if json:
        emit(graph.model_dump(mode="json"))
    else:
        _print_graph(graph.model_dump(mode="json"))


def _print_graph(graph: dict[str, Any]) -> None:
    from cuco.cli.output import say, table

    table(
        "Communication",
        ["edge", "op", "send", "recv", "count", "type", "peer", "stream", "line", "group", "loop"],
        [
            (
                e["id"],
                e["op"],
                e["send"],
                e["recv"],
                e["count"],
                e["dtype"],
                e["peer"],
                e["stream"],
                e["line"],
                e["group"],
                "yes" if e["loop"] else "no",
            )
            for e in graph["edges"]
        ],
    )
    table(
        "Kernels",
        ["kernel", "line", "launched at", "grid", "block", "stream"],
        [
            (k["name"], k["line"], one["line"], one["grid"], one["block"], one["stream"])
            for k in graph["kernels"]
            for one in k["launches"]
        ],
    )
    table(
        "Buffers",
        ["buffer", "role", "allocator", "bytes"],
        [(b["name"], b["role"], b["allocator"], b["bytes"]) for b in graph["buffers"]],
    )
    table("Dependencies", ["from", "to", "through"], graph["dependencies"])
    if graph["timed_region"]:
        say("timed region: lines {} to {}".format(*graph["timed_region"]))
    for note in graph.get("notes", ()):
        say(f"note: {note}")


def lint(file: SourceArgument, json: Json = False) -> None:
    """Known mistakes in a candidate's source. Exits 1 if there is an error among them."""
    from cuco.cli.output import emit, table
    from cuco.errors import EXIT_REJECTED
    from cuco.source import lint as check

    findings = [
        {"rule": one.rule, "severity": one.severity, "line": one.line, "message": one.message}
        for one in check(readable(file))
    ]
    if json:
        emit({"findings": findings})
    elif findings:
        table(
            "",
            ["line", "severity", "rule", "message"],
            [(one["line"], one["severity"], one["rule"], one["message"]) for one in findings],
        )
    else:
        print("no findings")
    if any(one["severity"] == "error" for one in findings):
        raise typer.Exit(EXIT_REJECTED)


def readable(file: Path) -> Path:
    """``file``, which must be a readable file: else UsageError in one line."""
    from cuco.errors import UsageError

    if not file.exists():
        raise UsageError(f"{file} does not exist")
    if not file.is_file():
        raise UsageError(f"{file} is not a file")
    try:
        file.open("rb").close()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    return file
