"""The verdict on a candidate, with its evidence (contracts 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuco.testbed.findings import Finding

STAGES = ("compile", "lint", "verify", "measure")


@dataclass(frozen=True)
class Verdict:
    """``stage`` is the last one entered. ``steps`` counts the steps whose outputs were really compared on
    every rank; ``perturbations`` the runs; ``declined`` the other configurations that the candidate says it
    does not support (they are no part of the acceptance, and are shown).
    """

    accepted: bool
    stage: str
    findings: tuple[Finding, ...] = ()
    steps: int = 0
    perturbations: int = 0
    seconds: float = 0.0
    compared: int = 0
    declined: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    log: str = field(default="", compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The contract's JSON object."""
        return {
            "accepted": self.accepted,
            "stage": self.stage,
            "findings": [finding.as_dict() for finding in self.findings],
            "steps": self.steps,
            "perturbations": self.perturbations,
            "seconds": round(self.seconds, 3),
            "compared": self.compared,
            "declined": list(self.declined),
            "runs": list(self.runs),
        }

    def reason(self) -> str:
        """One line: why it was rejected, or what was checked."""
        if self.accepted:
            done = f"{self.steps} steps in {self.perturbations} runs"
            return f"accepted: {done}, {self.compared} elements compared"
        return str(self.findings[0]) if self.findings else f"rejected at {self.stage}"
