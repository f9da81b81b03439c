"""Judging candidates: compile, lint, verify, measure."""

from cuco.verify.cascade import lint_findings, verify
from cuco.verify.imports import check_imports
from cuco.verify.measure import Measurement, MeasureOptions, measure
from cuco.verify.options import VerifyOptions
from cuco.verify.plan import EFFORTS, Perturbation, plan
from cuco.verify.verdict import Verdict

__all__ = [
    "EFFORTS", "MeasureOptions", "Measurement", "Perturbation", "Verdict", "VerifyOptions", "check_imports",
    "lint_findings", "measure", "plan", "verify",
]  # fmt: skip
