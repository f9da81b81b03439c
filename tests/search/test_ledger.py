"""The ledger as a state machine: whatever is asked of it in whatever order, its invariants hold."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from search_fakes import SEED_DESIGN

from cuco.propose.protocol import Operator
from cuco.search import store
from cuco.search.draws import candidate_id, generator
from cuco.search.ledger import Ledger, LedgerError
from cuco.search.records import QUICK, Candidate, Draw, Verdict
from cuco.search.schema import TRANSITIONS

DRAW = Draw(Operator.EXPLORE, 1, 2, ("a", "b"), {"ag": SEED_DESIGN})
GOOD = Verdict(True, "measure", 12.5, {"us": 12.5})
BAD = Verdict(False, "verify", None, {"reason": "race", "findings": [{"kind": "race"}]})


class LedgerMachine(RuleBasedStateMachine):
    """Random transitions, legal and illegal, with restarts in between, against a model of states."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger(store.create(self.folder, {}), 7)
        self.states: list[str] = []
        self.cost = 0.0

    def teardown(self) -> None:
        self.ledger.connection.close()
        shutil.rmtree(self.folder)

    def pick(self, index: int) -> int:
        return index % len(self.states)

    def try_move(self, number: int, target: str, act) -> bool:  # noqa: ANN001
        if self.states[number] in TRANSITIONS[target]:
            act()
            self.states[number] = target
            return True
        with pytest.raises(LedgerError):
            act()
        return False

    @rule()
    def assign(self) -> None:
        attempt = self.ledger.assign(DRAW)
        assert attempt.number == len(self.states) and attempt.id == candidate_id(7, attempt.number)
        assert attempt.draw == DRAW
        self.states.append("assigned")

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99), cost=st.floats(0, 2))
    def answer(self, index: int, cost: float) -> None:
        number = self.pick(index)
        if self.try_move(number, "answered", lambda: self.ledger.answer(number, "ab" * 32, cost)):
            self.cost += cost

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99))
    def patch(self, index: int) -> None:
        number = self.pick(index)
        if self.states[number] == "leased":
            return  # giving a lease back is requeue's business
        candidate = Candidate(self.ledger.attempt(number), DRAW.design, ("a",), "why", 0.5, {})
        self.try_move(number, "patched", lambda: self.ledger.patch(number, candidate, f"hash {number}", b"v"))

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99))
    def lease(self, index: int) -> None:
        number = self.pick(index)
        self.try_move(number, "leased", lambda: self.ledger.lease(number, QUICK))

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99), failure=st.booleans())
    def requeue(self, index: int, failure: bool) -> None:
        number = self.pick(index)
        before = self.ledger.attempt(number).failures
        if self.states[number] == "leased":
            self.ledger.requeue(number, "why", failure=failure)
            self.states[number] = "patched"
            assert self.ledger.attempt(number).failures == before + failure
        else:
            with pytest.raises(LedgerError):
                self.ledger.requeue(number, "why", failure=failure)

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99), verdict=st.sampled_from([GOOD, BAD]))
    def settle(self, index: int, verdict: Verdict) -> None:
        number = self.pick(index)
        if self.states[number] == "leased":
            self.ledger.settle(number, verdict)
            self.states[number] = "terminal"
            assert self.ledger.attempt(number).reason == ("accepted" if verdict.accepted else "verify")
        else:
            with pytest.raises(LedgerError):
                self.ledger.settle(number, verdict)

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99), reason=st.sampled_from(["duplicate", "refused", "infrastructure"]))
    def close(self, index: int, reason: str) -> None:
        number = self.pick(index)
        self.try_move(number, "terminal", lambda: self.ledger.close(number, reason, "because"))

    @precondition(lambda self: self.states)
    @rule(index=st.integers(0, 99))
    def reopen(self, index: int) -> None:
        number = self.pick(index)
        attempt = self.ledger.attempt(number)
        if attempt.reason == "infrastructure":
            self.ledger.reopen(number)
            known = any(one.id == attempt.id for one in self.ledger.candidates())
            self.states[number] = "patched" if known else "answered" if attempt.answer_sha256 else "assigned"
        else:
            with pytest.raises(LedgerError):
                self.ledger.reopen(number)

    @rule()
    def restart(self) -> None:
        self.ledger.connection.close()
        self.ledger = Ledger(store.open_existing(self.folder), 7)

    @invariant()
    def states_are_the_models(self) -> None:
        attempts = self.ledger.attempts()
        assert [attempt.state for attempt in attempts] == self.states
        assert all((attempt.reason is None) == (attempt.state != "terminal") for attempt in attempts)

    @invariant()
    def money_is_counted_once(self) -> None:
        assert sum(attempt.cost_usd for attempt in self.ledger.attempts()) == pytest.approx(self.cost)

    @invariant()
    def accepted_means_a_verdict(self) -> None:
        by_id = {candidate.id: candidate for candidate in self.ledger.candidates()}
        for attempt in self.ledger.attempts():
            if attempt.accepted:
                assert by_id[attempt.id].us == 12.5


LedgerMachine.TestCase.settings = hypothesis_settings(max_examples=25, stateful_step_count=30, deadline=None)
TestLedger = LedgerMachine.TestCase


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    ledger = Ledger(store.create(tmp_path, {}), 0)
    with pytest.raises(RuntimeError), ledger.transaction():
        ledger.assign(DRAW)
        raise RuntimeError
    assert ledger.count() == 0


def test_time_is_summed_over_sessions(tmp_path: Path) -> None:
    now = [100.0]
    connection = store.create(tmp_path, {})
    first = Ledger(connection, 0, lambda: now[0])
    first.begin_session()
    now[0] = 130.0
    assert first.elapsed() == 30
    now[0] = 1000.0
    second = Ledger(connection, 0, lambda: now[0])
    second.begin_session()
    now[0] = 1005.0
    assert second.elapsed() == 35


def test_draws_depend_on_seed_purpose_and_attempt_only() -> None:
    def first(seed: int, purpose: str, attempt: int) -> float:
        return float(generator(seed, purpose, attempt).random())

    assert first(1, "choose", 5) == first(1, "choose", 5)
    assert (
        len({first(1, "choose", 5), first(2, "choose", 5), first(1, "other", 5), first(1, "choose", 6)}) == 4
    )
    assert len({candidate_id(3, number) for number in range(500)}) == 500
    assert candidate_id(3, 1) != candidate_id(4, 1)
