"""The afternoon: the same rules on Spark, over a table and over a stream whose rules change while it goes on."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from covey.spark import local_session, match_events, match_stream, read_matches


def put(path: Path, rows: list[dict[str, object]]) -> None:
    """Write beside the target, then rename: readers see the whole file or none."""
    hidden = path.with_name("." + path.name)
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(path)


spark = local_session(cores=2)
columns = "latency_ms double, country string"

rules = spark.createDataFrame([(1, "latency_ms > 1000"), (2, "country = 'DE'"), (2, "TRUE")], "id int, filter string")
requests = spark.createDataFrame([(1500.0, "FR"), (None, "DE")], columns)
matched, errors = match_events(requests, rules, on_error="skip")
assert [row.subscriptions for row in matched.collect()] == [[1], [2]]
print("left out:", [row.error for row in errors.collect()])

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    changes, events = folder / "rules", folder / "events"
    changes.mkdir()
    events.mkdir()

    def run() -> list[tuple[float, list[str]]]:
        """Take what is there, and give all that has matched so far."""
        stream = spark.readStream.schema(columns).json(str(events))
        match_stream(
            stream, changes, checkpoint=folder / "checkpoint", sink=folder / "matches", trigger="availableNow"
        ).awaitTermination()
        found = read_matches(spark, folder / "matches").collect()
        return sorted((row.latency_ms, list(row.subscriptions)) for row in found)

    put(changes / "1.jsonl", [{"version": 1, "op": "add", "id": "slow", "filter": "latency_ms > 1000"}])
    put(events / "1.json", [{"latency_ms": 1200.0, "country": "DE"}])
    print(run())
    put(changes / "2.jsonl", [{"version": 2, "op": "replace", "id": "slow", "filter": "latency_ms > 2000"}])
    put(events / "2.json", [{"latency_ms": 1300.0, "country": "DE"}, {"latency_ms": 2500.0, "country": "DE"}])
    matches = run()
    print(matches)
    assert [latency for latency, ids in matches if ids] == [1200.0, 2500.0]
