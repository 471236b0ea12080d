"""`covey_matches(struct(*), 'rules')` and `covey_check(filter)`, as Arrow functions.

An event is a struct, since a function has a fixed number of arguments and a table any number of columns. All of the
struct goes through Arrow: `struct(price, symbol)` is faster than `struct(*)` where rules name these two of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StructType

from covey.errors import CoveyError
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import Index
from covey.spark.only_spark import add_rules
from covey.spark.sql.named_rules import NamedRules, called
from covey.spark.stream.sources import one_line
from covey.spark.workers import match_lists

Pairs = Iterator[tuple[pa.Array, pa.Array]]


def matcher(rules: Mapping[str, NamedRules], ids: DataType) -> Callable[[Pairs], Iterator[pa.Array]]:
    """The function of `covey_matches`, which answers with arrays of such ids."""

    def covey_matches(pairs: Pairs) -> Iterator[pa.Array]:
        kind = pa.list_(to_arrow_type(ids))
        for events, names in pairs:
            if not len(events):
                yield pa.array([], kind)
                continue
            yield _lists(rules, events, names).cast(kind)

    return covey_matches


def _lists(rules: Mapping[str, NamedRules], events: pa.Array, names: pa.Array) -> pa.Array:
    asked = pc.unique(names)
    if len(asked) == 1:
        return _matched(called(rules, asked[0].as_py()), events)
    parts: list[pa.Array] = []
    places: list[pa.Array] = []
    for name in asked.to_pylist():
        chosen = pc.indices_nonzero(pc.equal(names, name) if name is not None else pc.is_null(names))
        parts.append(_matched(called(rules, name), events.take(chosen)))
        places.append(chosen)
    return pa.concat_arrays(parts).take(pc.sort_indices(pa.concat_arrays(places)))


def _matched(rules: NamedRules, events: pa.Array) -> pa.Array:
    """The list of each event; null for a struct that is null."""
    if not pa.types.is_struct(events.type):
        raise CoveyError(f"covey_matches takes events as structs, not {events.type}; write covey_matches(struct(*), …)")
    if rules.computed:
        shown = next(iter(rules.computed.values()))
        raise CoveyError(
            f"rules {rules.name!r} have terms that Spark computes, such as {shown}, and a function isn't given them; "
            f"use covey_match(TABLE(…), '{rules.name}') or match_events"
        )
    schema = from_arrow_type(events.type)
    assert isinstance(schema, StructType)
    fields = events.flatten()
    columns = {name: fields[schema.names.index(own)] for name, own in rules.columns_in(schema).items()}
    if not columns:  # so that the number of rows is known
        columns[""] = pa.nulls(len(events), pa.int8())
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    lists = pa.concat_arrays(list(match_lists([batch], rules.files)))
    return pc.if_else(events.is_valid(), lists, None) if events.null_count else lists


def checker(functions: tuple[str, ...], limits: Limits = DEFAULT_LIMITS) -> Callable[[pa.Array], pa.Array]:
    """The function of `covey_check`: what is wrong with a filter, in one line; null where nothing is."""

    def covey_check(filters: pa.Array) -> pa.Array:
        return pa.array([_wrong(text, functions, limits) for text in filters.to_pylist()], pa.string())

    return covey_check


def _wrong(text: str | None, functions: tuple[str, ...], limits: Limits) -> str | None:
    if text is None:
        return "the filter is NULL; write a condition"
    index = Index(semantics="sql", limits=limits)
    report = add_rules(index, [("filter", text)], dialect="sql", on_error="skip", functions=functions)
    return one_line(report.errors[0].error) if report.errors else None
