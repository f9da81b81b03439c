"""The first taste, ``make taste``: the emulator on a kernel that accepts a stale flag, and on its repaired
twin.

Needs python3 and g++ only: the PTX of the two kernels ships with the repository (``examples/taste``), and
nothing of CUDA or NCCL is used. Exit code 0 when the stale kernel is rejected and the repaired one accepted
on every seed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuco.errors import CucoError, UsageError
from cuco.testbed.kernels import build_kernels
from cuco.testbed.native import build_executable

SEEDS = range(1, 21)
_ROOMS = ("emulator/core", "emulator/isa", "taste")
_SECONDS = 60


@dataclass(frozen=True)
class Verdict:
    """``finding`` is the first rejection (contracts 5), None if all ``seeds`` were right."""

    finding: dict[str, Any] | None
    rejected: int
    seeds: int


def run(runner: Path, kernels: Path) -> Verdict:
    """Runs one kernel on every seed. Raises CucoError if the runner itself fails: that is no verdict."""
    first: dict[str, Any] | None = None
    rejected = 0
    for seed in SEEDS:
        done = subprocess.run([runner, kernels, str(seed)], capture_output=True, text=True, timeout=_SECONDS)
        if done.returncode not in (0, 1) or (done.returncode == 1) != bool(done.stdout.strip()):
            detail = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise CucoError(f"the emulator failed on seed {seed}: {detail}", exit_code=70)
        if done.returncode == 1:
            rejected += 1
            first = first or json.loads(done.stdout.splitlines()[0])
    return Verdict(first, rejected, len(SEEDS))


def main() -> int:
    folder = Path(__file__).resolve().parents[3] / "examples" / "taste"
    if not folder.is_dir():
        raise UsageError("examples/taste is not here; run `make taste` in a clone of the repository")
    started = time.monotonic()
    print("Building the emulator's core (once) ...", flush=True)
    runner = build_executable("taste", _ROOMS)
    verdicts = {}
    for name in ("ring_stale", "ring_repaired"):
        verdicts[name] = run(runner, build_kernels(folder / f"{name}.ptx").library)
        _show(name, verdicts[name])
    print(f"{time.monotonic() - started:.1f} s, no GPU, no CUDA.")
    return 0 if verdicts["ring_stale"].rejected and not verdicts["ring_repaired"].rejected else 1


def _show(name: str, verdict: Verdict) -> None:
    print(f"\n{name}.ptx: 4 ranks, {verdict.seeds} seeds")
    if verdict.finding is None:
        print(f"  ACCEPTED: every step's data was right on all {verdict.seeds} seeds")
        return
    finding = verdict.finding
    print(
        f"  REJECTED on {verdict.rejected} of {verdict.seeds} seeds: {finding['kind']}, "
        f"rank {finding['rank']}, {finding['file']}:{finding['line']}"
    )
    print(f"  {finding['message']}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CucoError as error:
        print(f"cuco: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
