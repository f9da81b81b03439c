"""Random draws that depend on the run's seed, their purpose and the attempt, and on nothing else.

A counter-based generator is made for every draw, so neither the order in which results arrive nor a resume
changes what is drawn.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator


def _digest(seed: int, purpose: str, attempt: int) -> bytes:
    return hashlib.blake2b(f"{seed}/{purpose}/{attempt}".encode(), digest_size=16).digest()


def generator(seed: int, purpose: str, attempt: int) -> Generator:
    """The generator for one purpose of one attempt."""
    from numpy.random import Generator, Philox

    return Generator(Philox(key=int.from_bytes(_digest(seed, purpose, attempt), "little")))


def candidate_id(seed: int, attempt: int) -> str:
    """The id of an attempt's candidate: its number, and six hex digits that differ between seeds."""
    return f"{attempt:04d}-{_digest(seed, 'candidate', attempt).hex()[:6]}"
