"""The search engine: one state machine over the ledger. Proposing and evaluating overlap.

Everything it knows is in the archive; a process that starts where another was killed continues with the same
draws. It stops starting work when a budget closes, and finishes what has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cuco.errors import CucoError, InterruptedRun, MissingError, UsageError
from cuco.propose.protocol import MAIN_FILE, Operator, Proposal, ProposalRefused, Proposer
from cuco.search import budget, policy
from cuco.search.blobs import CandidateFolder, answer_digest
from cuco.search.evaluation import EvalRequest, Judged, MachineFailed, Outcome, RunFailed
from cuco.search.lease import Executor, ExecutorFactory, Leases
from cuco.search.ledger import Ledger
from cuco.search.options import Choices, choices_for
from cuco.search.population import rank_key
from cuco.search.problem import Observer, Problem, Silent
from cuco.search.proposing import Answer, Patched, ProposalThreads, patch, request_for
from cuco.search.records import QUICK, STANDARD, Attempt, Candidate, Draw, Verdict, design_key
from cuco.search.schema import FREE
from cuco.search.settings import SearchSettings

_TICK_S = 0.25
_PROPOSING_S = 0.02


class Search:
    """Runs the search of one run folder. Use it from one thread, and ``close`` it.

    Every method raises InterruptedRun on Ctrl-C with the archive in a resumable state, MissingError when
    evaluations keep failing for reasons of the machine, UsageError when a stored candidate is damaged.
    """

    def __init__(
        self,
        run: Path,
        ledger: Ledger,
        settings: SearchSettings,
        problem: Problem,
        proposer: Proposer | None = None,
        observer: Observer | None = None,
        executor: ExecutorFactory = Leases,
    ) -> None:
        self.run = run
        self.ledger = ledger
        self.settings = settings
        self.problem = problem
        self.observer: Observer = observer or Silent()
        self._threads = ProposalThreads(proposer)
        self._proposer = proposer
        self._leases: Executor = executor(problem.evaluator, settings.lanes, self._on_stage)
        self._failures_in_row = 0
        self._choices: Choices | None = None
        self._confirming: Candidate | None = None
        ledger.begin_session()
        self._recover()

    def close(self) -> None:
        """Ends running evaluations; their attempts wait for the next session."""
        for number in self._leases.cancel():
            if self.ledger.attempt(number).state == "leased":
                self.ledger.requeue(number, "the session ended", failure=False)
        self.ledger.touch()

    def _recover(self) -> None:
        """Puts attempts that a dead session left behind where their last durable state says."""
        for attempt in self.ledger.attempts():
            if attempt.reason == "infrastructure":
                self.ledger.reopen(attempt.number)
            if attempt.state == "leased":
                self.ledger.requeue(attempt.number, "the session that held the lease ended", failure=False)
            folder = CandidateFolder(self.run, attempt.id)
            if attempt.state == "assigned" and folder.has_answer():
                # It arrived, but the process did not live to record it: it is not asked (and paid) for again.
                proposal = folder.read_answer()
                self.ledger.answer(attempt.number, folder.write_answer(proposal), proposal.cost_usd)

    # What callers do

    def judge_given(self, proposals: Sequence[Proposal], *, islands: bool = False) -> list[Candidate]:
        """Judges candidates that were written before the search: see ``give`` and ``judge``."""
        return self.judge(self.give(proposals, islands=islands))

    def give(self, proposals: Sequence[Proposal], *, islands: bool = False) -> list[str]:
        """Takes in candidates that were written before the search, to be judged in this order; their ids.

        Proposals that the archive has already (from an earlier session) are not taken in again. With
        ``islands`` they are spread over the islands, else all belong to the first.
        """
        wanted: list[str] = []
        for index, proposal in enumerate(proposals):
            present = self._already(proposal)
            if present is not None:
                wanted.append(present)
                continue
            island = index % self.settings.islands if islands else 0
            draw = Draw(proposal.operator, island, 0, proposal.lineage, proposal.directives, proposal.label)
            with self.ledger.transaction():
                attempt = self.ledger.assign(draw)
                digest = CandidateFolder(self.run, attempt.id).write_answer(proposal)
                self.ledger.answer(attempt.number, digest, proposal.cost_usd)
            self._tell(attempt.number)
            wanted.append(attempt.id)
        return wanted

    def judge(self, wanted: Sequence[str]) -> list[Candidate]:
        """Judges given candidates. One that descends from a stage A is judged once that has been accepted,
        and ends with it where it is not."""
        self._drive(frozenset(wanted))
        return [candidate for candidate in self.ledger.candidates() if candidate.id in wanted]

    def propose_with(self, proposer: Proposer) -> None:
        """Who writes candidates from now on; ``evolve`` needs one, judging given candidates does not."""
        self._proposer = proposer
        self._threads = ProposalThreads(proposer)
        self._choices = None

    def evolve(self) -> str:
        """Assigns and judges attempts until a budget closes or no design is left; says which."""
        return self._drive(None)

    def confirm(self, candidate: Candidate, effort: str = STANDARD) -> Verdict:
        """The candidate's verdict at ``effort``; judged now unless the archive has it."""
        if effort in candidate.verdicts:
            return candidate.verdicts[effort]
        number = candidate.attempt.number
        self._confirming = candidate
        self.observer.confirming(candidate, None)
        for _ in range(self.settings.attempt_failures + 1):
            self._leases.start(
                number, self._request(candidate.attempt, effort), self.settings.standard_deadline_s
            )
            outcome = self._await_one(number)
            if isinstance(outcome, Judged):
                with self.ledger.transaction():
                    self.ledger.add_verdict(candidate.id, effort, outcome.verdict)
                    self.ledger.event("confirmed", number, effort=effort, accepted=outcome.verdict.accepted)
                self._write_verdict(candidate.id, effort, outcome.verdict)
                self.observer.confirming(candidate, outcome.verdict)
                self._failures_in_row = 0
                return outcome.verdict
            self._count_failure(outcome)
        raise MissingError(
            f"candidate {candidate.id} cannot be judged at {effort} effort on this machine",
            fix=f"Its log: {self._log(candidate.id, effort)}",
        )

    def champion(self, effort: str = STANDARD) -> Candidate | None:
        """The fastest candidate that holds at ``effort``; a faster one that does not is demoted."""
        for candidate in self.ranked():
            if self.confirm(candidate, effort).accepted:
                return next(one for one in self.ledger.candidates() if one.id == candidate.id)
        return None

    def ranked(self) -> list[Candidate]:
        """Candidates accepted in the search, fastest first; host versions are not among them."""
        found = [one for one in self.ledger.candidates() if one.us is not None and one.searched]
        return sorted(found, key=rank_key)

    # The state machine

    def _drive(self, wanted: frozenset[str] | None) -> str:
        """Works until the attempts ``wanted`` have ended; with None, assigns new ones until none may be."""
        try:
            while True:
                self._take_answers()
                self._patch_in_order()
                self._start_leases()
                why = self._assign() if wanted is None else "everything given is judged"
                if why and not self._unfinished(wanted):
                    return why
                for number, outcome in self._leases.wait(_PROPOSING_S if self._threads.pending else _TICK_S):
                    self._end(number, outcome)
                self.observer.tick()
        except KeyboardInterrupt:
            self.close()
            raise InterruptedRun("interrupted", fix=f"Continue with: cuco resume {self.run}") from None
        except CucoError:
            self.close()
            raise

    def _await_one(self, number: int) -> Outcome:
        try:
            while True:
                for ended, outcome in self._leases.wait(_TICK_S):
                    if ended == number:
                        return outcome
                self.observer.tick()
        except KeyboardInterrupt:
            self.close()
            raise InterruptedRun("interrupted", fix=f"Continue with: cuco resume {self.run}") from None

    def _unfinished(self, wanted: frozenset[str] | None) -> bool:
        return any(
            not attempt.ended and (wanted is None or attempt.id in wanted)
            for attempt in self.ledger.attempts()
        )

    def _take_answers(self) -> None:
        for number, answer in self._threads.arrived():
            attempt = self.ledger.attempt(number)
            if isinstance(answer, Proposal):
                digest = CandidateFolder(self.run, attempt.id).write_answer(answer)
                self.ledger.answer(number, digest, answer.cost_usd)
            else:
                self._no_answer(attempt, answer)
            self._tell(number)

    def _no_answer(self, attempt: Attempt, error: Answer) -> None:
        if isinstance(error, ProposalRefused):
            self.ledger.close(attempt.number, "refused", str(error))
        elif isinstance(error, MissingError | UsageError):
            raise error
        else:
            why = f"{type(error).__name__}: {error}"
            if self.ledger.miss(attempt.number, why) >= self.settings.attempt_failures:
                self.ledger.close(attempt.number, "infrastructure", why)
            self._count_failure(MachineFailed(f"the proposer failed: {why}"))

    def _patch_in_order(self) -> None:
        """Answers become candidates in the order of their attempts: which of two equals is the duplicate must
        not depend on which was written first."""
        for attempt in self.ledger.attempts():
            if attempt.state == "assigned":
                return
            if attempt.state != "answered":
                continue
            result = patch(attempt, self.run, self.ledger)
            if isinstance(result, Patched):
                self.ledger.patch(attempt.number, result.candidate, result.source_sha256, result.vector)
            else:
                self.ledger.close(attempt.number, *result)
            self._tell(attempt.number)

    def _start_leases(self) -> None:
        attempts = self.ledger.attempts()
        ground = {one.id: one for one in attempts if one.draw.operator is Operator.STAGE_A}
        for attempt in attempts:
            if not self._leases.free:
                return
            below = [ground[parent] for parent in attempt.draw.parents if parent in ground]
            if attempt.state == "patched" and self._stands(attempt, below):
                self.ledger.lease(attempt.number, QUICK)
                self._leases.start(
                    attempt.number, self._request(attempt, QUICK), self.settings.quick_deadline_s
                )
                self._tell(attempt.number)

    def _stands(self, attempt: Attempt, below: Sequence[Attempt]) -> bool:
        """Whether every stage A that the attempt stands on is accepted. It ends where one is not."""
        for one in below:
            if one.ended and not one.accepted:
                # What the machine failed is tried again by the next session, and this with it.
                reason = "infrastructure" if one.reason == "infrastructure" else "cancelled"
                self.ledger.close(attempt.number, reason, f"its stage A, {one.id}, was not accepted")
                self._tell(attempt.number)
        return all(one.accepted for one in below)

    def _request(self, attempt: Attempt, effort: str) -> EvalRequest:
        folder = CandidateFolder(self.run, attempt.id)
        record = folder.read_answer(attempt.answer_sha256).record
        options = {
            **self.problem.options,
            "operator": attempt.draw.operator.value,
            "extra": record.get("extra", {}),
        }
        return EvalRequest(
            attempt.id,
            str(folder.path),
            str(folder.path / MAIN_FILE),
            effort,
            self.settings.seed,
            options,
            timed=attempt.draw.operator is not Operator.STAGE_A,
        )

    def _end(self, number: int, outcome: Outcome) -> None:
        attempt = self.ledger.attempt(number)
        if isinstance(outcome, Judged):
            self.ledger.settle(number, outcome.verdict)
            self._write_verdict(attempt.id, QUICK, outcome.verdict)
            self._failures_in_row = 0
            self._tell(number, outcome.verdict)
            return
        why = outcome.why if isinstance(outcome, MachineFailed) else outcome.message
        self.ledger.requeue(number, why, failure=isinstance(outcome, MachineFailed))
        if self.ledger.attempt(number).failures >= self.settings.attempt_failures:
            self.ledger.close(number, "infrastructure", why)
        self._tell(number)
        self._count_failure(outcome)

    def _count_failure(self, outcome: Outcome) -> None:
        """The circuit breaker: a machine that fails every time is not searched to the end."""
        if isinstance(outcome, RunFailed):
            raise CucoError(outcome.message, exit_code=outcome.exit_code)
        if isinstance(outcome, MachineFailed):
            self._failures_in_row += 1
            if self._failures_in_row >= self.settings.breaker_failures:
                raise MissingError(
                    f"{self._failures_in_row} evaluations in a row failed for reasons of this "
                    f"machine, the last: {outcome.why}",
                    fix=f"Logs are under {self.run / 'candidates'}; then: cuco resume {self.run}",
                )

    # Assigning

    def _assign(self) -> str:
        """Assigns the next attempt if one may be; else why none will be, or "" to try again later."""
        attempts = self.ledger.attempts()
        for attempt in attempts:
            if attempt.state == "assigned" and attempt.number not in self._threads.pending:
                self._ask(attempt)  # left over from a session that died, or failed once
        why = budget.closed(self.settings.budget, attempts, self.ledger.elapsed())
        if why:
            return why
        hidden = self.settings.lanes - 1
        number = len(attempts)
        if self._threads.pending or any(not one.ended for one in attempts[: max(0, number - hidden)]):
            return ""
        choices = self._designs()
        draw = policy.choose(self._view(attempts, choices), choices.options, self.settings)
        if draw is None:
            return "no untried design is left" if all(one.ended for one in attempts) else ""
        self._ask(self.ledger.assign(replace(draw, design=choices.expand(draw.design))))
        self._tell(number)
        return ""

    def _view(self, attempts: Sequence[Attempt], choices: Choices) -> policy.View:
        """What the next attempt may know. Attempts inside the lag count as evaluations in any case."""
        number = len(attempts)
        limit = number - (self.settings.lanes - 1)
        counted = sum(
            one.draw.operator.searched and (one.number >= limit or one.reason not in FREE) for one in attempts
        )
        total = self.settings.budget.evaluations
        seconds = self.settings.budget.seconds
        progress = counted / total if total else self.ledger.elapsed() / seconds if seconds else 0.5
        seen = [one for one in self.ledger.candidates() if one.attempt.number < limit]
        designs = [one.draw.design for one in attempts] + [one.design for one in seen]
        # Stage A is no part of the search, so it shifts no draw.
        ground = sum(one.draw.operator is Operator.STAGE_A for one in attempts)
        return policy.View(
            attempt=number - ground,
            generation=counted // self.settings.generation_size,
            progress=progress,
            candidates=[replace(one, design=choices.reduce(one.design)) for one in seen],
            tried=frozenset(design_key(choices.reduce(design)) for design in designs),
        )

    def _designs(self) -> Choices:
        if self._choices is None:
            if self._proposer is None:
                raise RuntimeError("a search needs a proposer before it can evolve")
            self._choices = choices_for(self._proposer, self.problem)
        return self._choices

    def _ask(self, attempt: Attempt) -> None:
        limit = max(0, attempt.number - (self.settings.lanes - 1))
        seen = [one for one in self.ledger.candidates() if one.attempt.number < limit]
        self._threads.start(request_for(attempt, self.problem, seen, self.run, self.settings))

    # Telling

    def _already(self, proposal: Proposal) -> str | None:
        """The attempt that an earlier session made of this given proposal, if any."""
        digest = answer_digest(proposal)
        return next((one.id for one in self.ledger.attempts() if one.answer_sha256 == digest), None)

    def _write_verdict(self, candidate: str, effort: str, verdict: Verdict) -> None:
        name = "verdict.json" if effort == QUICK else f"verdict-{effort}.json"
        CandidateFolder(self.run, candidate).write_json(name, dict(verdict.data))

    def _log(self, candidate: str, effort: str) -> Path:
        return CandidateFolder(self.run, candidate).path / "logs" / f"{effort}.log"

    def _on_stage(self, number: int, stage: str) -> None:
        attempt = self.ledger.attempt(number)
        if attempt.ended and self._confirming is not None:
            self.observer.confirming(self._confirming, None, stage)
        if attempt.state == "leased":
            self.ledger.connection.execute("UPDATE attempt SET stage = ? WHERE attempt = ?", (stage, number))
            self._tell(number)

    def _tell(self, number: int, verdict: Verdict | None = None) -> None:
        self.observer.changed(self.ledger.attempt(number), verdict)
