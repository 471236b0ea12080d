"""Sinks, change files and saved indexes behind addresses: an S3 server on loopback, and a disk without renames."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyarrow import fs
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import covey
from covey.spark import build_index, match_events
from covey.spark.addresses import RemoteDirectory, shown
from covey.spark.stream import hit_counts, match_stream, read_matches, silent_rules, sinks
from covey.spark.stream.object_sink import ObjectSink
from covey.spark.stream.sink import Manifest

COLUMNS = "n int, `odd.name` string, at timestamp"
PATIENCE = 600.0


@pytest.fixture(scope="module")
def bucket() -> Iterator[Callable[[str], str]]:
    """Addresses in a bucket of a server that runs here."""
    running = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    _, port = running.get_host_and_port()
    options = {"access_key": "key", "secret_key": "secret", "scheme": "http", "region": "us-east-1"}
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True, **options)
    store.create_dir("rules")
    given = f"?scheme=http&endpoint_override=127.0.0.1%3A{port}&region=us-east-1"
    yield lambda name: f"s3://key:secret@rules/{name}{given}"
    running.stop()


class World:
    """A stream whose sink and changes are behind addresses."""

    def __init__(self, spark: SparkSession, work: Path, address: Callable[[str], str]) -> None:
        self.spark, self.work = spark, work
        self.checkpoint: str | Path = work / "checkpoint"
        self.sink, self.changes = address(f"{work.name}/sink"), address(f"{work.name}/changes")

    def add_events(self, *numbers: int) -> None:
        rows = [(n, f"x{n}", None) for n in numbers]
        table = self.spark.createDataFrame(rows, COLUMNS).repartition(2)
        table.write.mode("append").parquet(str(self.work / "events"))

    def change(self, version: int, **rules: str) -> None:
        rows = [{"version": version, "op": "add", "id": id, "filter": text} for id, text in rules.items()]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        RemoteDirectory(self.changes).put(f"{version}.jsonl", lines.encode())

    def run(self) -> None:
        events: DataFrame = self.spark.readStream.schema(COLUMNS).parquet(str(self.work / "events"))
        query = match_stream(events, self.changes, checkpoint=self.checkpoint, sink=self.sink, trigger="availableNow")
        assert query.awaitTermination(PATIENCE)

    def found(self) -> list[tuple[Any, ...]]:
        rows = read_matches(self.spark, self.sink).collect()
        assert all(row["odd.name"] == f"x{row.n}" and row.at is None for row in rows)
        return sorted((row.n, row.subscriptions, row.version, row.batch) for row in rows)

    def files(self, batch: int) -> list[str]:
        return [name for name, _ in RemoteDirectory(self.sink).names(f"batch={batch}")]


@pytest.fixture(params=["s3", pytest.param("disk without renames", marks=pytest.mark.long)])
def world(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    if request.param == "s3":
        return World(spark, tmp_path, request.getfixturevalue("bucket"))
    monkeypatch.setattr(sinks, "is_address", lambda path: True)
    monkeypatch.setattr("covey.spark.stream.changes.is_address", lambda path: True)
    for name in ("rename", "replace", "link"):
        monkeypatch.setattr(os, name, without(getattr(os, name), str(tmp_path / "store")))
    return World(spark, tmp_path, lambda name: f"file://{tmp_path}/store/{name}")


def without(call: Callable[..., None], below: str) -> Callable[..., None]:
    """A call that a file system refuses."""

    def refuse(source: Any, target: Any, **options: Any) -> None:
        if str(target).startswith(below):
            raise OSError("this store can't rename")
        call(source, target, **options)

    return refuse


def test_a_stream_goes_from_a_store_to_a_store(world: World) -> None:
    world.change(1, a="n > 3", b="`odd.name` = 'x4'")
    world.add_events(3, 4)
    world.run()
    world.change(2, c="TRUE")
    world.add_events(5)
    world.run()
    expected = [(3, [], 1, 0), (4, ["a", "b"], 1, 0), (5, ["a", "c"], 2, 1)]
    assert world.found() == expected
    hits = {row.subscription: row.hits for row in hit_counts(world.spark, world.sink).collect()}
    assert hits == {"a": 2, "b": 1, "c": 1}
    world.run()  # nothing is new
    assert world.found() == expected


def test_a_batch_that_was_not_committed_leaves_nothing_and_comes_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.change(1, a="n > 3")
    world.add_events(3, 4)

    def die(self: ObjectSink, within: str, manifest: Manifest) -> None:
        raise KeyError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectSink, "_commit", die)
        with pytest.raises(StreamingQueryException, match="power cut"):
            world.run()
    left = world.files(0)
    assert left
    assert world.found() == []
    RemoteDirectory(world.sink).put("batch=0/_manifest.json", b'{"batch": 0, "vers')  # its writer died
    assert world.found() == []
    world.run()
    assert world.found() == [(3, [], 1, 0), (4, ["a"], 1, 0)]
    assert not set(left) & set(world.files(0)) - {"_manifest.json"}


def test_a_batch_that_was_committed_is_not_written_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.change(1, a="n > 3")
    world.add_events(4)
    commit = ObjectSink._commit

    def commit_and_die(self: ObjectSink, within: str, manifest: Manifest) -> None:
        commit(self, within, manifest)
        raise KeyError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectSink, "_commit", commit_and_die)
        with pytest.raises(StreamingQueryException, match="power cut"):
            world.run()
    files = world.files(0)
    world.change(2, b="TRUE")
    world.run()
    assert world.files(0) == files
    assert world.found() == [(4, ["a"], 1, 0)]


def test_the_notes_of_a_checkpoint_may_be_behind_an_address_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covey.spark.stream.notes.is_address", lambda path: str(path).startswith("file:"))
    world = World(spark, tmp_path, lambda name: f"file://{tmp_path}/store/{name}")
    monkeypatch.setattr(sinks, "is_address", lambda path: True)
    monkeypatch.setattr("covey.spark.stream.changes.is_address", lambda path: True)
    for name in ("rename", "replace", "link"):
        monkeypatch.setattr(os, name, without(getattr(os, name), str(tmp_path / "store")))
    world.checkpoint = f"file://{tmp_path}/store/checkpoint"
    world.change(1, a="n > 3", b="n >")
    world.add_events(4)
    world.run()
    notes = tmp_path / "store" / "checkpoint" / "covey"
    assert json.loads((notes / "batches" / "0.json").read_text()) == {"batch": 0, "version": 1}
    assert (notes / "bad" / "1.jsonl.jsonl").exists()
    world.change(2, c="n = 5", d="n = 6")
    world.add_events(5)
    world.run()
    assert world.found() == [(4, ["a"], 1, 0), (5, ["a", "c"], 2, 1)]
    silent = silent_rules(spark, world.sink, world.checkpoint).collect()
    assert [row.subscription for row in silent] == ["d"]
    assert sorted(path.name for path in (notes / "index").glob("version-*")) == ["version-1.json", "version-2.json"]


def test_a_sink_behind_an_address_belongs_to_one_checkpoint(world: World) -> None:
    world.change(1, a="n > 3")
    world.add_events(4)
    world.run()
    (world.work / "checkpoint").rename(world.work / "elsewhere")
    with pytest.raises(covey.CoveyError, match="holds batches of a stream with another checkpoint"):
        world.run()


def test_an_index_is_saved_behind_an_address_and_matched_from_there(
    spark: SparkSession, bucket: Callable[[str], str]
) -> None:
    rules = spark.createDataFrame([("a", "n > 3"), ("b", "n = 4")], "id string, filter string")
    build_index(rules, bucket("saved/rules.covey"))
    events = spark.createDataFrame([(4,)], "n int")
    assert [row.subscriptions for row in match_events(events, bucket("saved/rules.covey")).collect()] == [["a", "b"]]
    with pytest.raises(covey.IndexFileError, match=r"s3://rules/saved/other\.covey: no such file"):
        match_events(events, bucket("saved/other.covey"))


def test_errors_name_the_store_in_one_line_without_its_credentials(
    spark: SparkSession, bucket: Callable[[str], str]
) -> None:
    assert shown(bucket("x")) == "s3://rules/x"
    rules = spark.createDataFrame([("a", "n > 3")], "id string, filter string")
    nobody = bucket("x/rules.covey").replace("@rules/", "@nowhere/")
    with pytest.raises(covey.CoveyError) as told:
        build_index(rules, nobody)
    assert str(told.value).startswith("s3://nowhere/x: ")
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)
    with pytest.raises(covey.CoveyError, match="nofs"):
        build_index(rules, "nofs://somewhere/rules.covey")
