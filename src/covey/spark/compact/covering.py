"""Covering among millions of filters, without comparing each with each.

A conjunction e covers n only if n constrains every attribute that e does, and n's set lies in e's for each. So e lives
at one place: its set of attributes, and for one attribute of that set, chosen for the whole set, the value that e asks
for (or none, where e leaves more than one value there). And n looks at few places: for each set of attributes within
its own, at its own value of the chosen attribute, and at none. Whatever covers n lives in a place where n looks.

Places are dealt out to tasks, and each task puts all that lives or looks there into one covering table. Whatever such a
table finds is true, so places needn't be kept apart. It says of n one filter that covers it, which may itself be
covered elsewhere; following these pointers, with twice the stride each time, ends at filters that nothing covers.
Filters go in by their ids, so that of two that mean the same the smaller id covers the other everywhere, and pointers
never go round.

A Boolean filter looks where its hull does, a conjunction that it implies; it lives among filters that name just the
same attributes. So a Boolean filter that covers one on other attributes isn't found out here: the table stays larger
than it could be, and as right.

Cost: a filter travels to at most two places for each set of attributes within its own. A place where more than
`PLACE_ROWS` look is split: what lives there goes to every part, what looks goes to one.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import LimitError
from covey.events.meaning import Meaning
from covey.filters import Filter, Semantics
from covey.relations.conjunctions import Conjunction
from covey.relations.covering import CoveringTable
from covey.relations.covering.bounds import bounds_of
from covey.relations.value_sets import ValueSet

MOST_SETS = 20_000
"""Distinct sets of attributes among all conjunctions: each worker goes through them."""
PLACE_ROWS = 100_000
TASK_ROWS = 100_000
_ROUNDS = 40
"""Doublings of the stride: more than any chain of coverings needs."""

_DESCRIBED = "id string, form binary, lives string, names array<string>, points map<string,string>"
_VISITS = "place binary, lives boolean, id string, form binary"
_FOUND = "id string, by string"
_BOOLEAN = "Boolean filters on "

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Of a set of attributes: the one whose value decides the place, and whether some filters have no one value."""

    attribute: str | None
    some_without: bool


def cover(entries: DataFrame, semantics: Semantics) -> DataFrame:
    """The entries that no other covers, standing also for what they cover."""
    described = entries.select("id", "form").mapInArrow(_describing(semantics), _DESCRIBED).localCheckpoint()
    visits = described.mapInArrow(_visiting(_choices(described), _booleans(described)), _VISITS).localCheckpoint()
    found = _dealt(visits).mapInArrow(_covering(semantics), _FOUND)
    pointers = _ends(found.groupBy("id").agg(F.min("by").alias("by")))
    covered = entries.select("id", "stands_for").join(pointers, "id")
    behind = covered.groupBy("by").agg(F.flatten(F.collect_list("stands_for")).alias("more"))
    roots = entries.join(pointers.select("id"), "id", "left_anti")
    joined = roots.join(behind.withColumnRenamed("by", "id"), "id", "left")
    both = F.array_sort(F.concat("stands_for", F.coalesce("more", F.array().cast("array<string>"))))
    return joined.select("id", "filter", "form", "names", both.alias("stands_for"))


def homes(entries: DataFrame, semantics: Semantics) -> DataFrame:
    """(id, place): where each entry lives."""
    described = entries.select("id", "form").mapInArrow(_describing(semantics), _DESCRIBED).localCheckpoint()
    visits = described.mapInArrow(_visiting(_choices(described), frozenset()), _VISITS)
    return visits.where("lives").select("id", "place")


def _describing(semantics: Semantics) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Of each filter, the attributes and single values by which it looks, and the set of attributes it lives with."""

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lives, names, points = [], [], []
            for kept in batch.column(1).to_pylist():
                form: Conjunction | Filter = pickle.loads(kept)
                if isinstance(form, Conjunction):
                    hull = form
                    lives.append(_text([name for name, _ in form.sets]))
                else:
                    hull = bounds_of(form, Meaning(semantics)).hull
                    lives.append(_BOOLEAN + _text(sorted(form.attributes())))
                names.append([name for name, _ in hull.sets])
                points.append([(name, point) for name, values in hull.sets if (point := _point(values)) is not None])
            kind = pa.map_(pa.string(), pa.string())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(lives), pa.array(names, pa.list_(pa.string())), pa.array(points, kind)],
                names=["id", "form", "lives", "names", "points"],
            )

    return describe


def _text(names: Iterable[str]) -> str:
    return "\x1f".join(names)


def _names(text: str) -> Names:
    return tuple(text.split("\x1f")) if text else ()


def _point(values: ValueSet) -> str | None:
    """The one value of a set, as text; None where there are more."""
    intervals = list(values.intervals()) if values.pieces == 1 else []
    return repr(intervals[0].low) if len(intervals) == 1 and intervals[0].is_point else None


def _choices(described: DataFrame) -> dict[Names, Choice]:
    """For each set of attributes of conjunctions, the attribute with the most distinct single values."""
    conjunctions = described.where(~F.col("lives").startswith(_BOOLEAN))
    counted = conjunctions.groupBy("lives").agg(F.count("*").alias("filters")).limit(MOST_SETS + 1).collect()
    if len(counted) > MOST_SETS:
        raise LimitError(
            f"the subscriptions have more than {MOST_SETS:,} different sets of attributes "
            "(covey.spark.compact.covering.MOST_SETS); compact them in parts"
        )
    values = conjunctions.select("lives", F.explode("points").alias("name", "value")).groupBy("lives", "name")
    singles: dict[str, list[tuple[int, int, str]]] = {}
    for row in values.agg(F.approx_count_distinct("value").alias("distinct"), F.count("*").alias("n")).collect():
        singles.setdefault(row.lives, []).append((row.distinct, row.n, row.name))
    choices: dict[Names, Choice] = {}
    for row in counted:
        best = max(singles.get(row.lives, []), default=None)
        choices[_names(row.lives)] = Choice(None, True) if best is None else Choice(best[2], best[1] < row.filters)
    return choices


def _booleans(described: DataFrame) -> frozenset[str]:
    """Sets of attributes with which Boolean filters live."""
    found = described.where(F.col("lives").startswith(_BOOLEAN)).select("lives").distinct().limit(MOST_SETS).collect()
    return frozenset(row.lives for row in found)


def _visiting(
    choices: Mapping[Names, Choice], booleans: frozenset[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Each filter at the place where it lives and at those where it looks."""
    sets = [(frozenset(names), names, choice) for names, choice in choices.items()]
    within: dict[Names, list[tuple[Names, Choice]]] = {}

    def places(lives: str, names: Names, points: dict[str, str]) -> Iterator[tuple[bytes, bool]]:
        home = _place(lives, None, None) if lives.startswith(_BOOLEAN) else _home(names, choices[names], points)
        yield home, True
        if names not in within:
            own = frozenset(names)
            within[names] = [(inner, choice) for inside, inner, choice in sets if inside <= own]
        looked = {_place(_text(inner), None, None) for inner, choice in within[names] if choice.some_without}
        looked |= {_home(inner, choice, points) for inner, choice in within[names] if choice.attribute in points}
        if _BOOLEAN + _text(names) in booleans:
            looked.add(_place(_BOOLEAN + _text(names), None, None))
        yield from ((place, False) for place in looked - {home})

    def visit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            at, found = [], []
            described = zip(*(batch.column(name).to_pylist() for name in ("lives", "names", "points")), strict=True)
            for row, (lives, names, points) in enumerate(described):
                for place in places(lives, tuple(names), dict(points)):
                    at.append(row)
                    found.append(place)
            rows = pa.array(at, pa.int64())
            columns = [
                pa.array([place for place, _ in found], pa.binary()),
                pa.array([lives for _, lives in found], pa.bool_()),
                batch.column("id").take(rows), batch.column("form").take(rows),
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(columns, names=["place", "lives", "id", "form"])

    return visit


def _home(names: Names, choice: Choice, points: Mapping[str, str]) -> bytes:
    value = None if choice.attribute is None else points.get(choice.attribute)
    return _place(_text(names), choice.attribute if value is not None else None, value)


def _place(names: str, attribute: str | None, value: str | None) -> bytes:
    return hashlib.blake2b(repr((names, attribute, value)).encode(), digest_size=16).digest()


def _dealt(visits: DataFrame) -> DataFrame:
    """Places dealt out to tasks; crowded ones in several parts."""
    crowds = visits.groupBy("place").agg(F.count("*").alias("n")).where(F.col("n") > PLACE_ROWS)
    parts = crowds.select("place", F.ceil(F.col("n") / PLACE_ROWS).cast("int").alias("parts"))
    tasks = max(2, -(-visits.count() // TASK_ROWS))
    if parts.isEmpty():
        return visits.repartition(tasks, "place").select("id", "form")
    joined = visits.join(F.broadcast(parts), "place", "left").withColumn("parts", F.coalesce("parts", F.lit(1)))
    everywhere = F.sequence(F.lit(0), F.col("parts") - 1)
    somewhere = F.array(F.pmod(F.hash("id"), F.col("parts")))
    part = F.explode(F.when(F.col("lives"), everywhere).otherwise(somewhere)).alias("part")
    return joined.select("place", part, "id", "form").repartition(tasks, "place", "part").select("id", "form")


def _covering(semantics: Semantics) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forms: dict[str, Any] = {}
        for batch in batches:
            for id, kept in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                if id not in forms:
                    forms[id] = pickle.loads(kept)
        table = CoveringTable(semantics=semantics)
        table.insert_many((id, forms[id]) for id in sorted(forms))
        found = [(id, by) for id in forms if (by := table.covered_by(id)) is not None]
        if found:
            ids, covering = zip(*found, strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(ids), pa.array(covering)], names=["id", "by"])

    return find


def _ends(pointers: DataFrame) -> DataFrame:
    """Each covered filter with one that covers it and that nothing covers."""
    current = pointers.localCheckpoint()
    for _ in range(_ROUNDS):
        ahead = current.select(F.col("id").alias("by"), F.col("by").alias("further"))
        joined = current.join(ahead, "by", "left").select("id", "by", "further").localCheckpoint()
        if joined.where("further IS NOT NULL").isEmpty():
            return current
        current = joined.select("id", F.coalesce("further", "by").alias("by"))
    raise AssertionError("pointers from covered to covering filters go round")
