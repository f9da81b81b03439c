"""The ledger: every attempt, its state, and the transitions between states, each one transaction.

assigned -> answered -> patched -> leased(stage) -> terminal(reason). Whatever happens to the process, the
last committed state says where the work goes on; no counter is kept anywhere else.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cuco.propose.protocol import Operator
from cuco.search.blobs import to_json
from cuco.search.draws import candidate_id
from cuco.search.records import QUICK, Attempt, Candidate, Draw, Verdict, design_from_json, design_to_json
from cuco.search.schema import ACCEPTED, NO_INFRASTRUCTURE, TRANSITIONS

_ATTEMPT = (
    "attempt, id, operator, island, generation, parents, directives, label, state, stage, reason, detail, "
    "answer_sha256, cost_usd, leases, failures"
)


class LedgerError(Exception):
    """A transition that the state machine does not have: a fault of the caller, never of the data."""


class Ledger:
    """Reads and writes the archive's tables. Used from one thread.

    ``clock`` gives wall time in seconds; it feeds events and the time budget and decides nothing else.
    """

    def __init__(
        self, connection: sqlite3.Connection, seed: int, clock: Callable[[], float] = time.time
    ) -> None:
        self.connection = connection
        self.seed = seed
        self._clock = clock
        self._session: int | None = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; nested calls join the outer one."""
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    # Sessions and events

    def begin_session(self) -> None:
        now = self._clock()
        cursor = self.connection.execute("INSERT INTO session (started, seen) VALUES (?, ?)", (now, now))
        self._session = cursor.lastrowid

    def touch(self) -> None:
        """Notes that this process is alive, for the time budget."""
        if self._session is not None:
            self.connection.execute(
                "UPDATE session SET seen = max(seen, ?) WHERE session = ?", (self._clock(), self._session)
            )

    def event(self, kind: str, attempt: int | None = None, **data: Any) -> None:
        self.connection.execute(
            "INSERT INTO event (at, kind, attempt, data) VALUES (?, ?, ?, ?)",
            (self._clock(), kind, attempt, to_json(data)),
        )

    def events(self) -> list[tuple[float, str, int | None, dict[str, Any]]]:
        rows = self.connection.execute("SELECT at, kind, attempt, data FROM event ORDER BY seq")
        return [(at, kind, attempt, json.loads(data)) for at, kind, attempt, data in rows]

    def elapsed(self) -> float:
        """Seconds that processes have worked on this run, this one included."""
        self.touch()
        return float(
            self.connection.execute("SELECT coalesce(sum(seen - started), 0) FROM session").fetchone()[0]
        )

    # Transitions

    def assign(self, draw: Draw) -> Attempt:
        """The next attempt, with everything the policy decided about it."""
        with self.transaction():
            number = self.count()
            self.connection.execute(
                "INSERT INTO attempt "
                "(attempt, id, operator, island, generation, parents, directives, label, state) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'assigned')",
                (
                    number,
                    candidate_id(self.seed, number),
                    draw.operator.value,
                    draw.island,
                    draw.generation,
                    to_json(list(draw.parents)),
                    design_to_json(draw.design),
                    draw.label,
                ),
            )
            self.event("assigned", number, operator=draw.operator.value, island=draw.island)
        return self.attempt(number)

    def answer(self, number: int, sha256: str, cost_usd: float) -> None:
        """The proposer's answer is on disk."""
        with self.transaction():
            self._move(number, "answered", answer_sha256=sha256, cost_usd=cost_usd)
            self.event("answered", number, cost_usd=cost_usd)

    def patch(self, number: int, candidate: Candidate, source_sha256: str, vector: bytes) -> None:
        """The answer has become sources on disk."""
        with self.transaction():
            self._move(number, "patched")
            self.connection.execute(
                "INSERT INTO candidate VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    candidate.id,
                    design_to_json(candidate.design),
                    to_json(list(candidate.lineage)),
                    candidate.rationale,
                    source_sha256,
                    vector,
                    candidate.novelty,
                ),
            )
            self.event("patched", number)

    def lease(self, number: int, stage: str) -> None:
        """An evaluation begins. ``stage`` is its effort until the evaluation reports a finer one."""
        with self.transaction():
            self._move(number, "leased", stage=stage)
            self.connection.execute("UPDATE attempt SET leases = leases + 1 WHERE attempt = ?", (number,))
            self.event("leased", number, stage=stage)

    def requeue(self, number: int, why: str, *, failure: bool) -> None:
        """A lease ended without a verdict; the attempt waits for another. ``failure``: not our own doing."""
        with self.transaction():
            if self.attempt(number).state != "leased":
                raise LedgerError(f"attempt {number} has no lease to give back")
            self._move(number, "patched", stage="")
            if failure:
                self.connection.execute(
                    "UPDATE attempt SET failures = failures + 1 WHERE attempt = ?", (number,)
                )
            self.event("requeued", number, why=why)

    def miss(self, number: int, why: str) -> int:
        """A proposal failed for reasons of the machine; returns how often this attempt has failed so."""
        with self.transaction():
            self.connection.execute("UPDATE attempt SET failures = failures + 1 WHERE attempt = ?", (number,))
            self.event("missed", number, why=why)
        return self.attempt(number).failures

    def settle(self, number: int, verdict: Verdict) -> None:
        """A verdict at quick effort ends the attempt."""
        with self.transaction():
            attempt = self.attempt(number)
            if attempt.state != "leased":
                raise LedgerError(f"attempt {number} is {attempt.state}, a verdict needs a lease")
            self.add_verdict(attempt.id, QUICK, verdict)
            stage_a = attempt.draw.operator is Operator.STAGE_A
            reason = ACCEPTED if verdict.accepted else NO_INFRASTRUCTURE if stage_a else verdict.stage
            self._move(number, "terminal", reason=reason, detail=verdict.reason, stage=verdict.stage)
            self.event("settled", number, reason=reason, us=verdict.us)

    def close(self, number: int, reason: str, detail: str) -> None:
        """Ends an attempt without a verdict: duplicate, refused, infrastructure, cancelled."""
        with self.transaction():
            self._move(number, "terminal", reason=reason, detail=detail)
            self.event("closed", number, reason=reason)

    def reopen(self, number: int) -> None:
        """An attempt that the machine failed gets another chance, from where its last durable state was."""
        with self.transaction():
            attempt = self.attempt(number)
            if attempt.reason != "infrastructure":
                raise LedgerError(f"attempt {number} did not end by a failure of the machine")
            known = self.connection.execute("SELECT 1 FROM candidate WHERE id = ?", (attempt.id,)).fetchone()
            state = "patched" if known else "answered" if attempt.answer_sha256 else "assigned"
            self.connection.execute(
                "UPDATE attempt SET state = ?, reason = NULL, detail = '', stage = '', failures = 0 "
                "WHERE attempt = ?",
                (state, number),
            )
            self.event("reopened", number)

    def add_verdict(self, candidate: str, effort: str, verdict: Verdict) -> None:
        """Stores a verdict; a candidate has one per effort."""
        self.connection.execute(
            "INSERT INTO verdict VALUES (?, ?, ?, ?, ?, ?)",
            (
                candidate,
                effort,
                int(verdict.accepted),
                verdict.stage,
                verdict.us,
                to_json(dict(verdict.data)),
            ),
        )

    def _move(self, number: int, state: str, **values: Any) -> None:
        origins = TRANSITIONS[state]
        names = "".join(f", {name} = ?" for name in values)
        places = ", ".join("?" for _ in origins)
        cursor = self.connection.execute(
            f"UPDATE attempt SET state = ?{names} WHERE attempt = ? AND state IN ({places})",
            (state, *values.values(), number, *origins),
        )
        if cursor.rowcount != 1:
            row = self.connection.execute("SELECT state FROM attempt WHERE attempt = ?", (number,)).fetchone()
            raise LedgerError(f"attempt {number} cannot become {state}: it is {row[0] if row else 'unknown'}")
        self.touch()

    # Reading

    def count(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM attempt").fetchone()[0])

    def attempt(self, number: int) -> Attempt:
        rows = self._attempts("WHERE attempt = ?", (number,))
        if not rows:
            raise LedgerError(f"there is no attempt {number}")
        return rows[0]

    def attempts(self) -> list[Attempt]:
        """All attempts in order."""
        return self._attempts("ORDER BY attempt", ())

    def _attempts(self, clause: str, values: Sequence[Any]) -> list[Attempt]:
        rows = self.connection.execute(f"SELECT {_ATTEMPT} FROM attempt {clause}", tuple(values))
        return [_attempt(row) for row in rows]

    def candidates(self) -> list[Candidate]:
        """Attempts that became code, in order, with their verdicts."""
        verdicts: dict[str, dict[str, Verdict]] = {}
        for name, effort, accepted, stage, us, data in self.connection.execute("SELECT * FROM verdict"):
            verdicts.setdefault(name, {})[effort] = Verdict(bool(accepted), stage, us, json.loads(data))
        by_id = {attempt.id: attempt for attempt in self.attempts()}
        rows = self.connection.execute(
            "SELECT id, directives, lineage, rationale, novelty FROM candidate ORDER BY id"
        )
        found = [
            Candidate(
                by_id[name],
                design_from_json(design),
                tuple(json.loads(lineage)),
                rationale,
                novelty,
                verdicts.get(name, {}),
            )
            for name, design, lineage, rationale, novelty in rows
        ]
        return sorted(found, key=lambda candidate: candidate.attempt.number)

    def source_owner(self, source_sha256: str) -> str | None:
        """The candidate whose normalised source has this hash."""
        row = self.connection.execute(
            "SELECT id FROM candidate WHERE source_sha256 = ?", (source_sha256,)
        ).fetchone()
        return None if row is None else str(row[0])

    def vectors(self) -> list[bytes]:
        """The n-gram vectors of all candidates, in order of their attempts."""
        rows = self.connection.execute(
            "SELECT vector FROM candidate JOIN attempt USING (id) ORDER BY attempt.attempt"
        )
        return [row[0] for row in rows]

    def meta(self, key: str) -> Any:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_meta(self, key: str, value: Any) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, to_json(value)))


def _attempt(row: Sequence[Any]) -> Attempt:
    (
        number,
        name,
        operator,
        island,
        generation,
        parents,
        design,
        label,
        state,
        stage,
        reason,
        detail,
        answer,
        cost,
        leases,
        failures,
    ) = row
    draw = Draw(
        Operator(operator), island, generation, tuple(json.loads(parents)), design_from_json(design), label
    )
    return Attempt(number, name, draw, state, stage, reason, detail, answer, cost, leases, failures)
