"""A sink behind an address, in which each micro-batch stands once though nothing can be renamed there.

Workers write the files of batch N into `batch=N`, through Arrow, under names that no other attempt has. The driver then
puts `batch=N/_manifest.json`, last: it names the files of the attempt that counts, so that a batch is there when its
manifest is, and files that no manifest names are nothing. A replay that finds a manifest writes nothing, and removes
what it doesn't name.

Readers go by manifests, as `read_matches` does; a reader of all files would also see those of an attempt that failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import LongType, StructField, StructType

from covey.errors import CoveyError
from covey.spark.addresses import RemoteDirectory
from covey.spark.stream.sink import BATCH, MANIFEST, STREAM, Manifest, check_claim
from covey.spark.stream.writing import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """A batch's directory behind an address."""

    directory: RemoteDirectory
    within: str

    def open_output(self, name: str) -> pa.NativeFile:
        """A new file there."""
        return self.directory.open_output(f"{self.within}/{name}")


class ObjectSink:
    """The committed batches of one stream, behind an address."""

    def __init__(self, address: str) -> None:
        self.directory = RemoteDirectory(address)

    def claim(self, stream: str, schema: str) -> None:
        """Make this the sink of a stream, or fail if it is another's: batches of two streams have the same numbers."""
        note = {"stream": stream, "schema": schema}
        if self.directory.read_json(STREAM) is None:
            self.directory.put(STREAM, json.dumps(note).encode())
        check_claim(str(self.directory), self.directory.read_json(STREAM) or note, stream, schema)

    def check(self, spark: SparkSession) -> None:
        """That workers reach it."""
        seeing = spark.range(0, 2, 1, 2).mapInArrow(_reaching(self.directory), "error string")
        errors = [row.error for row in seeing.collect() if row.error]
        if errors:
            raise CoveyError(f"Spark's workers can't reach the sink: {errors[0]}")

    def committed(self, batch: int) -> Manifest | None:
        """A batch's manifest, if it is committed."""
        found = self.directory.read_json(f"{BATCH}={batch}/{MANIFEST}")
        return None if found is None else Manifest(**found)

    def write(
        self, job: Job, batch: int, version: int, failures: Callable[[], dict[str, int]], *, pairs: bool
    ) -> Manifest:
        """Write and commit a batch, which has a row for each event or, as pairs, for each match; `failures` are known
        once the job is done."""
        within = f"{BATCH}={batch}"
        written = job(RemotePlace(self.directory, within))
        expected, found = written.matches if pairs else written.events, self._rows(within, written.files)
        if found != expected:
            raise CoveyError(f"workers wrote {found:,} of {expected:,} rows to {self.directory}; it is not committed")
        manifest = Manifest(batch, version, written.events, written.matches, written.files, failures())
        self._commit(within, manifest)
        return self.committed(batch) or manifest

    def _rows(self, within: str, files: list[str]) -> int:
        """Rows that stand there, by the files' footers."""
        rows = 0
        for name in files:
            with self.directory.open_input(f"{within}/{name}") as file:
                rows += pq.ParquetFile(file).metadata.num_rows
        return rows

    def _commit(self, within: str, manifest: Manifest) -> None:
        standing = self.committed(manifest.batch)
        if standing is None:
            self.directory.put(f"{within}/{MANIFEST}", json.dumps(asdict(manifest)).encode())
            standing = self.committed(manifest.batch)
        kept = {MANIFEST, *(manifest if standing is None else standing).files}
        for name, _ in self.directory.names(within):
            if name not in kept:
                self.directory.remove(f"{within}/{name}")

    def manifests(self) -> list[Manifest]:
        """All committed batches, in their order."""
        numbers = (name.removeprefix(f"{BATCH}=") for name, inside in self.directory.names() if inside)
        found = [self.committed(int(number)) for number in numbers if number.isdigit()]
        return sorted((one for one in found if one is not None), key=lambda one: one.batch)

    def schema(self) -> dict[str, Any]:
        """The result's schema, as Spark writes it in JSON."""
        found = self.directory.read_json(STREAM)
        if found is None:
            raise CoveyError(f"{str(self.directory)!r} is not a sink of match_stream")
        schema: dict[str, Any] = json.loads(found["schema"])
        return schema

    def read(self, spark: SparkSession) -> DataFrame:
        """The committed batches, read by the workers."""
        schema = StructType.fromJson(self.schema())
        files = [(one.batch, f"{BATCH}={one.batch}/{name}") for one in self.manifests() for name in one.files]
        whole = [*schema.fields, StructField(BATCH, LongType())]
        plain = StructType([StructField(str(number), one.dataType) for number, one in enumerate(whole)])
        tasks = spark.range(0, len(files), 1, max(1, len(files)))
        return tasks.mapInArrow(_reading(self.directory, files, schema), plain).toDF(*(one.name for one in whole))


def _reading(directory: RemoteDirectory, files: list[tuple[int, str]], schema: StructType) -> Batches:
    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        types = [to_arrow_type(field.dataType, timezone="UTC") for field in schema.fields]
        names = [str(number) for number in range(len(types) + 1)]
        for number in (one for batch in numbers for one in batch.column(0).to_pylist()):
            of_batch, name = files[number]
            with directory.open_input(name) as file:
                for rows in pq.ParquetFile(file).iter_batches():
                    columns = [column.cast(kind) for column, kind in zip(rows.columns, types, strict=True)]
                    columns.append(pa.repeat(pa.scalar(of_batch, pa.int64()), rows.num_rows))
                    yield pa.RecordBatch.from_arrays(columns, names=names)

    return read


def _reaching(directory: RemoteDirectory) -> Batches:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                directory.read(STREAM)
                found = None
            except (CoveyError, OSError) as error:
                found = " ".join(str(error).split())
            yield pa.record_batch({"error": pa.array([found] * batch.num_rows, pa.string())})

    return look
