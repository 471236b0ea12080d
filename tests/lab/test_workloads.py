"""Workloads: a row is a function of the seed and its number, whatever the partitions, the blocks or who draws it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from covey import parse
from covey.lab.experiments import LabError
from covey.lab.workloads import auctions, blocks, predicate_pools, queries, rectangles, stocks

ROWS = 2 * blocks.BLOCK + 500

Make = Callable[[SparkSession, int, int], DataFrame]

FRAMES: dict[str, Callable[[SparkSession, int, int, int], DataFrame]] = {
    "set A": lambda spark, rows, seed, parts: predicate_pools.subscriptions(
        spark, predicate_pools.SET_A, rows, seed, parts
    ),
    "auction subscriptions": auctions.subscriptions,
    "auction events": auctions.events,
    "queries": lambda spark, rows, seed, parts: queries.query_frame(spark, rows, seed, partitions=parts),
    "messages": lambda spark, rows, seed, parts: queries.message_frame(spark, rows, 0.3, seed, parts),
    "rectangles": lambda spark, rows, seed, parts: rectangles.rectangles(spark, rows, 3, seed, partitions=parts),
    "stock subscriptions": stocks.subscriptions,
    "stock quotes": stocks.quotes,
}


def collected(frame: DataFrame) -> pa.Table:
    return frame.toArrow().sort_by("row").combine_chunks()


@pytest.mark.parametrize("name", FRAMES)
def test_a_seed_gives_the_same_rows_in_one_partition_and_in_four(spark: SparkSession, name: str) -> None:
    one, four, other = (collected(FRAMES[name](spark, ROWS, seed, parts)) for seed, parts in ((7, 1), (7, 4), (8, 4)))
    assert one.column("row").to_pylist() == list(range(ROWS))
    assert one.equals(four)
    assert not one.equals(other)


@pytest.mark.parametrize("name", ["queries", "rectangles", "auction events"])
def test_fewer_rows_are_the_first_of_more(spark: SparkSession, name: str) -> None:
    few, many = (collected(FRAMES[name](spark, rows, 3, 2)) for rows in (100, ROWS))
    assert few.equals(many.slice(0, 100).combine_chunks())


def test_what_spark_draws_is_what_one_process_draws(spark: SparkSession) -> None:
    pool = predicate_pools.SET_B
    assert collected(predicate_pools.subscriptions(spark, pool, 1_500, 5)).column("filter").to_pylist() == (
        predicate_pools.draw(pool, 1_500, 5).texts()
    )
    low, high = rectangles.ends(2, 1_500, 5)
    drawn = collected(rectangles.rectangles(spark, 1_500, 2, 5))
    assert np.array_equal(drawn.column("low_1").to_numpy(), low[:, 1])
    assert np.array_equal(drawn.column("high_0").to_numpy(), high[:, 0])
    books = auctions.generate(1_500, 10, 5)
    assert collected(auctions.subscriptions(spark, 1_500, 5)).column("filter").to_pylist() == (
        [text for _, text in books.texts()]
    )


def test_queries_have_the_papers_atoms() -> None:
    assert len(set(queries.atoms())) == 208
    drawn = queries.queries(4_000, 1)
    sizes = [str(query).count(" AND ") + str(query).count(" OR ") + 1 for query in drawn]
    assert 7.3 < np.mean(sizes) < 7.9
    assert max(sizes) <= queries.MOST_ATOMS


def test_messages_define_as_much_as_their_density_says() -> None:
    for density in (0.077, 0.308, 1.0):
        defined = [len(message) for message in queries.messages(4_000, density)]
        assert min(defined) >= 1
        assert np.mean(defined) == pytest.approx(max(1.0, 10 * density), abs=0.05)


def test_a_predicate_pool_has_as_many_distinct_predicates_as_the_paper_says() -> None:
    for pool in predicate_pools.POOLS.values():
        assert len(set(predicate_pools.predicates(pool))) == pool.predicates
        for one in predicate_pools.draw(pool, 300).subscriptions():
            assert len(one.attributes()) in dict(pool.widths)


def test_a_rectangle_lies_inside_the_domain_and_a_larger_exponent_starts_lower() -> None:
    starts = []
    for exponent in (0.0, 0.5, 1.0):
        low, high = rectangles.ends(3, 3_000, 1, exponent)
        assert (low >= 0).all()
        assert (low <= high).all()
        assert (high <= rectangles.DOMAIN).all()
        starts.append(low.mean())
    assert starts == sorted(starts, reverse=True)


def test_stock_subscriptions_are_filters() -> None:
    for text in stocks.subscription_block(1, 0).column("filter").to_pylist()[:50]:
        assert parse(text).attributes() == {"symbol", "price", "volume"}


def test_too_many_rows_are_refused_in_words() -> None:
    with pytest.raises(LabError, match="a workload has 0 to"):
        blocks.block_count(blocks.MOST_ROWS + 1)
    assert blocks.table(0, lambda number: stocks.quote_block(1, number)).num_rows == 0
