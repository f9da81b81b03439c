"""A workload: what to compute on how many ranks, the user's host-driven code, and how to check it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cuco.errors import RejectedError, UsageError
from cuco.workload.compare import Comparison, Suspicions, compare_array
from cuco.workload.dtypes import DType, find_dtype
from cuco.workload.expressions import Expression, Number
from cuco.workload.format import Param, Spec, read_spec
from cuco.workload.problem import Problem, Shaped, Work
from cuco.workload.randomness import RankRandom

Array = npt.NDArray[Any]
Params = Mapping[str, Number]

_INPUT_ROLES = ("in", "inout")
_OUTPUT_ROLES = ("out", "inout")


@dataclass(frozen=True)
class BufferInfo:
    """A buffer of one rank with everything evaluated. ``bytes`` may be 0."""

    name: str
    dtype: DType
    role: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes


@dataclass(frozen=True)
class BaselineSource:
    """A host-driven version to time. ``extra`` are further parameters it receives (a tuned chunk count)."""

    name: str
    source: Path
    extra: Mapping[str, int]


class Workload:
    """A workload folder, read and checked. ``problem.py`` is loaded on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.spec: Spec = read_spec(self.folder / "workload.toml")
        self.name = self.spec.name
        if not self.host_source.is_file():
            raise UsageError(f"{self.host_source} does not exist", fix="A workload folder needs a host.cu.")

    @property
    def host_source(self) -> Path:
        """The user's host-driven code: the sequential baseline."""
        return self.folder / "host.cu"

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        """Folders a source of this workload may include from: its own, then those of ``include_dirs``."""
        return (self.folder, *((self.folder / entry).resolve() for entry in self.spec.include_dirs))

    @cached_property
    def problem(self) -> Problem:
        return Problem(self.folder / "problem.py")

    def baselines(self) -> list[BaselineSource]:
        """The sequential version first, then every tuned combination of the others."""
        found = [BaselineSource("sequential", self.host_source, {})]
        for baseline in self.spec.baselines:
            source = self.folder / baseline.file
            if not source.is_file():
                raise UsageError(
                    f"{source} does not exist", fix=f"It is the file of baseline '{baseline.name}'."
                )
            names = list(baseline.tune)
            for values in itertools.product(*baseline.tune.values()):
                extra = dict(zip(names, values, strict=True))
                label = ",".join(f"{key}={value}" for key, value in extra.items())
                found.append(
                    BaselineSource(f"{baseline.name}[{label}]" if label else baseline.name, source, extra)
                )
        return found

    def params(self, size: str = "tiny", overrides: Mapping[str, Number] | None = None) -> dict[str, Number]:
        """The parameters of a size, with overrides; every bound checked."""
        if size not in self.spec.sizes:
            raise UsageError(
                f"workload '{self.name}' has no size '{size}'",
                fix="Sizes: " + ", ".join(self.spec.sizes) + ".",
            )
        values: dict[str, Number] = dict(self.spec.sizes[size])
        for name, value in (overrides or {}).items():
            if name not in self.spec.params:
                raise UsageError(
                    f"workload '{self.name}' has no parameter '{name}'",
                    fix="Parameters: " + ", ".join(self.spec.params) + ".",
                )
            values[name] = value
        return {
            name: _checked(f"sizes.{size}.{name}", values[name], param)
            for name, param in self.spec.params.items()
        }

    def check_ranks(self, ranks: int, params: Params) -> None:
        """UsageError unless the workload allows this many ranks with these parameters."""
        if ranks < 2:
            count = "1 rank is" if ranks == 1 else f"{ranks} ranks are"
            raise UsageError(f"{count} too few", fix="Give at least 2.")
        if not self.allows(ranks, params):
            raise UsageError(
                f"workload '{self.name}' does not allow {ranks} ranks",
                fix=f"It needs {self.spec.ranks.allowed} with " + _listed(params) + ".",
            )

    def allows(self, ranks: int, params: Params) -> bool:
        """Whether ``ranks.allowed`` holds."""
        return bool(Expression(self.spec.ranks.allowed, "ranks.allowed").evaluate({**params, "ranks": ranks}))

    def lsa_team(self, ranks: int, params: Params, wanted: int | None = None) -> int:
        """Ranks per NVLink domain: ``wanted``, which must divide the ranks, else the workload's own."""
        if wanted is not None:
            if wanted < 1 or ranks % wanted:
                raise UsageError(
                    f"an LSA team of {wanted} does not divide {ranks} ranks",
                    fix="Give a divisor of the ranks.",
                )
            return wanted
        team = Expression(str(self.spec.lsa_team), "lsa_team").integer({**params, "ranks": ranks}, least=1)
        if ranks % team:
            raise UsageError(
                f"lsa_team = {self.spec.lsa_team} gives {team}, which does not divide {ranks} ranks",
                fix="Give --lsa-team, or write an expression over ranks.",
            )
        return team

    def buffers(self, rank: int, ranks: int, params: Params) -> list[BufferInfo]:
        """Every buffer of one rank, in the order of ``workload.toml``."""
        names: dict[str, Number] = {**params, "ranks": ranks, "rank": rank}
        found = []
        for buffer in self.spec.buffers:
            where = f"buffers '{buffer.name}' shape"
            shape = tuple(Expression(text, where).integer(names) for text in buffer.shape)
            found.append(BufferInfo(buffer.name, find_dtype(buffer.dtype, where), buffer.role, shape))
        return found

    def inputs(self, secret: bytes, step: int, rank: int, ranks: int, params: Params) -> dict[str, Array]:
        """Inputs of one rank in one step: a function of the run's secret, the rank and the step."""
        expected = _shaped(self.buffers(rank, ranks, params), _INPUT_ROLES)
        return self.problem.inputs(rank, _visible(params, ranks), RankRandom(secret, rank, step), expected)

    def reference(self, all_inputs: Sequence[Mapping[str, Array]], params: Params) -> list[dict[str, Array]]:
        """Expected outputs per rank, in float64 (integer buffers: exact integers if the reference gives
        integers).
        """
        ranks = len(all_inputs)
        expected = [_shaped(self.buffers(rank, ranks, params), _OUTPUT_ROLES) for rank in range(ranks)]
        return self.problem.reference(all_inputs, _visible(params, ranks), expected)

    def compare(
        self,
        rank: int,
        outputs: Mapping[str, Array],
        want: Mapping[str, Array],
        suspicions: Mapping[str, Suspicions] | None = None,
    ) -> list[Comparison]:
        """Compares every output that the reference names on this rank; a missing one is an error, never a
        pass.
        """
        found = []
        for name, expected in want.items():
            if name not in outputs:
                raise RejectedError(f"no output '{name}' came back from rank {rank}")
            suspicion = (suspicions or {}).get(name)
            found.append(
                compare_array(rank, name, outputs[name], expected, self.spec.outputs[name], suspicion)
            )
        return found

    def work(self, rank: int, ranks: int, params: Params) -> Work:
        """Least work of one rank in a step."""
        return self.problem.work(_visible(params, ranks), rank)

    def odd_sizes(self) -> Iterator[str]:
        """Further sizes (awkward ones) that a verification tries beside the asked one."""
        return (name for name in self.spec.sizes if name.startswith("odd"))


def _visible(params: Params, ranks: int) -> dict[str, Number]:
    return {**params, "ranks": ranks}


def _shaped(buffers: Sequence[BufferInfo], roles: tuple[str, ...]) -> dict[str, Shaped]:
    return {
        buffer.name: Shaped(buffer.shape, buffer.dtype.numpy) for buffer in buffers if buffer.role in roles
    }


def _listed(params: Params) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "no parameters"


def _checked(where: str, value: Number, param: Param) -> Number:
    if param.type == "int" and (isinstance(value, bool) or int(value) != value):
        raise UsageError(f"{where} is {value}, not an integer", fix="Correct the value.")
    number: Number = int(value) if param.type == "int" else float(value)
    if param.min is not None and number < param.min or param.max is not None and number > param.max:
        raise UsageError(f"{where} is {number}, outside [{param.min}, {param.max}]", fix="Correct the value.")
    if param.multiple_of and number % param.multiple_of:
        raise UsageError(
            f"{where} is {number}, not a multiple of {param.multiple_of}", fix="Correct the value."
        )
    return number
