"""``cuco init --source``: a workload folder made of a program's own communication step.

A source that already has cuco.h's entry points is taken as it is. From any other one the step is written
anew: kernels, device functions, types and macros stay as they are, and ``cuco_launch`` makes the launches
and NCCL calls that analyze found, on the workload's buffers. What cannot be carried over is refused with the
reason; nothing is guessed silently.
"""

from __future__ import annotations

from pathlib import Path

from cuco.errors import UsageError
from cuco.fastpath.adopt.step import Step, existing_step, extracted_step
from cuco.fastpath.adopt.texts import problem_py, workload_toml
from cuco.source.analyze import graph_of
from cuco.source.edit import SourceFile

__all__ = ["adopt"]

_NO_REFERENCE = """raise NotImplementedError(
    "the reference of {name} has to say what the kernels compute: return, for every rank, "
    "a dictionary of the outputs ({outputs}) as float64 arrays (docs/workloads.md)"
)"""


def adopt(source: Path, folder: Path) -> list[str]:
    """Make the workload ``folder`` from ``source`` and return the names of its files, notes after them.

    UsageError where the folder is not empty or the step cannot be carried over; errors of ``analyze`` for
    the source.
    """
    from cuco.workload import load_workload

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder", fix="Name a new one")
    parsed = SourceFile.read(source)
    graph = graph_of(parsed.reading)
    if not graph.edges:
        raise UsageError(f"{source} makes no NCCL communication", fix="Name the file that calls NCCL")
    ready = any(one.name == "cuco_launch" for one in parsed.functions)
    step = existing_step(parsed, graph) if ready else extracted_step(parsed, graph)
    name = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in folder.resolve().name)
    _write(folder, name, step, parsed)
    workload = load_workload(folder)
    ranks = workload.spec.ranks.default
    workload.buffers(0, ranks, workload.params("tiny"))
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _write(folder: Path, name: str, step: Step, parsed: SourceFile) -> None:
    ops = ", ".join(dict.fromkeys(step.ops))
    summary = f"{ops} as in {parsed.path.name}"
    outputs = ", ".join(one for one, _, role, _ in step.buffers if role in ("out", "inout"))
    reference = step.reference or _NO_REFERENCE.format(name=name, outputs=outputs)
    inputs = [(one, dtype, shape) for one, dtype, role, shape in step.buffers if role in ("in", "inout")]
    files = {
        "host.cu": step.host,
        "workload.toml": workload_toml(name, summary, step.parameters, step.buffers, step.exact, 4),
        "problem.py": problem_py(summary, inputs, list(step.parameters), reference, step.moved),
        **step.headers,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from None
