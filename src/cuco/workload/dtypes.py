"""Data types of buffers: their names in ``workload.toml``, in NumPy and in NCCL."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from cuco.errors import UsageError


@dataclass(frozen=True)
class DType:
    """A buffer's element type.

    ``nccl`` is the value of NCCL's ``ncclDataType_t`` (nccl.h 2.32.3), which ``cuco_buffer.dtype`` carries.
    ``poison`` is the byte an output is filled with before a step: NaN for floats; for integers a value that
    is unlikely to be a result.
    """

    name: str
    numpy: np.dtype[np.generic]
    nccl: int
    poison: int

    @property
    def bytes(self) -> int:
        return int(self.numpy.itemsize)

    @property
    def is_float(self) -> bool:
        return self.poison == _FLOAT_POISON


_FLOAT_POISON = 0xFF
_INTEGER_POISON = 0xA5


def _float(name: str, scalar: object, nccl: int) -> DType:
    return DType(name, np.dtype(scalar), nccl, _FLOAT_POISON)  # type: ignore[call-overload]


def _integer(name: str, nccl: int) -> DType:
    return DType(name, np.dtype(name), nccl, _INTEGER_POISON)


DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        _integer("int8", 0),
        _integer("uint8", 1),
        _integer("int32", 2),
        _integer("uint32", 3),
        _integer("int64", 4),
        _integer("uint64", 5),
        _float("float16", np.float16, 6),
        _float("float32", np.float32, 7),
        _float("float64", np.float64, 8),
        _float("bfloat16", ml_dtypes.bfloat16, 9),
        _float("float8_e4m3", ml_dtypes.float8_e4m3fn, 10),
        _float("float8_e5m2", ml_dtypes.float8_e5m2, 11),
    )
}
_ALIASES = {"bf16": "bfloat16", "half": "float16", "fp16": "float16", "float": "float32", "fp32": "float32"}


def find_dtype(name: str, where: str) -> DType:
    """The data type called ``name``; UsageError naming ``where`` and the known ones."""
    dtype = DTYPES.get(_ALIASES.get(name, name))
    if dtype is None:
        raise UsageError(f"{where}: unknown dtype '{name}'", fix="Known: " + ", ".join(DTYPES) + ".")
    return dtype
