"""The keyed hash of an output, as ``native/driver/hash.cpp`` computes it in stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def keyed_hash(data: bytes | npt.NDArray[Any], key: tuple[int, int]) -> int:
    """Of the 8-byte words of ``data``, the last one padded with zeros."""
    raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
    padded = raw + bytes(-len(raw) % 8)
    words = np.frombuffer(padded, dtype="<u8")
    with np.errstate(over="ignore"):
        positions = np.uint64(key[0]) + np.arange(1, len(words) + 1, dtype=np.uint64) * _GOLDEN
        parts = _mix(words ^ _mix(positions))
        first = _mix(np.array([key[1] ^ len(raw)], dtype=np.uint64))
        return int(first[0] + np.sum(parts, dtype=np.uint64))


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
