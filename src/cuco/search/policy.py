"""The search policy: what to try next, from what is known. It decides; only the ledger changes anything.

New ideas first (unvisited archive cells), then refinement: parents drawn by a power law over their rank,
changed in few dimensions or crossed with another. Every decision draws from generators keyed by the attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cuco.propose.protocol import Operator
from cuco.search.draws import generator
from cuco.search.population import Island, Population, cell_of, derive
from cuco.search.records import Candidate, Design, Draw, design_key
from cuco.search.settings import SearchSettings
from cuco.search.surrogate import predict
from cuco.space.directive import Directive

if TYPE_CHECKING:
    from numpy.random import Generator

#: Designs a draw weighs against each other, at most; more are sampled down.
_POOL = 400
#: What a rejection counts as, relative to the slowest accepted time.
_REJECTED_AS = 1.3


@dataclass(frozen=True)
class View:
    """What an attempt may know: ended candidates up to a fixed lag, and all designs assigned before it.

    ``attempt`` counts attempts before it, those of stage A left out; draws are keyed by it."""

    attempt: int
    generation: int
    progress: float
    candidates: Sequence[Candidate]
    tried: frozenset[str]


Options = Mapping[str, Sequence[Directive]]


def choose(view: View, options: Options, settings: SearchSettings) -> Draw | None:
    """The next attempt's draw, or None when no design is left to try."""
    rng = generator(settings.seed, "choose", view.attempt)
    population = derive(view.candidates, settings, view.generation)
    island = population.islands[view.attempt % settings.islands]
    tried = frozenset() if settings.repeat_designs else view.tried
    elites = island.ranked() or [elite for other in population.islands for elite in other.ranked()]
    explore = view.progress < settings.explore_fraction or rng.random() < settings.restart_share
    if elites and not explore:
        draw = _refine(view, island, elites, options, tried, settings, rng)
        if draw is not None:
            return draw
    return _explore(view, island, population, elites, options, tried, settings, rng)


def _refine(
    view: View,
    island: Island,
    elites: Sequence[Candidate],
    options: Options,
    tried: frozenset[str],
    settings: SearchSettings,
    rng: Generator,
) -> Draw | None:
    """A near relative of a good candidate: one parent mutated, or two crossed."""
    parent = _parent(elites, settings, rng)
    operator, parents, pool = Operator.MUTATE, [parent], list[Design]()
    if len(elites) > 1 and rng.random() < settings.cross_share:
        other = _parent([elite for elite in elites if elite.id != parent.id], settings, rng)
        pool = _crossings(parent.design, other.design, options, tried, rng)
        operator, parents = Operator.CROSS, [parent, other]
    if not pool:
        operator, parents = Operator.MUTATE, [parent]
        pool = _mutations(parent.design, options, tried, rng)
    if not pool:
        return None
    design = _promising(pool, view.candidates, rng)
    return Draw(operator, island.number, view.generation, tuple(one.id for one in parents), design)


def _explore(
    view: View,
    island: Island,
    population: Population,
    elites: Sequence[Candidate],
    options: Options,
    tried: frozenset[str],
    settings: SearchSettings,
    rng: Generator,
) -> Draw | None:
    """A design from a cell that few have visited, on this island first."""
    pool = _designs(options, tried, rng)
    if not pool:
        return None
    everywhere: dict[object, int] = {}
    for other in population.islands:
        for cell, count in other.visits.items():
            everywhere[cell] = everywhere.get(cell, 0) + count
    scored = [
        (everywhere.get(cell, 0) + island.visits.get(cell, 0), cell, design)
        for cell, design in ((cell_of(design), design) for design in pool)
    ]
    fewest = min(score for score, _, _ in scored)
    cells = sorted({cell for score, cell, _ in scored if score == fewest})
    cell = cells[int(rng.integers(len(cells)))]
    design = _promising([one for _, other, one in scored if other == cell], view.candidates, rng)
    parents = (_parent(elites, settings, rng).id,) if elites else ()
    return Draw(Operator.EXPLORE, island.number, view.generation, parents, design)


def _parent(elites: Sequence[Candidate], settings: SearchSettings, rng: Generator) -> Candidate:
    """Drawn by rank, the best first; a candidate unlike the others counts for somewhat more."""
    import numpy as np

    ranks = np.arange(1, len(elites) + 1, dtype=float)
    weights = ranks**-settings.rank_power
    weights *= 1 + settings.novelty_weight * np.array([elite.novelty for elite in elites])
    return elites[int(rng.choice(len(elites), p=weights / weights.sum()))]


def _designs(options: Options, tried: frozenset[str], rng: Generator) -> list[Design]:
    """Untried designs: one directive for all edges where every edge allows it, and a sample of mixed ones."""
    edges = sorted(options)
    if not edges:
        return []
    found: list[Design] = [dict.fromkeys(edges, directive) for directive in _common(options)]
    if len(edges) > 1:
        for _ in range(_POOL // 4):
            found.append({edge: options[edge][int(rng.integers(len(options[edge])))] for edge in edges})
    return _untried(found, tried, rng)


def _common(options: Options) -> list[Directive]:
    """Directives that every edge may have, in the order of the first edge."""
    first, *others = (options[edge] for edge in sorted(options))
    sets = [set(one) for one in others]
    return [directive for directive in first if all(directive in one for one in sets)]


def _untried(pool: Sequence[Design], tried: frozenset[str], rng: Generator) -> list[Design]:
    """The designs not tried before, each once, sampled down to a number that is quick to weigh."""
    fresh = {key: design for design in pool if (key := design_key(design)) not in tried}
    left = list(fresh.values())
    if len(left) <= _POOL:
        return left
    return [left[int(index)] for index in sorted(rng.choice(len(left), size=_POOL, replace=False))]


def distance(one: Directive, other: Directive) -> int:
    """In how many dimensions two directives differ."""
    return sum(getattr(one, name) != getattr(other, name) for name in Directive.model_fields)


def _from(own: Directive, one: Directive) -> int:
    return distance(one, own)


def _mutations(parent: Design, options: Options, tried: frozenset[str], rng: Generator) -> list[Design]:
    """Untried designs near ``parent``: one edge changed, or all edges alike."""
    pool: list[Design] = []
    common = set(_common(options))
    for edge, directives in sorted(options.items()):
        own = parent.get(edge)
        nearest = sorted(directives, key=partial(_from, own)) if own else list(directives)
        for directive in nearest[:_POOL]:
            if len(options) > 1:
                pool.append({**parent, edge: directive})
            if directive in common:
                pool.append(dict.fromkeys(sorted(options), directive))
    pool = [one for one in pool if set(one) == set(options)]
    fresh = _untried(pool, tried, rng)
    fresh.sort(key=lambda design: _apart(design, parent))
    near = _apart(fresh[0], parent) + 1 if fresh else 0
    return [design for design in fresh if _apart(design, parent) <= near]


def _apart(design: Design, parent: Design) -> int:
    return sum(
        distance(directive, parent[edge]) if edge in parent else len(Directive.model_fields)
        for edge, directive in design.items()
    )


def _crossings(
    one: Design, other: Design, options: Options, tried: frozenset[str], rng: Generator
) -> list[Design]:
    """Untried designs whose every dimension comes from one of two parents, on every edge."""
    per_edge: dict[str, list[Directive]] = {}
    for edge, directives in sorted(options.items()):
        if edge not in one or edge not in other:
            return []
        per_edge[edge] = [directive for directive in directives if _mixes(directive, one[edge], other[edge])]
        if not per_edge[edge]:
            return []
    mixed: list[Design] = [
        {edge: mixes[int(rng.integers(len(mixes)))] for edge, mixes in per_edge.items()}
        for _ in range(_POOL // 4)
    ]
    return _untried([design for design in mixed if design != one and design != other], tried, rng)


def _mixes(directive: Directive, one: Directive, other: Directive) -> bool:
    return all(
        getattr(directive, name) in (getattr(one, name), getattr(other, name))
        for name in Directive.model_fields
    )


def _promising(pool: Sequence[Design], candidates: Sequence[Candidate], rng: Generator) -> Design:
    """One of the better half of ``pool`` by the guess of ``surrogate``; any, while nothing is timed."""
    known = [one for one in candidates if one.design and one.searched and one.attempt.ended]
    times = [one.us for one in known if one.us is not None]
    # A rejected design counts as a slow one, so that what keeps failing is tried less.
    timed = [
        (one.design, one.us if one.us is not None else _REJECTED_AS * max(times, default=1.0))
        for one in known
    ]
    if len(times) < 3 or len(pool) == 1:
        return pool[int(rng.integers(len(pool)))]
    import numpy as np

    guesses = np.array(predict(timed, pool))
    order = np.argsort(guesses, kind="stable")
    weights = np.arange(1, len(pool) + 1, dtype=float) ** -2.0
    return pool[int(order[int(rng.choice(len(pool), p=weights / weights.sum()))])]
