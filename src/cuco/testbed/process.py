"""Runs compilers: output captured, the whole process group ended on interrupt or time-out, errors as one
line.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuco.errors import MissingError, RejectedError

LIMIT_SECONDS = 600.0
"""A compiler that runs longer than this is ended; ordinary builds take seconds."""


@dataclass(frozen=True)
class Finished:
    """A process that ended: ``output`` is stdout followed by stderr."""

    status: int
    output: str


def run(command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]) -> Finished:
    """Runs ``command`` to its end.

    Raises MissingError if it cannot be started and RejectedError if it exceeds ``LIMIT_SECONDS``.
    """
    words = [str(word) for word in command]
    try:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise MissingError(f"{words[0]} cannot be started: {error.strerror}", fix="cuco doctor") from error
    try:
        out, err = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise RejectedError(f"{Path(words[0]).name} ran longer than {LIMIT_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            _end(process)
    return Finished(process.returncode, out + err)


def _end(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
