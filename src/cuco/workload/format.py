"""``workload.toml``: its fields, and errors that name the key and the fix.

Every model refuses unknown keys, so a misspelt key is an error and never a silently ignored wish.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from cuco.errors import UsageError
from cuco.workload.dtypes import find_dtype

Role = Literal["in", "out", "inout", "scratch"]
#: Values of ``cuco_buffer.role``.
ROLES: dict[str, int] = {"in": 0, "out": 1, "inout": 2, "scratch": 3}
REQUIRED_SIZES = ("tiny", "dev", "full")
RESERVED_NAMES = frozenset({"ranks", "rank", "lsa_team", "min", "max", "abs"})


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ranks(_Model):
    """``[ranks]``: the default number of ranks and an expression over ``ranks`` and parameters that must
    hold.
    """

    default: int = Field(ge=2, le=64)
    allowed: str = "ranks >= 2"


class Param(_Model):
    """A typed parameter. ``multiple_of`` and the bounds are checked for every size and override."""

    type: Literal["int", "float"] = "int"
    min: float | None = None
    max: float | None = None
    multiple_of: int | None = Field(default=None, ge=1)
    help: str = ""


class Buffer(_Model):
    """A buffer of every rank; its shape is a list of expressions over parameters, ``ranks`` and ``rank``."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    dtype: str
    role: Role
    shape: tuple[str, ...] = Field(min_length=1, max_length=8)

    @field_validator("shape", mode="before")
    @classmethod
    def _texts(cls, value: object) -> object:
        return (
            [str(item) if isinstance(item, int) else item for item in value]
            if isinstance(value, list)
            else value
        )


class Output(_Model):
    """Tolerance of an output: ``exact``, or |got - want| <= atol + rtol * |want|. ``tile`` only labels
    mismatches.
    """

    rtol: float = Field(default=0.0, ge=0)
    atol: float = Field(default=0.0, ge=0)
    exact: bool = False
    tile: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _one_of(self) -> Output:
        if self.exact == (self.rtol > 0 or self.atol > 0):
            raise ValueError("give either exact = true, or rtol and atol")
        return self


class Baseline(_Model):
    """A further host-driven version. Every combination of ``tune`` is timed; the values reach it as
    parameters.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    file: str
    tune: dict[str, tuple[int, ...]] = {}


class Spec(_Model):
    """The whole of a ``workload.toml``."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    summary: str
    ranks: Ranks
    lsa_team: int | str = "ranks"
    machine: str
    params: dict[str, Param] = {}
    sizes: dict[str, dict[str, int | float]]
    buffers: tuple[Buffer, ...] = Field(min_length=1)
    outputs: dict[str, Output]
    improve: float = Field(default=0.03, ge=0, le=1)
    baselines: tuple[Baseline, ...] = ()
    include_dirs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        for problem in (*self._size_problems(), *self._buffer_problems()):
            raise ValueError(problem)
        return self

    def _size_problems(self) -> list[str]:
        found = [f"params.{name} is a reserved name" for name in self.params if name in RESERVED_NAMES]
        found += [f"sizes.{name} is missing" for name in REQUIRED_SIZES if name not in self.sizes]
        for name, values in self.sizes.items():
            found += [f"sizes.{name} lacks the parameter '{key}'" for key in self.params if key not in values]
            found += [f"sizes.{name}.{key} is not a parameter" for key in values if key not in self.params]
        return found

    def _buffer_problems(self) -> list[str]:
        names = [buffer.name for buffer in self.buffers]
        found = [f"buffers: '{name}' appears twice" for name in names if names.count(name) > 1]
        written = [buffer.name for buffer in self.buffers if buffer.role in ("out", "inout")]
        if not written:
            found.append("buffers: none has role out or inout, so there is nothing to check")
        found += [
            f"outputs.{name} is missing (its tolerance)" for name in written if name not in self.outputs
        ]
        found += [
            f"outputs.{name} names no buffer of role out or inout"
            for name in self.outputs
            if name not in written
        ]
        return found


def read_spec(path: Path) -> Spec:
    """Reads and checks ``workload.toml``; UsageError with the key and the fix in one line."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"{path} does not exist", fix="A workload is a folder with a workload.toml."
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}", fix="Correct the file.") from None
    return parse_spec(data, str(path))


def parse_spec(data: dict[str, Any], origin: str) -> Spec:
    """As :func:`read_spec`, from parsed TOML."""
    try:
        spec = Spec.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{origin}: {_first_problem(error)}", fix=_fix(error)) from None
    for index, buffer in enumerate(spec.buffers):
        find_dtype(buffer.dtype, f"{origin}: buffers[{index}] '{buffer.name}'")
    return spec


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    key = _key(first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    match first["type"]:
        case "missing":
            return f"the key '{key}' is missing"
        case "extra_forbidden":
            return f"the key '{key}' is unknown"
        case "value_error":
            return f"{key}: {message}" if key else message
    return f"{key}: {message} (it is {first['input']!r})"


def _fix(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "extra_forbidden":
        return "Remove it or correct its spelling; docs/workloads.md lists the keys."
    if first["type"] == "missing":
        return "Add it; docs/workloads.md shows a whole file."
    return "docs/workloads.md describes the format."


def _key(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part in ("int", "str"):  # members of a union, which pydantic adds to the location
            continue
        else:
            text += f".{part}" if text else str(part)
    return text
