"""The main job from a workload to its result: host versions, fast path, search, champion, report.

Everything is kept in the run folder, so ``resume`` is the same walk again: what is judged already is not
judged twice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cuco.config import Config, write_config
from cuco.errors import BudgetError, CucoError, InterruptedRun, MissingError, RejectedError, UsageError
from cuco.propose.protocol import MAIN_FILE, Operator, Proposal, ProposalRefused
from cuco.search import store
from cuco.search.blobs import write_atomic
from cuco.search.engine import Search
from cuco.search.judging import FUNCTION
from cuco.search.ledger import Ledger
from cuco.search.population import rank_key
from cuco.search.problem import Observer, Problem
from cuco.search.records import QUICK, Attempt, Candidate, Verdict
from cuco.space.context import SpaceContext, make_context
from cuco.space.dimensions import Backend

if TYPE_CHECKING:
    from cuco.fastpath.stages import Stages
    from cuco.propose.builtin import BuiltinProposer
    from cuco.report.model import RunData
    from cuco.source import CommGraph
    from cuco.workload import Workload

_BACKENDS = {"lsa": ("LSA",), "gin": ("GIN",), "hybrid": ("Hybrid",)}
#: What ``--backend auto`` allows, by where the peers are.
_NATURAL = {"inside": ("LSA",), "outside": ("GIN",), "both": ("Hybrid", "GIN")}


class Watcher(Observer, Protocol):
    """An observer that is also told what goes on besides candidates."""

    def note(self, text: str) -> None:
        """One line for people."""

    def known(self, attempt: Attempt, verdict: Verdict | None) -> None:
        """What an earlier session of the same run did."""


@dataclass(frozen=True)
class Job:
    """One run: where it is kept and what was asked for. ``sources``: names and texts of candidates to search
    from; without any the search begins with the fast path."""

    folder: Path
    config: Config
    workload: Workload
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def confirmed(self) -> str:
        """The effort of the cascade that confirms a champion."""
        return "deep" if self.config.effort == "deep" else "standard"


def default_folder(name: str, now: float | None = None) -> Path:
    """``runs/<name>-<timestamp>``; a second run within the same second gets a suffix."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    base = Path("runs") / f"{name}-{stamp}"
    return next(path for path in (base, *(Path(f"{base}-{n}") for n in range(2, 1000))) if not path.exists())


def start(job: Job, watcher: Watcher) -> dict[str, Any]:
    """Carries out a new run and returns what ``cuco optimize --json`` prints.

    Raises RejectedError if the host version itself is rejected, BudgetError if time or money ended before
    any candidate was accepted, UsageError if the folder cannot be written or holds a run.
    """
    store.make_run_folder(job.folder)
    with store.RunLock(job.folder):
        stored = {
            "run": job.config.model_dump(mode="json"),
            "improve": job.workload.spec.improve,
            "sources": [list(one) for one in job.sources],
        }
        connection = store.create(job.folder, stored)
        write_config(job.config, job.folder)
        return _carry_out(job, Ledger(connection, job.config.search.seed), watcher)


def resume(folder: Path, watcher: Watcher) -> dict[str, Any]:
    """Continues the run in ``folder``; a finished run is reported again.

    Raises UsageError if there is none, if its archive is damaged, or if another process works on it.
    """
    from cuco.workload import load_workload

    store.check_exists(folder)
    with store.RunLock(folder):
        connection = store.open_existing(folder)
        stored = Ledger(connection, 0).meta("config")
        if not isinstance(stored, dict) or "run" not in stored:
            raise UsageError(f"{folder} was not written by cuco optimize or evolve")
        config = Config.from_json(stored["run"], folder / store.ARCHIVE_NAME)
        job = Job(
            folder,
            config,
            load_workload(config.workload),
            tuple((name, text) for name, text in stored["sources"]),
        )
        return _carry_out(job, Ledger(connection, config.search.seed), watcher)


def _carry_out(job: Job, ledger: Ledger, watcher: Watcher) -> dict[str, Any]:
    from cuco.report.model import read_run
    from cuco.report.page import write_report
    from cuco.report.summary import summarise

    watcher.note("reading the host version")
    problem = make_problem(job)
    search = Search(job.folder, ledger, job.config.search, problem, observer=watcher)
    for candidate in ledger.candidates():
        watcher.known(candidate.attempt, candidate.verdicts.get(QUICK))
    try:
        hosts, ended = _search(job, search, watcher)
        watcher.note("full cascade")
        champion = search.champion(job.confirmed)
        for host in _reported_hosts(hosts):
            search.confirm(host, job.confirmed)
        ledger.set_meta("outcome", {"ended": ended})
    except KeyboardInterrupt:
        _report_anyway(job.folder)
        raise InterruptedRun("interrupted", fix=f"Continue with: cuco resume {job.folder}") from None
    except CucoError:
        _report_anyway(job.folder)
        raise
    finally:
        search.close()
        ledger.connection.close()
    run = read_run(job.folder)
    _write_best(run)
    write_report(job.folder, run)
    if champion is None and not search_found(run) and _cut_short(run):
        raise BudgetError(
            f"{ended}, and no candidate was accepted before that",
            fix=f"Give it more, then: cuco resume {job.folder}",
        )
    return summarise(run)


def _search(job: Job, search: Search, watcher: Watcher) -> tuple[list[Candidate], str]:
    """Host versions, fast path or given candidates, search; the host versions, and why it ended.

    Stage A of a backend comes right behind the first host version, so that stage B need not wait for the
    others; a backend whose infrastructure is rejected is not searched.
    """
    stages = {} if job.sources else make_stages(job, search.problem)
    watcher.note("judging the host versions" + (" and the fast path" if stages else ""))
    first, *tuned = host_proposals(job.workload)
    ids = search.give([first])
    ground = search.give([one.infrastructure for one in stages.values()])
    ids += ground
    conservative = [one.after(stage_a) for one, stage_a in zip(stages.values(), ground, strict=True)]
    ids += search.give(conservative, islands=True)
    hosts = _sound_hosts(job, search.judge(ids + search.give(tuned)))
    if job.sources:
        watcher.note("judging the given candidates")
        search.judge_given(given(job, search.problem), islands=True)
    else:
        attempts = [one for one in search.ledger.attempts() if one.id in ground]
        held = _held(job, dict(zip(stages, attempts, strict=True)))
        if not held:
            return hosts, f"no infrastructure of a candidate holds, the first: {attempts[0].detail}"
        search.problem = search.problem.within(held)
    watcher.note("tracing who produces what is sent")
    try:
        search.propose_with(make_proposer(job, search.problem))
    except RejectedError as error:
        if not job.sources:
            raise
        return hosts, f"nobody can write further candidates: {error}"
    watcher.note("searching")
    return hosts, search.evolve()


def _held(job: Job, ground: Mapping[Backend, Attempt]) -> list[Backend]:
    """The backends whose stage A was accepted."""
    for backend, attempt in ground.items():
        if attempt.reason == "infrastructure":
            raise _machine_failed(job, f"stage A of the fast path ({backend})", attempt)
    return [backend for backend, attempt in ground.items() if attempt.accepted]


def _machine_failed(job: Job, what: str, attempt: Attempt) -> MissingError:
    return MissingError(
        f"{what} cannot be judged on this machine: {attempt.detail}",
        fix=f"Its logs are in {job.folder / 'candidates' / attempt.id / 'logs'}",
    )


def make_stages(job: Job, problem: Problem) -> Mapping[Backend, Stages]:
    """Both stages of the fast path per backend. Raises RejectedError where none can be written."""
    from cuco.fastpath.stages import fast_path

    return fast_path(problem.workload, problem.graph, problem.contexts, job.config.search.seed).stages


def given(job: Job, problem: Problem) -> list[Proposal]:
    """The candidates that the user gave to search from, with the designs that they state for all edges."""
    from cuco.propose.builtin.runtime import designs_in

    found = []
    for name, text in job.sources:
        designs = designs_in(text)
        known = designs if designs.keys() == problem.contexts.keys() else {}
        found.append(Proposal({MAIN_FILE: text}, known, "given by the user", Operator.GIVEN, label=name))
    return found


def make_problem(job: Job) -> Problem:
    """The problem of a job, read from its host version. Raises RejectedError where nothing communicates."""
    from cuco.source.analyze import graph_of
    from cuco.source.reading import read, toolchain_headers

    host, known = job.workload.host_source, toolchain_headers()
    headers = replace(known, include_dirs=(*known.include_dirs, *job.workload.include_dirs))
    graph = graph_of(read(host, headers))
    if not graph.edges:
        raise RejectedError(f"{host} calls no NCCL communication: there is nothing to rewrite")
    contexts = {edge.id: edge_context(job.config, graph, edge.id) for edge in graph.edges}
    return Problem(job.workload, graph, contexts, FUNCTION, job.config.judging())


def make_proposer(job: Job, problem: Problem) -> BuiltinProposer:
    """The built-in proposer, told by traced runs which thread blocks produce what is sent.

    Raises RejectedError where the program is out of its reach.
    """
    from cuco.fastpath.stages import not_constructible
    from cuco.fastpath.tracing import find_producers
    from cuco.propose.builtin import BuiltinProposer
    from cuco.testbed.vtime import load_machine

    config = job.config
    try:
        found = find_producers(
            job.workload,
            problem.graph,
            ranks=config.ranks,
            lsa_team=config.lsa_team,
            machine=load_machine(config.machine),
            size=config.size,
        )
    except ProposalRefused as error:
        raise not_constructible(job.workload.host_source, error) from None
    return BuiltinProposer(
        job.workload.host_source, producers=found.producers, transfer_bytes=found.transfer_bytes
    )


def edge_context(config: Config, graph: CommGraph, edge_id: str) -> SpaceContext:
    """What validity of an edge's directive depends on."""
    from cuco.testbed.vtime import load_machine

    edge = graph.edge(edge_id)
    reach = make_context(ranks=config.ranks, lsa_team=config.lsa_team).reach
    names = _NATURAL[reach] if config.backend == "auto" else _BACKENDS[config.backend]
    return make_context(
        ranks=config.ranks,
        lsa_team=config.lsa_team,
        backends=list(names),
        op=edge.op,
        sms=load_machine(config.machine).sm.count,
        has_producer=bool(graph.producers(edge_id)),
        has_consumer=bool(graph.consumers(edge_id)),
    )


def host_proposals(workload: Workload) -> list[Proposal]:
    """The host-driven versions to be beaten, every tuned one of them, as candidates to judge."""
    return [
        Proposal(
            {MAIN_FILE: baseline.source.read_text(encoding="utf-8")},
            {},
            "host-driven",
            Operator.HOST,
            record={"extra": dict(baseline.extra)},
            label=baseline.name,
        )
        for baseline in workload.baselines()
    ]


def _sound_hosts(job: Job, judged: Sequence[Candidate]) -> list[Candidate]:
    """The host versions among what was judged. Raises RejectedError if the sequential one is rejected."""
    hosts = [one for one in judged if one.is_host]
    first = hosts[0]
    if not first.attempt.accepted:
        reason = first.attempt.detail or str(first.attempt.reason)
        if first.attempt.reason == "infrastructure":
            raise _machine_failed(job, f"the host version of {job.workload.name}", first.attempt)
        raise RejectedError(
            f"the host version of {job.workload.name} is rejected ({first.attempt.reason}): {reason}"
        )
    return hosts


def _reported_hosts(hosts: Sequence[Candidate]) -> list[Candidate]:
    """The sequential version and the best one: their times are reported, so the full cascade judges them."""
    timed = sorted((host for host in hosts if host.us is not None), key=rank_key)
    return list({host.id: host for host in (*timed[:1], *hosts[:1])}.values())


def search_found(run: RunData) -> bool:
    """Whether any candidate was accepted in the search."""
    return any(one.us is not None for one in run.evolved())


def _cut_short(run: RunData) -> bool:
    budget = run.config.search.budget
    used_time = budget.seconds is not None and run.seconds >= budget.seconds
    return used_time or (budget.usd is not None and "$" in str(run.outcome.get("ended")))


def _write_best(run: RunData) -> None:
    """``best/``: what to use from now on, the champion or, where it gains nothing, the host version."""
    from cuco.report.summary import IMPROVED, standing

    found = standing(run)
    kept = found.best if found.status == IMPROVED else found.baseline
    if kept is None:
        return
    folder = run.folder / "best"
    for name, text in run.sources(kept).items():
        write_atomic(folder / name, text)
    origin: Mapping[str, Any] = {
        "candidate": kept.id,
        "status": found.status,
        "directives": {e: d.to_json() for e, d in kept.design.items()},
    }
    from cuco.search.blobs import to_json

    write_atomic(folder / "origin.json", to_json(origin) + "\n")


def _report_anyway(folder: Path) -> None:
    """After an interruption or a failure the page shows what there is; it must not hide why it stopped."""
    from cuco.report.page import write_report

    with suppress(CucoError, OSError):
        write_report(folder)
