"""Secret, counter-based random numbers for inputs.

Every generator is a function of (run secret, rank, step) and of nothing else, so a peer's data cannot be
computed on a rank, every step has fresh data, and a verdict replays from its seed.
"""

from __future__ import annotations

import hashlib

import numpy as np


class RankRandom(np.random.Generator):
    """The generator of one rank and step; ``shared`` is equal on all ranks of a step (replicated weights)."""

    def __init__(self, secret: bytes, rank: int, step: int) -> None:
        super().__init__(_philox(secret, f"rank {rank} step {step}"))
        self.shared = np.random.Generator(_philox(secret, f"shared step {step}"))


def run_secret(seed: int) -> bytes:
    """The secret of a run: 32 bytes that only the trusted side ever holds."""
    return hashlib.blake2b(f"cuco run {seed}".encode(), digest_size=32).digest()


def hash_key(secret: bytes, step: int) -> tuple[int, int]:
    """The key of a step's output hashes: two 64-bit words."""
    digest = hashlib.blake2b(f"hash {step}".encode(), key=secret, digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def secret_steps(secret: bytes, steps: int, share: float) -> list[int]:
    """The steps of which a full snapshot is taken: first and last always, of the rest a secret share."""
    chooser = np.random.Generator(_philox(secret, "snapshots"))
    drawn = chooser.random(steps) < share
    return [step for step in range(steps) if drawn[step] or step in (0, steps - 1)]


def _philox(secret: bytes, purpose: str) -> np.random.Philox:
    digest = hashlib.blake2b(purpose.encode(), key=secret[:64], digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(digest, "little"))
