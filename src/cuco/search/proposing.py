"""Asks the proposer for candidates, beside the evaluations, and turns answers into candidates."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuco.propose.protocol import MAIN_FILE, Parent, Proposal, ProposalRequest, Proposer
from cuco.search import novelty
from cuco.search.blobs import CandidateFolder, to_json
from cuco.search.ledger import Ledger
from cuco.search.population import cell_of
from cuco.search.problem import Problem
from cuco.search.records import QUICK, Attempt, Candidate, Design
from cuco.search.settings import SearchSettings

Answer = Proposal | Exception


class ProposalThreads:
    """Runs proposals in threads of their own, so that a slow proposer never holds an evaluation up.

    The threads are daemons: a proposer that hangs does not keep the process from ending.
    """

    def __init__(self, proposer: Proposer | None) -> None:
        self._proposer = proposer
        self._answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        self.pending: set[int] = set()

    def start(self, request: ProposalRequest) -> None:
        self.pending.add(request.attempt)
        threading.Thread(target=self._run, args=(request,), daemon=True).start()

    def _run(self, request: ProposalRequest) -> None:
        try:
            if self._proposer is None:
                raise RuntimeError("nobody proposes candidates")
            answer: Answer = self._proposer.propose(request)
        except Exception as error:  # whatever a proposer raises is an answer to be judged by the search
            answer = error
        self._answers.put((request.attempt, answer))

    def arrived(self) -> list[tuple[int, Answer]]:
        """Answers that have come in, lowest attempt first."""
        found = []
        while not self._answers.empty():
            number, answer = self._answers.get()
            self.pending.discard(number)
            found.append((number, answer))
        return sorted(found, key=lambda pair: pair[0])


def request_for(
    attempt: Attempt, problem: Problem, candidates: Sequence[Candidate], run: Path, settings: SearchSettings
) -> ProposalRequest:
    """The request for an assigned attempt. ``candidates`` are those in its view."""
    by_id = {candidate.id: candidate for candidate in candidates}
    draw = attempt.draw
    return ProposalRequest(
        workload=problem.workload,
        graph=problem.graph,
        contexts=problem.contexts,
        directives=draw.design,
        operator=draw.operator,
        island=draw.island,
        attempt=attempt.number,
        seed=settings.seed,
        parents=tuple(_parent(by_id[name], run) for name in draw.parents),
        failures=tuple(
            _parent(one, run) for one in _failures(draw.design, candidates, settings.failures_shown)
        ),
    )


def _parent(candidate: Candidate, run: Path) -> Parent:
    answer = CandidateFolder(run, candidate.id).read_answer(candidate.attempt.answer_sha256)
    evidence = candidate.verdicts[QUICK].evidence()
    return Parent(candidate.id, answer.sources, candidate.design, evidence)


def _failures(design: Design, candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """The latest rejected candidates, those of the same archive cell first."""
    rejected = [
        one
        for one in candidates
        if QUICK in one.verdicts and not one.verdicts[QUICK].accepted and one.searched
    ]
    cell = cell_of(design)
    rejected.sort(key=lambda one: (cell_of(one.design) != cell, -one.attempt.number))
    return rejected[:count]


@dataclass(frozen=True)
class Patched:
    """A candidate whose sources are on disk, ready to be judged."""

    candidate: Candidate
    source_sha256: str
    vector: bytes


def patch(attempt: Attempt, run: Path, ledger: Ledger) -> Patched | tuple[str, str]:
    """Writes the sources of an answered attempt; or (reason, detail) why it ends here.

    Raises UsageError if the stored answer is damaged.
    """
    folder = CandidateFolder(run, attempt.id)
    proposal = folder.read_answer(attempt.answer_sha256)
    if MAIN_FILE not in proposal.sources:
        return "refused", f"the proposal has no {MAIN_FILE}"
    # A tuned host version is the same text with other parameters, and another candidate.
    extra = to_json(proposal.record["extra"]) if proposal.record.get("extra") else ""
    digest = novelty.source_hash({**proposal.sources, **({"extra parameters": extra} if extra else {})})
    owner = ledger.source_owner(digest)
    if owner is not None:
        return "duplicate", f"same code as {owner}"
    try:
        folder.write_sources(proposal.sources)
    except ValueError as error:
        return "refused", str(error)
    own = novelty.vector(proposal.sources)
    others = [np.frombuffer(data, dtype=np.float32) for data in ledger.vectors()]
    folder.write_json("directive.json", {edge: d.to_json() for edge, d in proposal.directives.items()})
    candidate = Candidate(
        attempt, proposal.directives, proposal.lineage, proposal.rationale, novelty.novelty(own, others), {}
    )
    return Patched(candidate, digest, own.tobytes())
