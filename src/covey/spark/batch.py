"""Which subscriptions does each row of a DataFrame meet? One more column, or one row a match.

The events' own columns stay in the JVM: only what filters name goes through Arrow to the Python workers, and lists of
ids come back. Beside sending whole rows through `mapInArrow` that measured the same where filters name all of 3 columns
and 1.2 times the speed where they name 3 of 11; sending integers back instead of ids gained nothing. Rows, their order,
the order of columns and the partitions stay as they are; nothing is shuffled.

The function is declared non-deterministic, which it isn't: Spark copies a deterministic one into every filter on its
result, and would match all events twice for `match_events(...).where("size(subscriptions) > 0")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, Unpack, cast, overload

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError, OnError, skips
from covey.matching import BadSubscription
from covey.spark.build import ERRORS_SCHEMA, errors_table
from covey.spark.conditions.names import is_case_sensitive
from covey.spark.json_texts import BadJson, JsonColumn, check_json, match_json_lists
from covey.spark.options import SubscriptionOptions, check_keywords
from covey.spark.rules import Columns, TermFailures
from covey.spark.types import selection, unused_name
from covey.spark.worker_files import Placed, Subscriptions, place
from covey.spark.workers import IndexFile, match_counts, match_lists

Output = Literal["array", "pairs", "counts"]
COLUMNS: dict[str, str] = {"array": "subscriptions", "pairs": "subscription", "counts": "matches"}
"""The column that each form of output adds."""

_TYPES: dict[bool, str] = {False: "array<string>", True: "int"}
"""What workers send back: lists of ids, or their numbers."""
_NOTHING = ""
"""The name of a column that stands in where filters name none, so that the number of rows is known."""


@overload
def match_events(
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    output: Output = ...,
    on_error: Literal["raise"] = ...,
    failures: TermFailures | None = ...,
    json: str | None = ...,
    bad_json: BadJson = ...,
    only_matches: bool = ...,
    **options: Unpack[SubscriptionOptions],
) -> DataFrame: ...
@overload
def match_events(
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    output: Output = ...,
    on_error: Literal["skip", "collect"],
    failures: TermFailures | None = ...,
    json: str | None = ...,
    bad_json: BadJson = ...,
    only_matches: bool = ...,
    **options: Unpack[SubscriptionOptions],
) -> tuple[DataFrame, DataFrame]: ...
def match_events(
    events: DataFrame,
    subscriptions: Subscriptions,
    *,
    output: Output = "array",
    on_error: OnError = "raise",
    failures: TermFailures | None = None,
    json: str | None = None,
    bad_json: BadJson = "raise",
    only_matches: bool = False,
    **options: Unpack[SubscriptionOptions],
) -> DataFrame | tuple[DataFrame, DataFrame]:
    """The events with what they match: `subscriptions`, an array of ids, or with `output="pairs"` a row for each match
    with its `subscription`, or with `output="counts"` the number of `matches`, for which no id leaves the workers. Ids
    are in the index's order; that of an index built from a DataFrame is by id.

    `subscriptions` is a DataFrame (columns `id` and `filter`), a `covey.Index`, or a path on the driver: of a saved
    index, or of a file of rules (JSON lines, CSV, Parquet). Indexes bring their own semantics and schema. `semantics`
    is "sql" unless given. Bad filters are an AddManyError that names all of them, or with `on_error="skip"` a second
    DataFrame of (row, id, error), row being the place in the order of ids, of a file in its order. An index larger than
    `memory_budget` bytes is matched in shards, one after the other. `failures`
    counts the events on which a term of a filter failed.

    `json` names a column of JSON texts (string or binary) that hold the events, as Kafka's values do: filters then are
    on the attributes in these, as `Index.match_json` reads them, and only that column leaves the JVM. A null has null
    for its subscriptions; a text that isn't an event is an error, or with `bad_json="null"` null too. `only_matches`
    keeps the rows that match something.
    `covey.spark.options.SubscriptionOptions` lists the options.
    """
    check_keywords("match_events", options)
    check_output(events.columns, output)
    if json is not None:
        check_json(events, json, bad_json)
        if failures is not None:
            raise CoveyError("failures= counts terms that Spark computes, and with json= it computes none")
    placed = place(events, subscriptions, on_error=on_error, as_json=json is not None, **options)
    if failures is not None:
        events = failures.observe(events, placed.columns or Columns())
    texts = None if json is None else JsonColumn(json, bad_json)
    result = match_placed(events, placed, output=output, texts=texts, only_matches=only_matches)
    if not skips(on_error):
        return result
    return result, errors_frame(_session(events), list(placed.errors))


def matching(
    subscriptions: Subscriptions,
    *,
    output: Output = "array",
    json: str | None = None,
    bad_json: BadJson = "raise",
    only_matches: bool = False,
    **options: Unpack[SubscriptionOptions],
) -> Callable[[DataFrame], DataFrame]:
    """`match_events` for `events.transform(matching(subscriptions))`; subscriptions are built once for events with the
    same columns, at first use."""
    check_keywords("matching", options)
    placed: dict[str, Placed] = {}

    def transform(events: DataFrame) -> DataFrame:
        check_output(events.columns, output)
        columns = events.schema.json()
        if columns not in placed:
            if json is not None:
                check_json(events, json, bad_json)
            placed[columns] = place(events, subscriptions, as_json=json is not None, **options)
        texts = None if json is None else JsonColumn(json, bad_json)
        return match_placed(events, placed[columns], output=output, texts=texts, only_matches=only_matches)

    return transform


def match_placed(
    events: DataFrame,
    placed: Placed,
    *,
    output: Output = "array",
    texts: JsonColumn | None = None,
    only_matches: bool = False,
) -> DataFrame:
    """Match events against index files that are where workers find them."""
    check_output(events.columns, output)
    counts = output == "counts"
    found = _matches(events, placed, counts) if texts is None else _json_matches(placed, texts, counts)
    if counts:
        matched = events.select("*", found.alias(COLUMNS[output]))
        return matched.where(F.col(COLUMNS[output]) > 0) if only_matches else matched
    if placed.id_type != "string":
        found = found.cast(f"array<{placed.id_type}>")
    if output == "array":
        matched = events.select("*", found.alias(COLUMNS[output]))
        return matched.where(F.size(COLUMNS[output]) > 0) if only_matches else matched
    lists = unused_name("covey matches", events.columns)
    matched = events.select("*", found.alias(lists))
    return matched.select("*", F.explode(lists).alias(COLUMNS[output])).drop(lists)


def crossing_columns(events: DataFrame, placed: Placed) -> list[tuple[str, str, Column]]:
    """What must cross into Python: by attribute its SQL over the events, as far as that is known, and its column."""
    if placed.columns is not None:
        return [(name, text, F.expr(text)) for name, text in placed.columns.expressions.items()]
    found = selection(events.schema, placed.attributes, is_case_sensitive(events))
    return [(name, "", column) for name, column in found]


def _matches(events: DataFrame, placed: Placed, counts: bool) -> Column:
    """The column of arrays of ids, or of their numbers."""
    crossing = [(name, column) for name, _, column in crossing_columns(events, placed)]
    crossing = crossing or [(_NOTHING, F.lit(0).cast("tinyint"))]
    function = _matcher(placed.files, [name for name, _ in crossing], counts)
    declared = F.arrow_udf(function, _TYPES[counts]).asNondeterministic()
    return cast(Column, declared(*(column for _, column in crossing)))


def _json_matches(placed: Placed, texts: JsonColumn, counts: bool) -> Column:
    files, bad_json = placed.files, texts.bad_json

    def match(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        batches = (pa.RecordBatch.from_arrays([array], names=[_NOTHING]) for array in arrays)
        lists = match_json_lists(batches, files, bad_json)
        return map(pc.list_value_length, lists) if counts else lists

    return cast(Column, F.arrow_udf(match, _TYPES[counts]).asNondeterministic()(F.col(texts.column)))


def _matcher(files: tuple[IndexFile, ...], names: list[str], counts: bool) -> Callable[[Any], Iterator[pa.Array]]:
    matched = match_counts if counts else match_lists

    def several(arrays: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return matched((pa.RecordBatch.from_arrays(list(array), names=names) for array in arrays), files)

    def single(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return matched((pa.RecordBatch.from_arrays([array], names=names) for array in arrays), files)

    return several if len(names) > 1 else single


def check_output(columns: list[str], output: str) -> None:
    """The output is one there is, and its column is not there yet (names of columns don't know case in Spark)."""
    if output not in COLUMNS:
        raise CoveyError(f"output {output!r} is not known; use {' or '.join(COLUMNS)}")
    taken = [name for name in columns if name.lower() == COLUMNS[output]]
    if taken:
        raise CoveyError(f"the events have a column {taken[0]!r} already; rename it, since the matches go there")


def errors_frame(spark: SparkSession, errors: list[BadSubscription]) -> DataFrame:
    """Bad subscriptions as a DataFrame of (row, id, error)."""
    return spark.createDataFrame(errors_table(errors).to_pylist(), ERRORS_SCHEMA)


def _session(events: DataFrame) -> SparkSession:
    return events.sparkSession
