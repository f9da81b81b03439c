"""Prints what remains of a gain when every launch, latency and call constant of the machine is halved.

A gain that lives off an assumed host cost would shrink with it; the constants of a machine file whose name
ends in ``_us`` are all of these costs."""

from __future__ import annotations

import argparse
import re
import tempfile
from importlib import resources
from pathlib import Path

from cuco.comparison import compare
from cuco.config import Options
from cuco.workload import load_workload

CONSTANT = re.compile(r"^(\w*_us(?:_\w+)?\s*=\s*)([0-9.]+)", re.MULTILINE)


def halved(name: str) -> str:
    """The text of machine file ``name`` with every constant in microseconds halved."""
    text = resources.files("cuco.testbed.vtime").joinpath(f"machines/{name}.toml").read_text(encoding="utf-8")
    return CONSTANT.sub(lambda found: f"{found[1]}{float(found[2]) / 2}", text)


def main() -> None:
    """One row per host version and candidate, on the machine as it is and with its constants halved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("candidates", nargs="+", type=Path, help="for instance runs/NAME/best/candidate.cu")
    parser.add_argument("--workload", default="gemm_allgather")
    parser.add_argument("--size", default="dev")
    parser.add_argument("--machine", default=None, help="default: the workload's")
    arguments = parser.parse_args()
    workload = load_workload(arguments.workload)
    machine = arguments.machine or workload.spec.machine
    print("| machine | version | us | over sequential |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{machine}-halved.toml"
        path.write_text(halved(machine), encoding="utf-8")
        for chosen in (machine, str(path)):
            options = Options(size=arguments.size, machine=chosen)
            rows = compare(workload, arguments.candidates, options)["rows"]
            for row in rows:
                gain = rows[0]["us"] / row["us"]
                print(f"| {Path(chosen).stem} | {row['name']} | {row['us']:.1f} | {gain:.2f} |")


if __name__ == "__main__":
    main()
