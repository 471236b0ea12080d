"""`SELECT * FROM covey_match(TABLE(events), 'rules')`: the rows that match something, one for each match.

A table function sees the events' columns before it runs (`analyze`), so it can refuse what it can't answer while the
query is read, and ask Spark for terms that only Spark computes. Rows come one by one, as Python objects; they are
matched some thousand at a time. That is slow beside `covey_matches`, which is the way for large tables: Spark 4.3 has
no `analyze` for table functions of Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, LongType, StructField, StructType, TimestampType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn

from covey.errors import CoveyError
from covey.spark.batch import COLUMNS, check_output
from covey.spark.sql.named_rules import NamedRules, called
from covey.spark.types import quoted
from covey.spark.workers import match_lists

_ROWS_AT_ONCE = 4_096
"""Rows that a task holds until it matches them."""
_COMPUTED = "covey term "


@dataclass
class Plan(AnalyzeResult):  # type: ignore[misc]
    """What the columns of a call gave."""

    rules: NamedRules | None = None
    places: dict[str, int] = field(default_factory=dict)
    """By the names that rules have for columns, where they are in a row."""
    kinds: list[DataType] = field(default_factory=list)
    """The types of these."""
    width: int = 0
    """The events' own columns, which come first."""


def table_function(
    rules: Mapping[str, NamedRules], types: Mapping[str, Mapping[str, DataType]], ids: Mapping[str, DataType]
) -> type:
    """The class of `covey_match`. `types` are those of computed terms and `ids` those of ids, by rules."""

    class CoveyMatch:
        def __init__(self, plan: Plan) -> None:
            self._plan = plan
            self._rows: list[Any] = []

        @staticmethod
        def analyze(events: AnalyzeArgument, name: AnalyzeArgument) -> Plan:
            if not events.isTable:
                raise CoveyError("covey_match takes a table: SELECT * FROM covey_match(TABLE(events), 'rules')")
            if name.isTable or not name.isConstantExpression:
                raise CoveyError("the name of rules must be a constant: covey_match(TABLE(events), 'rules')")
            found = called(rules, name.value)
            return plan_of(found, events.dataType, types[found.name], ids[found.name])

        def eval(self, row: Any, name: str) -> Iterator[tuple[Any, ...]]:  # noqa: ARG002
            self._rows.append(row)
            if len(self._rows) >= _ROWS_AT_ONCE:
                yield from self._matched()

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            if self._rows:
                yield from self._matched()

        def _matched(self) -> Iterator[tuple[Any, ...]]:
            rows, self._rows = self._rows, []
            return matches_of(self._plan, rows)

    return CoveyMatch


def plan_of(rules: NamedRules, schema: StructType, computed: Mapping[str, DataType], ids: DataType) -> Plan:
    """How to answer for events with these columns."""
    check_output(schema.names, "pairs")
    repeated = [name for name in schema.names if schema.names.count(name) > 1]
    if repeated:
        raise CoveyError(
            f"column {repeated[0]!r} occurs {schema.names.count(repeated[0])} times; give each its own name"
        )
    terms = [(name, quoted(own), schema[own].dataType) for name, own in rules.columns_in(schema).items()]
    terms += [(name, sql, computed[name]) for name, sql in rules.computed.items()]
    select = [SelectedColumn(quoted(name)) for name in schema.names]
    places: dict[str, int] = {}
    for name, sql, kind in terms:
        own = schema.names.index(sql[1:-1]) if sql[1:-1] in schema.names else None
        if own is None or isinstance(kind, TimestampType):
            own = len(select)
            sql = f"unix_micros({sql})" if isinstance(kind, TimestampType) else sql
            select.append(SelectedColumn(sql, f"{_COMPUTED}{own}"))
        places[name] = own
    kinds = [kind for _, _, kind in terms]
    result = StructType([*schema.fields, StructField(COLUMNS["pairs"], ids)])
    return Plan(result, select=select, rules=rules, places=places, kinds=kinds, width=len(schema.names))


def matches_of(plan: Plan, rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows' own columns, with the id of each match."""
    assert plan.rules is not None
    lists = pa.concat_arrays(list(match_lists([_batch(plan, rows)], plan.rules.files)))
    kind = to_arrow_type(plan.schema.fields[-1].dataType)
    for row, found in zip(rows, lists.cast(pa.list_(kind)).to_pylist(), strict=True):
        own = tuple(row)[: plan.width]
        for id in found:
            yield (*own, id)


def _batch(plan: Plan, rows: list[Any]) -> pa.RecordBatch:
    names = list(plan.places)
    if not names:  # so that the number of rows is known
        return pa.RecordBatch.from_arrays([pa.nulls(len(rows), pa.int8())], names=[""])
    places = list(plan.places.values())
    # Python's times are of a zone, where an hour in autumn is there twice; Spark's are instants, and come as numbers.
    kinds = [LongType() if isinstance(kind, TimestampType) else kind for kind in plan.kinds]
    fields = StructType([StructField(f"c{n}", kind) for n, kind in enumerate(kinds)])
    values = [tuple(row[place] for place in places) for row in rows]
    table = LocalDataToArrowConversion.convert(values, fields, use_large_var_types=False)
    batch = table.combine_chunks().to_batches()[0]
    arrays = [
        array.cast(pa.timestamp("us", "UTC")) if isinstance(kind, TimestampType) else array
        for array, kind in zip(batch.columns, plan.kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=names)
