"""Events with columns of nulls where rules name some that aren't there, for who wants rules that go with several tables
to be asked of each."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from covey.spark.types import quoted


def with_missing(events: DataFrame, names: Iterable[str]) -> DataFrame:
    """The events, in which each of these dotted names is a column or a field, of nulls where there was none. What is
    inside of a column that has no fields stays as it is, and Spark refuses it by name."""
    there = {field.name.lower(): field for field in events.schema.fields}
    made: dict[str, Column] = {}
    for first, rest in _by_first(names).items():
        field = there.get(first.lower())
        if field is None:
            made[first] = _nulls(rest)
        elif isinstance(field.dataType, StructType):
            made[field.name] = _filled(F.col(quoted(field.name)), field.dataType, rest)
    return events.withColumns(made) if made else events


def _by_first(paths: Iterable[str]) -> dict[str, list[str]]:
    """By the first name of each path what follows it, where something does."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        first, _, rest = path.partition(".")
        found.setdefault(first, []).extend([rest] if rest else [])
    return found


def _nulls(paths: list[str]) -> Column:
    """A record of nulls with these fields; null itself where there is none."""
    if not paths:
        return F.lit(None)
    return F.struct(*(_nulls(rest).alias(first) for first, rest in _by_first(paths).items()))


def _filled(record: Column, kind: StructType, paths: list[str]) -> Column:
    there = {field.name.lower(): field for field in kind.fields}
    for first, rest in _by_first(paths).items():
        field = there.get(first.lower())
        if field is None:
            record = record.withField(quoted(first), _nulls(rest))
        elif isinstance(field.dataType, StructType):
            record = record.withField(quoted(field.name), _filled(record.getField(field.name), field.dataType, rest))
    return record
