"""Comparison of what a rank produced with the reference, and a guess at where wrong data came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cuco.workload.format import Output

Array = npt.NDArray[Any]

SHOWN = 5
#: Share of the wrong elements that must match a suspicion before it is named.
_GUESS_SHARE = 0.95


@dataclass(frozen=True)
class Mismatch:
    """One wrong element. ``tile`` is its tile's index, where the workload names a tile."""

    index: tuple[int, ...]
    got: float
    want: float
    tile: tuple[int, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Result for one buffer of one rank in one step. ``guess`` says what the wrong elements look like."""

    rank: int
    buffer: str
    compared: int
    wrong: int = 0
    first: tuple[Mismatch, ...] = ()
    guess: str = ""
    worst: float = 0.0

    @property
    def ok(self) -> bool:
        return self.wrong == 0

    def __str__(self) -> str:
        if self.ok:
            return f"rank {self.rank} '{self.buffer}': {self.compared} elements right"
        shown = "; ".join(_describe(mismatch) for mismatch in self.first[:SHOWN])
        guess = f"; {self.guess}" if self.guess else ""
        count = f"{self.wrong} of {self.compared} elements wrong"
        return f"rank {self.rank} '{self.buffer}': {count}: {shown}{guess}"


@dataclass(frozen=True)
class Suspicions:
    """What wrong data could be: poison of this step, and labelled arrays (earlier steps, other ranks,
    inputs).
    """

    poison: int | None = None
    arrays: Sequence[tuple[str, Array]] = field(default_factory=tuple)


def compare_array(
    rank: int, buffer: str, got: Array, want: Array, tolerance: Output, suspicions: Suspicions | None = None
) -> Comparison:
    """Compares ``got`` (the buffer's dtype) with ``want`` (float64 or integers); shapes are already equal."""
    bad = _wrong(got, want, tolerance)
    wrong = int(bad.sum())
    if wrong == 0:
        return Comparison(rank, buffer, got.size)
    where = np.flatnonzero(bad.reshape(-1))
    first = tuple(_mismatch(int(flat), got, want, tolerance.tile) for flat in where[:SHOWN])
    with np.errstate(all="ignore"):
        difference = np.abs(got.astype(np.float64) - want.astype(np.float64))[bad]
    worst = float(np.max(np.nan_to_num(difference, nan=np.inf, posinf=np.inf)))
    guess = _guess(got, where, suspicions or Suspicions())
    return Comparison(rank, buffer, got.size, wrong, first, guess, worst)


def _wrong(got: Array, want: Array, tolerance: Output) -> npt.NDArray[np.bool_]:
    if tolerance.exact:
        return np.asarray(got != want.astype(got.dtype))
    with np.errstate(all="ignore"):
        values = got.astype(np.float64)
        expected = want.astype(np.float64)
        close = np.abs(values - expected) <= tolerance.atol + tolerance.rtol * np.abs(expected)
    return np.asarray(~close)  # NaN and infinity compare false, so they are wrong


def _mismatch(flat: int, got: Array, want: Array, tile: tuple[int, ...]) -> Mismatch:
    index = tuple(int(i) for i in np.unravel_index(flat, got.shape))
    place = tuple(i // t for i, t in zip(index, tile, strict=False)) if tile else ()
    return Mismatch(index, float(got.reshape(-1)[flat]), float(want.reshape(-1)[flat]), place)


def _guess(got: Array, where: npt.NDArray[np.intp], suspicions: Suspicions) -> str:
    flat = got.reshape(-1)
    wrong = flat[where]
    raw = np.ascontiguousarray(wrong).view(np.uint8)
    if suspicions.poison is not None and _most(raw == suspicions.poison):
        return "they hold the poison: never written"
    if _most(raw == 0):
        return "they are zero"
    for label, array in suspicions.arrays:
        if array.size != flat.size:
            continue
        other = array.reshape(-1)[where].astype(got.dtype)
        if _most(other == wrong):
            return f"they equal {label}"
    return ""


def _most(matches: npt.NDArray[np.bool_] | Array) -> bool:
    return bool(matches.size) and float(np.mean(matches)) >= _GUESS_SHARE


def _describe(mismatch: Mismatch) -> str:
    place = f" (tile {list(mismatch.tile)})" if mismatch.tile else ""
    return f"{list(mismatch.index)}{place} is {mismatch.got:.6g}, want {mismatch.want:.6g}"
