"""Selection on its own: elites, migration, parents, guesses, and that every setting changes something."""

from __future__ import annotations

from collections import Counter

import pytest
from search_fakes import designs, true_us

from cuco.propose.protocol import Operator
from cuco.search import budget
from cuco.search.draws import generator
from cuco.search.policy import View, _parent, choose, distance
from cuco.search.population import cell_of, derive
from cuco.search.records import Attempt, Candidate, Draw, Verdict, design_key
from cuco.search.settings import Budget, SearchSettings
from cuco.search.surrogate import predict
from cuco.space import Directive, parse_directive

SETTINGS = SearchSettings()


def candidate(
    number: int,
    directive: Directive,
    us: float | None = None,
    *,
    island: int = 0,
    generation: int = 0,
    novelty: float = 0.5,
    operator: Operator = Operator.EXPLORE,
    reason: str | None = None,
) -> Candidate:
    draw = Draw(operator, island, generation, (), {"ag": directive})
    ending = reason or ("accepted" if us else "verify")
    attempt = Attempt(number, f"{number:04d}", draw, "terminal", "", ending, "", "ab", 0.0, 1, 0)
    verdicts = {"quick": Verdict(us is not None, "measure" if us else "verify", us, {})}
    return Candidate(attempt, draw.design, (), "", novelty, verdicts)


def view(candidates: list[Candidate], attempt: int = 100, generation: int = 0, progress: float = 1.0) -> View:
    tried = frozenset(design_key(one.design) for one in candidates)
    return View(attempt, generation, progress, candidates, tried)


DEFERRED = parse_directive("LSA | Barrier | Deferred | World | CTA | PerPeer | AcqRel | –")
WARP = DEFERRED.replace(issuer="Warp")
PIPELINED = parse_directive(
    "LSA | Signal | Pipelined | World | CTA | PerPeer | AcqRel | –; readiness=Counter"
)


def test_a_cell_keeps_its_fastest_and_ties_go_to_the_earlier() -> None:
    seen = [
        candidate(0, DEFERRED, 9.0),
        candidate(1, WARP, 8.0),
        candidate(2, WARP, 8.0),
        candidate(3, PIPELINED, 20.0),
    ]
    island = derive(seen, SETTINGS).islands[0]
    assert cell_of(seen[0].design) == cell_of(seen[1].design) != cell_of(seen[3].design)
    assert [one.id for one in island.ranked()] == ["0001", "0003"]


def test_failures_count_as_visits_and_never_as_elites() -> None:
    island = derive([candidate(0, DEFERRED), candidate(1, DEFERRED)], SETTINGS).islands[0]
    assert island.ranked() == [] and island.visits[cell_of({"ag": DEFERRED})] == 2


def test_hosts_belong_to_no_island() -> None:
    population = derive([candidate(0, DEFERRED, 1.0, operator=Operator.HOST)], SETTINGS)
    assert population.best() is None


def test_migration_copies_the_best_once_per_boundary() -> None:
    seen = [candidate(0, DEFERRED, 5.0, island=0), candidate(1, PIPELINED, 9.0, island=1)]
    assert derive(seen, SETTINGS, generation=1).migrations == ()
    population = derive(seen, SETTINGS, generation=2)
    assert [(m.candidate, m.origin, m.target) for m in population.migrations] == [
        ("0000", 0, 1),
        ("0001", 1, 0),
    ]
    assert {one.id for one in population.islands[1].ranked()} == {"0000", "0001"}
    assert {one.id for one in population.islands[0].ranked()} == {"0000", "0001"}
    later = [*seen, candidate(2, WARP, 7.0, generation=3)]
    assert len(derive(later, SETTINGS, generation=3).migrations) == 2
    assert derive(seen, SearchSettings(migrate_every=0), generation=8).migrations == ()
    assert derive(seen[:1], SearchSettings(islands=1), generation=8).migrations == ()


def test_without_migration_islands_do_not_mix() -> None:
    seen = [candidate(0, DEFERRED, 5.0, island=0), candidate(1, PIPELINED, 9.0, island=1)]
    draws = [
        choose(view(seen, attempt), {"ag": designs()}, SearchSettings(migrate_every=0, restart_share=0.0))
        for attempt in range(40)
    ]
    for attempt, draw in enumerate(draws):
        assert draw is not None and draw.island == attempt % 2
        assert set(draw.parents) <= {f"000{draw.island}"}


def shares(settings: SearchSettings, novelty: float = 0.0) -> Counter[str]:
    elites = [candidate(n, DEFERRED, 1.0 + n, novelty=novelty if n == 2 else 0.0) for n in range(3)]
    return Counter(_parent(elites, settings, generator(7, "parents", n)).id for n in range(1000))


def test_parents_follow_a_power_law_over_ranks() -> None:
    flat = shares(SearchSettings(rank_power=0.0))
    steep = shares(SearchSettings(rank_power=2.0))
    assert all(abs(count / 1000 - 1 / 3) < 0.06 for count in flat.values())
    expected = [1, 1 / 4, 1 / 9]
    for name, weight in zip(("0000", "0001", "0002"), expected, strict=True):
        assert steep[name] / 1000 == pytest.approx(weight / sum(expected), abs=0.06)


def test_unlike_parents_are_drawn_more_often() -> None:
    assert shares(SearchSettings(novelty_weight=3.0), novelty=1.0)["0002"] > 1.4 * shares(SETTINGS)["0002"]


def operators(settings: SearchSettings, progress: float) -> Counter[Operator]:
    seen = [candidate(n, one, true_us(one)) for n, one in enumerate(designs()[::40])]
    draws = [choose(view(seen, 2 * n, progress=progress), {"ag": designs()}, settings) for n in range(30)]
    return Counter(draw.operator for draw in draws if draw is not None)


def test_explore_first_then_refine() -> None:
    assert set(operators(SETTINGS, 0.1)) == {Operator.EXPLORE}
    late = operators(SearchSettings(restart_share=0.0, cross_share=0.3), 0.9)
    assert late[Operator.MUTATE] > late[Operator.CROSS] > 0 and not late[Operator.EXPLORE]
    assert set(operators(SearchSettings(restart_share=1.0), 0.9)) == {Operator.EXPLORE}
    assert set(operators(SearchSettings(restart_share=0.0, cross_share=0.0), 0.9)) == {Operator.MUTATE}
    assert set(operators(SearchSettings(explore_fraction=1.0), 0.9)) == {Operator.EXPLORE}


def test_explore_goes_where_nobody_was() -> None:
    seen = [candidate(0, DEFERRED, 5.0)]
    cells = {
        cell_of(draw.design)
        for n in range(30)
        if (draw := choose(view(seen, n, progress=0.0), {"ag": designs()}, SETTINGS))
    }
    assert cell_of({"ag": DEFERRED}) not in cells and len(cells) > 8


def test_mutation_is_a_small_step_and_never_a_repetition() -> None:
    seen = [candidate(0, DEFERRED, 5.0)]
    settings = SearchSettings(restart_share=0.0)
    for attempt in range(0, 40, 2):
        draw = choose(view(seen, attempt), {"ag": designs()}, settings)
        assert draw is not None and 1 <= distance(draw.design["ag"], DEFERRED) <= 2
    options = {"ag": [DEFERRED]}
    assert choose(view(seen), options, settings) is None
    again = choose(view(seen), options, SearchSettings(restart_share=0.0, repeat_designs=True))
    assert again is not None and again.design["ag"] == DEFERRED


def test_a_crossing_takes_every_dimension_from_a_parent() -> None:
    settings = SearchSettings(restart_share=0.0, cross_share=1.0, migrate_every=0)
    one, other = DEFERRED, PIPELINED.replace(issuer="Thread", granularity="Chunk(65536)")
    seen = [candidate(0, one, 5.0), candidate(1, other, 6.0)]
    crossed = [choose(view(seen, 2 * n), {"ag": designs()}, settings) for n in range(20)]
    found = [draw for draw in crossed if draw is not None and draw.operator is Operator.CROSS]
    assert found
    for draw in found:
        assert len(draw.parents) == 2
        for name in Directive.model_fields:
            assert getattr(draw.design["ag"], name) in (getattr(one, name), getattr(other, name))


def test_the_guess_prefers_what_did_well() -> None:
    timed = [({"ag": one}, true_us(one)) for one in designs()[::30]]
    asked = [{"ag": one} for one in designs()]
    guessed = predict(timed, asked)
    truth = [true_us(one["ag"]) for one in asked]
    best = sorted(range(len(asked)), key=lambda index: guessed[index])[: len(asked) // 10]
    assert sum(truth[index] for index in best) / len(best) < sum(truth) / len(truth) * 0.9
    assert all(us > 0 for us in guessed)


def test_what_keeps_failing_is_tried_less() -> None:
    tiles = [one for one in designs() if one.granularity.kind == "PerTile"]
    good = [candidate(n, one, 50.0) for n, one in enumerate(designs()[:4])]
    failed = [candidate(10 + n, one) for n, one in enumerate(tiles[::6])]
    pool = {"ag": [one for one in designs() if one.placement == "Pipelined" and one.sync == "Signal"]}
    settings = SearchSettings(explore_fraction=1.0, islands=1)

    def tile_share(seen: list[Candidate]) -> float:
        draws = [choose(View(n, 0, 0.0, seen, frozenset()), pool, settings) for n in range(80)]
        return sum(draw.design["ag"].granularity.kind == "PerTile" for draw in draws if draw) / 80

    assert tile_share(good + failed) < tile_share(good)


def test_budgets() -> None:
    ended = [candidate(n, DEFERRED, 1.0).attempt for n in range(3)]
    free = [candidate(n, DEFERRED, reason="duplicate").attempt for n in range(3, 6)]
    host = candidate(6, DEFERRED, 1.0, operator=Operator.HOST).attempt
    assert budget.used([*ended, *free, host]) == 3
    assert budget.closed(Budget(evaluations=4), [*ended, *free, host], 0) is None
    assert "3 evaluations" in str(budget.closed(Budget(evaluations=3), ended, 0))
    assert "time budget" in str(budget.closed(Budget(seconds=5), [], 5.0))
    assert budget.closed(Budget(usd=0), ended, 0) is None
    assert "judged already" in str(budget.closed(Budget(evaluations=5), free * 20, 0))
