"""CUCo from Python: ``cuco.optimize(...)`` returns what the command prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuco.config import Config, make_options, resolve
from cuco.errors import UsageError

if TYPE_CHECKING:
    from cuco.search.records import Attempt, Candidate, Verdict
    from cuco.session import Watcher

__all__ = ["optimize", "resume", "transform"]

#: The size that is timed where none is asked for.
DEFAULT_SIZE = "full"


class Quiet:
    """A watcher that says nothing."""

    def known(self, attempt: Attempt, verdict: Verdict | None) -> None:
        pass

    def changed(self, attempt: Attempt, verdict: Verdict | None) -> None:
        pass

    def confirming(self, candidate: Candidate, verdict: Verdict | None) -> None:
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
    return start(Job(folder, config, loaded, tuple(_text(path) for path in candidates)), watcher or Quiet())


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
    """The fast path alone: conservative device-initiated candidates, each verified.

    Returns ``{workload, candidates: [{file, accepted, stage, reason, findings, directives}]}``. The files are
    ``output`` (numbered from the second on), by default ``<name>-device.cu`` in the current folder.
    """
    from cuco.session import Job, fast_path, make_problem, make_proposer
    from cuco.verify import VerifyOptions, verify
    from cuco.workload import load_workload

    loaded = load_workload(str(workload))
    given = make_options(**options)
    config = resolve(loaded, given, default_size=DEFAULT_SIZE)
    job = Job(Path(), config, loaded)
    problem = make_problem(job)
    proposer = make_proposer(job, problem)
    base = Path(output) if output is not None else Path(f"{loaded.name}-device.cu")
    found = []
    for index, proposal in enumerate(fast_path(job, problem, proposer)):
        path = base if index == 0 else base.with_name(f"{base.stem}-{index + 1}{base.suffix}")
        _write(path, proposal.sources)
        verdict = verify(
            loaded,
            path,
            VerifyOptions(
                ranks=config.ranks,
                lsa_team=config.lsa_team,
                machine=config.machine,
                seed=config.search.seed + 1,
            ),
        )
        found.append(
            {
                **verdict.as_dict(),
                "file": str(path),
                "reason": verdict.reason(),
                "directives": {edge: one.key() for edge, one in proposal.directives.items()},
            }
        )
    return {"workload": loaded.name, "candidates": found}


def _write(path: Path, sources: Any) -> None:
    from cuco.propose.protocol import MAIN_FILE

    try:
        for name, text in sources.items():
            target = path if name == MAIN_FILE else path.parent / name
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
