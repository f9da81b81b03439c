"""The plan of perturbed runs: what each effort covers."""

import pytest

from cuco.verify import Perturbation, plan
from cuco.verify.plan import WARM_UPS, derived_seed
from cuco.workload import load_workload


def runs(effort: str, *, name: str = "ring_shift", ranks: int = 4, team: int = 4) -> list[Perturbation]:
    workload = load_workload(name)
    return plan(workload, effort=effort, seed=5, size="tiny", ranks=ranks, lsa_team=team, overrides={})  # type: ignore[arg-type]


@pytest.mark.parametrize("effort", ["quick", "standard", "deep"])
def test_every_run_is_its_own(effort: str) -> None:
    found = runs(effort)
    assert len({run.seed for run in found}) == len(found)
    assert [run.index for run in found] == list(range(len(found)))
    assert found == runs(effort)


def test_efforts_grow() -> None:
    quick, standard, deep = (runs(effort) for effort in ("quick", "standard", "deep"))
    assert len(quick) < len(standard) < len(deep)
    assert deep[: len(standard)] == standard and standard[: len(quick)] == quick


def test_quick_covers_modes_deliveries_and_reads() -> None:
    found = runs("quick")
    assert {run.mode for run in found} == {"chain", "isolated"}
    assert {run.delivery for run in found} == {"random", "lazy", "eager"}
    assert {run.reads for run in found} == {"history", "newest", "oldest"}
    assert any(run.hold for run in found) and any(run.decoys for run in found)


def test_standard_covers_the_contract() -> None:
    found = runs("standard")
    assert {run.warm_ups for run in found} >= set(WARM_UPS)
    assert {run.hold for run in found} >= {(rank,) for rank in range(4)}
    assert any(run.variant == "hooks" for run in found)
    assert any(run.size == "odd" for run in found)
    shapes = {(run.ranks, run.lsa_team) for run in found}
    assert shapes >= {(4, 4), (4, 2), (4, 1), (2, 2), (2, 1), (3, 3), (3, 1), (5, 5), (5, 1)}
    assert all(run.base == ((run.ranks, run.lsa_team, run.size) == (4, 4, "tiny")) for run in found)


def test_only_allowed_rank_counts() -> None:
    assert {run.ranks for run in runs("standard", name="kv_transfer", ranks=2, team=1)} == {2}
    assert {run.ranks for run in runs("standard", name="producer_consumer")} == {2, 4}


def test_derived_seeds_differ() -> None:
    seeds = {derived_seed(seed, index) for seed in range(20) for index in range(20)}
    assert len(seeds) == 400 and all(0 <= seed < 2**63 for seed in seeds)


def test_a_run_names_what_it_does() -> None:
    run = next(run for run in runs("quick") if run.hold and run.decoys)
    assert f"rank {run.hold[0]} held" in str(run) and "decoys" in str(run)
