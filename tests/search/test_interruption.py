"""kill -9 and Ctrl-C at any point: nothing paid for or judged is lost, and the run continues the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from search_fakes import FakeProposer, make_search, run_all, seed_proposal, trajectory

from cuco.errors import InterruptedRun
from cuco.propose.protocol import ProposalRequest
from cuco.search.blobs import CandidateFolder
from cuco.search.ledger import Ledger
from cuco.search.settings import Budget, SearchSettings

SETTINGS = SearchSettings(lanes=2, budget=Budget(evaluations=8))
SCRIPT = """
import sys
from pathlib import Path
from search_fakes import FakeProposer, make_search, run_all
from test_interruption import SETTINGS
from cuco.search.lease import Leases
search = make_search(Path(sys.argv[1]), SETTINGS, FakeProposer(cost_usd=0.25), executor=Leases, sleep=0.05)
run_all(search)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple]:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    search = make_search(tmp_path_factory.mktemp("calm"), SETTINGS, FakeProposer(cost_usd=0.25))
    run_all(search)
    return trajectory(search)


def start(run: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(run)])


def finish(run: Path) -> list[tuple]:
    search = make_search(run, SETTINGS, FakeProposer(cost_usd=0.25))
    run_all(search)
    return trajectory(search)


@pytest.mark.parametrize(
    "moment", [0.5, 1.3, *(pytest.param(late, marks=pytest.mark.slow) for late in (0.9, 2.0))]
)
def test_kill_9_at_any_moment(tmp_path: Path, undisturbed: list[tuple], moment: float) -> None:
    process = start(tmp_path)
    time.sleep(moment)
    process.kill()
    process.wait()
    assert finish(tmp_path) == undisturbed


#: Every write of the ledger is a point at which the process may die, before or after it.
POINTS = ["assign", "answer", "patch", "lease", "settle", "add_verdict"]


class Dead(BaseException):
    """Stands for the death of the process at this line."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", [1, 3, 5])
def test_death_around_every_transition(
    tmp_path: Path,
    undisturbed: list[tuple],
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    after: bool,
    nth: int,
) -> None:
    original = getattr(Ledger, point)
    calls = [0]

    def dying(self: Ledger, *arguments: object, **named: object) -> object:
        calls[0] += 1
        if calls[0] == nth and not after:
            raise Dead
        result = original(self, *arguments, **named)
        if calls[0] == nth and after:
            raise Dead
        return result

    search = make_search(tmp_path, SETTINGS, FakeProposer(cost_usd=0.25))
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, point, dying)
        with pytest.raises(Dead):
            run_all(search)
    search._leases.cancel()  # the evaluations die with their search
    search.ledger.connection.close()
    assert finish(tmp_path) == undisturbed


def test_an_answer_that_arrived_is_not_asked_for_again(tmp_path: Path) -> None:
    search = make_search(tmp_path, SETTINGS)
    attempt = search.ledger.assign(_draw())
    CandidateFolder(tmp_path, attempt.id).write_answer(_paid(seed_proposal()))
    search.ledger.connection.close()

    def never(request: ProposalRequest) -> str:
        raise AssertionError("asked again")

    again = make_search(tmp_path, SearchSettings(budget=Budget(evaluations=1)), FakeProposer(never))
    again.evolve()
    (only,) = again.ledger.attempts()
    assert only.accepted and only.cost_usd == 3.0


def _draw():  # type: ignore[no-untyped-def]
    from cuco.propose.protocol import Operator
    from cuco.search.records import Draw

    return Draw(Operator.SEED, 0, 0, (), seed_proposal().directives)


def _paid(proposal):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(proposal, cost_usd=3.0)


def test_evaluations_die_with_a_killed_search(tmp_path: Path) -> None:
    script = SCRIPT.replace("sleep=0.05", "sleep=600")
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    children = wait_for(lambda: descendants(process.pid))
    process.kill()
    process.wait()
    assert wait_for(lambda: not any(alive(pid) for pid in children))


def test_ctrl_c_leaves_a_resumable_run(tmp_path: Path, undisturbed: list[tuple]) -> None:
    class Interrupting(FakeProposer):
        def propose(self, request: ProposalRequest):  # type: ignore[no-untyped-def]
            if request.attempt == 4:
                os.kill(os.getpid(), signal.SIGINT)
            return super().propose(request)

    search = make_search(tmp_path, SETTINGS, Interrupting(cost_usd=0.25))
    with pytest.raises(InterruptedRun, match="cuco resume") as caught:
        run_all(search)
    assert caught.value.exit_code == 130
    assert not any(attempt.state == "leased" for attempt in search.ledger.attempts())
    search.ledger.connection.close()
    assert finish(tmp_path) == undisturbed


def wait_for(condition):  # type: ignore[no-untyped-def]
    for _ in range(600):
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("nothing happened for 30 s")


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
