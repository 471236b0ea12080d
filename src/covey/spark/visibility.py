"""Which paths the workers see, found out before a job starts.

On one machine workers see what the driver sees. On a cluster they see what is mounted there under the same name, and a
path that only the driver has would be found out by a task that fails, or worse by files that workers write where
nobody looks. Nothing tells from the master's address which it is, so tasks look. As many run as the session runs at
once, which nearly always reaches every executor; an executor that starts later isn't asked.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from covey.errors import CoveyError

MOST_TASKS = 16
"""Tasks that look for a path."""


def has_local_master(spark: SparkSession) -> bool:
    """Whether workers are threads and children of the process that has the session, be that here or on a server."""
    master = str(spark.conf.get("spark.master", ""))
    return master == "local" or master.startswith("local[")


def is_seen(spark: SparkSession, path: str | os.PathLike[str]) -> bool:
    """Whether every worker that is asked sees a path."""
    tasks = MOST_TASKS
    if not is_remote():
        tasks = max(2, min(MOST_TASKS, 2 * spark.sparkContext.defaultParallelism))
    elif has_local_master(spark):
        tasks = 1
    found = spark.range(0, tasks, 1, tasks).mapInArrow(_looks_for(os.fspath(path)), "seen boolean").distinct().collect()
    return all(row.seen for row in found)


def check_readable(spark: SparkSession, paths: list[str], what: str) -> None:
    """That workers see what they are to read; addresses of other file systems are those systems' business."""
    own = [path for path in paths if "://" not in path]
    if own and not _is_one_machine(spark) and not is_seen(spark, own[0]):
        raise CoveyError(
            f"{what} {own[0]!r} is seen here and not by Spark's workers; put it where the driver and all workers "
            "see it under this name"
        )


def check_writable(spark: SparkSession, directory: Path, what: str) -> None:
    """That workers see a directory of the driver's, by a file that is made there for the time of asking."""
    if _is_one_machine(spark):
        return
    probe = directory / f"_probe-{uuid.uuid4().hex}"
    probe.touch()
    try:
        seen = is_seen(spark, probe)
    finally:
        probe.unlink()
    if not seen:
        raise CoveyError(
            f"{what} {str(directory)!r} is seen by the driver and not by Spark's workers, which would write elsewhere; "
            "use a directory that the driver and all workers see under this name, or writer="
        )


def _is_one_machine(spark: SparkSession) -> bool:
    """Where it is known without asking."""
    return not is_remote() and has_local_master(spark)


def _looks_for(path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"seen": [os.path.exists(path)] * batch.num_rows})

    return look
