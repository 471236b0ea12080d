"""What Spark jobs make (an index, a compacted table, a profile), loaded into brokers that run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import covey
from covey.network import connect
from covey.network.load_client import load_profile, load_subscriptions
from covey.routing.config import MergingOptions
from covey.spark import build_index, compact, profile
from tests.network.running import broker, in_loop, linked, until
from tests.spark.test_compact import events, subscriptions


@pytest.mark.long  # the page on loading has some of it
@pytest.mark.parametrize("imt", [0.0, 0.2])
def test_index_compacted_table_and_profile_come_from_spark(spark: SparkSession, tmp_path: Path, imt: float) -> None:
    given, past, sample = subscriptions(150, 3), events(500, 1), events(80, 2)
    table = spark.createDataFrame(given, "id string, filter string")
    build_index(table, tmp_path / "night.covey")
    seen = profile(spark.createDataFrame(past, "sym string, price double, kind string"), table)
    seen.save(tmp_path / "night.profile")
    compacted = compact(table, profile=seen, imt=imt).table
    compacted.write.parquet(str(tmp_path / "entries"))
    _load_and_check(tmp_path, compacted.count(), given, sample)


@in_loop
async def _load_and_check(made: Path, entries: int, given: list[tuple[str, str]], sample: list[dict[str, Any]]) -> None:
    routing: dict[str, Any] = {"strategy": "merging", "merging": MergingOptions(imt=0.1)}
    b = broker("b", {"a": ""}, **routing)
    async with b, broker("a", {"b": b.url}, **routing) as a:
        await until(lambda: linked(a, b))
        await asyncio.to_thread(load_profile, a.url, made / "night.profile")
        found = await asyncio.to_thread(
            load_subscriptions, a.url, "night", "ann", made / "night.covey", compacted=made / "entries"
        )
        assert (found.subscriptions, found.entries) == (150, entries)
        assert found.told < 150
        filters = {id: covey.parse(text) for id, text in given}
        wanted = [
            (event, sorted(id for id, one in filters.items() if one.matches(event)))
            for event in sample
            if any(one.matches(event) for one in filters.values())
        ]
        async with connect(b.url, name="bob") as bob, connect(a.url, name="ann") as ann:
            inbox = ann.loaded()
            await bob.publish(sample, durable=True)
            got = [await inbox.get() for _ in wanted]
        assert [(one.attributes, sorted(one.subscriptions)) for one in got] == wanted
