"""Hand-written candidates for ring_shift, from source to verdict: the good pass, each broken one is found for
what it is.
"""

from pathlib import Path

import pytest

from cuco.testbed.vtime.machine import load_machine
from cuco.verify import Verdict, VerifyOptions, verify
from cuco.verify.plan import Perturbation
from cuco.verify.runs import build, make_job, run_and_judge
from cuco.workload import load_workload

CANDIDATES = Path(__file__).parents[1] / "candidates" / "ring_shift"
WORKLOAD = load_workload("ring_shift")


def judge(name: str, seed: int = 1, **options: object) -> Verdict:
    return verify(WORKLOAD, CANDIDATES / f"{name}.cu", VerifyOptions(effort="quick", seed=seed, **options))  # type: ignore[arg-type]


def test_host_code_is_accepted() -> None:
    verdict = verify(WORKLOAD, WORKLOAD.host_source, VerifyOptions(effort="quick"))
    assert verdict.accepted, verdict.reason()
    assert verdict.steps == 38 and verdict.compared == 38 * 4 * 1024


@pytest.mark.parametrize("name", ["good_lsa", "good_gin"])
def test_good_candidates_are_accepted(name: str) -> None:
    verdict = judge(name)
    assert verdict.accepted, verdict.reason()
    assert verdict.perturbations == 7 and verdict.steps == 38


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_good_gin_at_other_rank_counts_and_domains(ranks: int) -> None:
    for team in {1, ranks}:
        verdict = judge("good_gin", ranks=ranks, lsa_team=team)
        assert verdict.accepted, verdict.reason()


@pytest.mark.parametrize("seed", range(3))
def test_missing_wait_is_rejected(seed: int) -> None:
    verdict = judge("missing_wait", seed)
    assert not verdict.accepted and verdict.stage == "verify"
    assert {finding.kind for finding in verdict.findings} <= {"wrong-result", "late-write"}


def test_missing_exit_barrier_is_caught_in_a_chain() -> None:
    verdict = judge("missing_exit_barrier")
    assert not verdict.accepted
    assert verdict.findings[0].kind == "wrong-result"
    assert " chain " in verdict.runs[-1]


def test_deadlock_names_the_waiting_line() -> None:
    verdict = judge("deadlock")
    (finding,) = verdict.findings
    assert finding.kind == "deadlock"
    source = (CANDIDATES / "good_gin.cu").read_text().splitlines()
    assert finding.file.endswith("good_gin.cu") and "gin.waitSignal" in source[finding.line - 1]
    assert "signal 0" in finding.message


def test_verdict_is_a_function_of_the_seed() -> None:
    first, second = judge("missing_exit_barrier", 7), judge("missing_exit_barrier", 7)
    assert first.findings == second.findings and first.runs == second.runs


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("returns_zeros", "wrong-result", "they are zero"),
        ("copies_input", "wrong-result", "they equal the input 'send'"),
        ("caches_previous", "wrong-result", "they equal the result of earlier step"),
        ("late_write", None, ""),
        ("prepares_results", "wrong-result", "never written"),
        ("prints_pass", "wrong-result", "never written"),
        ("exits", "crash", "exit(0)"),
        ("aborts", "crash", "abort() while rank"),
        ("throws", "crash", "threw: no"),
        ("returns_error", "crash", "returned 1005"),
        ("synchronises", None, "cudaDeviceSynchronize"),
        ("allocates", None, "cudaMalloc"),
        ("starts_thread", "tampering", "starts threads"),
    ],
)
def test_dishonest_candidates_are_rejected(name: str, kind: str | None, words: str) -> None:
    verdict = judge(name)
    assert not verdict.accepted
    assert any((kind is None or f.kind == kind) and words in f.message for f in verdict.findings)
    if name == "late_write":
        assert verdict.findings[0].kind in ("wrong-result", "late-write")


def test_writing_past_the_end_is_found() -> None:
    verdict = verify(WORKLOAD, CANDIDATES / "out_of_bounds.cu", VerifyOptions(effort="standard"))
    assert not verdict.accepted
    assert any(finding.kind == "out-of-bounds" for finding in verdict.findings)


def test_lsa_candidate_declines_other_domains() -> None:
    verdict = judge("good_lsa", lsa_team=2)
    assert not verdict.accepted and verdict.findings[0].kind == "unsupported"
    assert "one LSA team" in verdict.findings[0].message


def test_syntax_error_shows_the_compilers_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.cu"
    path.write_text('#include "cuco.h"\nint cuco_prepare( {\n')
    verdict = verify(WORKLOAD, path, VerifyOptions(effort="quick"))
    assert verdict.stage == "compile" and not verdict.accepted
    assert verdict.findings[0].kind == "compile-error" and verdict.findings[0].line == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["good_lsa", "good_gin"])
def test_good_candidates_pass_the_standard_verification(name: str) -> None:
    verdict = verify(WORKLOAD, CANDIDATES / f"{name}.cu", VerifyOptions(effort="standard"))
    assert verdict.accepted, verdict.reason()
    assert bool(verdict.declined) == (name == "good_lsa")


@pytest.mark.slow
def test_missing_wait_on_100_seeds_in_a_single_step() -> None:
    source = CANDIDATES / "missing_wait.cu"
    params, machine = WORKLOAD.params("tiny"), load_machine("h200-nvlink-8")
    rejected = 0
    for seed in range(100):
        run = Perturbation(0, seed, "tiny", 4, 4, mode="isolated", steps=1)
        job, data = make_job(WORKLOAD, build(WORKLOAD, source, run), run, params, machine=machine)
        result, judgement = run_and_judge(job, data)
        assert result.completed or judgement.findings
        rejected += any(finding.kind in ("wrong-result", "late-write") for finding in judgement.findings)
    assert rejected >= 95


@pytest.mark.slow
def test_missing_wait_on_100_seeds_by_verify() -> None:
    assert sum(not judge("missing_wait", seed).accepted for seed in range(100)) == 100
