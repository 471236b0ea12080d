"""Which kind of sink a path is: a directory of this machine or a mount, or a place behind an address."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from covey.spark.addresses import is_address
from covey.spark.stream.object_sink import ObjectSink
from covey.spark.stream.sink import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Sink: TypeAlias = ParquetSink | ObjectSink


def sink_at(path: str | os.PathLike[str]) -> Sink:
    """The sink at a path or an address."""
    text = os.fspath(path)
    return ObjectSink(text) if is_address(text) else ParquetSink(text)


def read_matches(spark: SparkSession, sink: str | os.PathLike[str]) -> DataFrame:
    """The committed batches of a sink as one DataFrame, with `batch` as its last column."""
    return sink_at(sink).read(spark)
