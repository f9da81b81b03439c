"""Archives that are missing, damaged, foreign or in use are refused by name, and never changed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from search_fakes import make_search, run_all

from cuco.errors import UsageError
from cuco.search import store
from cuco.search.blobs import CandidateFolder
from cuco.search.settings import Budget, SearchSettings

SMALL = SearchSettings(budget=Budget(evaluations=2))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    search = make_search(folder, SMALL)
    run_all(search)
    search.ledger.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    search.ledger.connection.close()
    return folder


def refused(folder: Path, complaint: str) -> None:
    """Opening is refused with one line that names the damage; the file keeps its bytes."""
    path = folder / store.ARCHIVE_NAME
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(UsageError, match=complaint) as caught:
        store.open_existing(folder)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_sound_archive_opens(run: Path) -> None:
    store.open_existing(run).close()


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7])
def test_a_truncated_archive_is_damaged(run: Path, keep: float) -> None:
    path = run / store.ARCHIVE_NAME
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    refused(run, "is damaged: .*Nothing was changed")


def test_overwritten_pages_are_damage(run: Path) -> None:
    path = run / store.ARCHIVE_NAME
    data = bytearray(path.read_bytes())
    data[8192:12288] = os.urandom(4096)
    path.write_bytes(data)
    refused(run, "is damaged")


def test_not_a_database(run: Path) -> None:
    (run / store.ARCHIVE_NAME).write_text("this is my shopping list, not an archive at all")
    refused(run, "is damaged: file is not a database")


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("DELETE FROM attempt WHERE attempt = 1", "is damaged"),
        ("DELETE FROM verdict", "verdict of accepted candidate .* is missing"),
        ("UPDATE meta SET value = '{'", "configuration cannot be read"),
        ("DROP TABLE event", "table event is missing"),
    ],
)
def test_rows_that_are_gone_are_named(run: Path, statement: str, complaint: str) -> None:
    connection = sqlite3.connect(run / store.ARCHIVE_NAME)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(statement)
    connection.commit()
    connection.close()
    refused(run, complaint)


@pytest.mark.parametrize(("version", "help"), [(99, "a newer CUCo"), (1, "the CUCo that wrote it")])
def test_another_schema_is_not_touched(run: Path, version: int, help: str) -> None:
    connection = sqlite3.connect(run / store.ARCHIVE_NAME)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    refused(run, f"schema {version}, this CUCo reads 2. Use {help}")


def test_no_archive(tmp_path: Path) -> None:
    refused(tmp_path, "holds no run")


def test_a_second_run_never_overwrites(run: Path) -> None:
    before = (run / store.ARCHIVE_NAME).read_bytes()
    with pytest.raises(UsageError, match="already holds a run.*cuco resume"):
        store.create(run, {})
    assert (run / store.ARCHIVE_NAME).read_bytes() == before


def test_an_unwritable_place_is_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        store.create(tmp_path / "file" / "run", {})


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with store.RunLock(tmp_path), pytest.raises(UsageError, match="in use by another process"):
        store.RunLock(tmp_path)
    store.RunLock(tmp_path).release()


def test_a_damaged_candidate_file_is_named(run: Path) -> None:
    (candidate,) = sorted((run / "candidates").iterdir())[1:2]
    answer = candidate / "answer.json"
    answer.write_text(answer.read_text().replace("World", "Rail"))
    with pytest.raises(UsageError, match="answer.json is damaged"):
        CandidateFolder(run, candidate.name).read_answer()
    search = make_search(run, SearchSettings(budget=Budget(evaluations=6)))
    with pytest.raises(UsageError, match="answer.json is damaged"):
        search.evolve()


def test_sources_cannot_leave_their_folder(tmp_path: Path) -> None:
    for name in ("../evil", "/etc/evil", "a/../../evil", "answer.json", ""):
        with pytest.raises(ValueError, match="may not contain"):
            CandidateFolder(tmp_path, "c").write_sources({name: ""})
