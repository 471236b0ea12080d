"""Merging among millions of filters: those that a merger could unite meet in one task.

Two conjunctions have a perfect merger of their own form where they are the same but for one attribute. So there is one
round for each attribute: filters that agree in all else are sent to one task, and merged there (`merge_table`). Filters
that no other agrees with stay where they are. An imperfect merger unites filters that are close, which is looked for
among those that have the same attributes and, for the attribute with the most single values, the same value.

Any merger that a task finds stands, so what else happens to be there does no harm. What meets in no task isn't merged,
though it might be: the table is then larger than it could be, and as right.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.filters import Filter, Semantics
from covey.history import EventSample, Profile
from covey.history.files import from_bytes, to_bytes
from covey.relations.conjunctions import Conjunction
from covey.relations.merging import Measure, merge_table
from covey.relations.pruning import Pruner, Target
from covey.spark.compact.covering import TASK_ROWS, homes
from covey.spark.compact.forms import ENTRIES, names_of, normal_form

MOST_ROUNDS = 64
"""Attributes, the most frequent first, for which filters that agree in all else are looked for."""


def merge_perfectly(entries: DataFrame, semantics: Semantics) -> DataFrame:
    """The entries with those that agree but for one attribute merged."""
    counted = entries.select(F.explode("names").alias("name")).groupBy("name").count().orderBy(F.desc("count"), "name")
    for row in counted.limit(MOST_ROUNDS).collect():
        entries = _round(entries, row.name, semantics)
    return entries


def _round(entries: DataFrame, attribute: str, semantics: Semantics) -> DataFrame:
    keys = entries.mapInArrow(_keying(attribute), "id string, key binary")
    shared = keys.where("key IS NOT NULL").groupBy("key").agg(F.collect_list("id").alias("ids"))
    meeting = shared.where(F.size("ids") > 1).select("key", F.explode("ids").alias("id")).localCheckpoint()
    if meeting.isEmpty():
        return entries
    tasks = max(2, -(-meeting.count() // TASK_ROWS))
    together = entries.join(meeting, "id").repartition(tasks, "key").drop("key")
    merged = together.mapInArrow(_merging(semantics, 0.0, "degree", None, ()), ENTRIES)
    return merged.unionByName(entries.join(meeting, "id", "left_anti")).localCheckpoint()


def _keying(attribute: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def key(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = [_rest(pickle.loads(kept), attribute) for kept in batch.column("form").to_pylist()]
            yield pa.RecordBatch.from_arrays([batch.column("id"), pa.array(keys, pa.binary())], names=["id", "key"])

    return key


def _rest(form: Any, attribute: str) -> bytes | None:
    """What a conjunction asks of all other attributes, as a digest; None where it doesn't name this one."""
    if not isinstance(form, Conjunction) or form.get(attribute) is None:
        return None
    rest = Conjunction(tuple((name, values) for name, values in form.sets if name != attribute))
    return hashlib.blake2b(pickle.dumps(rest, protocol=5), digest_size=16).digest()


def merge_imperfectly(
    entries: DataFrame,
    semantics: Semantics,
    profile: Profile,
    imt: float,
    measure: Measure,
    advertisements: Sequence[Filter],
) -> DataFrame:
    """The entries with close ones merged, up to a degree of imperfection (or traffic) on the profile's events."""
    assert profile.events is not None
    places = homes(entries, semantics)
    tasks = max(2, -(-places.count() // TASK_ROWS))
    together = entries.join(places, "id").repartition(tasks, "place").drop("place")
    kept = to_bytes(Profile(profile.events))
    return together.mapInArrow(_merging(semantics, imt, measure, kept, tuple(advertisements)), ENTRIES)


def prune_each(entries: DataFrame, semantics: Semantics, profile: Profile, most: float) -> DataFrame:
    """The entries with parts removed, as long as one matches at most that part of all events more. A bound for each
    entry alone needs no order among all of them, so every task prunes what it has."""
    assert profile.events is not None
    return entries.mapInArrow(_pruning(semantics, to_bytes(Profile(profile.events)), most), ENTRIES)


def _pruning(
    semantics: Semantics, profile: bytes, most: float
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def prune(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            pruner = Pruner([(row["id"], _filter(row["form"], semantics)) for row in rows], _sample(profile),
                            semantics=semantics)  # fmt: skip
            pruner.prune(target=Target(degradation=most))
            pruned = []
            for row in rows:
                condition = pruner.filter(row["id"])
                form = normal_form(condition, semantics)
                changed = {"filter": str(condition), "form": pickle.dumps(form, protocol=5), "names": names_of(form)}
                pruned.append(row | changed)
            yield pa.RecordBatch.from_pylist(pruned, schema=_SCHEMA)

    return prune


@lru_cache(maxsize=2)
def _sample(profile: bytes) -> EventSample:
    events = from_bytes(profile).events
    assert events is not None
    return EventSample(events.sample)


def _merging(
    semantics: Semantics, imt: float, measure: Measure, profile: bytes | None, advertisements: tuple[Filter, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        if not rows:
            return
        by_id = {row["id"]: row for row in rows}
        filters = [(row["id"], _filter(row["form"], semantics)) for row in sorted(rows, key=lambda row: row["id"])]
        mergers = merge_table(
            filters, imt=imt, chances=None if profile is None else _sample(profile),
            advertisements=advertisements, semantics=semantics, measure=measure,
        )  # fmt: skip
        result = [
            by_id[merger.parts[0]] if len(merger.parts) == 1 else _merged(merger.filter, merger.parts, by_id, semantics)
            for merger in mergers
        ]
        yield pa.RecordBatch.from_pylist(result, schema=_SCHEMA)

    return merge


def _filter(kept: bytes, semantics: Semantics) -> Filter:
    form = pickle.loads(kept)
    return form.to_filter(semantics) if isinstance(form, Conjunction) else form


def _merged(condition: Filter, parts: Sequence[str], by_id: dict[str, Any], semantics: Semantics) -> dict[str, Any]:
    form = normal_form(condition, semantics)
    return {
        "id": min(parts),
        "filter": str(condition),
        "form": pickle.dumps(form, protocol=5),
        "names": names_of(form),
        "stands_for": sorted(id for part in parts for id in by_id[part]["stands_for"]),
    }


_SCHEMA = pa.schema(
    {
        "id": pa.string(), "filter": pa.string(), "form": pa.binary(), "names": pa.list_(pa.string()),
        "stands_for": pa.list_(pa.string()),
    }
)  # fmt: skip
