"""Subscriptions, in whatever form they are given, to index files where Spark's workers find them.

On a local master workers see the driver's files, and the file stays where it is written. Elsewhere it is shipped once
to every executor as an artifact of the session. Either way its name carries a hash of its content, so that a worker
that has a file of that name open has the right one, and what one job matches doesn't change when a saved index is
replaced while the job runs: a file that is given by path is linked (or copied) under the name of its content first.
The hash is that of the manifest, which has a checksum of every array, so a large index isn't read through for it.

The files are in a temporary directory that goes when the driver ends; a DataFrame that matches can be used until then.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import struct
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from covey.errors import CoveyError, IndexFileError
from covey.events import Schema
from covey.filters import Semantics
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import BadSubscription, Index
from covey.spark.build import OnError, add_frame
from covey.spark.sharding import shards
from covey.spark.workers import IndexFile

Subscriptions: TypeAlias = DataFrame | Index | str | os.PathLike[str]

_MANIFEST_LENGTH = struct.Struct("<8xQ")
_HEADER_BYTES = 24


@dataclass(frozen=True, slots=True)
class Placed:
    """Index files that workers can open, and what the driver must know of them."""

    files: tuple[IndexFile, ...]
    attributes: tuple[str, ...]
    """What must cross into Python: the attributes that filters name, and those that the schema asks for."""
    errors: tuple[BadSubscription, ...] = ()
    """The rows of a DataFrame that were left out, with `on_error="collect"`."""


def place(
    spark: SparkSession,
    subscriptions: Subscriptions,
    *,
    id: str = "id",
    filter: str = "filter",
    semantics: Semantics | None = None,
    dialect: str = "sql",
    on_error: OnError = "raise",
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    memory_budget: int | None = None,
) -> Placed:
    """Build what isn't built yet, split what is larger than the budget, and put the files where workers see them."""
    if on_error not in ("raise", "collect"):
        raise CoveyError(f"on_error {on_error!r} is not known; use raise or collect")
    errors: list[BadSubscription] = []
    if isinstance(subscriptions, (str, os.PathLike)):
        file = _linked(Path(subscriptions))
        index = Index.open(file, verify=False, limits=limits)
        _agree(index, semantics, schema)
    elif isinstance(subscriptions, Index):
        index = subscriptions
        _agree(index, semantics, schema)
        file = _saved(index)
    elif hasattr(subscriptions, "toArrow"):  # the DataFrames of Spark Connect are of a class of their own
        index = Index(semantics=semantics or "sql", schema=schema, limits=limits)
        errors = add_frame(index, subscriptions, id=id, filter=filter, dialect=dialect, on_error=on_error).errors
        file = _saved(index)
    else:
        kind = type(subscriptions).__name__
        raise CoveyError(f"subscriptions are a DataFrame, a covey.Index or the path of a saved index, not {kind}")
    files = [file]
    if memory_budget is not None and file.stat().st_size > memory_budget:
        files = [_saved(shard) for shard in shards(file, memory_budget, limits)]
    return Placed(tuple(_visible(spark, one) for one in files), _needed(index), tuple(errors))


def _agree(index: Index, semantics: Semantics | None, schema: Schema | None) -> None:
    if semantics is not None and semantics != index.semantics:
        raise CoveyError(f"the index has semantics {index.semantics!r}, not {semantics!r}; leave semantics out")
    if schema is not None and schema != index.schema:
        raise CoveyError("the index has a schema of its own; leave schema out, or build the index with this one")


def _needed(index: Index) -> tuple[str, ...]:
    names = dict.fromkeys(index.attributes)
    schema = index.schema
    if schema is not None:
        kinds = {*schema.subtypes, *schema.subtypes.values(), *schema.mandatory_by_type}
        mandatory = {name for kind in (None, *sorted(kinds)) for name in schema.mandatory(kind)}
        if mandatory and schema.type_attribute is not None:
            mandatory.add(schema.type_attribute)
        names.update(dict.fromkeys(sorted(mandatory)))
    return tuple(names)


@lru_cache(maxsize=1)
def directory() -> Path:
    """Where index files are; removed when the driver ends."""
    made = Path(tempfile.mkdtemp(prefix="covey-spark-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _saved(index: Index) -> Path:
    handle, name = tempfile.mkstemp(dir=directory(), suffix=".new")
    os.close(handle)
    fresh = Path(name)
    index.save(fresh)
    target = _named_by_content(fresh)
    os.replace(fresh, target)
    return target


def _linked(path: Path) -> Path:
    target = _named_by_content(path)
    if target.exists():
        return target
    handle, name = tempfile.mkstemp(dir=directory(), suffix=".new")
    os.close(handle)
    fresh = Path(name)
    fresh.unlink()
    try:
        os.link(path, fresh)
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, fresh)
    os.replace(fresh, target)
    return target


def _named_by_content(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES:
                raise IndexFileError(f"{path}: not a covey index (only {len(header)} bytes)")
            (length,) = _MANIFEST_LENGTH.unpack_from(header)
            size = os.fstat(file.fileno()).st_size
            manifest = file.read(min(length, size))
    except OSError as error:
        raise IndexFileError(f"{path}: {error.strerror or error}") from None
    return directory() / f"covey-{hashlib.sha256(header + manifest).hexdigest()[:32]}.covey"


def _visible(spark: SparkSession, path: Path) -> IndexFile:
    """As workers find it."""
    if is_local(spark):
        return IndexFile(str(path))
    spark.addArtifact(str(path), file=True)
    return IndexFile(path.name, shipped=True)


def is_local(spark: SparkSession) -> bool:
    """Whether workers run on the driver's machine and see its files."""
    master = spark.conf.get("spark.master", "")
    return master == "local" or str(master).startswith("local[")
