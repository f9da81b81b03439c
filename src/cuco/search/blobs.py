"""Files of candidates, written atomically and named by content in the ledger."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from cuco.errors import UsageError
from cuco.propose.protocol import Operator, Proposal
from cuco.space.directive import Directive

ANSWER = "answer.json"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_atomic(path: Path, data: bytes | str) -> None:
    """Writes ``data`` so that readers and crashes see the old file or the new one, never a part."""
    raw = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def to_json(value: Any) -> str:
    """Canonical JSON: the same value gives the same text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def proposal_to_json(proposal: Proposal) -> dict[str, Any]:
    return {
        "sources": dict(proposal.sources),
        "directives": {edge: directive.to_json() for edge, directive in proposal.directives.items()},
        "rationale": proposal.rationale,
        "operator": proposal.operator.value,
        "lineage": list(proposal.lineage),
        "cost_usd": proposal.cost_usd,
        "record": dict(proposal.record),
        "label": proposal.label,
    }


def proposal_from_json(data: Mapping[str, Any]) -> Proposal:
    return Proposal(
        sources=data["sources"],
        directives={edge: Directive.model_validate(value) for edge, value in data["directives"].items()},
        rationale=data["rationale"],
        operator=Operator(data["operator"]),
        lineage=tuple(data["lineage"]),
        cost_usd=data["cost_usd"],
        record=data["record"],
        label=data["label"],
    )


def answer_digest(proposal: Proposal) -> str:
    """SHA-256 of a proposal: equal exactly for equal proposals."""
    return sha256(to_json(proposal_to_json(proposal)).encode())


class CandidateFolder:
    """``candidates/<id>/`` of a run: answer, sources, directive, verdict, logs."""

    def __init__(self, run: Path, candidate: str) -> None:
        self.path = run / "candidates" / candidate

    def write_answer(self, proposal: Proposal) -> str:
        """Stores what the proposer answered, before the ledger knows of it; returns its SHA-256."""
        body = to_json(proposal_to_json(proposal))
        digest = answer_digest(proposal)
        write_atomic(self.path / ANSWER, f"{digest}\n{body}\n")
        return digest

    def read_answer(self, expected: str | None = None) -> Proposal:
        """The stored answer. Raises UsageError naming the file if it is missing or is not what was stored."""
        path = self.path / ANSWER
        try:
            digest, _, body = path.read_text(encoding="utf-8").partition("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"candidate file {path} cannot be read: {error}") from None
        body = body.removesuffix("\n")
        if sha256(body.encode()) != digest or (expected is not None and digest != expected):
            raise UsageError(f"candidate file {path} is damaged: its content does not match its hash")
        return proposal_from_json(json.loads(body))

    def has_answer(self) -> bool:
        """Whether a whole answer is there, perhaps one whose arrival the ledger did not live to record."""
        try:
            self.read_answer()
        except UsageError:
            return False
        return True

    def write_sources(self, sources: Mapping[str, str]) -> None:
        """Writes the candidate's files below this folder. Raises ValueError for names that leave it."""
        for name, text in sources.items():
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts or name in ("", ANSWER):
                raise ValueError(f"a candidate may not contain a file named {name!r}")
            write_atomic(self.path / parts, text)

    def write_json(self, name: str, value: Any) -> None:
        write_atomic(self.path / name, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")

    def log(self, name: str) -> Path:
        """The path of a log file; its folder exists."""
        path = self.path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
