"""CUCo from Python: ``cuco.optimize(...)`` returns what the command prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuco.config import Config, Effort, make_options, resolve
from cuco.errors import UsageError

if TYPE_CHECKING:
    from cuco.propose.protocol import Proposal
    from cuco.search.records import Attempt, Candidate, Verdict
    from cuco.session import Watcher
    from cuco.workload import Workload

__all__ = ["optimize", "resume", "transform"]

#: The size that is timed where none is asked for.
DEFAULT_SIZE = "full"


class Quiet:
    """A watcher that says nothing."""

    def known(self, attempt: Attempt, verdict: Verdict | None) -> None:
        pass

    def changed(self, attempt: Attempt, verdict: Verdict | None) -> None:
        pass

    def confirming(self, candidate: Candidate, verdict: Verdict | None, stage: str = "") -> None:
        pass

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def optimize(
    workload: str | Path,
    *,
    run_dir: str | Path | None = None,
    candidates: Sequence[str | Path] = (),
    watcher: Watcher | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Rewrites a host-driven workload, improves it, proves it, and returns the result of contracts 5.

    ``workload`` is a folder or the name of a bundled one; ``options`` are those of the command line with
    underscores (``ranks``, ``lsa_team``, ``backend``, ``size``, ``machine``, ``seed``, ``generations``,
    ``effort``, ...). ``candidates`` are sources to search from instead of the fast path's. Raises CucoError
    with the exit code that the command would have.
    """
    from cuco.session import Job, default_folder, start
    from cuco.workload import load_workload

    loaded = load_workload(str(workload))
    config: Config = resolve(loaded, make_options(**options), default_size=DEFAULT_SIZE)
    folder = default_folder(loaded.name) if run_dir is None else Path(run_dir)
    sources = tuple((Path(path).name, _text(path)) for path in candidates)
    return start(Job(folder, config, loaded, sources), watcher or Quiet())


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def resume(run_dir: str | Path, *, watcher: Watcher | None = None) -> dict[str, Any]:
    """Continues an interrupted run and returns its result; that of a finished run at once."""
    from cuco.session import resume as carry_on

    return carry_on(Path(run_dir), watcher or Quiet())


def transform(workload: str | Path, *, output: str | Path | None = None, **options: Any) -> dict[str, Any]:
    """The fast path alone: per backend stage A, then the conservative candidate of stage B, each verified.

    Returns ``{workload, candidates: [{file, backend, accepted, stage, reason, findings, directives}],
    stages: [{name, backend, file, accepted, stage, reason, findings}], refused: [{backend, reason}]}``:
    ``stages`` has every verdict, stage A's at quick effort; ``candidates`` has those of stage B, which
    follows only an accepted stage A. Files are ``output`` (numbered from the second on), by default
    ``<name>-device.cu`` in the current folder; a rejected stage A is kept as ``...-infrastructure.cu``.
    """
    from cuco.fastpath.stages import fast_path
    from cuco.session import Job, make_problem
    from cuco.workload import load_workload

    loaded = load_workload(str(workload))
    config = resolve(loaded, make_options(**options), default_size=DEFAULT_SIZE)
    problem = make_problem(Job(Path(), config, loaded))
    found = fast_path(loaded, problem.graph, problem.contexts, config.search.seed)
    base = Path(output) if output is not None else Path(f"{loaded.name}-device.cu")
    stages: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    for index, (backend, both) in enumerate(found.stages.items()):
        path = base if index == 0 else base.with_name(f"{base.stem}-{index + 1}{base.suffix}")
        first = _ground(loaded, config, path, both.infrastructure)
        stages.append({**first, "name": "A", "backend": backend.value})
        if not first["accepted"]:
            continue
        second = _judged(loaded, config, path, both.conservative, "standard")
        stages.append({**second, "name": "B", "backend": backend.value})
        directives = {edge: one.key() for edge, one in both.conservative.directives.items()}
        candidates.append({**second, "backend": backend.value, "directives": directives})
    return {
        "workload": loaded.name,
        "candidates": candidates,
        "stages": stages,
        "refused": [{"backend": one.value, "reason": str(why)} for one, why in found.refused.items()],
    }


def _ground(workload: Workload, config: Config, path: Path, proposal: Proposal) -> dict[str, Any]:
    """Judges stage A of the candidate ``path``; its file is kept only if it is rejected."""
    import tempfile

    kept = path.with_name(f"{path.stem}-infrastructure{path.suffix}")
    with tempfile.TemporaryDirectory(prefix="cuco-stage-a-") as folder:
        verdict = _judged(workload, config, Path(folder) / kept.name, proposal, "quick")
    if not verdict["accepted"]:
        _write(kept, proposal.sources)
    return {**verdict, "file": None if verdict["accepted"] else str(kept)}


def _judged(
    workload: Workload, config: Config, path: Path, proposal: Proposal, effort: Effort
) -> dict[str, Any]:
    """Writes a candidate and verifies it: the verdict as data, with its file and its reason in one line."""
    from cuco.verify import VerifyOptions, verify

    _write(path, proposal.sources)
    verdict = verify(
        workload,
        path,
        VerifyOptions(
            effort=effort,
            ranks=config.ranks,
            lsa_team=config.lsa_team,
            machine=config.machine,
            seed=config.search.seed + 1,
        ),
    )
    return {**verdict.as_dict(), "file": str(path), "reason": verdict.reason()}


def _write(path: Path, sources: Any) -> None:
    from cuco.propose.protocol import MAIN_FILE

    try:
        for name, text in sources.items():
            target = path if name == MAIN_FILE else path.parent / name
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
