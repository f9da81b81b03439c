"""Islands and their elites, derived from the results alone: nothing of this is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cuco.search.records import Candidate, Design
from cuco.search.settings import SearchSettings

Cell = tuple[tuple[str, ...], ...]


def cell_of(design: Design) -> Cell:
    """The archive cell of a candidate: the cells of its edges' directives, each different one once."""
    return tuple(sorted({directive.cell() for directive in design.values()}))


@dataclass(frozen=True)
class Migration:
    """The best of one island became a parent on the next when this generation began."""

    generation: int
    candidate: str
    origin: int
    target: int


@dataclass
class Island:
    """MAP-Elites: the fastest accepted candidate of every cell. Failures count as visits of theirs."""

    number: int
    elites: dict[Cell, Candidate] = field(default_factory=dict)
    visits: dict[Cell, int] = field(default_factory=dict)

    def add(self, candidate: Candidate) -> bool:
        """Takes an accepted candidate in if it is its cell's fastest; says whether it was."""
        cell = cell_of(candidate.design)
        present = self.elites.get(cell)
        if candidate.us is None or (present is not None and rank_key(present) <= rank_key(candidate)):
            return False
        self.elites[cell] = candidate
        return True

    def visit(self, candidate: Candidate) -> None:
        cell = cell_of(candidate.design)
        self.visits[cell] = self.visits.get(cell, 0) + 1

    def ranked(self) -> list[Candidate]:
        """Elites, fastest first."""
        return sorted(self.elites.values(), key=rank_key)


def rank_key(candidate: Candidate) -> tuple[float, int]:
    """Fastest first; of equal ones the earlier."""
    return (candidate.us if candidate.us is not None else float("inf"), candidate.attempt.number)


@dataclass(frozen=True)
class Population:
    """All islands after the results in view, and the migrations that happened on the way."""

    islands: tuple[Island, ...]
    migrations: tuple[Migration, ...]

    def best(self) -> Candidate | None:
        everyone = [elite for island in self.islands for elite in island.elites.values()]
        return min(everyone, key=rank_key, default=None)


def derive(candidates: Iterable[Candidate], settings: SearchSettings, generation: int = 0) -> Population:
    """The population that an attempt of ``generation`` sees after ``candidates``.

    ``candidates`` are ended ones in order of their attempts. Host versions and stage A belong to no island:
    they are no designs.
    """
    islands = [Island(number) for number in range(settings.islands)]
    migrations: list[Migration] = []
    period = settings.migrate_every
    crossed = 0
    for candidate in candidates:
        if not candidate.searched or not candidate.attempt.ended:
            continue
        draw = candidate.attempt.draw
        if period and draw.generation // period > crossed:
            crossed = draw.generation // period
            migrations += _migrate(islands, crossed * period)
        islands[draw.island].visit(candidate)
        islands[draw.island].add(candidate)
    if period and generation // period > crossed:
        migrations += _migrate(islands, generation // period * period)
    return Population(tuple(islands), tuple(migrations))


def _migrate(islands: Sequence[Island], generation: int) -> list[Migration]:
    """Copies the best of every island to the next one; the copy stays at home as well."""
    if len(islands) < 2:
        return []
    moved = []
    for island, best in [(island, island.ranked()[:1]) for island in islands]:
        target = islands[(island.number + 1) % len(islands)]
        if best and target.add(best[0]):
            moved.append(Migration(generation, best[0].id, island.number, target.number))
    return moved
