"""Machine files: complete, sourced, refused with one clear line otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuco.errors import CucoError, MissingError, UsageError
from cuco.testbed.vtime import load_machine, machine_names
from cuco.testbed.vtime.machine import Sm


@pytest.mark.parametrize("name", machine_names())
def test_every_constant_has_a_source(name: str) -> None:
    machine = load_machine(name)
    assert machine.name == name
    constants = machine.constants()
    assert len(constants) > 80
    for path in constants:
        assert machine.source_of(path), path
    for path in machine.sources:
        assert any(known == path or known.startswith(path + ".") for known in constants), (
            f"source for nothing: {path}"
        )


def test_bundled_machines() -> None:
    assert {"h200-nvlink-8", "h100-ib400", "h100-100g", "a100-nvlink-8"} <= set(machine_names())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('name = "h200-nvlink-8"', "name"),
        ("hbm_gbs = 4330", "memory.hbm_gbs"),
        ('placement = "', "constants without a source"),
    ],
)
def test_incomplete_files_are_refused(tmp_path: Path, change: str, expected: str) -> None:
    from importlib import resources

    text = (resources.files("cuco.testbed.vtime") / "machines" / "h200-nvlink-8.toml").read_text()
    kept = "\n".join(line for line in text.splitlines() if not line.startswith(change))
    path = tmp_path / "mine.toml"
    path.write_text(kept)
    with pytest.raises(UsageError, match=expected):
        load_machine(path)


def test_unknown_machines_name_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="h200-nvlink-8"):
        load_machine("h300")
    with pytest.raises(MissingError):
        load_machine(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ")
    with pytest.raises(UsageError, match="not TOML"):
        load_machine(broken)


def test_override_scales_what_it_says() -> None:
    machine = load_machine("h200-nvlink-8")
    half = machine.override(scale_launch=0.5, scale_latency=0.5)
    assert half.host.launch_us == machine.host.launch_us / 2
    assert half.nvlink.latency_us == machine.nvlink.latency_us / 2
    assert half.nccl.nvlink[0].base_us == machine.nccl.nvlink[0].base_us / 2
    assert half.nvlink.gbs == machine.nvlink.gbs
    assert half.sm == machine.sm
    assert machine.override(values={"sm.count": 2}).sm.count == 2
    with pytest.raises(UsageError, match="sm.colour"):
        machine.override(values={"sm.colour": 1})


def test_slots_follow_the_scarcest_resource() -> None:
    sm: Sm = load_machine("h200-nvlink-8").sm
    assert sm.slots(1024, 32, 0) == 2  # threads
    assert sm.slots(256, 128, 0) == 2  # registers: 65536 / (128 * 256)
    assert sm.slots(32, 16, 0) == 32  # blocks
    assert sm.slots(128, 32, 100 * 1024) == 2  # shared memory
    assert sm.slots(1024, 255, 0) == 0


def test_ranks_per_domain() -> None:
    machine = load_machine("h100-ib400")
    assert machine.lsa_team(None, 2) == 1
    assert load_machine("h200-nvlink-8").lsa_team(None, 4) == 4
    assert machine.lsa_team(4, 8) == 4
    with pytest.raises(CucoError, match="--lsa-team 8"):
        machine.lsa_team(16, 16)
