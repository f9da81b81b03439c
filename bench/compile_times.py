"""Prints how long a build takes: from nothing, with only the kernels changed in variant, and unchanged."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from cuco.testbed.build import Variant, build_candidate
from cuco.testbed.cache import Cache
from cuco.workload import load_workload


def seconds(source: Path, include: list[Path], variant: Variant, cache: Cache) -> float:
    """Wall time of one build."""
    started = time.monotonic()
    build_candidate(source, variant=variant, include=include, cache=cache)
    return time.monotonic() - started


def main() -> None:
    """One row per workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=["gemm_allgather", "micro/ring_shift"])
    arguments = parser.parse_args()
    print("| workload | cold s | the slice after it s | unchanged s |\n|---|---|---|---|")
    for name in arguments.workloads:
        workload = load_workload(name)
        include = list(workload.include_dirs)
        with tempfile.TemporaryDirectory(prefix="cuco-bench-") as folder:
            cache = Cache(Path(folder))
            cold = seconds(workload.host_source, include, "plain", cache)
            other = seconds(workload.host_source, include, "slice", cache)
            warm = seconds(workload.host_source, include, "plain", cache)
        print(f"| {name} | {cold:.2f} | {other:.2f} | {warm:.2f} |")


if __name__ == "__main__":
    main()
