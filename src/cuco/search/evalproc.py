"""The disposable process of one evaluation: ``python -m cuco.search.evalproc FUNCTION REQUEST RESULT FD``.

It leads a process group of its own. The socket ``FD`` carries its stages to the search, and tells it when the
search is gone: then the whole group ends at once, compilers and emulator included.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from cuco.errors import CucoError, MissingError, UsageError
from cuco.search.blobs import write_atomic
from cuco.search.evaluation import EvalRequest, Evaluator


def load(function: str) -> Evaluator:
    """The evaluation function called ``module:name``."""
    module, _, name = function.partition(":")
    return cast(Evaluator, getattr(importlib.import_module(module), name))


def _end_with_search(channel: socket.socket) -> None:
    """Waits until the search's end of the socket closes, then kills this process group."""
    try:
        while channel.recv(64):
            pass
    except OSError:
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _answer(function: str, request: EvalRequest, channel: socket.socket) -> Mapping[str, Any]:
    def progress(stage: str) -> None:
        channel.sendall(json.dumps({"stage": stage}).encode() + b"\n")

    try:
        return {"result": dict(load(function)(request, progress))}
    except (MissingError, UsageError) as error:
        return {"error": {"message": str(error), "exit_code": error.exit_code}}
    except CucoError as error:
        return {"failure": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"failure": f"{type(error).__name__}: {error}"}


def main(arguments: list[str]) -> int:
    function, request_path, result_path, descriptor = arguments
    channel = socket.socket(fileno=int(descriptor))
    os.set_inheritable(channel.fileno(), False)
    # Ctrl-C reaches the terminal's foreground group, not this one; the search decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_search, args=(channel,), daemon=True).start()
    request = EvalRequest.from_json(Path(request_path).read_text(encoding="utf-8"))
    answer = _answer(function, request, channel)
    write_atomic(Path(result_path), json.dumps(answer))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Not sys.exit: threads that a library left behind must not keep the lease.
    sys.stderr.flush()
    os._exit(code)
