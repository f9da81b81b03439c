"""NVIDIA's device API over the emulator's resources: LSA, GIN and the barriers, on every delivery policy."""

from __future__ import annotations

import json
from pathlib import Path

import harness
import pytest

WORLDS = [(2, 2), (3, 3), (4, 4), (4, 2), (4, 1)]


# A team of one rank has no peers to load from: no lsa there.
CASES = [
    (program, *world)
    for program in ("lsa", "gin", "gin_barriers")
    for world in WORLDS
    if program != "lsa" or world[1] > 1
]


@pytest.mark.parametrize(("program", "ranks", "lsa_team"), CASES)
def test_right_programs_give_right_results(program: str, ranks: int, lsa_team: int) -> None:
    built = harness.build(program)
    for delivery in ("lazy", "eager", "random"):
        for seed in range(3):
            ran = harness.run(built, ranks, lsa_team=lsa_team, seed=seed, delivery=delivery)
            assert ran.passed, f"{delivery} {seed}: {ran.output}"


def test_a_network_without_gin_is_said_so_and_refused() -> None:
    ran = harness.run(harness.build("gin_barriers"), 2, env={"NCCL_GIN_ENABLE": "0"})
    assert not ran.passed
    assert "not all ranks in the communicator support GIN" in ran.output


def test_nic_operations_are_in_the_trace(tmp_path: Path) -> None:
    ran = harness.run(harness.build("gin"), 2, trace=tmp_path / "trace")
    assert ran.passed, ran.output
    records = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    nic = [record for record in records if "n" in record and "src" in record]
    assert {record["kind"] for record in nic} >= {"put", "get", "signal"}
    names = {record["name"] for record in records if "word" in record and "name" in record}
    assert any("signal 0 of context 0" in name for name in names), sorted(names)[:20]
