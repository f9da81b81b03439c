"""What a verification is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cuco.verify.plan import Effort


@dataclass(frozen=True)
class VerifyOptions:
    """``ranks`` and ``lsa_team`` default to the workload's; ``machine`` to the workload's (its limits hold).

    ``extra`` are further parameters that the candidate receives (a baseline's chunk count). With
    ``stop_early`` the first rejecting run ends the verification. ``cache`` is where builds are kept (default:
    the user's).
    """

    size: str = "tiny"
    ranks: int | None = None
    lsa_team: int | None = None
    seed: int = 1
    effort: Effort = "standard"
    machine: str | None = None
    overrides: Mapping[str, int | float] = field(default_factory=dict)
    extra: Mapping[str, int | float] = field(default_factory=dict)
    stop_early: bool = True
    keep_trace: Path | None = None
