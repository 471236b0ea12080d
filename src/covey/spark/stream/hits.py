"""How often each rule matched, by batch and in all, and which rules don't match: from what a stream has written.

A sink has every match once, so that counting them there is exact whatever was killed on the way, and costs a job only
when somebody asks.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from covey.errors import CoveyError
from covey.spark.batch import COLUMNS
from covey.spark.stream.notes import Notes, began
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.sink import BATCH
from covey.spark.stream.sinks import read_matches, sink_at
from covey.spark.stream.snapshots import SnapshotStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def hit_counts(spark: SparkSession, sink: str | os.PathLike[str], *, by_batch: bool = False) -> DataFrame:
    """A stream's matches counted: (subscription, hits, last_batch), or with `by_batch` (subscription, batch, hits).
    Rules without matches have no row; `silent_rules` has them."""
    found = _pairs(spark, sink)
    if by_batch:
        return found.groupBy("subscription", BATCH).agg(F.count("*").alias("hits"))
    return found.groupBy("subscription").agg(F.count("*").alias("hits"), F.max(BATCH).alias("last_batch"))


def silent_rules(
    spark: SparkSession, sink: str | os.PathLike[str], checkpoint: str | os.PathLike[str], *, batches: int | None = None
) -> DataFrame:
    """The rules of a stream's newest version that matched nothing in its last so many `batches`, by itself in all:
    (subscription, filter, last_batch), the last being null for a rule that never matched. A new rule is among them
    until it matches; one that was replaced is known by its id."""
    if batches is not None and batches < 1:
        raise CoveyError(f"batches is {batches}; use 1 or more")
    where = sink_at(sink)
    counted = hit_counts(spark, sink).select("subscription", "last_batch")
    ids = StructType.fromJson(where.schema())
    kind = ids["subscriptions"].dataType.elementType if "subscriptions" in ids.names else ids["subscription"].dataType
    written = where.manifests()
    since = written[-batches].batch if batches is not None and batches <= len(written) else 0
    rules = spark.createDataFrame(_rules(checkpoint), "subscription string, filter string")
    rules = rules.withColumn("subscription", F.col("subscription").cast(kind))
    silent = F.col("last_batch").isNull() | (F.col("last_batch") < since)
    return rules.join(counted, "subscription", "left").where(silent)


def _pairs(spark: SparkSession, sink: str | os.PathLike[str]) -> DataFrame:
    found = read_matches(spark, sink)
    if COLUMNS["counts"] in found.columns and COLUMNS["array"] not in found.columns:
        raise CoveyError("this sink was written with output='counts', which has no rules in it")
    if COLUMNS["pairs"] in found.columns:
        return found.select(COLUMNS["pairs"], BATCH)
    return found.select(F.explode(COLUMNS["array"]).alias(COLUMNS["pairs"]), BATCH)


def _rules(checkpoint: str | os.PathLike[str]) -> list[tuple[str, str]]:
    if began(checkpoint) is None:
        raise CoveyError(f"{os.fspath(checkpoint)!r} is not the checkpoint of a match_stream")
    notes = Notes(checkpoint)
    try:
        store = SnapshotStore(notes.directory / "index", RuleSettings())
        saved = store.versions()
        return list(store.open(store.load(saved[-1])[0]).rows()) if saved else []
    finally:
        notes.close()
