"""The main job with a fake machine and a fake proposer, everything else real."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_FAKES = str(Path(__file__).parent.parent / "search")
if _FAKES not in sys.path:
    sys.path.insert(0, _FAKES)


@pytest.fixture
def fake_machine(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Replaces what needs compilers: reading the host version, the fast path, and the judging function."""
    from search_fakes import CONTEXT, FakeProposer, seed_proposal, stage_a_proposal

    from cuco import session
    from cuco.fastpath.stages import Stages
    from cuco.search.problem import Problem
    from cuco.space.dimensions import Backend

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([_FAKES, os.environ.get("PYTHONPATH", "")]))
    state = {"proposer": FakeProposer(), "evaluator": "search_fakes:evaluate", "options": {}}

    def make_problem(job: session.Job) -> Problem:
        contexts, options = {"ag": CONTEXT}, state["options"]
        return Problem(job.workload, None, contexts, state["evaluator"], options)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "make_problem", make_problem)
    monkeypatch.setattr(session, "make_proposer", lambda *_: state["proposer"])
    both = {Backend.LSA: Stages(stage_a_proposal(), seed_proposal())}
    monkeypatch.setattr(session, "make_stages", lambda *_: both)
    return state
