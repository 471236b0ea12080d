"""A sink of Parquet files in which each micro-batch stands once.

Batch N is one directory, `batch=N`. It is written under a hidden name, with a manifest of its files, synced, and
renamed. The rename is the commit: a directory of that name is whole, or isn't there. When Spark replays a batch, either
the directory is there, and then the batch is done and nothing is written, or it isn't, and then what a dead driver left
under hidden names means nothing. A rename never replaces a directory, so a driver that isn't quite dead can't commit a
second time. `spark.read.parquet(sink)` and other readers see `batch` as a partition column; `read_matches` also knows
the schema before there is any batch.

A batch whose files don't add up to its rows isn't committed: the workers then wrote them where the driver can't see.

Needs a file system where a rename is atomic: a local disk or a mount. `object_sink` does without.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow.parquet as pq
from pyspark.sql.types import LongType, StructType

from covey.errors import CoveyError
from covey.spark.stream.counts import Counts
from covey.spark.stream.journal import local_path, sync_directory, write_durably
from covey.spark.stream.writing import Job
from covey.spark.visibility import check_writable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = "batch"
"""The column that says in which batch a row was written: readers take it from the directories' names."""
STREAM = "_stream.json"
MANIFEST = "_manifest.json"
_HIDDEN = "_writing-"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a committed batch holds."""

    batch: int
    version: int
    events: int
    matches: int
    files: list[str]
    failures: dict[str, int] = field(default_factory=dict)
    """By rule, the events on which a term of it failed."""

    @property
    def counts(self) -> Counts:
        """The batch in numbers."""
        return Counts(self.events, self.matches, self.failures)


def check_claim(sink: str, found: Mapping[str, str], stream: str, schema: str) -> None:
    """That a sink is this stream's, by the note that stands in it."""
    if found["stream"] != stream:
        raise CoveyError(
            f"sink {sink!r} holds batches of a stream with another checkpoint; use that checkpoint, or an empty sink"
        )
    if found["schema"] != schema:
        raise CoveyError(f"sink {sink!r} has other columns than this stream's result; use an empty sink and checkpoint")


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A directory that workers see."""

    path: str

    def open_output(self, name: str) -> BinaryIO:
        """A new file there."""
        try:
            return open(os.path.join(self.path, name), "xb")  # closed by who writes it
        except FileNotFoundError:
            raise CoveyError(
                f"sink {os.path.dirname(self.path)!r} is seen by the driver and not by all of Spark's workers, so the "
                "batch is not committed; use a directory that all see under this name, or writer="
            ) from None


class ParquetSink:
    """The directory of committed batches of one stream."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = local_path(path, "sink")

    def claim(self, stream: str, schema: str) -> None:
        """Make this the sink of a stream, or fail if it is another's: batches of two streams have the same numbers."""
        self.path.mkdir(parents=True, exist_ok=True)
        note = json.dumps({"stream": stream, "schema": schema}).encode()
        write_durably(self.path / STREAM, note, once=True)
        check_claim(str(self.path), json.loads((self.path / STREAM).read_bytes()), stream, schema)

    def check(self, spark: SparkSession) -> None:
        """That workers see it."""
        check_writable(spark, self.path, "sink")

    def committed(self, batch: int) -> Manifest | None:
        """A batch's manifest, if it is committed."""
        try:
            return Manifest(**json.loads((self._directory(batch) / MANIFEST).read_bytes()))
        except FileNotFoundError:
            return None

    def write(
        self, job: Job, batch: int, version: int, failures: Callable[[], dict[str, int]], *, pairs: bool
    ) -> Manifest:
        """Write and commit a batch, which has a row for each event or, as pairs, for each match; `failures` are known
        once the job is done."""
        self._clear()
        hidden = self.path / f"{_HIDDEN}{batch}-{uuid.uuid4().hex}"
        hidden.mkdir()
        written = job(LocalPlace(str(hidden)))
        for path in hidden.iterdir():
            if path.name not in written.files:  # of an attempt that failed
                path.unlink()
        self._add_up(hidden, written.files, written.matches if pairs else written.events)
        manifest = Manifest(batch, version, written.events, written.matches, written.files, failures())
        for name in written.files:
            _sync_file(hidden / name)
        write_durably(hidden / MANIFEST, json.dumps(asdict(manifest)).encode())
        self._commit(hidden, batch)
        return manifest

    def _add_up(self, hidden: Path, files: list[str], expected: int) -> None:
        """Workers on other machines write to their own disks, where the driver can't commit what they wrote."""
        found = sum(pq.read_metadata(hidden / name).num_rows for name in files if (hidden / name).exists())
        if found != expected:
            raise CoveyError(
                f"Spark's workers wrote {expected:,} rows to sink {str(self.path)!r} and the driver finds {found:,} of "
                "them there, so the batch is not committed; use a directory that the driver and all workers see under "
                "this name, or writer="
            )

    def _commit(self, hidden: Path, batch: int) -> None:
        try:
            os.rename(hidden, self._directory(batch))
        except OSError:
            if self.committed(batch) is None:
                raise
            shutil.rmtree(hidden, ignore_errors=True)
        sync_directory(self.path)

    def _clear(self) -> None:
        for leftover in self.path.glob(f"{_HIDDEN}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def manifests(self) -> list[Manifest]:
        """All committed batches, in their order."""
        numbers = (path.name.removeprefix("batch=") for path in self.path.glob("batch=*"))
        found = [self.committed(int(number)) for number in numbers if number.isdigit()]
        return sorted((one for one in found if one is not None), key=lambda one: one.batch)

    def schema(self) -> dict[str, Any]:
        """The result's schema, as Spark writes it in JSON."""
        try:
            schema: dict[str, Any] = json.loads(json.loads((self.path / STREAM).read_bytes())["schema"])
        except FileNotFoundError:
            raise CoveyError(f"{str(self.path)!r} is not a sink of match_stream") from None
        return schema

    def read(self, spark: SparkSession) -> DataFrame:
        """The committed batches."""
        schema = StructType.fromJson(self.schema()).add(BATCH, LongType())
        files = [str(self._directory(one.batch) / name) for one in self.manifests() for name in one.files]
        if not files:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).option("basePath", str(self.path)).parquet(*files)

    def _directory(self, batch: int) -> Path:
        return self.path / f"batch={batch}"


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
