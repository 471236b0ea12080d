"""A stream whose events, changes, checkpoint, sink and index are all in a bucket: `s3a_driver.py SERVER STEP …`.

SERVER is the host and port of an S3 server. Spark reaches it by Hadoop's classes, for events and its part of the
checkpoint, and covey by Arrow's. Each step is a process of its own, as after a crash; `crash` is one that ends itself
when it would commit. Prints what it found as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tools.jars import jars

from covey.spark import build_index, local_session, match_events, match_stream, read_matches
from covey.spark.addresses import RemoteDirectory
from covey.spark.stream.object_sink import ObjectSink
from covey.spark.stream.sink import Manifest
from tests.spark.conftest import FAST_START

COLUMNS = "n int, name string"
PATIENCE = 300.0


class Driver:
    """One session."""

    def __init__(self, server: str) -> None:
        host, _, port = server.partition(":")
        self._options = f"?scheme=http&endpoint_override={host}%3A{port}&region=us-east-1"
        hadoop = {
            "endpoint": f"http://{server}", "endpoint.region": "us-east-1", "access.key": "key", "secret.key": "secret",
            "path.style.access": "true", "connection.ssl.enabled": "false",
        }  # fmt: skip
        given = {f"spark.hadoop.fs.s3a.{name}": value for name, value in hadoop.items()}
        own = {"spark.jars": ",".join(map(str, jars("s3a")))}
        self.spark = local_session("covey on s3a", 2, **FAST_START, **own, **given)

    def address(self, name: str) -> str:
        """As covey takes it, with what Arrow has to know."""
        return f"s3a://key:secret@bucket/{name}{self._options}"

    def add_events(self, *numbers: int) -> None:
        rows = [(n, f"x{n}") for n in numbers]
        self.spark.createDataFrame(rows, COLUMNS).write.mode("append").parquet("s3a://bucket/events")

    def change(self, version: int, **rules: str) -> None:
        rows = [{"version": version, "op": "add", "id": id, "filter": text} for id, text in rules.items()]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        RemoteDirectory(self.address("changes")).put(f"{version}.jsonl", lines.encode())

    def run(self) -> None:
        query = match_stream(
            self.spark.readStream.schema(COLUMNS).parquet("s3a://bucket/events"), self.address("changes"),
            checkpoint=self.address("checkpoint"), sink=self.address("sink"), trigger="availableNow",
        )  # fmt: skip
        assert query.awaitTermination(PATIENCE)

    def found(self) -> list[list[Any]]:
        rows = read_matches(self.spark, self.address("sink")).collect()
        return sorted([row.n, row.name, row.subscriptions, row.version, row.batch] for row in rows)

    def first(self) -> Any:
        self.change(1, a="n > 3", b="name = 'x4'", bad="n >")
        self.add_events(3, 4)
        self.run()
        return self.found()

    def crash(self) -> Any:
        self.change(2, c="TRUE")
        self.add_events(5)

        def die(sink: ObjectSink, within: str, manifest: Manifest) -> None:
            print(json.dumps([within, manifest.version]), flush=True)
            os._exit(0)

        ObjectSink._commit = die  # type: ignore[method-assign]
        self.run()
        raise AssertionError("it should have ended before")

    def again(self) -> Any:
        self.change(3, d="n = 6")
        self.add_events(6)
        self.run()
        return self.found()

    def index(self) -> Any:
        rules = self.spark.createDataFrame([("a", "n > 3"), ("b", "n = 4")], "id string, filter string")
        build_index(rules, self.address("saved/rules.covey"))
        events = self.spark.read.parquet("s3a://bucket/events")
        rows = match_events(events, self.address("saved/rules.covey")).collect()
        return sorted([row.n, row.subscriptions] for row in rows)


if __name__ == "__main__":
    driver = Driver(sys.argv[1])
    for step in sys.argv[2:]:
        print(json.dumps(getattr(driver, step)()), flush=True)
    driver.spark.stop()
