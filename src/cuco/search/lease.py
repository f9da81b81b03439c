"""The search's side of an evaluation: starts its process group, owns its deadline, reads its answer.

A candidate may crash, hang, or be killed with its process; each is an ordinary outcome here.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from cuco.search.blobs import write_atomic
from cuco.search.evaluation import EvalRequest, Judged, MachineFailed, Outcome, RunFailed, verdict_of

#: Environment that an evaluation sees; keys and tokens of the user's shell never reach candidate code.
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "XDG_CACHE_HOME",
    "CXX",
    "SSL_CERT_FILE",
)
_GRACE_S = 1.0
#: Signals that a program draws on itself; others (KILL, TERM) come from outside and say nothing about it.
_CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP}


def scrubbed_environment(lanes: int) -> dict[str, str]:
    """The allow-listed environment, with numeric libraries held to this lane's share of the cores."""
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("CUCO_", "NCCL_"))}
    threads = str(max(1, (os.cpu_count() or 1) // max(1, lanes)))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = threads
    return environment


@dataclass
class Lease:
    """One running evaluation."""

    attempt: int
    request: EvalRequest
    process: subprocess.Popen[bytes]
    channel: socket.socket
    log: IO[bytes]
    result: Path
    deadline: float
    seconds: float
    stage: str = ""
    overdue: bool = False

    def _has_ended(self, patience: float) -> bool:
        """Whether the leader ends within ``patience`` seconds. Unreaped, so that its id stays its own."""
        limit = time.monotonic() + patience
        while True:
            if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            if time.monotonic() >= limit:
                return False
            time.sleep(0.005)

    def end(self) -> int | None:
        """Ends the whole process group; the leader's status if it ended by itself, else None."""
        by_itself = self._has_ended(0.0 if self.overdue else _GRACE_S)
        if not by_itself:
            self._signal(signal.SIGTERM)
            self._has_ended(_GRACE_S)
        # Compilers and emulators of the group may outlive the leader.
        self._signal(signal.SIGKILL)
        status = self.process.wait()
        return status if by_itself else None

    def _signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, sign)

    def read_stages(self) -> bool:
        """Takes in reported stages; False once the evaluation has closed its end."""
        try:
            data = self.channel.recv(65536)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        for line in data.splitlines():
            with contextlib.suppress(json.JSONDecodeError, KeyError, TypeError):
                self.stage = str(json.loads(line)["stage"])
        return bool(data)


class Executor(Protocol):
    """Runs evaluations: here in process groups; on other machines, or at once in tests, elsewhere."""

    @property
    def free(self) -> int:
        """How many more evaluations may be started now."""

    def start(self, attempt: int, request: EvalRequest, seconds: float) -> None:
        """Starts an evaluation that must end within ``seconds``."""

    def wait(self, timeout: float) -> list[tuple[int, Outcome]]:
        """Waits until an evaluation ends, a deadline passes, or ``timeout`` seconds; returns what ended."""

    def cancel(self) -> list[int]:
        """Ends every running evaluation without a verdict; returns their attempts."""


#: Makes an executor for a function (``module:name``), a number of lanes, and a callback for stages entered.
ExecutorFactory = Callable[[str, int, Callable[[int, str], None]], Executor]


class Leases:
    """All running evaluations of a run, each in a process group of its own."""

    def __init__(self, function: str, lanes: int, on_stage: Callable[[int, str], None]) -> None:
        self._function = function
        self.lanes = lanes
        self._on_stage = on_stage
        self._selector = selectors.DefaultSelector()
        self.running: dict[int, Lease] = {}

    @property
    def free(self) -> int:
        return self.lanes - len(self.running)

    def start(self, attempt: int, request: EvalRequest, seconds: float) -> None:
        """Starts an evaluation that must end within ``seconds``."""
        logs = Path(request.folder) / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        asked, result = logs / f"{request.effort}.request.json", logs / f"{request.effort}.result.json"
        result.unlink(missing_ok=True)
        write_atomic(asked, request.to_json())
        ours, theirs = socket.socketpair()
        log = open(logs / f"{request.effort}.log", "wb")  # noqa: SIM115 - closed when the lease ends
        try:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "cuco.search.evalproc",
                    self._function,
                    str(asked),
                    str(result),
                    str(theirs.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=scrubbed_environment(self.lanes),
            )
        except BaseException:
            ours.close()
            log.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        lease = Lease(attempt, request, process, ours, log, result, time.monotonic() + seconds, seconds)
        self.running[attempt] = lease
        self._selector.register(ours, selectors.EVENT_READ, lease)

    def wait(self, timeout: float) -> list[tuple[int, Outcome]]:
        """Waits until an evaluation ends, a deadline passes, or ``timeout`` seconds; returns what ended."""
        now = time.monotonic()
        nearest = min((lease.deadline for lease in self.running.values()), default=now + timeout)
        ended: list[Lease] = []
        for key, _ in self._selector.select(max(0.0, min(timeout, nearest - now))):
            lease: Lease = key.data
            before = lease.stage
            if not lease.read_stages():
                ended.append(lease)
            elif lease.stage != before:
                self._on_stage(lease.attempt, lease.stage)
        now = time.monotonic()
        for lease in self.running.values():
            if lease not in ended and now >= lease.deadline:
                lease.overdue = True
                ended.append(lease)
        return [(lease.attempt, self._finish(lease)) for lease in ended]

    def cancel(self) -> list[int]:
        """Kills every running evaluation; returns their attempts."""
        attempts = list(self.running)
        for lease in list(self.running.values()):
            lease.overdue = True
            self._finish(lease)
        return attempts

    def _finish(self, lease: Lease) -> Outcome:
        exited = lease.end()
        self._selector.unregister(lease.channel)
        lease.channel.close()
        lease.log.close()
        del self.running[lease.attempt]
        return _outcome(lease, exited)


def _outcome(lease: Lease, exited: int | None) -> Outcome:
    answer = _read_answer(lease.result, timed=lease.request.timed)
    if answer is not None:
        return answer
    if lease.overdue:
        return MachineFailed(f"no verdict within {lease.seconds:g} s (stage: {lease.stage or 'start'})")
    if exited is not None and exited < 0:
        name = signal.Signals(-exited).name
        if signal.Signals(-exited) in _CRASHES:
            reason = f"the evaluation died of {name}"
            finding = {"kind": "crash", "message": reason}
            return Judged(
                verdict_of({"accepted": False, "stage": "verify", "reason": reason, "findings": [finding]})
            )
        return MachineFailed(f"the evaluation was killed by {name}")
    return MachineFailed(f"the evaluation ended with status {exited} and no verdict")


def _read_answer(path: Path, *, timed: bool) -> Outcome | None:
    try:
        answer: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    result, error = answer.get("result"), answer.get("error")
    if isinstance(result, dict):
        try:
            return Judged(verdict_of(result, timed=timed))
        except ValueError as problem:
            return MachineFailed(str(problem))
    if isinstance(error, dict):
        return RunFailed(str(error["message"]), int(error["exit_code"]))
    return MachineFailed(str(answer.get("failure", "the evaluation gave no answer")))
