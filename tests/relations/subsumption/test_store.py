"""A store of rectangles stays the same set of points, however often it is merged and ordered."""

from __future__ import annotations

import random

import numpy as np
import pytest

from covey.relations.subsumption.registry import Registry
from covey.relations.subsumption.store import RectangleStore
from tests.relations.subsumption import twins
from tests.relations.subsumption.test_kernels import disjoint_rows, random_query


def cells(rows: np.ndarray, side: int = 40) -> np.ndarray:
    d = rows.shape[1] // 2
    grid = np.zeros((side,) * d, np.int64)
    for row in rows.tolist():
        grid[tuple(slice(row[j], row[d + j]) for j in range(d))] += 1
    return grid


@pytest.mark.parametrize("seed", range(8))
def test_splitting_adding_and_tidying_are_subtraction_and_union_of_points(seed: int) -> None:
    rng = random.Random(seed)
    d = rng.choice([1, 2, 3])
    rows = np.array(disjoint_rows(rng, d, 400), np.int64)
    store, expected = RectangleStore(rows), cells(rows)
    assert (cells(store.rows()) == expected).all()
    for _ in range(25):
        query = np.array(random_query(rng, d))
        hits = store.find(query)
        assert store.meets(query) == (len(hits) > 0)
        common = store.common(hits, query)
        store.split(hits, query)
        expected = expected * (1 - cells(query.reshape(1, -1)))
        assert (cells(store.rows()) == expected).all()
        assert not store.meets(query)
        if rng.random() < 0.4:
            store.add(common)
            expected = expected + cells(common)
        if rng.random() < 0.2:
            store.tidy()
        assert len(store) == len(store.rows())
        assert (cells(store.rows()) == expected).all()


def test_tidying_merges_what_was_split() -> None:
    store = RectangleStore(np.array([[0, 0, 10, 10]]))
    query = np.array([3, 0, 5, 10])
    common = store.common(store.find(query), query)
    store.split(store.find(query), query)
    assert len(store) == 2
    store.add(common)
    assert len(store) == 3
    store.tidy()
    assert store.rows().tolist() == [[0, 0, 10, 10]]


def test_the_store_is_tidied_when_a_limit_asks_and_it_has_grown() -> None:
    store = RectangleStore(np.array([[0, 10]]))
    assert not store.tidy_if_grown()
    store.add(np.array([[10, 20]]))
    assert store.tidy_if_grown()
    assert store.rows().tolist() == [[0, 20]]


def test_a_registry_finds_subscriptions_near_a_region_in_their_order() -> None:
    rng = random.Random(3)
    registry = Registry(2)
    regions: dict[int, list[tuple[int, ...]]] = {}
    for step in range(400):
        name = rng.randrange(80)
        if name in regions:
            assert registry.remove(name).tolist() == [list(row) for row in regions.pop(name)]
        else:
            regions[name] = [random_query(rng, 2) for _ in range(rng.randrange(3))]
            registry.add(name, np.array(regions[name], np.int64).reshape(-1, 4))
        assert list(registry) == list(regions)
        assert len(registry) == len(regions)
        if step % 10 == 0:
            query = random_query(rng, 2)
            freed = random_query(rng, 2)
            needs = [one for one, rows in regions.items() if any(_needs(row, query, freed) for row in rows)]
            assert registry.affected(np.array([query]), RectangleStore(np.array([freed]))) == needs
            met = [row for rows in regions.values() for row in rows if twins.meets(row, query)]
            assert registry.rows_near(np.array([query])).tolist() == [list(row) for row in met]


def _needs(row: tuple[int, ...], left: tuple[int, ...], freed: tuple[int, ...]) -> bool:
    return twins.meets(row, left) and (twins.meets(row, freed) or twins.clip(row, left) == row)
