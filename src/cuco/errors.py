"""Errors that reach a user: one clear line and the exit code of the command line contract.

The exit codes are those of ``contracts.md`` section 4: 0 done (also "the host version stays"), 1 rejected on
evidence, 2 bad usage or malformed files, 3 something is missing on this machine, 4 a budget ended before
anything was verified, 130 interrupted and resumable.
"""

from __future__ import annotations

from collections.abc import Iterable

EXIT_DONE = 0
EXIT_REJECTED = 1
EXIT_USAGE = 2
EXIT_MISSING = 3
EXIT_BUDGET = 4
#: Not in the contract's table: a fault of CUCo itself, always with a crash report file.
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class CucoError(Exception):
    """An error with one line for the user.

    ``message`` says what is wrong; ``fix``, where known, how to put it right. ``str(error)`` joins both.
    """

    exit_code: int = EXIT_REJECTED

    def __init__(self, message: str, *, fix: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.fix = " ".join(fix.split())
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        if not self.fix:
            return self.message
        return f"{self.message.rstrip('.')}. {self.fix}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default protocol, and evaluations cross a process boundary.
        return _rebuild, (type(self), self.message, self.fix, self.exit_code, dict(self.__dict__))


def _rebuild(kind: type[CucoError], message: str, fix: str, code: int, state: dict[str, object]) -> CucoError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    error.message, error.fix, error.exit_code = message, fix, code
    return error


class RejectedError(CucoError):
    """The candidate or workload was rejected on evidence (exit 1)."""

    exit_code = EXIT_REJECTED


class CompileError(RejectedError):
    """A source that does not compile; ``diagnostics`` are what the compiler said, in its order."""

    def __init__(self, message: str, diagnostics: Iterable[object] = (), *, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.diagnostics = list(diagnostics)


class UsageError(CucoError):
    """Bad usage or a malformed file (exit 2)."""

    exit_code = EXIT_USAGE


class MissingError(CucoError):
    """A tool, testbed, model or key is missing; the fix says how to get it (exit 3)."""

    exit_code = EXIT_MISSING


class BudgetError(CucoError):
    """A budget ended before anything verified (exit 4)."""

    exit_code = EXIT_BUDGET


class InterruptedRun(CucoError):
    """The user stopped a run that can be resumed (exit 130)."""

    exit_code = EXIT_INTERRUPTED
