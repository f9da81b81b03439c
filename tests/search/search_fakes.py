"""A proposer and an evaluator that are fast, deterministic, and as unreliable as asked."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuco.errors import MissingError
from cuco.propose.protocol import (
    MAIN_FILE,
    STAGE_A_LABEL,
    Operator,
    Proposal,
    ProposalRefused,
    ProposalRequest,
)
from cuco.search import store
from cuco.search.engine import Search
from cuco.search.evalproc import load
from cuco.search.evaluation import EvalRequest, Judged, Outcome, verdict_of
from cuco.search.lease import ExecutorFactory
from cuco.search.ledger import Ledger
from cuco.search.problem import Problem
from cuco.search.settings import SearchSettings
from cuco.space import Directive, SpaceContext, enumerate_directives, parse_directive

CONTEXT = SpaceContext(ranks=4)
SEED_DESIGN = parse_directive("LSA | Barrier | Deferred | World | CTA | PerPeer | AcqRel | –")
_SPEED = {"Deferred": 100.0, "StreamSplit": 90.0, "Pipelined": 70.0, "TileFused": 65.0, "Persistent": 60.0}


def designs() -> list[Directive]:
    """A small stable part of the space: 100 or so designs."""
    return list(
        enumerate_directives(
            CONTEXT,
            {"backend": ["LSA"], "scope": ["World"], "ordering": ["AcqRel"], "contexts": [None]}
            | {"sync": ["Barrier", "Signal"]},
        )
    )


def true_us(directive: Directive) -> float:
    """The time the fake machine takes, in microseconds."""
    us = _SPEED[directive.placement.value]
    us += {"Barrier": 5.0, "Signal": 0.0}[directive.sync.value]
    us += {"Thread": 9.0, "Warp": 4.0, "WarpSpan": 3.0, "Tile": 6.0, "CTA": 0.0}[directive.issuer.kind]
    us += {"Whole": 8.0, "PerPeer": 4.0, "Chunk": 1.0, "PerTile": 2.0}[directive.granularity.kind]
    return us + (0.5 if directive.granularity.bytes == 65536 else 0.0)


def source(directive: Directive, note: str = "") -> str:
    return f'// {note}\n__global__ void k() {{ const char *design = "{directive.key()}"; }}\n'


class FakeProposer:
    """Writes one source per directive. ``behave`` may raise, or return a note that lands in a comment."""

    name = "fake"

    def __init__(self, behave: Callable[[ProposalRequest], str] | None = None, cost_usd: float = 0.0) -> None:
        self.behave = behave
        self.cost_usd = cost_usd
        self.requests: list[ProposalRequest] = []

    def options(self, graph: Any, contexts: Mapping[str, SpaceContext]) -> Mapping[str, Sequence[Directive]]:
        return {edge: designs() for edge in contexts}

    def units(self, graph: Any) -> Sequence[Sequence[str]]:
        return [["ag"]]

    def propose(self, request: ProposalRequest) -> Proposal:
        self.requests.append(request)
        note = self.behave(request) if self.behave else ""
        (directive,) = request.directives.values()
        return Proposal(
            {MAIN_FILE: source(directive, note or f"attempt {request.attempt}")},
            request.directives,
            "as asked",
            request.operator,
            tuple(parent.candidate for parent in request.parents),
            self.cost_usd,
        )


def refuse_warps(request: ProposalRequest) -> str:
    if any(directive.issuer.kind != "CTA" for directive in request.directives.values()):
        raise ProposalRefused("warps cannot be written here")
    return ""


def host_proposal() -> Proposal:
    return Proposal({MAIN_FILE: "void host() {}\n"}, {}, "the user's code", Operator.HOST, label="sequential")


def seed_proposal() -> Proposal:
    return Proposal({MAIN_FILE: source(SEED_DESIGN)}, {"ag": SEED_DESIGN}, "fast path", Operator.SEED)


def stage_a_proposal() -> Proposal:
    return Proposal({MAIN_FILE: "void ground() {}\n"}, {}, "fast path", Operator.STAGE_A,
                    label=STAGE_A_LABEL + "LSA")  # fmt: skip


def judge(request: EvalRequest) -> dict[str, Any]:
    """The fake machine: PerTile never compiles, Persistent with a Barrier deadlocks, the rest is timed."""
    if request.options["operator"] == "host":
        return {"accepted": True, "stage": "measure", "us": 120.0}
    if not request.timed:
        return {"accepted": True, "stage": "verify"}
    (data,) = json.loads((Path(request.folder) / "directive.json").read_text()).values()
    directive = Directive.model_validate(data)
    if directive.granularity.kind == "PerTile":
        return {"accepted": False, "stage": "compile", "reason": "line 2: expected ;", "findings": []}
    if directive.placement.value == "Persistent" and directive.sync.value == "Barrier":
        finding = {"kind": "deadlock", "line": 2, "message": "rank 0 waits for the barrier"}
        return {"accepted": False, "stage": "verify", "reason": "deadlock", "findings": [finding]}
    if request.effort == "standard" and directive.key() in request.options.get("weak", ()):
        return {"accepted": False, "stage": "verify", "reason": "race on chain 7", "findings": []}
    return {"accepted": True, "stage": "measure", "us": true_us(directive)}


def evaluate(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    progress("compile")
    time.sleep(float(request.options.get("sleep", 0)))
    progress("verify")
    return judge(request)


def evaluate_badly(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    """Misbehaves as ``options['how']`` says."""
    how = request.options["how"]
    if how == "hang":
        child = os.fork()
        if child == 0:
            time.sleep(600)
        (Path(request.folder) / "grandchild").write_text(str(child))
        progress("verify")
        time.sleep(600)
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    if how == "missing":
        raise MissingError("no compiler", fix="apt-get install g++")
    if how == "nonsense":
        return {"accepted": True, "stage": "measure", "us": float("nan")}
    if how == "once":
        marker = Path(request.folder) / "was here"
        if not marker.exists():
            marker.write_text("")
            raise RuntimeError("disk hiccup")
    if how == "raise":
        raise RuntimeError("the disk is full")
    return judge(request)


class Direct:
    """Judges in this process; with ``nervous`` the order in which results arrive is shuffled."""

    def __init__(
        self, function: str, lanes: int, on_stage: Callable[[int, str], None], *, nervous: bool = False
    ) -> None:
        self._judge = load(function)
        self._lanes = lanes
        self._on_stage = on_stage
        self._nervous = nervous
        self._running: dict[int, EvalRequest] = {}

    @property
    def free(self) -> int:
        return self._lanes - len(self._running)

    def start(self, attempt: int, request: EvalRequest, seconds: float) -> None:
        self._running[attempt] = request

    def wait(self, timeout: float) -> list[tuple[int, Outcome]]:
        if not self._running:
            time.sleep(min(timeout, 0.001))
            return []
        number = random.choice(list(self._running)) if self._nervous else min(self._running)
        if self._nervous and random.random() < 0.5:
            return []
        request = self._running.pop(number)
        data = self._judge(request, lambda stage: self._on_stage(number, stage))
        return [(number, Judged(verdict_of(data, timed=request.timed)))]

    def cancel(self) -> list[int]:
        numbers = list(self._running)
        self._running.clear()
        return numbers


def make_search(
    run: Path,
    settings: SearchSettings,
    proposer: FakeProposer | None = None,
    evaluator: str = "search_fakes:evaluate",
    executor: ExecutorFactory = Direct,
    **options: Any,
) -> Search:
    """A search in ``run``, new or continued. Evaluates in this process unless ``executor`` is Leases."""
    if (run / store.ARCHIVE_NAME).exists():
        connection = store.open_existing(run)
    else:
        connection = store.create(run, {"search": settings.model_dump(mode="json")})
    problem = Problem(None, None, {"ag": CONTEXT}, evaluator, options)  # type: ignore[arg-type]
    return Search(
        run,
        Ledger(connection, settings.seed),
        settings,
        problem,
        proposer or FakeProposer(),
        executor=executor,
    )


def trajectory(search: Search) -> list[tuple[Any, ...]]:
    """Everything about a run that must not depend on timing or interruption."""
    return [
        (a.number, a.id, a.draw, a.state, a.reason, a.answer_sha256, a.cost_usd)
        for a in search.ledger.attempts()
    ] + [
        (c.id, c.design, c.lineage, c.novelty, {e: (v.accepted, v.us) for e, v in c.verdicts.items()})
        for c in search.ledger.candidates()
    ]


def run_all(search: Search) -> str:
    """Host, seed, evolution, champion: as ``cuco optimize`` does."""
    search.judge_given([host_proposal()])
    search.judge_given([seed_proposal()], islands=True)
    why = search.evolve()
    search.champion()
    return why


def reject_everything(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    return {"accepted": False, "stage": "compile", "reason": "line 9: expected ;", "findings": []}


def reject_candidates(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    if request.options["operator"] in ("host", "stage-a"):
        return judge(request)
    return {"accepted": False, "stage": "verify", "reason": "wrong result on rank 2", "findings": []}


def reject_stage_a(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    if request.options["operator"] == "stage-a":
        return {"accepted": False, "stage": "verify", "reason": "rank 0 has no window", "findings": []}
    return judge(request)


def fail_stage_a(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    if request.options["operator"] == "stage-a":
        raise RuntimeError("the disk is full")
    return judge(request)


def judge_given(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    """As ``judge``; a candidate whose design is not known is fast."""
    if request.options["operator"] == "given":
        return {"accepted": True, "stage": "measure", "us": 80.0}
    return judge(request)


def judge_first(request: EvalRequest, progress: Callable[[str], None]) -> Mapping[str, Any]:
    """As ``judge`` for designs of several edges: the times add up."""
    data = json.loads((Path(request.folder) / "directive.json").read_text())
    return {
        "accepted": True,
        "stage": "measure",
        "us": sum(true_us(Directive.model_validate(d)) for d in data.values()),
    }
