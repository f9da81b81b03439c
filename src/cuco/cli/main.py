"""Entry point: runs a command, and turns whatever goes wrong into one line and the contract's exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from cuco.errors import EXIT_DONE, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE, CucoError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``cuco`` with ``arguments`` (those of the process by default) and returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return run(given)
    except BrokenPipeError:
        # The reader of our output has gone (cuco ... | head): nothing to say, and nobody to say it to.
        sys.stderr.close()
        return EXIT_DONE


def run(given: list[str]) -> int:
    """As ``main``, for arguments that are known."""
    try:
        from cuco.cli.app import app

        code: Any = app(given, prog_name="cuco", standalone_mode=False)
        return int(code or EXIT_DONE)
    except CucoError as error:
        return _fail(given, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail(given, "interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # the command line itself was wrong (typer's own errors)
            return _fail(given, _usage(error), EXIT_USAGE)
        if type(error).__name__ == "Abort":
            return _fail(given, "interrupted", EXIT_INTERRUPTED)
        return _crashed(given, error)


def _usage(error: Any) -> str:
    message = " ".join(str(error.format_message()).replace("Value error, ", "").split())
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "cuco"
    return f"{message.rstrip('.')}. See: {command} --help"


def _fail(given: list[str], message: str, code: int) -> int:
    print(f"cuco: {message}", file=sys.stderr)
    if "--json" in given:
        print(json.dumps({"error": message, "exit_code": code}))
    return code


def _crashed(given: list[str], error: BaseException) -> int:
    from cuco.cli.crash import write_report

    where = write_report(given, error)
    return _fail(
        given,
        f"a fault of CUCo itself: {type(error).__name__}. Report with this file: {where}",
        EXIT_INTERNAL,
    )


def entry() -> None:
    """For ``python -m cuco``."""
    sys.exit(main())
