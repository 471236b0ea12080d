"""Spark as a subscriber and as a publisher of a broker that runs in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("aiohttp")

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import ArrayType, DoubleType, IntegerType, MapType, StringType, StructType

from covey.errors import CoveyError
from covey.network.asyncio import Client
from covey.network.sync import connect
from covey.spark import register
from covey.spark.source import writer as source_writer
from covey.spark.source.columns import Rows, events_of
from covey.spark.source.data_source import CoveySource
from covey.spark.source.options import read_options, write_options
from covey.spark.source.reader import CoveyStreamReader
from covey.spark.source.spool import Spool, SpooledEvent, read_slice
from covey.spark.source.writer import CoveyStreamWriter

SECONDS = 200.0
"""What takes longer hangs."""
QUOTES = "n int, price double"


class Broker:
    """A broker with a journal, which can be killed and started again at the same address."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._port = "0"
        self.url = ""

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "covey.cli", "broker", "--id", "a", "--data", str(self._data), "--log-level",
             "error", "--port", self._port],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("broker a listens on ws://"), line
        self.url = line.split()[-1]
        self._port = self.url.rpartition(":")[2]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    one = Broker(tmp_path / "broker")
    one.start()
    yield one
    one.kill()


def schema_of(text: str) -> StructType:
    found = StructType()
    for part in text.split(","):
        name, kind = part.split()
        found = found.add(name, {"int": "integer", "bigint": "long"}.get(kind, kind))
    return found


def options(broker: Broker, tmp_path: Path, **more: str) -> dict[str, str]:
    return {"url": broker.url, "subscription": "cheap", "filter": "price < 10", "spool": str(tmp_path / "spool")} | more


def quotes(numbers: range) -> list[dict[str, Any]]:
    """Every second one is cheap."""
    return [{"n": n, "price": 5.0 if n % 2 == 0 else 50.0} for n in numbers]


def publish(broker: Broker, events: list[dict[str, Any]]) -> None:
    with connect(broker.url, name="market") as market:
        market.publish(events, durable=True)


def collect(subscription: Any, wanted: int) -> list[Any]:
    """So many deliveries, and whatever else comes soon after."""
    found = [subscription.get(timeout=SECONDS) for _ in range(wanted)]
    try:
        while True:
            found.append(subscription.get(timeout=0.5))
    except TimeoutError:
        return found


# The stream reader, without Spark


class Driver:
    """Does what Spark's driver does with a stream reader, one step at a time."""

    def __init__(self, broker: Broker, tmp_path: Path, **more: str) -> None:
        schema = schema_of("n int, _number bigint")
        self.reader = CoveyStreamReader(read_options(options(broker, tmp_path, **more)), schema)

    def next(self, start: dict[str, Any], *, least: int = 1, most: int = 1_000) -> dict[str, Any]:
        """The next offset that has something new."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = self.reader.latestOffset(start, ReadMaxRows(most))
            if found["position"] >= start["position"] + least:
                return found
            time.sleep(0.01)
        raise AssertionError("nothing came")

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
        batches = [batch for one in self.reader.partitions(start, end) for batch in self.reader.read(one)]
        return [n for batch in batches for n in batch.column("n").to_pylist()]


@contextmanager
def driver(broker: Broker, tmp_path: Path, **more: str) -> Iterator[Driver]:
    one = Driver(broker, tmp_path, **more)
    try:
        yield one
    finally:
        one.reader.stop()


def subscribed(broker: Broker, tmp_path: Path) -> None:
    with driver(broker, tmp_path) as one:
        one.reader.prepareForTriggerAvailableNow()


def test_an_offset_range_has_the_same_rows_after_a_restart_and_no_event_has_two_positions(
    broker: Broker, tmp_path: Path
) -> None:
    subscribed(broker, tmp_path)
    publish(broker, quotes(range(100)))
    with driver(broker, tmp_path) as first:
        start = first.reader.initialOffset()
        middle = first.next(start, least=20, most=20)
        end = first.next(middle, least=30)
        assert first.rows(start, middle) == list(range(0, 40, 2))
        first.reader.commit(middle)
    broker.kill()
    broker.start()
    publish(broker, quotes(range(100, 140)))
    with driver(broker, tmp_path) as second:
        assert second.reader.initialOffset() == middle
        assert second.rows(middle, end) == list(range(40, 100, 2))
        last = second.next(end, least=20)
        assert second.rows(end, last) == list(range(100, 140, 2))
        assert second.rows(middle, last) == list(range(40, 140, 2))
        second.reader.commit(last)
        assert second.reader.latestOffset(last, ReadMaxRows(10)) == last
    # All is acknowledged: nothing waits at the broker.
    with connect(broker.url, name="spark-cheap") as client:
        assert collect(client.subscribe("price < 10", id="cheap", durable=True), 0) == []


def test_what_was_committed_and_not_acknowledged_comes_again_and_is_not_read_again(
    broker: Broker, tmp_path: Path
) -> None:
    subscribed(broker, tmp_path)
    publish(broker, quotes(range(20)))
    with driver(broker, tmp_path) as first:
        end = first.next(first.reader.initialOffset(), least=10)
        # As if the driver died between the two halves of a commit.
        first.reader._feed.spool.commit(end["position"])
    publish(broker, quotes(range(20, 30)))
    with driver(broker, tmp_path) as second:
        last = second.next(end, least=5)
        assert second.rows(end, last) == list(range(20, 30, 2))


def test_a_broker_that_lost_its_journal_numbers_anew_and_nothing_is_taken_for_a_copy(tmp_path: Path) -> None:
    before, after = Broker(tmp_path / "before"), Broker(tmp_path / "after")
    for broker, numbers in ((before, range(20)), (after, range(20, 30))):
        broker.start()
        try:
            subscribed(broker, tmp_path)
            publish(broker, quotes(numbers))
            with driver(broker, tmp_path) as one:
                start = one.reader.initialOffset()
                end = one.next(start, least=len(numbers) // 2)
                assert one.rows(start, end) == [n for n in numbers if n % 2 == 0]
                one.reader.commit(end)
        finally:
            broker.kill()


def test_a_second_query_on_a_subscription_ends_the_first_with_an_error(broker: Broker, tmp_path: Path) -> None:
    with driver(broker, tmp_path) as one, driver(broker, tmp_path, spool=str(tmp_path / "other")) as two:
        start = one.reader.initialOffset()
        one.reader.latestOffset(start, ReadMaxRows(10))
        two.reader.prepareForTriggerAvailableNow()
        with pytest.raises(CoveyError, match="of its own"):
            one.next(start)


def test_a_stream_waits_for_a_broker_that_is_away_and_then_fails_in_one_line(broker: Broker, tmp_path: Path) -> None:
    with driver(broker, tmp_path, patience="1") as one:
        start = one.reader.initialOffset()
        assert one.reader.latestOffset(start, ReadMaxRows(10)) == start
        broker.kill()
        with pytest.raises(CoveyError, match="no broker for 1 seconds") as caught:
            one.next(start)
        assert "\n" not in str(caught.value)
    broker.start()


def test_a_spool_that_is_gone_is_an_error_and_not_a_loss(broker: Broker, tmp_path: Path) -> None:
    subscribed(broker, tmp_path)
    publish(broker, quotes(range(10)))
    with driver(broker, tmp_path) as one:
        start = one.reader.initialOffset()
        end = one.next(start, least=5)
    with (
        driver(broker, tmp_path, spool=str(tmp_path / "other")) as other,
        pytest.raises(CoveyError, match="checkpoint"),
    ):
        other.reader.partitions(start, end)
    next((tmp_path / "spool").glob("*.events")).unlink()
    with driver(broker, tmp_path) as one, pytest.raises(CoveyError, match="checkpoint"):
        one.reader.partitions(start, end)


def test_a_spool_gives_every_range_whatever_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.spark.source.spool.SEGMENT_EVENTS", 4)
    spool = Spool(tmp_path)
    spool.open("s")
    spool.begin_era()
    spool.append([SpooledEvent(n, f"a/{n}", {}) for n in range(1, 11)])
    spool.commit(6)
    spool.close()
    again = Spool(tmp_path)
    again.open("s")
    assert [again.position_of(n) for n in (1, 6, 7, 10, 11)] == [0, 0, 7, 10, None]
    for after in range(6, 10):
        for last in range(after, 11):
            found = [event.number for one in again.slices(after, last) for event in read_slice(one)]
            assert found == list(range(after + 1, last + 1))
    with pytest.raises(CoveyError, match="lacks events 4 to 4"):
        again.slices(3, 4)
    again.close()
    with pytest.raises(CoveyError, match="subscription 's'"):
        Spool(tmp_path).open("t")


# The stream writer, without Spark


def write(broker: Broker, tmp_path: Path, batch: int, numbers: list[int]) -> None:
    """A micro-batch of two tasks."""
    schema = schema_of("n int")
    writer = CoveyStreamWriter(write_options({"url": broker.url, "spool": str(tmp_path / "sink")}), schema)
    half = len(numbers) // 2
    parts = [
        pa.record_batch([pa.array(one, pa.int32())], schema=to_arrow_schema(schema))
        for one in (numbers[:half], numbers[half:])
    ]
    writer.commit([writer.write(iter([part])) for part in parts], batch)


def test_a_batch_that_is_replayed_is_published_once(broker: Broker, tmp_path: Path) -> None:
    with connect(broker.url, name="reader") as reader:
        subscription = reader.subscribe("n >= 0", id="all", durable=True)
        for batch, numbers in ((0, [0, 1, 2, 3]), (0, [3, 2, 1, 0]), (1, [4, 5]), (1, [5, 4]), (2, []), (3, [6])):
            write(broker, tmp_path, batch, numbers)
        assert [one.attributes["n"] for one in collect(subscription, 7)] == list(range(7))
    assert [path.name for path in (tmp_path / "sink").glob("*.batch")] == ["3.batch"]


def test_a_batch_of_which_half_was_published_goes_on_with_the_other_half_in_whatever_order_it_is_replayed(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Client.publish

    async def half(client: Client, events: Any, *, durable: bool = False, first: int | None = None) -> None:
        if first is not None and first > source_writer.BATCH_EVENTS + 1:
            raise CoveyError("cut short")
        await whole(client, events, durable=durable, first=first)

    with connect(broker.url, name="reader") as reader:
        subscription = reader.subscribe("n >= 0", id="all", durable=True)
        monkeypatch.setattr(Client, "publish", half)
        with pytest.raises(CoveyError, match="batch 1: cut short"):
            write(broker, tmp_path, 1, [0, 1, 2, 3])
        monkeypatch.setattr(Client, "publish", whole)
        write(broker, tmp_path, 1, [3, 2, 1, 0])
        assert [one.attributes["n"] for one in collect(subscription, 4)] == list(range(4))


# Documents of XML


def publish_xml(spark: SparkSession, broker: Broker, texts: list[Any], kind: str = "string", **more: str) -> None:
    rows = spark.createDataFrame([(text,) for text in texts], f"value {kind}").coalesce(1)
    rows.write.format("covey").option("url", broker.url).options(xml="value", **more).mode("append").save()


@pytest.mark.long
def test_documents_of_xml_are_published_as_events(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    register(spark)
    texts = ["<sale><price>5</price><by><name>Ann</name></by></sale>", "<price>7.5</price><zip>01234</zip>"]
    with connect(broker.url, name="reader") as reader:
        found = reader.subscribe("price > 0 OR by.name = 'x'", id="all", durable=True)
        publish_xml(spark, broker, texts)
        publish_xml(spark, broker, [text.encode() for text in texts], "binary", xmlSchema='{"price": "double"}')
        assert [one.attributes for one in collect(found, 4)] == [
            {"price": 5, "by": {"name": "Ann"}}, {"price": 7.5, "zip": "01234"},
        ] * 2  # fmt: skip
        with pytest.raises(Exception, match="a DOCTYPE is not accepted in an event"):
            publish_xml(spark, broker, ["<!DOCTYPE a SYSTEM 'file:///etc/passwd'><price>5</price>"])
        with pytest.raises(Exception, match="a row without a document in 'value'"):
            publish_xml(spark, broker, [None])
        stream = CoveyStreamWriter(
            write_options({"url": broker.url, "spool": str(tmp_path / "sink"), "xml": "value"}),
            schema_of("value string"),
        )
        stream.commit([stream.write(iter([pa.record_batch({"value": ["<price>9</price>"]})]))], 0)
        assert collect(found, 1)[0].attributes == {"price": 9}


@pytest.mark.parametrize(
    ("columns", "given", "problem"),
    [
        ("value string, n int", {"xml": "value"}, "select value alone, without n"),
        ("text string", {"xml": "value"}, "there is no such column; there is text"),
        ("value int", {"xml": "value"}, "of type int; documents are string or binary"),
        ("value string", {"xml": "value", "xmlSchema": "{}"}, "option xmlSchema: "),
        ("value string", {"xmlSchema": '{"price": "double"}'}, "name their column with option"),
    ],
)
def test_what_is_no_column_of_documents_is_refused(columns: str, given: dict[str, str], problem: str) -> None:
    source = CoveySource({"url": "ws://127.0.0.1:1", **given})
    with pytest.raises(CoveyError, match=problem):
        source.writer(schema_of(columns), overwrite=False)


# Rows and events

ROW = (
    schema_of("a int, b double, c string, d boolean, e timestamp")
    .add("f", ArrayType(IntegerType()))
    .add("g", schema_of("x int"))
    .add("h", MapType(StringType(), DoubleType()))
)
ROWS = st.fixed_dictionaries({
    "a": st.none() | st.integers(-(2**31), 2**31 - 1),
    "b": st.none() | st.floats(allow_nan=False),
    "c": st.none() | st.text(max_size=5),
    "d": st.none() | st.booleans(),
    "e": st.none() | st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
    "f": st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3),
    "g": st.none() | st.fixed_dictionaries({"x": st.integers(0, 9)}),
    "h": st.none() | st.dictionaries(st.text(max_size=2), st.floats(allow_nan=False), max_size=2),
})  # fmt: skip


@given(st.lists(ROWS, max_size=4))
@settings(max_examples=60, deadline=None)
def test_rows_that_are_published_and_read_are_the_same_rows(rows: list[dict[str, Any]]) -> None:
    arrow = to_arrow_schema(ROW, timezone="UTC")
    batch = pa.RecordBatch.from_pylist(
        [row | {"h": None if row["h"] is None else list(row["h"].items())} for row in rows], schema=arrow
    )
    events = list(events_of(iter([batch]), ROW))
    assert all(value is not None for event in events for value in event.values())
    again = Rows(ROW, fail_fast=True).batch([SpooledEvent(n, f"a/{n}", event) for n, event in enumerate(events)])
    assert again.equals(batch)


def test_what_does_not_fit_its_column_is_null_or_an_error_that_names_it() -> None:
    schema = schema_of("price double, _origin string, _number bigint")
    event = SpooledEvent(1, "north/7", {"price": "cheap"})
    assert Rows(schema, fail_fast=False).batch([event]).to_pylist() == [
        {"price": None, "_origin": "north", "_number": 7}
    ]
    with pytest.raises(CoveyError, match="event north/7: 'price' doesn't fit"):
        Rows(schema, fail_fast=True).batch([event])


@pytest.mark.parametrize(
    ("given_options", "message"),
    [
        ({"subscription": "s", "filter": "x > 1"}, "needs option\\('url'"),
        ({"url": "http://h", "subscription": "s", "filter": "x > 1"}, "starts with ws://"),
        ({"url": "ws://h", "filter": "x > 1"}, "needs option\\('subscription'"),
        ({"url": "ws://h", "subscription": "s", "filter": "x >"}, "option filter: .*character"),
        ({"url": "ws://h", "subscription": "s", "filter": "x > 1", "most": "0"}, "option most"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(given_options: dict[str, str], message: str) -> None:
    with pytest.raises(CoveyError, match=message) as caught:
        read_options(given_options)
    assert "\n" not in str(caught.value)


# With Spark


def test_events_go_from_a_publisher_through_spark_to_a_subscriber(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    register(spark)
    given_options = options(broker, tmp_path, maxEventsPerTrigger="30")
    with connect(broker.url, name="reader") as reader:
        subscription = reader.subscribe("doubled >= 0", id="all", durable=True)
        subscribed(broker, tmp_path)
        rows = spark.createDataFrame([(event["n"], event["price"]) for event in quotes(range(200))], QUOTES)
        rows.coalesce(1).write.format("covey").option("url", broker.url).mode("append").save()
        stream = spark.readStream.format("covey").options(**given_options).schema(QUOTES + ", _origin string").load()
        query = (
            stream.selectExpr("n", "2 * n AS doubled", "_origin")
            .writeStream.format("covey")
            .option("url", broker.url)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(SECONDS)
        found = [one.attributes for one in collect(subscription, 100)]
    assert found == [{"n": n, "doubled": 2 * n, "_origin": "a"} for n in range(0, 200, 2)]
    assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) >= 4  # maxEventsPerTrigger


def test_a_batch_read_takes_what_is_queued_up_to_a_limit(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    register(spark)
    subscribed(broker, tmp_path)
    publish(broker, quotes(range(3_000)))

    def read(most: int) -> list[int]:
        source = spark.read.format("covey").options(**options(broker, tmp_path, most=str(most)))
        return [row.n for row in source.schema(QUOTES).load().collect()]

    assert read(400) == list(range(0, 800, 2))
    assert read(100_000) == list(range(800, 3_000, 2))
    assert read(100_000) == []


DRIVER = """
import sys
from covey.spark import local_session, register

url, work = sys.argv[1:]
spark = local_session(cores=2, **{"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                                  "spark.log.level": "ERROR"})
register(spark)
checkpoint = work + "/checkpoint"
stream = (spark.readStream.format("covey").option("url", url).option("subscription", "cheap")
          .option("filter", "price < 10").option("checkpointLocation", checkpoint).option("maxEventsPerTrigger", 25)
          .schema("n int, price double").load())
(stream.selectExpr("n AS seen").writeStream.format("covey").option("url", url)
 .option("checkpointLocation", checkpoint).start().awaitTermination())
"""


@contextmanager
def spark_process(broker: Broker, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with (tmp_path / "stderr.txt").open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, broker.url, str(tmp_path)], stderr=errors, text=True, start_new_session=True
        )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.mark.long
def test_a_driver_and_a_broker_that_are_killed_lose_nothing_and_double_nothing(broker: Broker, tmp_path: Path) -> None:
    with connect(broker.url, name="market") as market, connect(broker.url, name="reader") as reader:
        subscription = reader.subscribe("seen >= 0", id="all", durable=True)
        with connect(broker.url, name="spark-cheap") as client:
            client.subscribe("price < 10", id="cheap", durable=True)
        market.publish(quotes(range(600)), durable=True)
        seen: list[int] = []

        def get(wanted: int, process: subprocess.Popen[str]) -> None:
            while len(seen) < wanted:
                try:
                    seen.append(subscription.get(timeout=SECONDS).attributes["seen"])
                except TimeoutError:
                    raise AssertionError((tmp_path / "stderr.txt").read_text()[-3000:]) from None
                assert process.poll() is None, (tmp_path / "stderr.txt").read_text()[-3000:]

        with spark_process(broker, tmp_path) as first:
            get(60, first)
        with spark_process(broker, tmp_path) as second:
            get(150, second)
            broker.kill()
            broker.start()
            market.publish(quotes(range(600, 700)), durable=True)
            get(350, second)
            seen += [one.attributes["seen"] for one in collect(subscription, 0)]
    assert sorted(seen) == list(range(0, 700, 2))
