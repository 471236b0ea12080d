"""What Spark's analyser says: the types of expressions over the events, and the values of constants.

Many expressions are asked about at once. Where one of them is wrong Spark names that one alone, so the others are asked
about again in halves, until each wrong one stands by itself with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from covey.errors import FilterError
from covey.spark.conditions.names import is_scalar

_AT_ONCE: Final = 200
Answer = TypeVar("Answer")


def types_of(events: DataFrame, texts: Iterable[str]) -> dict[str, DataType | FilterError]:
    """The type of each expression over the events, or why it has none."""

    def ask(part: Sequence[str]) -> list[DataType]:
        return [field.dataType for field in events.select(*_columns(part)).schema.fields]

    return _answers(list(dict.fromkeys(texts)), ask)


def values_of(spark: SparkSession, texts: Iterable[str]) -> dict[str, tuple[DataType, Any] | FilterError]:
    """The type and value of each constant expression, or why it has none; instants as microseconds since 1970. What
    isn't a scalar comes as text, so that it is evaluated: not all such types have one in Arrow."""
    row = spark.range(1)

    def ask(part: Sequence[str]) -> list[tuple[DataType, Any]]:
        kinds = [field.dataType for field in row.select(*_columns(part)).schema.fields]
        shown = [text if is_scalar(kind) else f"CAST({text} AS STRING)" for text, kind in zip(part, kinds, strict=True)]
        table = row.select(*_columns(shown)).toArrow()
        return [(kind, column[0]) for kind, column in zip(kinds, table.columns, strict=True)]

    return _answers(list(dict.fromkeys(texts)), ask)


def converted(spark: SparkSession, kind: str, texts: Sequence[str]) -> list[Any]:
    """Texts cast to a type, each an Arrow scalar; invalid where Spark can't read it."""
    if not texts:
        return []
    rows = spark.createDataFrame([(text,) for text in texts], "text string").coalesce(1)
    return list(rows.select(F.expr(f"try_cast(text AS {kind})").alias("value")).toArrow().column(0))


def _columns(texts: Sequence[str]) -> list[Column]:
    return [F.expr(text).alias(f"c{place}") for place, text in enumerate(texts)]


def _answers(texts: list[str], ask: Callable[[Sequence[str]], list[Answer]]) -> dict[str, Answer | FilterError]:
    found: dict[str, Answer | FilterError] = {}
    waiting = [texts[first : first + _AT_ONCE] for first in range(0, len(texts), _AT_ONCE)]
    with _quiet():
        while waiting:
            part = waiting.pop()
            try:
                found.update(zip(part, ask(part), strict=True))
            except PySparkException as error:
                if len(part) == 1:
                    found[part[0]] = FilterError(reason(error))
                else:
                    waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
    return found


def reason(error: PySparkException) -> str:
    """What Spark says is wrong, in one line, without its plan and its SQLSTATE."""
    text = str(error).strip().split("\n\n")[0]
    text = re.split(r" SQLSTATE: |; line \d+ pos|\n==", text)[0]
    return " ".join(text.split())


@contextmanager
def _quiet() -> Iterator[None]:
    """A rule that Spark refuses is no news for PySpark's log."""
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before
