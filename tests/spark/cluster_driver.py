"""A driver on a cluster that shares only some directories with it: `python cluster_driver.py MASTER SHARED OWN`.

Prints what it found as one line of JSON. OWN is a directory that the workers don't see.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from covey.spark import local_session, match_events, match_files
from covey.spark.stream import match_stream, read_matches

RULES = [("dear", "price > 50"), ("a", "symbol = 'a'"), ("none", "price < 0"), ("share", "price / 2 > 40")]
SCHEMA = "n int, price double, symbol string"


def stream(spark: SparkSession, shared: Path, own: Path, name: str, sink: Path) -> dict[str, Any]:
    """Match all events as a stream: what it wrote, or how it failed."""
    events = spark.readStream.schema(SCHEMA).json(str(shared / "events"))
    query = match_stream(events, own / "changes", checkpoint=own / name, sink=sink, trigger="availableNow")
    try:
        query.awaitTermination(240)
    except StreamingQueryException as error:
        return {"error": str(error), "committed": [path.name for path in sink.glob("batch=*")]}
    rows = read_matches(spark, sink).collect()
    return {"matches": sorted([row.n, id] for row in rows for id in row.subscriptions)}


def main(master: str, shared: Path, own: Path) -> None:
    settings = {
        "spark.master": master, "spark.executor.memory": "512m", "spark.cores.max": "2", "spark.driver.memory": "512m",
        "spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR",
    }  # fmt: skip
    spark = local_session("covey on a cluster", **settings)
    rules = spark.createDataFrame(RULES, "id string, filter string")
    (own / "changes").mkdir()
    rows = [{"version": 1, "op": "add", "id": id, "filter": text} for id, text in RULES]
    (own / "changes" / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    events = spark.read.schema(SCHEMA).json(str(shared / "events"))
    events.write.parquet(str(shared / "table"))
    pairs = match_events(events, rules, output="pairs").select("n", "subscription").collect()
    files = match_files(spark, shared / "table", rules, output="pairs", columns=["n"]).select("n", "subscription")
    found = {
        "events": sorted(list(row) for row in pairs),
        "files": sorted(list(row) for row in files.collect()),
        "one stream": stream(spark, shared, own, "one", shared / "sink-one"),
        "another over the same changes": stream(spark, shared, own, "another", shared / "sink-another"),
        "sink that workers don't see": stream(spark, shared, own, "lost", own / "sink"),
    }
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
