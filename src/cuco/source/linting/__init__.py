"""The linter: mistakes of device-initiated communication that the source alone shows.

A finding of severity ``error`` holds whatever the inputs are; what is only doubtful is a ``warning`` with
its reason. The rules, their sentences and their sources are data: ``knowledge/lint_rules.toml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuco.source.analyze import Analysis, is_kernel
from cuco.source.clang_ast import Node
from cuco.source.linting.device_rules import check_kernel, check_signals
from cuco.source.linting.device_walk import DeviceWalk, KernelFacts
from cuco.source.linting.findings import Findings, LintFinding, Rule, rules
from cuco.source.linting.host_facts import requirements
from cuco.source.linting.host_rules import check_host
from cuco.source.reading import Headers, Reading, read

__all__ = ["LintFinding", "Rule", "lint", "lint_reading", "rules"]


def lint(
    path: str | Path, include_dirs: Sequence[str | Path] | None = None, *, text: str | None = None
) -> list[LintFinding]:
    """The findings in a source, by line. Raises as ``analyze`` does for a source that cannot be read."""
    headers = None if include_dirs is None else Headers(tuple(Path(one) for one in include_dirs))
    return lint_reading(read(path, headers, text=text))


def lint_reading(reading: Reading) -> list[LintFinding]:
    """The findings in a parsed source."""
    analysis = Analysis(reading)
    trail = analysis.walk().trail
    wanted = requirements(analysis.hosts)
    kernels = _kernels(analysis)
    found = Findings()
    for facts in kernels:
        check_kernel(found, facts, wanted)
    check_signals(found, kernels)
    uses_gin = any(call.owner == "ncclGin_BackendMask" for facts in kernels for call in facts.calls)
    check_host(found, wanted, trail, analysis.hosts, reading.own_files, uses_gin)
    return found.sorted()


def _kernels(analysis: Analysis) -> list[KernelFacts]:
    """The kernels, instantiated as launched, with the block and grid sizes that are constant at every
    launch."""
    bodies: dict[str, Node] = {}
    grids: dict[str, list[int | None]] = {}
    blocks: dict[str, list[int | None]] = {}
    for site in analysis.walker.trail.launches:
        body = site.kernel.definition if site.kernel is not None else None
        if body is None:
            continue
        bodies.setdefault(body.place, body)
        grids.setdefault(body.place, []).append(site.grid[0] if site.grid else None)
        blocks.setdefault(body.place, []).append(_product(site.block))
    for function in analysis.functions:
        if is_kernel(function):
            bodies.setdefault(function.place, function)
    found = []
    for place, body in bodies.items():
        known = [one for one in blocks.get(place, []) if one is not None]
        sizes = blocks.get(place, [])
        block = min(known) if known and len(known) == len(sizes) else None
        grid = tuple(one for one in grids.get(place, []) if one is not None)
        found.append(DeviceWalk(body, analysis.reading.own_files, block, grid).run())
    return found


def _product(sizes: tuple[int | None, ...]) -> int | None:
    """Threads of a one-dimensional block; other shapes are not followed."""
    if not sizes or any(one is None for one in sizes):
        return None
    first, *rest = [one for one in sizes if one is not None]
    return first if all(one == 1 for one in rest) else None
