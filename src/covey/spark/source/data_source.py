"""Brokers as a data source of Spark: `spark.readStream.format("covey")`, `df.writeStream.format("covey")`.

    register(spark)
    quotes = (spark.readStream.format("covey").option("url", "ws://127.0.0.1:7400").option("subscription", "cheap")
              .option("filter", "price < 10").option("checkpointLocation", "checkpoint")
              .schema("symbol string, price double").load())

Reading subscribes, durably and with a filter, so only what matches leaves the broker; `covey.spark.source.reader` and
`covey.spark.source.writer` say why every event comes, and is published, once.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from covey.errors import CoveyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from covey.spark.source.options import WriteOptions


class CoveySource(DataSource):  # type: ignore[misc]
    """`format("covey")`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "covey"

    def schema(self) -> StructType:
        """Events have none of their own."""
        raise CoveyError("events have no schema of their own; give one: .schema('symbol string, price double')")

    def reader(self, schema: StructType) -> DataSourceReader:
        """What is queued now."""
        from covey.spark.source.options import read_options
        from covey.spark.source.reader import CoveyReader

        return CoveyReader(read_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """All that comes."""
        from covey.spark.source.options import read_options
        from covey.spark.source.reader import CoveyStreamReader

        return CoveyStreamReader(read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publish a table."""
        from covey.spark.source.options import write_options
        from covey.spark.source.writer import CoveyWriter

        options = write_options(self.options)
        _check_writable(schema, options, overwrite)
        return CoveyWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publish a stream."""
        from covey.spark.source.options import write_options
        from covey.spark.source.writer import CoveyStreamWriter

        options = write_options(self.options)
        _check_writable(schema, options, overwrite)
        return CoveyStreamWriter(options, schema)


def _check_writable(schema: StructType, options: WriteOptions, overwrite: bool) -> None:
    from covey.spark.source.columns import check_documents, check_published

    if overwrite:
        raise CoveyError("what is published can't be overwritten; use mode('append'), outputMode('append')")
    if options.xml is not None:
        check_documents(schema, options.xml)
    else:
        check_published(schema)


def register_source(spark: SparkSession, *, needed: bool = True) -> None:
    """Make `format("covey")` known to a session; what is missing for it is an error only where it is `needed`."""
    for module, remedy in (
        ("aiohttp", "pip install 'covey[broker]'"),
        ("msgspec", "pip install 'covey[broker]'"),
        ("pyspark.sql.streaming.datasource", "format('covey') needs PySpark 4.2 or newer"),
    ):
        if find_spec(module) is None:
            if needed:
                raise CoveyError(f"{module} is not installed; {remedy}")
            return
    spark.dataSource.register(CoveySource)
