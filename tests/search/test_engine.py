"""The engine end to end with a fake machine: results, budgets, duplicates, misbehaving evaluations."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from search_fakes import (
    CONTEXT,
    Direct,
    FakeProposer,
    designs,
    host_proposal,
    judge,
    make_search,
    refuse_warps,
    run_all,
    seed_proposal,
    source,
    stage_a_proposal,
    trajectory,
    true_us,
)

from cuco.errors import CucoError, MissingError, UsageError
from cuco.propose.protocol import MAIN_FILE, Operator, Proposal, ProposalRefused, ProposalRequest
from cuco.search.budget import used
from cuco.search.engine import Search
from cuco.search.evaluation import EvalRequest
from cuco.search.lease import Leases
from cuco.search.problem import Silent
from cuco.search.records import Attempt, Verdict
from cuco.search.settings import Budget, SearchSettings
from cuco.space import Directive


def limited(evaluations: int, **values: object) -> SearchSettings:
    return SearchSettings(budget=Budget(evaluations=evaluations), **values)  # type: ignore[arg-type]


def test_it_finds_a_good_design_and_keeps_failures(tmp_path: Path) -> None:
    search = make_search(tmp_path, limited(20, lanes=2))
    assert "20 evaluations" in run_all(search)
    champion = search.champion()
    assert champion is not None and champion.us is not None
    fastest = min(
        true_us(one)
        for one in designs()
        if one.granularity.kind != "PerTile" and (one.placement, one.sync) != ("Persistent", "Barrier")
    )
    assert champion.us <= fastest * 1.05
    assert champion.verdicts["standard"].accepted
    reasons = {attempt.reason for attempt in search.ledger.attempts()}
    assert "accepted" in reasons and reasons & {"compile", "verify"}
    folder = tmp_path / "candidates" / champion.id
    assert {"answer.json", "candidate.cu", "directive.json", "verdict.json"} <= set(os.listdir(folder))


def test_explore_then_refine_on_every_island(tmp_path: Path) -> None:
    search = make_search(tmp_path, limited(16, islands=3, restart_share=0.0, explore_fraction=0.5))
    run_all(search)
    evolved = [one for one in search.ledger.attempts() if one.number >= 2]
    assert {one.draw.island for one in evolved} == {0, 1, 2}
    kinds = [one.draw.operator for one in evolved]
    switch = next(index for index, kind in enumerate(kinds) if kind is not Operator.EXPLORE)
    assert Operator.EXPLORE not in kinds[switch:] and switch == 7
    assert all(one.draw.parents for one in evolved if one.draw.operator is not Operator.EXPLORE)


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_the_same_seed_gives_the_same_run_whatever_the_timing(tmp_path: Path, lanes: int) -> None:
    def slow_sometimes(request: ProposalRequest) -> str:
        time.sleep(0.002 * (request.attempt % 3))
        return ""

    calm = make_search(tmp_path / "calm", limited(14, lanes=lanes))
    run_all(calm)
    for run in range(3):
        executor = partial(Direct, nervous=True)
        nervous = make_search(
            tmp_path / f"nervous {run}",
            limited(14, lanes=lanes),
            FakeProposer(slow_sometimes),
            executor=executor,
        )
        run_all(nervous)
        assert [row[:5] for row in trajectory(nervous)] == [row[:5] for row in trajectory(calm)]


def test_processes_give_the_same_run_as_calls(tmp_path: Path) -> None:
    direct = make_search(tmp_path / "direct", limited(4, lanes=2))
    run_all(direct)
    processes = make_search(tmp_path / "processes", limited(4, lanes=2), executor=Leases)
    run_all(processes)
    assert trajectory(processes) == trajectory(direct)
    champion = processes.champion()
    assert champion is not None
    assert "logs" in os.listdir(tmp_path / "processes" / "candidates" / champion.id)


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    one, two = make_search(tmp_path / "1", limited(4)), make_search(tmp_path / "2", limited(4, seed=1))
    run_all(one)
    run_all(two)
    assert {a.id for a in one.ledger.attempts()}.isdisjoint(a.id for a in two.ledger.attempts())


def test_duplicates_are_skipped_and_cost_no_evaluation(tmp_path: Path) -> None:
    class Repeating(FakeProposer):
        def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
            proposal = super().propose(request)
            if request.attempt % 2:
                text = source(
                    next(iter(self.requests[0].directives.values())), "the same under another comment"
                )
                return type(proposal)(
                    {MAIN_FILE: text}, proposal.directives, "lazy", proposal.operator, proposal.lineage
                )
            return proposal

    search = make_search(tmp_path, limited(6), Repeating())
    run_all(search)
    attempts = search.ledger.attempts()
    duplicates = [one for one in attempts if one.reason == "duplicate"]
    assert duplicates and all("same code as" in one.detail and one.leases == 0 for one in duplicates)
    assert sum(one.evaluated and one.draw.operator is not Operator.HOST for one in attempts) == 6


def test_refusals_are_recorded_and_cost_no_evaluation(tmp_path: Path) -> None:
    search = make_search(tmp_path, limited(12), FakeProposer(refuse_warps))
    run_all(search)
    refused = [one for one in search.ledger.attempts() if one.reason == "refused"]
    assert refused and all(one.detail == "warps cannot be written here" for one in refused)


def test_a_proposer_that_only_refuses_ends_the_search(tmp_path: Path) -> None:
    def never(request: ProposalRequest) -> str:
        raise ProposalRefused("no")

    search = make_search(tmp_path, limited(3), FakeProposer(never))
    assert "judged already" in search.evolve() or "no untried design" in search.evolve()


def test_it_ends_when_no_design_is_left(tmp_path: Path) -> None:
    class Few(FakeProposer):
        def options(self, graph, contexts):  # type: ignore[no-untyped-def]
            return {"ag": designs()[:3]}

    search = make_search(tmp_path, limited(50), Few())
    assert search.evolve() == "no untried design is left"
    assert search.ledger.count() == 3


def test_designs_that_the_rules_refuse_are_never_drawn(tmp_path: Path) -> None:
    class Bold(FakeProposer):
        def options(self, graph, contexts):  # type: ignore[no-untyped-def]
            bad = [one.replace(sync="Counter") for one in designs()[:5]]
            return {"ag": [*bad, designs()[0]]}

    search = make_search(tmp_path, limited(50), Bold())
    search.evolve()
    assert [dict(one.draw.design) for one in search.ledger.attempts()] == [{"ag": designs()[0]}]


def test_money_stops_new_work_after_at_most_one_proposal(tmp_path: Path) -> None:
    settings = SearchSettings(budget=Budget(evaluations=None, usd=1.0))
    search = make_search(tmp_path, settings, FakeProposer(cost_usd=0.3))
    assert "$1.00" in search.evolve()
    assert 1.0 <= sum(one.cost_usd for one in search.ledger.attempts()) <= 1.3
    assert all(one.ended for one in search.ledger.attempts())


def test_time_stops_new_work(tmp_path: Path) -> None:
    settings = SearchSettings(budget=Budget(evaluations=None, seconds=0.5))
    search = make_search(tmp_path, settings)
    assert "time budget" in search.evolve()
    assert all(one.ended for one in search.ledger.attempts()) and search.ledger.count() >= 1


def test_a_champion_that_fails_standard_is_demoted(tmp_path: Path) -> None:
    search = make_search(tmp_path, limited(8))
    run_all(search)
    first, second = search.ranked()[:2]
    weak = next(iter(first.design.values())).key()
    again = make_search(tmp_path / "weak", limited(8), weak=[weak])
    run_all(again)
    champion = again.champion()
    assert champion is not None and champion.id == second.id
    demoted = next(one for one in again.ledger.candidates() if one.id == first.id)
    assert not demoted.verdicts["standard"].accepted and demoted.verdicts["quick"].accepted


def test_given_candidates_are_judged_once(tmp_path: Path) -> None:
    search = make_search(tmp_path, limited(3))
    for _ in range(2):
        assert [one.us for one in search.judge_given([host_proposal()])] == [120.0]
        assert [one.us for one in search.judge_given([seed_proposal()], islands=True)] == [109.0]
    assert search.ledger.count() == 2


@pytest.mark.parametrize(
    ("evaluator", "reasons"),
    [
        ("search_fakes:evaluate", ["accepted", "accepted", "accepted"]),
        ("search_fakes:reject_stage_a", ["accepted", "stage-a", "cancelled"]),
        ("search_fakes:fail_stage_a", ["accepted", "infrastructure", "infrastructure"]),
    ],
)
def test_what_stands_on_stage_a_waits_for_it_and_ends_with_it(
    tmp_path: Path, evaluator: str, reasons: list[str]
) -> None:
    search = make_search(
        tmp_path, limited(4, lanes=2, breaker_failures=9), evaluator=evaluator, executor=Leases
    )
    states: list[tuple[str, ...]] = []
    search.observer.changed = lambda *_: states.append(  # type: ignore[method-assign]
        tuple(one.state for one in search.ledger.attempts())
    )
    (host,) = search.give([host_proposal()])
    (ground,) = search.give([stage_a_proposal()])
    (seed,) = search.give([replace(seed_proposal(), lineage=(ground,))], islands=True)
    search.judge([host, ground, seed])
    assert [one.reason for one in search.ledger.attempts()] == reasons
    assert ("leased", "leased", "patched") in states, "stage A is judged beside the host version"
    assert not [one for one in states if len(one) == 3 and one[2] == "leased" and one[1] != "terminal"]
    assert used(search.ledger.attempts()) == (reasons[2] == "accepted")
    if reasons[1] == "infrastructure":  # the machine is well again: the next session judges both
        search.close()
        again = make_search(tmp_path, limited(4, lanes=2))
        again.judge([host, ground, seed])
        assert [one.reason for one in again.ledger.attempts()] == ["accepted"] * 3


def test_the_request_carries_parents_and_failures_with_evidence(tmp_path: Path) -> None:
    proposer = FakeProposer()
    search = make_search(tmp_path, limited(16), proposer)
    run_all(search)
    refined = [one for one in proposer.requests if one.operator is not Operator.EXPLORE]
    assert refined and all(one.parents for one in refined)
    parent = refined[-1].parents[0]
    assert parent.evidence.accepted and parent.evidence.us and MAIN_FILE in parent.sources
    failures = [failure for one in refined for failure in one.failures]
    assert failures and all(not one.evidence.accepted and one.evidence.reason for one in failures)


# Evaluations that misbehave


def misbehave(run: Path, how: str, **values: object):  # type: ignore[no-untyped-def]
    return make_search(
        run, limited(2, **values), evaluator="search_fakes:evaluate_badly", executor=Leases, how=how
    )


def test_a_crash_is_a_verdict_with_the_signals_name(tmp_path: Path) -> None:
    search = misbehave(tmp_path, "segfault")
    (seed,) = search.judge_given([seed_proposal()])
    assert seed.attempt.reason == "verify" and "SIGSEGV" in seed.attempt.detail
    assert seed.verdicts["quick"].data["findings"][0]["kind"] == "crash"


@pytest.mark.parametrize("how", ["killed", "exit", "raise", "nonsense"])
def test_failures_of_the_machine_open_the_breaker(tmp_path: Path, how: str) -> None:
    search = misbehave(tmp_path, how)
    with pytest.raises(
        MissingError, match="3 evaluations in a row failed for reasons of this machine"
    ) as caught:
        search.evolve()
    assert caught.value.exit_code == 3 and "cuco resume" in str(caught.value)
    assert not any(one.evaluated for one in search.ledger.attempts())


def test_a_failure_that_passes_is_retried(tmp_path: Path) -> None:
    search = misbehave(tmp_path, "once")
    (seed,) = search.judge_given([seed_proposal()])
    assert seed.attempt.accepted and seed.attempt.failures == 1 and seed.attempt.leases == 2


def test_resume_gives_what_the_machine_failed_another_chance(tmp_path: Path) -> None:
    search = misbehave(tmp_path, "raise")
    with pytest.raises(MissingError):
        search.evolve()
    search.close()
    search.ledger.connection.close()
    again = make_search(tmp_path, limited(2))
    again.evolve()
    assert again.ledger.count() == 2 and all(one.accepted for one in again.ledger.attempts())


def test_something_missing_ends_the_run_with_its_line(tmp_path: Path) -> None:
    search = misbehave(tmp_path, "missing")
    with pytest.raises(CucoError, match="no compiler. apt-get install g.."):
        search.judge_given([seed_proposal()])
    assert search.ledger.attempt(0).state == "patched"


class Impatient(Silent):
    """Lets the deadline pass as soon as an evaluation has reported a stage."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def changed(self, attempt: Attempt, verdict: Verdict | None) -> None:
        if attempt.stage == "verify":
            for lease in self.search._leases.running.values():  # type: ignore[attr-defined]
                lease.deadline = 0.0


def test_a_hang_frees_its_lane_and_kills_the_whole_group(tmp_path: Path) -> None:
    search = misbehave(tmp_path, "hang", attempt_failures=1)
    search.observer = Impatient(search)
    (seed,) = search.judge_given([seed_proposal()])  # returns although the evaluation sleeps on
    assert seed.attempt.reason == "infrastructure"
    assert seed.attempt.detail == "no verdict within 300 s (stage: verify)"
    grandchild = int((tmp_path / "candidates" / seed.id / "grandchild").read_text())
    assert not is_running(grandchild)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_environment_of_an_evaluation_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuco.search.lease import scrubbed_environment

    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("CUCO_CACHE", "/somewhere")
    environment = scrubbed_environment(2)
    assert "OPENAI_API_KEY" not in environment and environment["CUCO_CACHE"] == "/somewhere"
    assert int(environment["OMP_NUM_THREADS"]) >= 1


def test_the_fake_judge_is_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "directive.json").write_text('{"ag": {"backend": "LSA"}}')
    with pytest.raises(ValueError):
        judge(EvalRequest("c", str(tmp_path), "", "quick", 0, {"operator": "explore"}))
    assert isinstance(designs()[0], Directive)


def test_edges_of_one_unit_always_share_a_directive(tmp_path: Path) -> None:
    class Grouped(FakeProposer):
        def options(self, graph, contexts):  # type: ignore[no-untyped-def]
            return {"send": designs()[:40], "other": designs()[:40]}

        def units(self, graph):  # type: ignore[no-untyped-def]
            return [["send", "recv"], ["other"]]

        def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
            self.requests.append(request)
            text = source(request.directives["send"]) + source(request.directives["other"])
            return Proposal({MAIN_FILE: text}, request.directives, "as asked", request.operator)

    proposer = Grouped()
    search = make_search(tmp_path, limited(12, lanes=2), proposer, "search_fakes:judge_first")
    search.problem = replace(search.problem, contexts=dict.fromkeys(("send", "recv", "other"), CONTEXT))
    search.evolve()
    drawn = [request.directives for request in proposer.requests]
    assert all(one["send"] == one["recv"] for one in drawn)
    assert any(one["send"] != one["other"] for one in drawn)
    assert len({(one["send"].key(), one["other"].key()) for one in drawn}) == len(drawn)
    assert not any(one.reason == "duplicate" for one in search.ledger.attempts())


def test_a_proposer_must_name_every_edge(tmp_path: Path) -> None:
    class Forgetful(FakeProposer):
        def units(self, graph):  # type: ignore[no-untyped-def]
            return []

    search = make_search(tmp_path, limited(3), Forgetful())
    with pytest.raises(UsageError, match="groups edges"):
        search.evolve()
