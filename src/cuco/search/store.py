"""Opens, creates and checks the archive file of a run. Damage is named, and nothing is overwritten."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cuco.errors import UsageError
from cuco.search.schema import SCHEMA_VERSION, TABLES

ARCHIVE_NAME = "archive.sqlite"
LOCK_NAME = "run.lock"
_TABLES = {"meta", "attempt", "candidate", "verdict", "event", "session"}
_KEEP = "Nothing was changed; restore the file from a copy, or start a new run"


class RunLock:
    """Held while one process works on a run folder; the kernel frees it even after kill -9."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        try:
            self._file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 - held for the object's life
        except OSError as error:
            raise UsageError(f"run folder {folder} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(f"run folder {folder} is in use by another process") from None

    def release(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def make_run_folder(folder: Path) -> None:
    """Creates a run folder, or raises UsageError if it cannot be written."""
    try:
        (folder / "candidates").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"run folder {folder} cannot be written: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"run folder {folder} cannot be written: permission denied")


def create(folder: Path, config: dict[str, Any]) -> sqlite3.Connection:
    """A new archive in ``folder`` with ``config`` stored in it. Raises UsageError if one is there already."""
    make_run_folder(folder)
    path = folder / ARCHIVE_NAME
    if path.exists():
        raise UsageError(f"{folder} already holds a run", fix=f"Continue it with: cuco resume {folder}")
    # Built aside and renamed, so that a crash never leaves half an archive behind.
    draft = folder / f".{ARCHIVE_NAME}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        connection.execute("INSERT INTO meta VALUES ('config', ?)", (json.dumps(config, sort_keys=True),))
        connection.close()
        os.replace(draft, path)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise UsageError(f"run folder {folder} cannot be written: {error}") from None
    return _connect(path)


def open_existing(folder: Path) -> sqlite3.Connection:
    """The archive of an existing run, checked before it is opened for writing.

    Raises UsageError naming what is missing, of another version, or damaged.
    """
    path = check_exists(folder)
    check(path)
    if not os.access(path, os.W_OK) or not os.access(folder, os.W_OK):
        raise UsageError(f"run folder {folder} cannot be written: permission denied")
    return _connect(path)


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """The checked archive of a run, for reading only; a running search may go on writing."""
    path = check_exists(folder)
    check(path)
    connection = _read_only(path)
    try:
        yield connection
    finally:
        connection.close()


def check_exists(folder: Path) -> Path:
    """The path of the archive in ``folder``. Raises UsageError if there is none."""
    path = folder / ARCHIVE_NAME
    if not path.is_file():
        raise UsageError(f"{folder} holds no run: there is no {ARCHIVE_NAME} in it")
    return path


def check(path: Path) -> None:
    """Raises UsageError naming the damage, if the file is not a sound archive of this version."""
    try:
        connection = _read_only(path)
    except sqlite3.Error as error:
        raise _damaged(path, str(error)) from None
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        present = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if version > SCHEMA_VERSION:
            raise _other_schema(path, version)
        if missing := _TABLES - present:
            raise _damaged(path, f"table {min(missing)} is missing")
        if version < SCHEMA_VERSION:
            raise _other_schema(path, version)
        complaints = [line for (line,) in connection.execute("PRAGMA integrity_check(1)")]
        if complaints != ["ok"]:
            raise _damaged(path, complaints[0])
        if broken := connection.execute("PRAGMA foreign_key_check").fetchone():
            raise _damaged(path, f"a row of {broken[0]} refers to a missing row of {broken[2]}")
        _check_rows(connection, path)
    except sqlite3.Error as error:
        raise _damaged(path, str(error)) from None
    finally:
        connection.close()


def _other_schema(path: Path, version: int) -> UsageError:
    return UsageError(
        f"archive {path} has schema {version}, this CUCo reads {SCHEMA_VERSION}",
        fix=f"Use {'a newer CUCo' if version > SCHEMA_VERSION else 'the CUCo that wrote it'}",
    )


def _check_rows(connection: sqlite3.Connection, path: Path) -> None:
    count, last = connection.execute("SELECT count(*), max(attempt) FROM attempt").fetchone()
    if count and last != count - 1:
        raise _damaged(path, f"attempts are missing: {count} rows, the last is number {last}")
    lost = connection.execute(
        "SELECT attempt.id FROM attempt LEFT JOIN verdict ON verdict.id = attempt.id "
        "WHERE reason = 'accepted' AND verdict.id IS NULL"
    ).fetchone()
    if lost:
        raise _damaged(path, f"the verdict of accepted candidate {lost[0]} is missing")
    row = connection.execute("SELECT value FROM meta WHERE key = 'config'").fetchone()
    try:
        json.loads(row[0] if row else "")
    except json.JSONDecodeError:
        raise _damaged(path, "the configuration cannot be read") from None


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(f"archive {path} is damaged: {' '.join(what.split())}", fix=_KEEP)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _connect(path: Path) -> sqlite3.Connection:
    # The engine writes from its main thread only; isolation_level None leaves transactions to us.
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
