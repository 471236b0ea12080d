"""A table of subscriptions made smaller on Spark: equal filters once, covered ones under what covers them, mergers.

The result is a table of entries (id, filter, stands_for): an event that matches a subscription matches the entry that
stands for it, and with no imperfect step asked for, entries together match nothing more. A match on an entry names its
candidates, not yet its subscribers: those are the ones in `stands_for` whose own filters match too, as a broker's last
hop decides.

Each step moves only filters that may have to do with each other into one task:

*identity* by the filter's normal form;
*covering* by the coverer's attributes and one of its equalities (`covering.py`);
*merging* by all of a filter but one attribute (`merging.py`), attribute by attribute.

Nothing is collected on the driver but counts and the distinct sets of attributes. What crosses between steps is the
normal form, pickled, so that a filter is parsed once.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError
from covey.filters import Filter, Semantics
from covey.filters.semantics import check_semantics
from covey.history import Profile
from covey.language import parse
from covey.relations.compaction import Step
from covey.relations.merging import MEASURES, Measure
from covey.spark.build import ERRORS_SHOWN, check_columns, type_of_ids, unreadable
from covey.spark.compact.covering import cover
from covey.spark.compact.forms import NORMAL, normalising
from covey.spark.compact.merging import merge_imperfectly, merge_perfectly, prune_each
from covey.spark.types import quoted


@dataclass(frozen=True, slots=True)
class Compaction:
    """A smaller table, and how it became so."""

    table: DataFrame
    """id, filter string, stands_for: the ids of the subscriptions behind an entry, as an array, its own first among
    equals; every id is in just one entry. Ids have the type that they have in the table that was given."""
    steps: list[Step]


def compact(
    subscriptions: DataFrame,
    *,
    id: str = "id",
    filter: str = "filter",
    semantics: Semantics = "sql",
    dialect: str = "sql",
    profile: Profile | None = None,
    advertisements: DataFrame | None = None,
    merging: bool = True,
    imt: float = 0.0,
    measure: Measure = "degree",
    prune: float = 0.0,
) -> Compaction:
    """Compact a table of subscriptions: identity, covering, perfect merging; with `imt` above 0 imperfect merging up to
    that degree, on the profile's events (and the advertisements, a table with a column `filter`); with
    `measure="traffic"` that is the part of all events, not of the merger's own, that a merger lets through in vain;
    with `prune` above 0 prunings that let a subscription match at most that part of all events more.

    Each step runs as it is called, so this takes as long as the work does; the result is kept on the executors.
    """
    check_semantics(semantics)
    if not 0 <= imt <= 1:
        raise CoveyError(f"imt is {imt}; use a degree from 0 (perfect mergers only) to 1")
    if measure not in MEASURES:
        raise CoveyError(f"measure is {measure!r}; use one of {', '.join(MEASURES)}")
    if (imt or prune) and (profile is None or profile.events is None):
        raise CoveyError("imt and prune need profile= with events: how much more a filter matches depends on them")
    check_columns(subscriptions, id, filter)
    id_type = type_of_ids(subscriptions, id)
    rows = subscriptions.select(
        F.col(quoted(id)).cast("string").alias("id"), F.col(quoted(filter)).cast("string").alias("filter")
    )
    normal = rows.mapInArrow(normalising(semantics, dialect), NORMAL).localCheckpoint()
    _refuse_bad(normal)
    _refuse_ids(normal)
    count = normal.count()
    steps: list[Step] = []
    table = _kept(steps, "identity", count, _identical(normal.withColumn("stands_for", F.array("id"))))
    table = _kept(steps, "covering", steps[-1].after, cover(table, semantics))
    if merging:
        table = _kept(steps, "merging", steps[-1].after, merge_perfectly(table, semantics))
        table = _kept(steps, "covering of mergers", steps[-1].after, cover(table, semantics))
    if imt:
        assert profile is not None
        advertised = [] if advertisements is None else _advertised(advertisements)
        merged = merge_imperfectly(table, semantics, profile, imt, measure, advertised)
        table = _kept(steps, f"merging up to {imt:g}", steps[-1].after, merged)
        table = _kept(steps, "covering of mergers", steps[-1].after, cover(table, semantics))
    if prune:
        assert profile is not None
        pruned = _identical(prune_each(table, semantics, profile, prune))
        table = _kept(steps, f"pruning up to {prune:g}", steps[-1].after, pruned)
        table = _kept(steps, "covering of the pruned", steps[-1].after, cover(table, semantics))
    ids = F.col("id").cast(id_type).alias("id"), F.col("stands_for").cast(f"array<{id_type}>").alias("stands_for")
    return Compaction(table.select(ids[0], "filter", ids[1]), steps)


def _kept(steps: list[Step], name: str, before: int, table: DataFrame) -> DataFrame:
    """A step's result, computed and cut off from how it came about, and counted. Every step names its input several
    times, so that plans that went back to the start would double and double again."""
    kept = table.localCheckpoint()
    steps.append(Step(name, before, kept.count()))
    return kept


def _refuse_bad(normal: DataFrame) -> None:
    bad = normal.where("error IS NOT NULL")
    count = bad.count()
    if count:
        shown = bad.orderBy("id").limit(ERRORS_SHOWN).collect()
        raise unreadable(count, [f"{row.id}: {row.error}" for row in shown])


def _refuse_ids(normal: DataFrame) -> None:
    """An entry stands for ids, so that each row needs one, and one of its own."""
    found = normal.groupBy("id").agg(F.count("*").alias("rows")).where("id IS NULL OR id = '' OR rows > 1")
    count = found.count()
    if count:
        shown = found.orderBy("id").limit(ERRORS_SHOWN).collect()
        raise unreadable(count, [_wrong_id(row.id, row.rows) for row in shown])


def _wrong_id(id: str | None, rows: int) -> str:
    if not id:
        times = "a row has" if rows == 1 else f"{rows:,} rows have"
        return f"{times} {'NULL' if id is None else 'an empty text'} for an id"
    return f"the id {id!r} stands in {rows:,} rows"


def _identical(entries: DataFrame) -> DataFrame:
    """Filters of one form as one entry, under the smallest id."""
    first = F.min(F.struct("id", "filter", "form", "names")).alias("first")
    behind = F.array_sort(F.flatten(F.collect_list("stands_for"))).alias("stands_for")
    grouped = entries.withColumn("key", F.col("form")).groupBy("key").agg(first, behind)
    return grouped.select("first.*", "stands_for")


def _advertised(advertisements: DataFrame) -> list[Filter]:
    check_columns(advertisements, "filter")
    return [parse(row[0]) for row in advertisements.select(F.col("filter").cast("string")).collect()]
