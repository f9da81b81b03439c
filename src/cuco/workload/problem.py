"""Loading a workload's ``problem.py`` and checking what its functions return.

The file is the user's own code and is executed as such, in a module of its own that nothing else can import.
It runs on the trusted side only: no candidate ever sees it.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from cuco.errors import RejectedError, UsageError
from cuco.workload.randomness import RankRandom

Array = npt.NDArray[Any]
FUNCTIONS = ("inputs", "reference", "work")


@dataclass(frozen=True)
class Shaped:
    """Shape and data type that a returned array must have."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


@dataclass(frozen=True)
class Work:
    """What one rank must at least do in one step: for limits. Bytes over the network, and of device
    memory."""

    flops: dict[str, float] = field(default_factory=dict)
    bytes_out: float = 0.0
    bytes_in: float = 0.0
    hbm_bytes: float = 0.0


class Problem:
    """The functions of a ``problem.py``, guarded: wrong results are RejectedError, missing functions
    UsageError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._module = _load(path)
        for name in FUNCTIONS:
            if not callable(getattr(self._module, name, None)):
                raise UsageError(f"{path} has no function '{name}'", fix=f"Define {_SIGNATURES[name]}.")

    def inputs(
        self, rank: int, params: Mapping[str, Any], rng: RankRandom, expected: Mapping[str, Shaped]
    ) -> dict[str, Array]:
        """The arrays of one rank, checked against ``expected`` (every buffer of role in and inout)."""
        returned = self._call("inputs", rank, MappingProxyType(dict(params)), rng)
        arrays = self._mapping(returned, f"inputs(rank={rank})")
        for name in expected:
            if name not in arrays:
                raise RejectedError(f"{self.path.name}: inputs(rank={rank}) returned no '{name}'")
        for name in arrays:
            if name not in expected:
                raise RejectedError(
                    f"{self.path.name}: inputs(rank={rank}) returned '{name}', which is no input buffer"
                )
        return {name: self._shaped(name, arrays[name], want, rank) for name, want in expected.items()}

    def reference(
        self,
        all_inputs: Sequence[Mapping[str, Array]],
        params: Mapping[str, Any],
        expected: Sequence[Mapping[str, Shaped]],
    ) -> list[dict[str, Array]]:
        """Per rank the expected outputs as float64 (or integers); buffers left out are not checked on that
        rank.
        """
        returned = self._call(
            "reference", [dict(inputs) for inputs in all_inputs], MappingProxyType(dict(params))
        )
        if not isinstance(returned, Sequence) or len(returned) != len(expected):
            raise RejectedError(
                f"{self.path.name}: reference returned wrong shape: it must be a list of {len(expected)} "
                f"dictionaries, one per rank"
            )
        result = []
        for rank, item in enumerate(returned):
            arrays = self._mapping(item, f"reference()[{rank}]")
            result.append(
                {name: self._output(name, value, rank, expected[rank]) for name, value in arrays.items()}
            )
        if not any(array.size for item in result for array in item.values()):
            raise RejectedError(f"{self.path.name}: reference checks nothing on any rank")
        return result

    def work(self, params: Mapping[str, Any], rank: int) -> Work:
        """Least work of one rank in a step."""
        returned = self._call("work", MappingProxyType(dict(params)), rank)
        known = set(Work.__dataclass_fields__)
        if not isinstance(returned, Mapping) or not set(returned) <= known:
            raise RejectedError(
                f"{self.path.name}: work must return a dictionary with keys of {sorted(known)}"
            )
        flops = {str(name): float(value) for name, value in dict(returned.get("flops", {})).items()}
        scalars = {name: float(returned.get(name, 0.0)) for name in known - {"flops"}}
        return Work(flops=flops, **scalars)

    def _call(self, name: str, *arguments: object) -> object:
        function: Callable[..., object] = getattr(self._module, name)
        try:
            return function(*arguments)
        except Exception as error:
            where = f"{self.path.name}: {name} failed at line {_line(error, self.path)}"
            raise RejectedError(f"{where}: {type(error).__name__}: {error}") from None

    def _mapping(self, value: object, what: str) -> dict[str, Array]:
        if not isinstance(value, Mapping):
            raise RejectedError(f"{self.path.name}: {what} must be a dictionary of arrays by buffer name")
        return {str(name): np.asarray(array) for name, array in value.items()}

    def _output(self, name: str, array: Array, rank: int, expected: Mapping[str, Shaped]) -> Array:
        if name not in expected:
            raise RejectedError(f"{self.path.name}: reference returned '{name}', which is no output buffer")
        self._check_shape(f"reference: '{name}' of rank {rank}", array, expected[name].shape)
        exact_integer = expected[name].dtype.kind in "iu" and array.dtype.kind in "iu"
        converted = array.astype(expected[name].dtype if exact_integer else np.float64)
        if not exact_integer and not np.isfinite(converted).all():
            raise RejectedError(
                f"{self.path.name}: reference: '{name}' of rank {rank} is not finite everywhere"
            )
        return converted

    def _shaped(self, name: str, array: Array, want: Shaped, rank: int) -> Array:
        self._check_shape(f"inputs: '{name}' of rank {rank}", array, want.shape)
        if array.dtype != want.dtype:
            what = f"{self.path.name}: inputs: '{name}' of rank {rank}"
            raise RejectedError(f"{what} has wrong dtype {array.dtype}, not {want.dtype}")
        return np.ascontiguousarray(array).reshape(want.shape)

    def _check_shape(self, what: str, array: Array, shape: tuple[int, ...]) -> None:
        if array.shape != shape:
            raise RejectedError(
                f"{self.path.name}: {what} has wrong shape {list(array.shape)}, not {list(shape)}"
            )


_SIGNATURES = {
    "inputs": "inputs(rank, params, rng) -> {buffer: array}",
    "reference": "reference(all_inputs, params) -> [per rank {buffer: float64 array}]",
    "work": "work(params, rank) -> {flops, bytes_out, bytes_in, hbm_bytes}",
}


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path} does not exist", fix="A workload folder needs a problem.py.")
    spec = importlib.util.spec_from_file_location(f"_cuco_problem_{abs(hash(str(path)))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    keep, sys.dont_write_bytecode = (
        sys.dont_write_bytecode,
        True,
    )  # a bundled workload may lie in a read-only place
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: {error.msg}", fix="Correct the file.") from None
    except Exception as error:
        raise UsageError(
            f"{path}: loading failed at line {_line(error, path)}: {type(error).__name__}: {error}"
        ) from None
    finally:
        sys.dont_write_bytecode = keep
    return module


def _line(error: BaseException, path: Path) -> int:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return frames[-1].lineno or 0 if frames else 0
