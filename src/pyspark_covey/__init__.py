"""Where Spark finds `format("covey")` by itself: it looks into installed packages whose names begin with `pyspark_`.

It imports every such package when a session first looks for a data source, whoever asked for which; so covey itself,
which takes a second to import, is imported when its source is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from covey.spark.source.data_source import CoveySource


class DefaultSource(DataSource):  # type: ignore[misc]
    """Brokers as a data source: `spark.read.format("covey")`, without `covey.spark.register`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "covey"

    def _source(self) -> CoveySource:
        from covey.spark.source.data_source import CoveySource

        return CoveySource(self.options)

    def schema(self) -> StructType:
        """Events have none of their own."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """What is queued now."""
        return self._source().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """All that comes."""
        return self._source().streamReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publish a table."""
        return self._source().writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publish a stream."""
        return self._source().streamWriter(schema, overwrite)


__all__ = ["DefaultSource"]
