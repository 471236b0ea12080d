"""Each kernel equals its twin in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from covey.kernels import rectangles as store_kernels
from covey.kernels import splitting as split_kernels
from covey.relations.subsumption import Range
from covey.relations.subsumption.dimensions import DENSE_CELL, Number
from tests.relations.subsumption import twins
from tests.relations.subsumption.twins import Row

SEEDS = range(60)
METRICS = {
    "benefit/cost": split_kernels.BENEFIT_PER_COST,
    "benefit": split_kernels.BENEFIT,
    "1/cost": split_kernels.INVERSE_COST,
}


def disjoint_rows(rng: random.Random, d: int, count: int, side: int = 40) -> list[Row]:
    """A space cut at random; some of it left out."""
    rows: list[Row] = [(0,) * d + (side,) * d]
    while len(rows) < count:
        row = rows.pop(rng.randrange(len(rows)))
        j = rng.randrange(d)
        if row[d + j] - row[j] < 2:
            rows.append(row)
            count -= 1
            continue
        cut = rng.randrange(row[j] + 1, row[d + j])
        rows.append((*row[: d + j], cut, *row[d + j + 1 :]))
        rows.append((*row[:j], cut, *row[j + 1 :]))
    return rng.sample(rows, max(1, len(rows) * 4 // 5))


def random_query(rng: random.Random, d: int, side: int = 40) -> Row:
    ends = [sorted(rng.sample(range(side + 1), 2)) for _ in range(d)]
    return tuple(low for low, _ in ends) + tuple(high for _, high in ends)


def world(seed: int) -> tuple[random.Random, list[Row], Row]:
    rng = random.Random(seed)
    d = rng.randrange(1, 6)
    return rng, disjoint_rows(rng, d, rng.choice([1, 5, 60, 300])), random_query(rng, d)


def stored(rows: list[Row], spare: int = 0) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.zeros((len(rows) + spare, len(rows[0])), np.int64)
    bounds[: len(rows)] = rows
    boxes = np.empty((len(bounds) // store_kernels.BLOCK + 1, len(rows[0])), np.int64)
    store_kernels.enclose(bounds, boxes, 0, len(rows))
    return bounds, boxes


def as_rows(bounds: np.ndarray) -> list[Row | None]:
    d = bounds.shape[1] // 2
    return [tuple(row) if row[0] < row[d] else None for row in bounds.tolist()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_finds_the_rows_that_meet_the_query(seed: int) -> None:
    _, rows, query = world(seed)
    bounds, boxes = stored(rows)
    hits = np.empty(len(rows), np.int64)
    count = store_kernels.find(bounds, boxes, len(rows), np.array(query), hits)
    assert hits[:count].tolist() == twins.find(rows, query)
    assert store_kernels.meets_any(bounds, boxes, len(rows), np.array(query)) == (count > 0)
    queries = np.array([query, rows[0], tuple(cell + 1000 for cell in query)])
    assert store_kernels.meets_each(bounds, boxes, len(rows), queries).tolist() == [count > 0, True, False]


@pytest.mark.parametrize("seed", SEEDS)
def test_covering_by_one_row_is_found(seed: int) -> None:
    rng, rows, query = world(seed)
    d = len(query) // 2
    for box in (query, rng.choice(rows), twins.clip(rng.choice(rows), query)):
        expected = any(twins.clip(row, box) == box for row in rows)
        if all(box[j] < box[d + j] for j in range(d)):
            assert store_kernels.covers_any(stored(rows, 3)[0], len(rows), np.array(box)) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_splitting_cuts_off_the_same_slabs(seed: int) -> None:
    _, rows, query = world(seed)
    hits = twins.find(rows, query)
    expected, emptied = twins.split(rows, hits, query)
    places = np.array(hits, np.int64)
    new = split_kernels.count_new(stored(rows)[0], places, np.array(query))
    assert new == len(expected) - len(rows)
    bounds, _ = stored(rows, new)
    assert split_kernels.split(bounds, len(rows), places, np.array(query)) == (len(expected), emptied)
    assert as_rows(bounds) == expected


def test_splitting_does_not_overflow_between_the_ends_of_int64() -> None:
    low, high = -(2**63) + 1, 2**63 - 2
    row, query = (low, low, high, high), (-5, low, high, 7)
    bounds = np.array([row, (0,) * 4], np.int64)
    size, emptied = split_kernels.split(bounds, 1, np.array([0]), np.array(query, np.int64))
    assert (size, emptied) == (2, 0)
    assert as_rows(bounds) == twins.split([row], [0], query)[0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_rectangles_are_chosen_within_a_budget(seed: int, metric: str) -> None:
    rng, rows, query = world(seed)
    hits = twins.find(rows, query)
    benefits = [rng.choice([0.25, 0.5, 1.0, rng.random()]) for _ in hits]
    budget, room, kept = rng.randrange(60), rng.choice([0, 3, 20, 1000]), rng.random() < 0.5
    chosen, spent = split_kernels.choose(
        stored(rows)[0], np.array(hits, np.int64), np.array(query), np.array(benefits), METRICS[metric], budget, room,
        kept,
    )  # fmt: skip
    assert (chosen.tolist(), spent) == twins.choose(rows, hits, query, benefits, metric, budget, room, kept)
    assert spent <= budget


@pytest.mark.parametrize("seed", SEEDS)
def test_clipping_is_intersection(seed: int) -> None:
    _, rows, query = world(seed)
    hits = twins.find(rows, query)
    common = split_kernels.clip(stored(rows)[0], np.array(hits, np.int64), np.array(query))
    assert [tuple(row) for row in common.tolist()] == [twins.clip(rows[hit], query) for hit in hits]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_neighbours_are_merged(seed: int) -> None:
    _, rows, _ = world(seed)
    bounds, _ = stored(rows)
    joined = store_kernels.merge_neighbours(bounds, len(rows))
    merged = [row for row in as_rows(bounds) if row is not None]
    assert set(merged) == twins.merge_neighbours(rows)
    assert len(merged) == len(rows) - joined


def test_a_chain_of_neighbours_becomes_one() -> None:
    rows = [(j, 0, j + 1, 1) for j in (3, 1, 0, 2, 4)]
    bounds, _ = stored(rows)
    assert store_kernels.merge_neighbours(bounds, 5) == 4
    assert [row for row in as_rows(bounds) if row] == [(0, 0, 5, 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_near_order_keeps_every_row_and_boxes_are_tight(seed: int) -> None:
    rng, rows, _ = world(seed)
    bounds, boxes = stored(rows)
    gone = rng.sample(range(len(rows)), len(rows) // 3)
    d = len(rows[0]) // 2
    bounds[gone, :d], bounds[gone, d:] = store_kernels.NOTHING_LOW, store_kernels.NOTHING_HIGH
    order = store_kernels.near_order(bounds, len(rows)).tolist()
    assert sorted(order) == sorted(set(range(len(rows))) - set(gone))
    ordered = bounds[order]
    store_kernels.enclose(ordered, boxes, 0, len(ordered))
    for block, start in enumerate(range(0, len(ordered), store_kernels.BLOCK)):
        members = ordered[start : start + store_kernels.BLOCK]
        assert boxes[block].tolist() == [*members[:, :d].min(axis=0), *members[:, d:].max(axis=0)]


def test_near_order_puts_a_line_of_rectangles_in_order_of_blocks() -> None:
    places = random.Random(1).sample(range(1000), 1000)
    bounds = np.array([(place, place + 1) for place in places], np.int64)
    order = store_kernels.near_order(bounds, 1000)
    blocks = [sorted(bounds[order[start : start + 64], 0].tolist()) for start in range(0, 1000, 64)]
    assert [place for block in blocks for place in block] == list(range(1000))


@pytest.mark.parametrize("seed", SEEDS)
def test_volumes_are_products_of_shares(seed: int) -> None:
    _, rows, _ = world(seed)
    d = len(rows[0]) // 2
    first, extent, decoded = np.zeros(d, np.int64), np.full(d, 40.0), np.zeros(d, np.bool_)
    found = split_kernels.volumes(np.array(rows), first, extent, decoded)
    expected = [np.prod([(row[d + j] - row[j]) / 40 for j in range(d)]) for row in rows]
    assert found == pytest.approx(expected)


def test_a_share_of_numbers_is_measured_in_values() -> None:
    number = Number("a", -1000, 1000)
    low, high = _cells(number, -500, 250)
    share = split_kernels.share_of(low, high, number.values()[0], 2000.0, True)
    assert share == pytest.approx(0.375)
    whole = number.whole()
    assert split_kernels.share_of(*whole, number.values()[0], 2000.0, True) == pytest.approx(1 + 2 * 2.0**-10)


def test_the_kernel_and_the_dimension_agree_where_gaps_begin() -> None:
    assert DENSE_CELL == split_kernels._DENSE_CELL
    number = Number("a", 0, 2.0**60)
    low, high = _cells(number, 2.0**53, 2.0**59)
    share = split_kernels.share_of(low, high, number.values()[0], 2.0**60, True)
    assert share == pytest.approx(0.5, rel=0.02)


def _cells(number: Number, low: float, high: float) -> tuple[int, int]:
    cells = number.cells(Range(low, high))
    assert cells is not None
    return cells
