"""Reading rows: what the sentences of outcomes are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from covey.lab.experiments import Cell, LabError, Row, Rows


def number(row: Mapping[str, Cell], column: str) -> float:
    """The number in a column; an error where there is none."""
    value = row.get(column)
    if isinstance(value, (str, bool)) or value is None:
        raise LabError(f"column {column!r} of {dict(row)} holds no number")
    return value


def ratio(row: Mapping[str, Cell], other: Mapping[str, Cell], column: str) -> float:
    """How many times a column of one row is that of another."""
    return number(row, column) / number(other, column)


def where(rows: Rows, **values: Cell) -> list[Mapping[str, Cell]]:
    """The rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def only(rows: Rows, **values: Cell) -> Mapping[str, Cell]:
    """The row that has these values; an error unless there is just one."""
    found = where(rows, **values)
    if len(found) != 1:
        raise LabError(f"{len(found)} rows have {values}; there should be one")
    return found[0]


def averaged(rows: Rows, by: Sequence[str], of: Sequence[str]) -> list[Row]:
    """A row for each combination of values in some columns, with averages of others, rounded where all are whole."""
    groups: dict[tuple[Cell, ...], list[Mapping[str, Cell]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        {**dict(zip(by, values, strict=True)), **{name: _mean(group, name) for name in of}}
        for values, group in groups.items()
    ]


def _mean(rows: Rows, column: str) -> float | int:
    mean = fmean(number(row, column) for row in rows)
    return round(mean) if all(isinstance(row[column], int) for row in rows) else mean
