"""The cascade that judges a candidate: compile, lint, verify. (Measuring comes after it, see ``measure``.)

Whoever writes code cannot judge it: this package never imports ``cuco.propose``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from cuco.errors import CompileError
from cuco.source.linting import lint_reading
from cuco.source.reading import read, toolchain_headers
from cuco.testbed.build import Build
from cuco.testbed.diagnostics import Diagnostic
from cuco.testbed.emulator import runner_path
from cuco.testbed.findings import Finding
from cuco.testbed.vtime.machine import Machine, load_machine
from cuco.verify.data import StepData
from cuco.verify.imports import check_functions, check_imports
from cuco.verify.options import VerifyOptions
from cuco.verify.placement import ranks_per_domain
from cuco.verify.plan import Perturbation, plan
from cuco.verify.runs import build, make_job, run_and_judge
from cuco.verify.tolerance import audit_tolerance
from cuco.verify.verdict import Verdict
from cuco.workload import Workload, run_secret

#: The kind that a candidate's own refusal in cuco_prepare gets (native/driver/candidate.cpp).
_DECLINED = ("unsupported", "declined")


@dataclass
class _Progress:
    """What has been established so far."""

    started: float = field(default_factory=time.monotonic)
    findings: list[Finding] = field(default_factory=list)
    steps: int = 0
    compared: int = 0
    runs: list[str] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    log: str = ""

    def verdict(self, stage: str, *, accepted: bool) -> Verdict:
        return Verdict(
            accepted=accepted,
            stage=stage,
            findings=tuple(self.findings),
            steps=self.steps,
            perturbations=len(self.runs),
            seconds=time.monotonic() - self.started,
            compared=self.compared,
            declined=tuple(self.declined),
            runs=tuple(self.runs),
            log=self.log,
        )


def verify(
    workload: Workload,
    source: Path,
    options: VerifyOptions | None = None,
    entering: Callable[[str], None] = lambda stage: None,
) -> Verdict:
    """Judges ``source`` as a candidate for ``workload``; the verdict depends on the options and its seed
    only. ``entering`` is told the stages that take time: compile and verify.

    Raises UsageError for options the workload does not allow and MissingError where a tool is absent;
    everything that is wrong with the candidate is in the verdict.
    """
    wanted = options or VerifyOptions()
    params = workload.params(wanted.size, wanted.overrides)
    ranks = wanted.ranks or workload.spec.ranks.default
    workload.check_ranks(ranks, params)
    machine = load_machine(wanted.machine or workload.spec.machine)
    team = ranks_per_domain(workload, machine, ranks, params, wanted.lsa_team)
    runs = plan(
        workload, effort=wanted.effort, seed=wanted.seed, size=wanted.size, ranks=ranks, lsa_team=team,
        overrides=dict(wanted.overrides),
    )  # fmt: skip
    progress = _Progress()
    entering("compile")
    try:
        built = build(workload, source, runs[0])
    except CompileError as error:
        progress.findings = _compile_findings(error)
        return progress.verdict("compile", accepted=False)
    progress.findings = [
        *lint_findings(source, workload.include_dirs),
        *check_imports(built.undefined),
        *check_functions(built.undefined, runner_path()),
    ]
    if progress.findings:
        return progress.verdict("lint", accepted=False)
    if wanted.effort != "quick":
        progress.findings = audit_tolerance(StepData(workload, run_secret(wanted.seed), ranks, params))
    entering("verify")
    builds = {runs[0].variant: built}
    for perturbation in runs:
        if progress.findings and wanted.stop_early:
            break
        if perturbation.variant not in builds:
            builds[perturbation.variant] = build(workload, source, perturbation)
        _one_run(workload, builds[perturbation.variant], wanted, perturbation, machine, progress)
    return progress.verdict("verify", accepted=not progress.findings)


def _one_run(
    workload: Workload, built: Build, options: VerifyOptions, perturbation: Perturbation, machine: Machine,
    progress: _Progress,
) -> None:  # fmt: skip
    # Overrides belong to the size that was asked for; another size has values of its own.
    overrides = options.overrides if perturbation.size == options.size else {}
    params = workload.params(perturbation.size, overrides)
    job, data = make_job(workload, built, perturbation, params, machine=machine, extra=options.extra)
    result, judgement = run_and_judge(job, data)
    if not perturbation.base and any((f.kind, f.rule) == _DECLINED for f in judgement.findings):
        progress.declined.append(f"{perturbation}: {judgement.findings[0].message}")
        return
    progress.runs.append(str(perturbation))
    progress.findings += judgement.findings
    progress.steps += judgement.steps
    progress.compared += judgement.compared
    progress.log = result.log


def lint_findings(source: Path, include: Iterable[Path] = ()) -> list[Finding]:
    """What the source linter rejects: its findings of severity error (``cuco.source`` has the rules).

    ``include``: where the source's own headers are, beside the toolchain's.
    """
    known = toolchain_headers()
    headers = replace(known, include_dirs=(*known.include_dirs, *include))
    return [
        Finding("lint", item.rule, item.message, file=source.name, line=item.line)
        for item in lint_reading(read(source, headers))
        if item.severity == "error"
    ]


def _compile_findings(error: CompileError) -> list[Finding]:
    found = [
        Finding(
            "compile-error", "compiler", item.message, file=item.file, line=item.line
        )
        for item in error.diagnostics
        if isinstance(item, Diagnostic)
    ]  # fmt: skip
    return found or [Finding("compile-error", "compiler", error.message)]
