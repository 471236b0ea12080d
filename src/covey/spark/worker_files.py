"""Subscriptions, in whatever form they are given, to index files where Spark's workers find them.

Where workers see the driver's files, the file stays where it is written. Elsewhere it is shipped once to every executor
as an artifact of the session. Either way its name carries a hash of its content, so that a worker
that has a file of that name open has the right one, and what one job matches doesn't change when a saved index is
replaced while the job runs: a file that is given by path is linked (or copied) under the name of its content first.

The files are in a temporary directory that goes when the driver ends; a DataFrame that matches can be used until then.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from covey.errors import CoveyError, IndexFileError, OnError, skips
from covey.events import Schema
from covey.events.schema import AnySchema, as_schema
from covey.file_names import is_table
from covey.filters import Semantics
from covey.filters.terms import EVENT_TEXT
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import BadSubscription, Index
from covey.matching.bulk import given_rows
from covey.matching.storage import content_hash
from covey.spark.addresses import is_address, split
from covey.spark.build import add_frame, frame_rows, type_of_ids
from covey.spark.conditions import Settings
from covey.spark.conditions.binding import OnTermError
from covey.spark.known_types import known_types
from covey.spark.only_spark import add_rules
from covey.spark.rules import Columns, as_it_is, index_of
from covey.spark.sharding import shards
from covey.spark.visibility import has_local_master, is_seen
from covey.spark.workers import IndexFile

Subscriptions: TypeAlias = DataFrame | Index | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Placed:
    """Index files that workers can open, and what the driver must know of them."""

    files: tuple[IndexFile, ...]
    attributes: tuple[str, ...]
    """What must cross into Python: the attributes that filters name, and those that the schema asks for."""
    columns: Columns | None = None
    """What these attributes are over the events; None where a schema of covey's says what they are."""
    id_type: str = "string"
    """The type that ids have in the table that they come from."""
    errors: tuple[BadSubscription, ...] = ()
    """The rows of a DataFrame that were left out, with `on_error="skip"`."""


def place(
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    id: str = "id",
    filter: str = "filter",
    semantics: Semantics | None = None,
    dialect: str = "sql",
    on_error: OnError = "raise",
    schema: AnySchema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    memory_budget: int | None = None,
    functions: Sequence[str] = (),
    on_term_error: OnTermError = "unknown",
    as_json: bool = False,
) -> Placed:
    """Read subscriptions as Spark reads them over the events, build what isn't built yet, split what is larger than
    the budget, and put the files where workers see them. Those that are asked of JSON texts (`as_json`) are read as the
    library reads them."""
    skips(on_error)  # an error where it is not known
    if on_term_error not in ("unknown", "raise"):
        raise CoveyError(f"on_term_error {on_term_error!r} is not known; use unknown or raise")
    if as_json and (functions or on_term_error != "unknown"):
        raise CoveyError(
            "functions= and on_term_error= are for what Spark computes, and with json= it computes nothing"
        )
    settings = Settings(tuple(functions), on_term_error, semantics or "sql", limits)
    errors: list[BadSubscription] = []
    columns: Columns | None = None
    id_type = "string"
    schema = as_schema(schema)
    if isinstance(subscriptions, (str, os.PathLike, Index)):
        given = subscriptions
        if not isinstance(given, Index) and is_table(os.fspath(given)):
            given = Index(semantics=semantics or "sql", schema=schema, limits=limits)
            read = given_rows(subscriptions, id, filter)
            errors = add_rules(given, read, dialect=dialect, on_error=on_error, functions=functions).errors
        if isinstance(given, Index):
            index, file = given, save_for_workers(given)
        else:
            file = _here(given)
            index = Index.open(file, verify=False, limits=limits)
        _agree(index, semantics, schema)
        id_type = "bigint" if index.integer_ids else "string"
        bound = index.schema is None and not as_json
        if bound:
            columns = as_it_is(index, events)
        if bound and columns is None:
            settings = replace(settings, semantics=index.semantics)
            whole, rows = index.integer_ids, [(str(id), text) for id, text in index.rows()]
            index, unfit, columns = index_of(events, rows, settings, on_error)
            errors = errors + ([replace(bad, id=int(bad.id)) for bad in unfit] if whole else unfit)
            file = save_for_workers(index)
    elif hasattr(subscriptions, "toArrow"):  # the DataFrames of Spark Connect are of a class of their own
        if schema is not None or as_json:
            index = Index(semantics=semantics or "sql", schema=schema, limits=limits)
            errors = add_frame(index, subscriptions, id=id, filter=filter, dialect=dialect, on_error=on_error).errors
        else:
            types = known_types(events.schema)
            rows, bad = frame_rows(subscriptions, id=id, filter=filter, dialect=dialect, limits=limits, types=types)
            index, errors, columns = index_of(events, rows, settings, on_error, bad)
        id_type = type_of_ids(subscriptions, id)
        file = save_for_workers(index)
    else:
        kind = type(subscriptions).__name__
        raise CoveyError(f"subscriptions are a DataFrame, a covey.Index or the path of a saved index, not {kind}")
    files = [file]
    if memory_budget is not None and file.stat().st_size > memory_budget:
        files = [save_for_workers(shard) for shard in shards(file, memory_budget, limits)]
    found = tuple(_visible(events.sparkSession, path) for path in files)
    return Placed(found, () if as_json else needed(index), columns, id_type, tuple(errors))


def _agree(index: Index, semantics: Semantics | None, schema: Schema | None) -> None:
    if semantics is not None and semantics != index.semantics:
        raise CoveyError(f"the index has semantics {index.semantics!r}, not {semantics!r}; leave semantics out")
    if schema is not None and schema != index.schema:
        raise CoveyError("the index has a schema of its own; leave schema out, or build the index with this one")


def needed(index: Index) -> tuple[str, ...]:
    """The attributes that must cross into Python: those that filters name, and those that the schema asks for."""
    if any(term.name == EVENT_TEXT for term in index.terms):
        raise CoveyError("event_text() is all of an event, and only columns that rules name leave Spark; name a column")
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


def save_for_workers(index: Index) -> Path:
    """An index as a file of this process's own, under the name of its content."""
    handle, name = tempfile.mkstemp(dir=directory(), suffix=".new")
    os.close(handle)
    fresh = Path(name)
    index.save(fresh)
    target = _named_by_content(fresh)
    os.replace(fresh, target)
    return target


def _here(path: str | os.PathLike[str]) -> Path:
    """A saved index on this machine, under the name of its content."""
    address = os.fspath(path)
    if not is_address(address):
        return linked(Path(path))
    directory_there, name = split(address)
    handle, fresh = tempfile.mkstemp(dir=directory(), suffix=".new")
    os.close(handle)
    try:
        directory_there.download(name, Path(fresh))
    except FileNotFoundError:
        raise IndexFileError(f"{directory_there}/{name}: no such file") from None
    target = _named_by_content(Path(fresh))
    os.replace(fresh, target)
    return target


def linked(path: Path) -> Path:
    """A file under the name of its content, by which executors know it: a session takes one path for each name."""
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
    return directory() / f"covey-{content_hash(path)}.covey"


def _visible(spark: SparkSession, path: Path) -> IndexFile:
    """As workers find it."""
    if is_local(spark):
        return IndexFile(str(path))
    spark.addArtifact(str(path), file=True)
    return IndexFile(path.name, shipped=True)


def is_local(spark: SparkSession) -> bool:
    """Whether workers run on this process's machine and see its files.

    A Connect server with a local master may be on another machine: a task looks for a file that was just written here.
    """
    if not has_local_master(spark):
        return False
    if not is_remote():
        return True
    if spark not in _seen:
        probe = directory() / f"probe-{uuid.uuid4().hex}"
        probe.touch()
        try:
            _seen[spark] = is_seen(spark, probe)
        finally:
            probe.unlink()
    return _seen[spark]


_seen: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
