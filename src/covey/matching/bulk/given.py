"""Subscriptions in whatever form people have them, as rows of id and filter.

Pairs, a mapping of filters by id, mappings with both, a table of whatever library, another index, or the path of a
file, JSON lines, CSV or Parquet, or of a directory with a rule a file. Rows that can't be read keep their place, with
the error where the filter would be, so that they are reported like any other bad row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from covey.errors import CoveyError
from covey.events.files import files_of, read_rows
from covey.events.tables import as_table
from covey.file_names import is_table
from covey.filters import Filter
from covey.language import from_json
from covey.matching.bulk.rule_files import are_files, rule_texts

Row: TypeAlias = "tuple[Any, str | Filter | CoveyError]"
Subscriptions: TypeAlias = Any
"""What `given_rows` takes."""


def given_rows(given: Subscriptions, id: str, filter: str) -> list[Row]:
    """The rows of subscriptions; `id` and `filter` name the columns of those that have some."""
    if isinstance(given, (str, os.PathLike)):
        return _of_file(os.fspath(given), id, filter)
    if isinstance(given, Mapping):
        return [(key, _filter(value)) for key, value in given.items()]
    table = as_table(given)
    if table is not None:
        return _of_table(table[0], id, filter)
    if callable(getattr(given, "rows", None)):  # an index
        given = given.rows()
    rows = list(given)
    if all(type(row) is tuple and len(row) == 2 for row in rows):
        return rows
    return [_of_row(number, row, id, filter) for number, row in enumerate(rows)]


def _of_file(path: str, id: str, filter: str) -> list[Row]:
    if are_files(path) and not _has_tables(path):
        return [(name, text) for name, _, text in rule_texts(path)]
    rows: list[Row] = []
    strange = 0
    for row in read_rows(path, (id, filter)):
        if isinstance(row, CoveyError):
            rows.append((None, row))
        else:
            strange += id not in row and filter not in row
            rows.append((row.get(id), _filter(row.get(filter))))
    if rows and strange == len(rows):
        raise CoveyError(f"{path}: no row has {id!r} and {filter!r}; are these events?")
    return rows


def _has_tables(path: str) -> bool:
    """Whether a directory has tables, rather than a rule a file."""
    return os.path.isdir(path) and any(map(is_table, files_of(path)))


def _of_table(table: Any, id: str, filter: str) -> list[Row]:
    if not isinstance(table, (pa.Table, pa.RecordBatch)):
        return [_of_row(number, row, id, filter) for number, row in enumerate(table)]
    for option, name in (("id", id), ("filter", filter)):
        if table.schema.get_field_index(name) < 0:
            names = ", ".join(table.schema.names)
            raise CoveyError(f"the subscriptions have no column {name!r}; theirs are {names} ({option}= chooses)")
    filters = map(_filter, table.column(filter).to_pylist())
    return list(zip(table.column(id).to_pylist(), filters, strict=True))


def _of_row(number: int, row: Any, id: str, filter: str) -> Row:
    if isinstance(row, Mapping):
        return row.get(id), _filter(row.get(filter))
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)) and len(row) == 2:
        return row[0], _filter(row[1])
    raise CoveyError(
        f"row {number} of the subscriptions is {row!r:.60}; a row is a pair of id and filter, or a mapping with both"
    )


def _filter(given: Any) -> Any:
    """A filter in JSON form is read; what is wrong with anything else is said when it is added."""
    if isinstance(given, (dict, list)):
        try:
            return from_json(given)
        except CoveyError as error:
            return error
    return given
