"""What a run or a check found: one shape for every kind of evidence (contracts 5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

KINDS = (
    "compile-error", "lint", "wrong-result", "race", "deadlock", "stale-signal", "source-reuse",
    "late-write", "out-of-bounds", "uninitialised", "unregistered", "co-residency", "causality", "tampering",
    "timeout", "crash", "unsupported", "tolerance",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One piece of evidence. Unknown places are -1, 0 or empty; ``line`` counts from 1; ``details`` are
    further lines, such as who else waits for what.
    """

    kind: str
    rule: str
    message: str
    rank: int = -1
    cta: int = -1
    thread: int = -1
    file: str = ""
    line: int = 0
    buffer: str = ""
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"'{self.kind}' is no kind of finding")

    def as_dict(self) -> dict[str, Any]:
        """The contract's JSON object; what is unknown is null."""
        fields = asdict(self)
        for name in ("rank", "cta", "thread"):
            fields[name] = None if fields[name] < 0 else fields[name]
        fields["line"] = fields["line"] if fields["line"] > 0 else None
        fields["file"] = fields["file"] or None
        fields["buffer"] = fields["buffer"] or None
        return fields

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else ""
        return f"{place}{self.kind} ({self.rule}): {self.message}"
