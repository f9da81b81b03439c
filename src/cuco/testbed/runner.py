"""The runner process: started in a process group of its own with a scrubbed environment, spoken to over
pipes.
"""

from __future__ import annotations

import enum
import os
import resource
import select
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import IO

from cuco.errors import EXIT_INTERNAL, CucoError

_HEADER = struct.Struct("<QQ")
#: What the process inherits from the environment. No PATH, no keys, no proxy, nothing of the user's.
_ENVIRONMENT = {"LC_ALL": "C", "CUDA_VISIBLE_DEVICES": ""}
_OPEN_FILES = 4096


class Message(enum.IntEnum):
    """Types of messages; ``native/driver/wire.h`` has their layouts."""

    JOB = 1
    INPUTS = 2
    READY = 16
    NEED = 17
    STAGE = 18
    HASH = 19
    SNAPSHOT = 20
    FINDING = 21
    COUNTER = 22
    DONE = 23


class Runner:
    """A running runner. Use as a context manager: leaving it ends the whole process group."""

    def __init__(self, executable: Path, log: IO[bytes], limit_seconds: float) -> None:
        self._deadline = time.monotonic() + limit_seconds
        self._limit = limit_seconds
        self._read, self.results = os.pipe()
        try:
            self._process = subprocess.Popen(
                [str(executable)], stdin=subprocess.PIPE, stdout=log, stderr=log, env=_ENVIRONMENT, cwd="/",
                pass_fds=(self.results,), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            os.close(self._read)
            raise CucoError(f"the runner does not start: {error.strerror}", exit_code=EXIT_INTERNAL) from None
        finally:
            os.close(self.results)
        self._limit_resources()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_group()
        os.close(self._read)
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
        self._process.wait()

    def send(self, kind: Message, payload: bytes) -> None:
        """Sends a message. A runner that has died is not an error here: its end is read from :meth:`receive`.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_HEADER.pack(kind, len(payload)))
            self._process.stdin.write(payload)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def receive(self) -> tuple[Message, bytes] | None:
        """The next message, or None when the runner has closed its side; CucoError past the wall-clock limit.
        """
        header = self._exactly(_HEADER.size)
        if header is None:
            return None
        kind, length = _HEADER.unpack(header)
        payload = self._exactly(length)
        return None if payload is None else (Message(kind), payload)

    def wait(self) -> int:
        """The exit status; negative: the signal that ended it."""
        try:
            return self._process.wait(timeout=max(1.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._late() from None

    def _exactly(self, count: int) -> bytes | None:
        parts: list[bytes] = []
        while count:
            ready, _, _ = select.select([self._read], [], [], max(0.0, self._deadline - time.monotonic()))
            if not ready:
                raise self._late()
            part = os.read(self._read, min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _late(self) -> CucoError:
        return CucoError(
            f"an emulated run took longer than {self._limit:.0f} s and was ended; this is no verdict",
            fix="Give a smaller size, or a higher limit.",
            exit_code=EXIT_INTERNAL,
        )

    def _limit_resources(self) -> None:
        # Before the job is sent, so before anything of the candidate runs.
        for kind, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, _OPEN_FILES)):
            try:
                resource.prlimit(self._process.pid, kind, (value, value))
            except (ProcessLookupError, PermissionError, ValueError):
                pass

    def _end_group(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
