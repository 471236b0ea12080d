"""Kafka on both sides of a stream: a broker of its own on loopback, rules in a compacted topic, matches to a topic."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")

import confluent_kafka as kafka_client
from confluent_kafka.admin import AdminClient
from tools.jars import NotFetchedError, jars

import covey
from covey.filters import matches
from covey.language import parse
from covey.matching import Index
from covey.spark.kafka import RulesTopic, TopicSink
from covey.spark.kafka.topic_sink import write_part
from covey.spark.stream.changes import apply_changes
from covey.spark.stream.settings import RuleSettings
from tests.spark.cluster import Cluster, running
from tests.spark.kafka_broker import broker, make_topic

DRIVER = Path(__file__).with_name("kafka_driver.py")
EVENTS = 200


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        jars("kafka")
    except NotFetchedError as error:
        pytest.skip(str(error))
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def put(address: str, topic: str, records: list[tuple[str | None, str | bytes | None]]) -> None:
    producer = kafka_client.Producer({"bootstrap.servers": address})
    for key, value in records:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(60) == 0


def everything(address: str, topic: str, partitions: int = 1) -> list[tuple[str | None, str | None]]:
    """All committed records of a topic, partition by partition."""
    consumer = kafka_client.Consumer({
        "bootstrap.servers": address, "group.id": "everything", "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip
    found: list[tuple[str | None, str | None]] = []
    for partition in range(partitions):
        consumer.assign([kafka_client.TopicPartition(topic, partition, kafka_client.OFFSET_BEGINNING)])
        while True:
            record = consumer.poll(60)
            assert record is not None
            if record.error() is not None:
                assert record.error().code() == kafka_client.KafkaError._PARTITION_EOF
                break
            found.append(tuple(part and part.decode() for part in (record.key(), record.value())))
    consumer.close()
    return found


def follow(index: Index, topic: RulesTopic, version: int) -> tuple[int, list[str]]:
    """Go to the newest version; what was wrong."""
    fetched = topic.fetch(index, version, ())
    bad = [*fetched.bad, *apply_changes(index, fetched.changes, RuleSettings())]
    return fetched.version, [f"{change.id}: {change.error}" for change in bad]


def test_a_topic_of_rules_is_followed_from_its_start_and_from_a_version(kafka: str) -> None:
    make_topic(kafka, "followed", **{"cleanup.policy": "compact"})
    index, topic = Index(), RulesTopic(kafka, "followed")
    assert follow(index, topic, 0) == (0, [])
    put(kafka, "followed", [("a", "x = 1"), ("b", "x = 2"), ("a", "x = 3"), ("nobody", None)])
    assert follow(index, topic, 0) == (4, [])
    assert dict(index.rows()) == {"a": "x = 3", "b": "x = 2"}
    put(kafka, "followed", [("a", None), ("b", "x = 5"), ("c", "soundex(s) = 'A500'")])
    assert topic.newest(4, ()) == 7
    assert follow(index, topic, 4) == (7, [])
    assert follow(index, topic, 7) == (7, [])
    assert sorted(index.ids()) == ["b", "c"]
    anew = Index()
    assert follow(anew, RulesTopic(kafka, "followed"), 0) == (7, [])
    assert dict(anew.rows()) == dict(index.rows())


def test_a_rule_whose_removal_was_cleaned_away_while_a_stream_was_down_is_gone(kafka: str) -> None:
    make_topic(kafka, "cleaned")
    put(kafka, "cleaned", [("a", "x = 1"), ("b", "x = 2"), ("bad", "x >")])
    index = Index()
    version, wrong = follow(index, RulesTopic(kafka, "cleaned"), 0)
    assert (version, len(wrong)) == (3, 1)
    put(kafka, "cleaned", [("a", None), ("b", "x ="), ("c", "x = 3")])
    admin = AdminClient({"bootstrap.servers": kafka})
    for deleted in admin.delete_records([kafka_client.TopicPartition("cleaned", 0, 4)]).values():
        deleted.result(60)
    again = RulesTopic(kafka, "cleaned")  # as a driver that is started again has it
    version, wrong = follow(index, again, 3)
    assert (version, len(wrong)) == (6, 1)
    assert dict(index.rows()) == {"b": "x = 2", "c": "x = 3"}
    put(kafka, "cleaned", [("d", "x = 4")])
    assert follow(index, again, 6) == (7, [])
    assert sorted(index.ids()) == ["b", "c", "d"]


def test_rules_of_strangers_are_held_to_the_limits_of_brokers(kafka: str) -> None:
    make_topic(kafka, "strangers")
    long = " OR ".join(f"x = {n}" for n in range(20_000))
    put(kafka, "strangers", [
        ("good", "x = 1"), ("code", "reflect('java.lang.Runtime', 'exit', 1) = 1"), ("long", long),
        (None, "x = 1"), ("i" * 2000, "x = 1"), ("bytes", b"\xff"), ("own", "mine(x) = 1"), ("more", "x = 2"),
    ])  # fmt: skip
    index = Index()
    version, wrong = follow(index, RulesTopic(kafka, "strangers", most=1), 0)
    assert version == 8
    assert list(index.ids()) == ["good"]
    said = dict(line.split(": ", 1) for line in wrong)
    assert said.keys() == {"code", "long", "None", "own", "more"}
    assert len(wrong) == 7
    assert "reflect" in said["code"]
    assert "65,536" in said["long"] or "8,192" in said["long"]
    assert "there are 1 rules, which is all there may be" in said["more"]


def test_what_cant_be_a_topic_of_rules_is_refused_by_name(kafka: str) -> None:
    make_topic(kafka, "wide", 3)
    with pytest.raises(covey.CoveyError, match="topic wide has 3 partitions"):
        RulesTopic(kafka, "wide").fetch(Index(), 0, ())
    with pytest.raises(covey.CoveyError, match="Kafka, topic nowhere"):
        RulesTopic(kafka, "nowhere").fetch(Index(), 0, ())


def test_a_part_of_a_batch_is_written_once(kafka: str) -> None:
    make_topic(kafka, "once")
    sink = TopicSink(kafka, "once")
    with pytest.raises(covey.CoveyError, match="match_stream"):
        sink(None, 0)
    sink.claim("stream", "")
    rows = [(None, f"row {number}") for number in range(10)]
    left = kafka_client.Producer({"bootstrap.servers": kafka, "transactional.id": "covey-stream-0"})
    left.init_transactions(60)
    left.begin_transaction()
    left.produce("once", value="half a batch")
    left.flush(60)
    assert write_part(sink, 0, 0, rows) == 10
    with pytest.raises(kafka_client.KafkaException):
        left.commit_transaction(60)
    assert write_part(sink, 0, 0, rows) == 0
    assert write_part(sink, 0, 1, [(None, "next")]) == 1
    assert write_part(sink, 1, 0, [("k", "other part")]) == 1
    assert everything(kafka, "once") == [*rows, (None, "next"), ("k", "other part")]


# A whole stream


def make(address: str, work: Path) -> list[dict[str, Any]]:
    """Topics, events, and changes of rules that are to come."""
    random_ = random.Random(3)
    make_topic(address, "quotes", 2)
    make_topic(address, "matches", 2)
    make_topic(address, "rules", **{"cleanup.policy": "compact"})
    events = [
        {"n": n, "price": random_.choice([None, random_.uniform(0, 100)]), "symbol": random_.choice("abcd")}
        for n in range(EVENTS)
    ]
    put(address, "quotes", [(None, json.dumps(event)) for event in events])

    def condition() -> str:
        number = random_.randrange(100)
        return random_.choice([f"price > {number}", f"symbol = '{random_.choice('abcd')}' AND n < {2 * number}",
                               "price IS NULL", f"NOT (price < {number}) OR symbol IN ('a', 'd')"])  # fmt: skip

    put(address, "rules", [(f"r{n}", condition()) for n in range(30)] + [("bad", "price >")])
    pending = [
        [(f"r{random_.randrange(40)}", random_.choice([None, condition(), condition()])) for _ in range(4)]
        for _ in range(12)
    ]
    (work / "pending.json").write_text(json.dumps(pending))
    return events


def drive(
    work: Path, address: str, point: str = "", batch: int = -1, *, kill: bool = True, cluster: Cluster | None = None
) -> None:
    """Run the driver; with a point, kill it there with all of its processes."""
    arguments = [sys.executable, str(DRIVER), str(work), address, *([point, str(batch)] if point else [])]
    arguments += [] if cluster is None else [cluster.address]
    root = str(DRIVER.parents[2])
    with (work / "stderr.txt").open("w+") as errors:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True, cwd=root,
            env={**os.environ, "PYTHONPATH": root, **({} if cluster is None else {"TMPDIR": str(cluster.own)})},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("at ") and kill:
                    break
        finally:
            if point and kill:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            code = process.wait(300)
    expected = -signal.SIGKILL if point and kill else 0
    assert code == expected, (work / "stderr.txt").read_text()[-3000:]


def check(address: str, events: list[dict[str, Any]]) -> set[int]:
    """Every event once, with what the interpreter says of it under the version in its record; the versions."""
    changes = everything(address, "rules")
    rows = [json.loads(value or "") for _, value in everything(address, "matches", 2)]
    rows = [json.loads(row["value"]) | row if "value" in row else row for row in rows]
    assert sorted(row["n"] for row in rows) == [event["n"] for event in events]
    for row in rows:
        rules: dict[str, str] = {}
        for id, text in changes[: row["version"]]:
            if text is None:
                rules.pop(str(id), None)
            elif id != "bad":
                rules[str(id)] = text
        event = {name: value for name, value in events[row["n"]].items() if value is not None}
        assert sorted(row["subscriptions"]) == sorted(id for id, text in rules.items() if matches(parse(text), event))
    return {row["version"] for row in rows}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[str]:
    """A broker without topics."""
    try:
        jars("kafka")
        jars("connector")
    except NotFetchedError as error:
        pytest.skip(str(error))
    (tmp_path / "kafka").mkdir()
    with broker(tmp_path / "kafka") as address:
        yield address


@pytest.mark.long
def test_from_a_topic_to_a_topic_each_event_is_matched_once_though_a_worker_is_killed(
    fresh: str, tmp_path: Path
) -> None:
    events = make(fresh, tmp_path)
    drive(tmp_path, fresh, "worker", kill=False)
    assert len(check(fresh, events)) >= 4
    bad = list((tmp_path / "checkpoint" / "covey" / "bad").glob("*.jsonl"))
    assert any("the filter ends after >" in path.read_text() for path in bad)


@pytest.mark.long
def test_from_json_to_a_topic_each_event_is_matched_once_by_the_rules_of_a_topic(fresh: str, tmp_path: Path) -> None:
    events = make(fresh, tmp_path)
    drive(tmp_path, fresh, "json", kill=False)
    assert len(check(fresh, events)) >= 4


@pytest.mark.long
def test_a_driver_that_is_killed_during_and_between_batches_writes_each_match_once(fresh: str, tmp_path: Path) -> None:
    events = make(fresh, tmp_path)
    for point, batch in [("decided", 0), ("part", 1), ("written", 2), ("between", 3)]:
        drive(tmp_path, fresh, point, batch)
    drive(tmp_path, fresh)
    assert len(check(fresh, events)) >= 4


@pytest.mark.long
def test_an_executor_of_a_cluster_that_is_killed_in_its_transaction_costs_nothing(fresh: str, tmp_path: Path) -> None:
    events = make(fresh, tmp_path)
    (tmp_path / "cluster").mkdir()
    with running(tmp_path / "cluster") as cluster:
        drive(tmp_path, fresh, "executor", kill=False, cluster=cluster)
        ended = [log.read_text() for log in (tmp_path / "cluster").glob("process-*.log")]
    assert any("finished with state EXITED" in text and "exitStatus 137" in text for text in ended)
    assert len(check(fresh, events)) >= 4
