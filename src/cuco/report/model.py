"""Reads a run folder for reporting. Nothing is decided here; everything comes from the archive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuco.config import Config
from cuco.errors import UsageError
from cuco.propose.protocol import MAIN_FILE, Operator
from cuco.search import store
from cuco.search.blobs import CandidateFolder
from cuco.search.ledger import Ledger
from cuco.search.population import Migration, derive
from cuco.search.records import QUICK, Attempt, Candidate, Verdict

TIMELINE = "timeline.json"
#: Keys of the archive's meta table.
CONFIG_KEY, OUTCOME_KEY = "config", "outcome"


@dataclass(frozen=True)
class RunData:
    """A run as stored: its configuration, all attempts, the candidates among them, its end.

    ``confirmed`` is the effort of verdicts that confirm a champion. ``baseline_names`` names host
    candidates.
    """

    folder: Path
    config: Config
    improve: float
    attempts: tuple[Attempt, ...]
    candidates: tuple[Candidate, ...]
    migrations: tuple[Migration, ...]
    baseline_names: Mapping[str, str]
    settled_at: Mapping[int, float]
    seconds: float
    outcome: Mapping[str, Any]

    @property
    def confirmed(self) -> str:
        return "deep" if self.config.effort == "deep" else "standard"

    def hosts(self) -> list[Candidate]:
        return [one for one in self.candidates if one.is_host]

    def evolved(self) -> list[Candidate]:
        """Candidates of the search. Stage A of the fast path is none of them, nor what ended with it."""
        return [one for one in self.candidates if one.searched and one.attempt.reason != "cancelled"]

    def fast_path(self) -> list[Candidate]:
        """What the fast path wrote, stage A before stage B."""
        kinds = (Operator.STAGE_A, Operator.SEED)
        found = [one for one in self.candidates if one.attempt.draw.operator in kinds]
        return sorted(found, key=lambda one: kinds.index(one.attempt.draw.operator))

    def sources(self, candidate: Candidate) -> dict[str, str]:
        """The files of a candidate, the one that is compiled first."""
        answer = CandidateFolder(self.folder, candidate.id).read_answer(candidate.attempt.answer_sha256)
        return dict(sorted(answer.sources.items(), key=lambda item: (item[0] != MAIN_FILE, item[0])))

    def timeline(self, candidate: Candidate) -> dict[str, Any] | None:
        """What each stream and port did in one step (a ``Timeline`` of virtual time), where recorded."""
        path = CandidateFolder(self.folder, candidate.id).path / TIMELINE
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None


def read_run(folder: Path) -> RunData:
    """The run in ``folder``. Raises UsageError where there is none, or it is damaged."""
    with store.reading(folder) as connection:
        ledger = Ledger(connection, 0)
        stored = ledger.meta(CONFIG_KEY)
        if not isinstance(stored, dict) or "run" not in stored:
            raise UsageError(f"{folder} was not written by cuco optimize or evolve")
        config = Config.from_json(stored["run"], folder / store.ARCHIVE_NAME)
        candidates = tuple(ledger.candidates())
        seconds = connection.execute("SELECT coalesce(sum(seen - started), 0) FROM session").fetchone()[0]
        return RunData(
            folder=folder,
            config=config,
            improve=float(stored["improve"]),
            attempts=tuple(ledger.attempts()),
            candidates=candidates,
            migrations=derive(candidates, config.search).migrations,
            baseline_names={one.id: one.attempt.draw.label or "host" for one in candidates if one.is_host},
            settled_at={
                number: at
                for at, kind, number, _ in ledger.events()
                if kind in ("settled", "closed") and number is not None
            },
            seconds=float(seconds),
            outcome=ledger.meta(OUTCOME_KEY) or {},
        )


def best_verdict(candidate: Candidate, confirmed: str) -> Verdict | None:
    """The verdict to report: the confirming one where there is one, else the search's."""
    return candidate.verdicts.get(confirmed) or candidate.verdicts.get(QUICK)
