"""What a run was asked to do, with every default filled in: what ``config.toml`` of a run folder holds."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cuco.errors import MissingError, UsageError
from cuco.search.settings import Budget, SearchSettings
from cuco.space.context import make_context

if TYPE_CHECKING:
    from cuco.workload import Workload

Testbed = Literal["emulator", "cuda", "cluster"]
BackendChoice = Literal["auto", "lsa", "gin", "hybrid"]
Effort = Literal["quick", "standard", "deep"]

#: Testbeds of this version; the others of the contract come with later issues.
AVAILABLE_TESTBEDS = ("emulator",)
#: Generations that an effort buys where none are given.
GENERATIONS: Mapping[str, int] = {"quick": 3, "standard": 4, "deep": 16}
CONFIG_NAME = "config.toml"


class Options(BaseModel):
    """The common options of the command line, as given; None where nothing was said."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    testbed: Testbed = "emulator"
    ranks: int | None = None
    lsa_team: int | None = Field(default=None, ge=1)
    backend: BackendChoice = "auto"
    size: str | None = None
    machine: str | None = None
    link: str | None = None
    model: str | None = None
    seed: int = Field(default=0, ge=0)
    generations: int | None = Field(default=None, ge=1)
    budget_usd: float | None = Field(default=None, ge=0)
    budget_seconds: float | None = Field(default=None, gt=0)
    effort: Effort = "standard"
    lanes: int | None = Field(default=None, ge=1)


class Config(BaseModel):
    """A run as it was resolved. Stored in the archive and, readable, as ``config.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    workload: str
    testbed: Testbed
    ranks: int = Field(ge=2)
    lsa_team: int = Field(ge=1)
    backend: BackendChoice
    size: str
    machine: str
    link: str | None = None
    model: str | None = None
    effort: Effort
    search: SearchSettings

    def judging(self) -> dict[str, Any]:
        """What an evaluation needs to know of this run (``cuco.search.judging``)."""
        return {
            "workload": self.workload,
            "ranks": self.ranks,
            "lsa_team": self.lsa_team,
            "machine": self.machine,
            "link": self.link,
            "size": self.size,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: Path) -> Self:
        """A stored configuration. Raises UsageError naming the key where it does not fit this version."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise UsageError(f"configuration in {source}: {one_line(error)}") from None


def one_line(error: ValidationError) -> str:
    """The first complaint of a validation, with the key it is about."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}"


def make_options(**values: Any) -> Options:
    """Options from a command line or a call. Raises UsageError naming the option that is wrong."""
    try:
        return Options.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        raise UsageError(f"option {one_line(error).replace('_', '-')}") from None


def resolve(workload: Workload, options: Options, *, default_size: str) -> Config:
    """Fills in the workload's defaults. Raises UsageError where options contradict it or each other."""
    from cuco.testbed.vtime import load_machine
    from cuco.testbed.vtime.link import with_link
    from cuco.verify.placement import ranks_per_domain

    require_testbed(options.testbed)
    if options.model is not None:
        raise MissingError(
            f"model {options.model!r} cannot be asked: this version has no model client",
            fix="Leave --model out to use the built-in proposer",
        )
    size = options.size or default_size
    params = workload.params(size)
    ranks = workload.spec.ranks.default if options.ranks is None else options.ranks
    workload.check_ranks(ranks, params)
    machine = with_link(load_machine(options.machine or workload.spec.machine), options.link)
    lsa_team = ranks_per_domain(workload, machine, ranks, params, options.lsa_team)
    require_reach(options.backend, ranks, lsa_team)
    generations = options.generations or GENERATIONS[options.effort]
    settings = SearchSettings(seed=options.seed, lanes=options.lanes or default_lanes())
    budget = Budget(
        evaluations=generations * settings.generation_size,
        seconds=options.budget_seconds,
        usd=options.budget_usd,
    )
    return Config(
        name=workload.name,
        workload=str(workload.folder),
        testbed=options.testbed,
        ranks=ranks,
        lsa_team=lsa_team,
        backend=options.backend,
        size=size,
        machine=options.machine or workload.spec.machine,
        link=options.link,
        effort=options.effort,
        search=settings.model_copy(update={"budget": budget}),
    )


def require_reach(backend: BackendChoice, ranks: int, lsa_team: int) -> None:
    """Raises UsageError where the backend asked for cannot reach the peers that there are."""
    context = make_context(ranks=ranks, lsa_team=lsa_team)
    where = f"and here {ranks} ranks are in domains of {lsa_team}"
    if backend == "lsa" and not context.peers_in_team:
        raise UsageError(
            f"--backend lsa reaches only peers of one NVLink domain, {where}",
            fix="Use gin, hybrid or auto, or a larger --lsa-team",
        )
    if backend == "hybrid" and not context.both_kinds_of_peer:
        raise UsageError(
            f"--backend hybrid needs peers inside and outside of NVLink domains, {where}",
            fix="Use lsa, gin or auto",
        )


def require_testbed(testbed: str) -> None:
    """Raises MissingError for a testbed that this version does not have."""
    if testbed not in AVAILABLE_TESTBEDS:
        raise MissingError(f"the {testbed} testbed is not part of this version", fix="Use --testbed emulator")


def default_lanes() -> int:
    """Evaluations at once: one per core up to two; an emulated evaluation keeps a core busy."""
    import os

    return min(2, len(os.sched_getaffinity(0)))


def write_config(config: Config, folder: Path) -> None:
    """Writes ``config.toml`` for people to read; the archive has its own copy."""
    from cuco.search.blobs import write_atomic

    write_atomic(folder / CONFIG_NAME, to_toml(config.model_dump(mode="json", exclude_none=True)))


def to_toml(data: Mapping[str, Any]) -> str:
    """TOML text of nested tables of numbers, strings, booleans and lists of them."""
    return "".join(_tables(data, ()))


def _tables(data: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    values = {key: value for key, value in data.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(path)}]\n"] if path and values else []
    lines += [f"{key} = {_value(value)}\n" for key, value in values.items()]
    lines += ["\n"] if values else []
    for key, value in data.items():
        if isinstance(value, Mapping):
            lines += _tables(value, (*path, key))
    return lines


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    # JSON strings are TOML basic strings, except that TOML wants DEL escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file. Raises UsageError where it is missing or malformed."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
