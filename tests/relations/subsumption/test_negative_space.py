"""What the negative space promises, held against brute force on every cell of small spaces."""

from __future__ import annotations

import random
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import CoveyError, DuplicateIdError, UnknownIdError
from covey.relations.subsumption import Metric, NegativeSpace, Rectangle, RectangleError, Region
from tests.relations.subsumption.grids import Grid, grid_space, listed, painted, rectangles, regions

METRICS: tuple[Metric, ...] = ("benefit/cost", "benefit", "1/cost")
SIDE = 6


class World:
    """A negative space and, beside it, the regions of its subscriptions."""

    def __init__(self, d: int, negative: NegativeSpace, side: int = SIDE) -> None:
        self.d, self.side, self.negative = d, side, negative
        self.regions: dict[Hashable, Region] = {}

    def held(self) -> Grid:
        """How many active subscriptions hold each cell, at least."""
        parts = [part for name in self.negative.actives() for part in listed(self.regions[name])]
        return painted(parts, self.d, self.side)

    def grid(self, region: Region) -> Grid:
        return painted(listed(region), self.d, self.side) > 0

    def is_held(self, region: Region) -> bool:
        return bool((self.held() > 0)[self.grid(region)].all())

    def check(self) -> None:
        rows = self.negative.rectangles()
        assert len(rows) == self.negative.rectangle_count()
        space = painted(rows, self.d, self.side)
        assert space.max(initial=0) <= 1, "negative rectangles overlap"
        assert (space[self.held() == 0] == 1).all(), "a point that nobody holds isn't in the negative space"
        if self.negative.is_exact:
            assert (space[self.held() > 0] == 0).all(), "a held point is in the exact negative space"
        assert all(self.is_held(self.regions[name]) for name in self.negative.passives())
        assert sorted(map(str, self.regions)) == sorted(map(str, (*self.negative.actives(), *self.negative.passives())))
        if self.negative.method == "approximate":
            self.check_partition(space)

    def check_partition(self, space: Grid) -> None:
        for name in self.negative.actives():
            covered = painted(self.negative.covered_by(name), self.d, self.side)
            assert (covered[~self.grid(self.regions[name])] == 0).all()
            space = space + covered
        assert (space == 1).all()


def run(world: World, steps: list[tuple[int, Region | None]], rebuild_after: int | None = None) -> None:
    """Each step is an id and a region: subscribe if the id is new, unsubscribe if it is there."""
    for number, (name, region) in enumerate(steps):
        was_active = set(world.negative.actives())
        if name in world.regions:
            leaves = {name}
            del world.regions[name]
            promoted = set(world.negative.unsubscribe(name))
            assert promoted == set(world.negative.actives()) - (was_active - leaves)
        elif region is not None:
            held = world.is_held(region)
            was_subsumed = world.negative.is_subsumed(region)
            before = world.negative.rectangle_count()
            exact = world.negative.is_exact
            world.regions[name] = region
            outcome = world.negative.subscribe(name, region)
            assert outcome.active != was_subsumed
            assert outcome.growth == world.negative.rectangle_count() - before
            assert held if was_subsumed else True, "falsely subsumed"
            assert was_subsumed == held or not exact
        if number == rebuild_after:
            was_active = set(world.negative.actives())
            change = world.negative.rebuild()
            assert set(change.promoted) == set(world.negative.actives()) - was_active
            assert set(change.demoted) == was_active - set(world.negative.actives())
        world.check()


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[int, Region | None]]]:
    d = draw(st.integers(1, 3))
    return d, draw(st.lists(st.tuples(st.integers(0, 5), regions(d, SIDE)), max_size=12))


@given(histories())
def test_the_exact_negative_space_is_the_disjoint_complement_of_the_active_subscriptions(
    history: tuple[int, list[tuple[int, Region | None]]],
) -> None:
    d, steps = history
    world = World(d, NegativeSpace(grid_space(d, SIDE)))
    run(world, steps)
    assert world.negative.is_exact


@given(histories(), st.integers(0, 8), st.sampled_from(METRICS), st.booleans())
def test_the_approximate_negative_space_holds_the_complement_and_partitions_the_space_with_what_is_covered(
    history: tuple[int, list[tuple[int, Region | None]]], k: int, metric: Metric, dynamic: bool
) -> None:
    d, steps = history
    negative = NegativeSpace(grid_space(d, SIDE), method="approximate", k=k, metric=metric, dynamic_threshold=dynamic)
    run(World(d, negative), steps)


@given(histories(), st.integers(1, 12), st.sampled_from(("exact", "approximate")))
def test_at_the_limit_nothing_fails_and_nothing_is_falsely_subsumed(
    history: tuple[int, list[tuple[int, Region | None]]], limit: int, method: str
) -> None:
    d, steps = history
    run(World(d, NegativeSpace(grid_space(d, SIDE), method=method, limit=limit)), steps)  # type: ignore[arg-type]


def random_rectangle(rng: random.Random, d: int, side: int) -> Rectangle:
    ends = [sorted(rng.sample(range(side + 1), 2)) for _ in range(d)]
    return Rectangle(tuple(low for low, _ in ends), tuple(high for _, high in ends))


@pytest.mark.parametrize("options", [{}, {"method": "approximate", "k": 6}, {"limit": 30}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_long_history_with_a_rebuild_in_it_stays_right(seed: int, options: dict[str, object]) -> None:
    rng = random.Random(seed)
    d = rng.choice([2, 3])
    side = 20 if d == 2 else 9
    steps = [(rng.randrange(60), random_rectangle(rng, d, side)) for _ in range(120)]
    world = World(d, NegativeSpace(grid_space(d, side), **options), side)  # type: ignore[arg-type]
    run(world, steps, rebuild_after=80)
    for name in list(world.regions):
        world.negative.unsubscribe(name)
    assert (painted(world.negative.rectangles(), d, side) == 1).all()


@given(st.data(), st.integers(1, 3), st.integers(1, 6))
def test_at_most_k_new_rectangles_come_with_a_subscription(data: st.DataObject, d: int, k: int) -> None:
    negative = NegativeSpace(grid_space(d, SIDE), method="approximate", k=k)
    for name in range(8):
        assert negative.subscribe(name, data.draw(rectangles(d, SIDE))).growth <= k


def test_the_rectangles_of_one_subscription_share_its_threshold() -> None:
    negative = NegativeSpace(grid_space(2, 20), method="approximate", k=4)
    corners = (Rectangle((2, 2), (4, 4)), Rectangle((12, 12), (14, 14)))
    negative.subscribe("corners", corners)
    assert negative.rectangle_count() == 4
    assert sum(map(negative.volume, negative.covered_by("corners"))) == pytest.approx(negative.volume(corners[0]))


def test_what_is_covered_counts_towards_the_limit_only_as_long_as_it_is_held() -> None:
    negative = NegativeSpace(grid_space(2, 20), method="approximate", limit=12)
    for _ in range(20):
        negative.subscribe("comes and goes", Rectangle((5, 5), (9, 9)))
        negative.unsubscribe("comes and goes")
    negative.subscribe("new", Rectangle((12, 12), (14, 14)))
    assert negative.covered_by("new")
    for name in range(1, 19, 2):
        negative.subscribe(name, Rectangle((name, 1), (name + 1, 2)))
        covered = sum(len(negative.covered_by(one)) for one in negative.actives())
        assert negative.rectangle_count() + covered <= 12


def test_the_dynamic_threshold_spends_what_earlier_subscriptions_left() -> None:
    rows = [Rectangle((x, 2), (x + 1, 8)) for x in range(1, 10, 2)]
    across = Rectangle((0, 4), (20, 6))
    growth = {}
    for dynamic in (False, True):
        negative = NegativeSpace(grid_space(2, 20), method="approximate", k=4, dynamic_threshold=dynamic)
        for name, row in enumerate(rows):
            negative.subscribe(name, row)
        negative.subscribe("across", across)
        growth[dynamic] = int(painted(negative.rectangles(), 2, 20)[painted([across], 2, 20) == 1].sum())
    assert growth[True] == 0 < growth[False]


@pytest.mark.parametrize(
    ("metric", "width", "chosen"),
    [("benefit", 10, "left"), ("benefit/cost", 10, "right"), ("1/cost", 10, "right"),
     ("benefit", 6, "right"), ("benefit/cost", 11, "left"), ("1/cost", 11, "right")],
)  # fmt: skip
def test_the_metrics_weigh_what_is_gained_against_the_pieces(metric: Metric, width: int, chosen: str) -> None:
    """Left of a wall the new subscription is `width` by 10 and leaves three pieces; right of it 7 by 10 and two."""
    negative = NegativeSpace(grid_space(2, 20), method="approximate", k=3, metric=metric)
    negative.subscribe("wall", Rectangle((12, 0), (13, 20)))
    assert negative.rectangle_count() == 2
    negative.subscribe("new", Rectangle((12 - width, 5), (20, 15)))
    left = painted(negative.rectangles(), 2, 20)
    assert (left[11, 10], left[14, 10]) == ((0, 1) if chosen == "left" else (1, 0))


def test_unsubscribing_a_passive_subscription_changes_nothing_else() -> None:
    negative = NegativeSpace(grid_space(2, 10))
    negative.subscribe("large", Rectangle((0, 0), (9, 9)))
    assert not negative.subscribe("small", Rectangle((1, 1), (2, 2))).active
    before = negative.rectangles()
    assert negative.unsubscribe("small") == ()
    assert negative.rectangles() == before
    assert negative.actives() == ("large",)


def test_unsubscribing_promotes_only_what_is_no_longer_subsumed() -> None:
    negative = NegativeSpace(grid_space(2, 10))
    negative.subscribe("left", Rectangle((0, 0), (6, 10)))
    negative.subscribe("right", Rectangle((4, 0), (10, 10)))
    for name, low, high in (("in left", 1, 2), ("in both", 4, 6), ("across", 2, 8)):
        assert not negative.subscribe(name, Rectangle((low, 0), (high, 5))).active
    assert negative.unsubscribe("left") == ("in left", "across")
    assert negative.passives() == ("in both",)


def test_the_approximation_still_finds_what_one_subscription_covers_and_forgets_it_when_that_leaves() -> None:
    negative = NegativeSpace(grid_space(2, 20), method="approximate", k=0)
    negative.subscribe("large", Rectangle((5, 5), (15, 15)))
    assert negative.rectangle_count() == 1
    assert not negative.subscribe("inside", Rectangle((6, 6), (8, 8))).active
    assert negative.subscribe("across", Rectangle((6, 6), (16, 8))).active
    assert negative.unsubscribe("large") == ()
    assert negative.unsubscribe("across") == ("inside",)


def test_a_rebuild_finds_what_the_approximation_missed_and_makes_the_covered_passive() -> None:
    negative = NegativeSpace(grid_space(2, 20), method="approximate", k=0)
    for x in range(0, 20, 2):
        negative.subscribe(x, Rectangle((x, 3), (x + 1, 9)))
    negative.subscribe("all", Rectangle((0, 0), (20, 20)))
    assert len(negative.actives()) == 11
    change = negative.rebuild()
    assert negative.actives() == ("all",)
    assert set(change.demoted) == set(range(0, 20, 2))
    assert negative.rectangles() == ()


def test_the_limit_bounds_the_rectangles_and_a_rebuild_with_room_is_exact_again() -> None:
    rng = random.Random(5)
    negative = NegativeSpace(grid_space(3, 30), limit=40)
    for name in range(60):
        negative.subscribe(name, random_rectangle(rng, 3, 30))
        assert negative.rectangle_count() <= 40
    assert not negative.is_exact
    negative.limit = 100_000
    negative.rebuild()
    assert negative.is_exact


def test_an_unsatisfiable_subscription_is_subsumed_by_nothing_at_all() -> None:
    negative = NegativeSpace(grid_space(2, 5))
    assert negative.is_subsumed(())
    assert not negative.subscribe("never", ()).active
    assert negative.unsubscribe("never") == ()


def test_what_lies_outside_of_the_space_needs_no_cover() -> None:
    negative = NegativeSpace(grid_space(1, 5))
    negative.subscribe("inside", Rectangle((0,), (5,)))
    assert negative.is_subsumed(Rectangle((-7,), (9,)))


def test_mistakes_are_named() -> None:
    negative = NegativeSpace(grid_space(2, 5))
    negative.subscribe("a", Rectangle((0, 0), (1, 1)))
    with pytest.raises(DuplicateIdError, match="'a' is already there"):
        negative.subscribe("a", Rectangle((0, 0), (1, 1)))
    with pytest.raises(UnknownIdError, match="'b' is not there"):
        negative.unsubscribe("b")
    with pytest.raises(RectangleError, match="2 dimensions"):
        negative.subscribe("c", Rectangle((0,), (1,)))
    with pytest.raises(CoveyError, match="use one of exact, approximate"):
        NegativeSpace(grid_space(1, 2), method="fast")  # type: ignore[arg-type]
    with pytest.raises(CoveyError, match="benefit/cost, benefit, 1/cost"):
        NegativeSpace(grid_space(1, 2), metric="cost")  # type: ignore[arg-type]
    with pytest.raises(CoveyError, match="limit"):
        NegativeSpace(grid_space(1, 2), limit=0)


def test_volumes_are_shares_of_the_space() -> None:
    negative = NegativeSpace(grid_space(2, 10))
    assert negative.volume(Rectangle((0, 0), (5, 4))) == pytest.approx(0.2)
    assert negative.volume(negative.space.whole()) == pytest.approx(1.0)
    assert negative.nbytes() > 0


def test_many_dimensions_and_ends_of_the_cells_are_no_trouble() -> None:
    rng = np.random.default_rng(2)
    negative = NegativeSpace(grid_space(9, 4), method="approximate", k=30)
    for name in range(50):
        low = rng.integers(0, 3, 9)
        high = rng.integers(low + 1, 5)
        negative.subscribe(name, Rectangle(tuple(low.tolist()), tuple(high.tolist())))
    parts = [*negative.rectangles(), *(piece for name in negative.actives() for piece in negative.covered_by(name))]
    assert sum(negative.volume(part) for part in parts) == pytest.approx(1.0)
