"""Which runs a verification consists of: schedules, delivery and read policies, holds, decoys, warm-ups,
other shapes.

A run is a ``Perturbation``: everything that differs from the next one, so that it can be named in a verdict
and repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cuco.testbed.build import Variant
from cuco.workload import Workload

Effort = Literal["quick", "standard", "deep"]
EFFORTS: tuple[Effort, ...] = ("quick", "standard", "deep")
WARM_UPS = (0, 1, 3, 7)
_DELIVERIES = ("random", "lazy", "eager")
_READS = ("history", "newest", "oldest")
#: Steps of a chain: enough for double-buffered protocols to come round twice.
CHAIN_STEPS = 4
_SLOW = 50
_DEEP_SEEDS = 24
_MOST_RANKS = 8


@dataclass(frozen=True)
class Perturbation:
    """One run. ``hold``: ranks that run only when nothing else can;
    ``stutter``: other ranks each time. ``slow_ctas``: percent, how often a CTA that could run waits until
    nothing else can. ``base``: the configuration that was asked for.
    """

    index: int
    seed: int
    size: str
    ranks: int
    lsa_team: int
    mode: Literal["chain", "isolated"] = "chain"
    steps: int = CHAIN_STEPS
    warm_ups: int = 0
    delivery: str = "random"
    reads: str = "history"
    hold: tuple[int, ...] = ()
    stutter: bool = False
    decoys: int = 0
    slow_ctas: int = 0
    variant: Variant = "plain"
    base: bool = True

    def __str__(self) -> str:
        parts = [f"{self.ranks} ranks in teams of {self.lsa_team}", self.size, f"{self.mode} of {self.steps}"]
        parts += [f"{self.delivery} delivery", f"{self.reads} reads"]
        parts += [f"rank {','.join(map(str, self.hold))} held"] if self.hold else []
        parts += ["ranks held at random"] if self.stutter else []
        parts += ["CTAs slow at random"] if self.slow_ctas else []
        parts += [f"{self.warm_ups} warm-ups"] if self.warm_ups else []
        parts += [f"up to {self.decoys} decoys"] if self.decoys else []
        parts += [self.variant] if self.variant != "plain" else []
        return f"run {self.index}: " + ", ".join(parts)


def derived_seed(seed: int, index: int) -> int:
    """The seed of a run: 63 bits of a hash, so that neighbouring seeds share nothing."""
    digest = hashlib.blake2b(f"{seed} run {index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def plan(
    workload: Workload,
    *,
    effort: Effort,
    seed: int,
    size: str,
    ranks: int,
    lsa_team: int,
    overrides: dict[str, int | float],
) -> list[Perturbation]:
    """The runs of an effort, the telling ones first."""
    base = Perturbation(0, 0, size, ranks, lsa_team)
    runs = list(_quick(base))
    if effort != "quick":
        runs += _standard(base)
        runs += _other_shapes(workload, base, overrides)
    if effort == "deep":
        runs += _deep(base)
    return [replace(run, index=index, seed=derived_seed(seed, index)) for index, run in enumerate(runs)]


def _quick(base: Perturbation) -> Iterator[Perturbation]:
    last = base.ranks - 1
    long = 2 * CHAIN_STEPS
    yield base
    # Lazy delivery and a held sender: whoever does not wait sees poison.
    yield replace(base, delivery="lazy", hold=(0,), mode="isolated", steps=2, reads="newest")
    # CTAs slow at random: a kernel beside its producer sees what is not there yet unless it waits for it.
    yield replace(base, delivery="eager", slow_ctas=_SLOW)
    # Ranks held at random moments while the others run as far ahead as they can get: code that relies on its
    # peers'
    # pace overwrites what they still read.
    yield replace(base, delivery="random", stutter=True, steps=long)
    yield replace(base, delivery="lazy", stutter=True, steps=long, reads="oldest", decoys=2, slow_ctas=_SLOW)
    yield replace(base, delivery="eager", stutter=True, steps=long, reads="newest", warm_ups=1)
    yield replace(base, delivery="random", hold=(last,), reads="oldest", decoys=2)


def _standard(base: Perturbation) -> Iterator[Perturbation]:
    for warm_ups in WARM_UPS:
        yield replace(base, warm_ups=warm_ups, delivery="lazy", reads="newest", mode="isolated", steps=2)
    for rank in range(base.ranks):
        delivery, reads = _DELIVERIES[rank % 3], _READS[(rank + 1) % 3]
        yield replace(base, hold=(rank,), delivery=delivery, reads=reads, decoys=1, slow_ctas=_SLOW)
    if base.ranks > 2:  # all but one held: the one runs as far ahead as the contract lets it
        for rank in (0, base.ranks - 1):
            others = tuple(r for r in range(base.ranks) if r != rank)
            yield replace(base, hold=others, delivery="lazy")
    # Every access is checked against the allocation it falls into.
    yield replace(base, variant="hooks", steps=2)


def _other_shapes(
    workload: Workload, base: Perturbation, overrides: dict[str, int | float]
) -> Iterator[Perturbation]:
    params = workload.params(base.size, overrides)
    for size in workload.odd_sizes():
        if workload.allows(base.ranks, workload.params(size)):
            yield replace(base, size=size, steps=2, base=False)
    for ranks in range(2, _MOST_RANKS + 1):
        if ranks not in (base.ranks - 1, base.ranks, base.ranks + 1, 2) or not workload.allows(ranks, params):
            continue
        for team in _divisors(ranks):
            if (ranks, team) != (base.ranks, base.lsa_team):
                delivery = "lazy" if team % 2 else "random"
                yield replace(base, ranks=ranks, lsa_team=team, steps=2, delivery=delivery, base=False)


def _deep(base: Perturbation) -> Iterator[Perturbation]:
    for index in range(_DEEP_SEEDS):
        yield replace(
            base,
            delivery=_DELIVERIES[index % 3],
            reads=_READS[index // 3 % 3],
            hold=() if index % 2 else (index // 2 % base.ranks,),
            stutter=bool(index % 2),
            slow_ctas=(0, _SLOW, 90)[index % 3],
            mode="isolated" if index % 5 == 4 else "chain",
            steps=2 * CHAIN_STEPS,
            decoys=index % 3,
            warm_ups=WARM_UPS[index % 4],
        )


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
