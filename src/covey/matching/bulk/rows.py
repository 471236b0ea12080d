"""Rows of (id, filter) to a segment: texts in bulk, with every bad row found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import CoveyError, DuplicateIdError, FilterError
from covey.events import Schema
from covey.filters import FALSE, Filter
from covey.filters.fitting import UNTYPED
from covey.filters.values import Kind
from covey.kernels.opcodes import BOOLEAN, IS_NULL, LIST, NUMBER, STRING, TIMESTAMP
from covey.language import check_dialect, in_sql, parse
from covey.limits import Limits
from covey.matching.ids import Id, check_id
from covey.matching.learned import arranged
from covey.matching.lowering import Flat, Lowering
from covey.matching.options import BuildOptions
from covey.matching.segment import DiagramLimitError, Segment, segment_of

_BULK = 512
"""From this many rows on the bulk parser's kernel is quicker than the parser, and pays for being loaded."""
_KINDS = {
    Kind.NUMBER: NUMBER,
    Kind.TIMESTAMP: TIMESTAMP,
    Kind.BOOLEAN: BOOLEAN,
    Kind.STRING: STRING,
    Kind.LIST: LIST,
}


@dataclass(frozen=True, slots=True)
class BadSubscription:
    """A row of `add_many` that could not be added."""

    row: int
    id: Id
    error: CoveyError


def compile_rows(
    rows: Sequence[tuple[str, str | Filter]], options: BuildOptions, parsed: Callable[[], object] = lambda: None,
    read: Sequence[Filter] | None = None,
) -> tuple[Segment | None, list[BadSubscription]]:  # fmt: skip
    """The segment of the good rows, or None where there are none, and the bad rows; `parsed` is called between. `read`
    are the rows' filters, where they are known."""
    limits, schema = options.limits, options.schema
    texts, errors = _texts(rows)
    for number, error in bad_ids(rows):
        errors.setdefault(number, error)
    column = pa.array(texts, pa.large_string())
    flat, unread = _lowered([given for _, given in rows] if read is None else read, column, limits)
    errors.update(unread)
    if schema is not None:
        flat = _checked(flat, texts, schema, limits, errors)
    parsed()
    flat = arranged(flat, options.attributes)
    keep = np.setdiff1d(np.arange(len(rows)), np.fromiter(errors, dtype=np.int64, count=len(errors)))
    while len(keep):
        try:
            segment = segment_of(
                flat if len(keep) == flat.count else _selected(flat, keep),
                pa.array([rows[row][0] for row in keep], pa.large_string()),
                column if len(keep) == len(column) else column.take(pa.array(keep)),
                options,
            )
        except DiagramLimitError as error:
            for row in error.rows:
                errors[int(keep[row])] = error
            keep = np.delete(keep, error.rows)
        else:
            return segment, listed(rows, errors)
    return None, listed(rows, errors)


def _lowered(
    filters: Sequence[str | Filter], texts: pa.Array, limits: Limits
) -> tuple[Flat, list[tuple[int, CoveyError]]]:
    """As `_parsed`; a few filters are taken as they are, since reading what they print would cost more."""
    if len(filters) >= _BULK or not all(isinstance(given, Filter) for given in filters):
        return _parsed(texts, limits)
    lowering = Lowering(limits)
    errors: list[tuple[int, CoveyError]] = []
    for row, given in enumerate(filters):
        try:
            lowering.add(given if isinstance(given, Filter) else FALSE)
        except CoveyError as error:
            errors.append((row, error))
            lowering.add(FALSE)
    return lowering.finish(), errors


def _parsed(texts: pa.Array, limits: Limits) -> tuple[Flat, list[tuple[int, CoveyError]]]:
    if len(texts) >= _BULK:
        from covey.matching.bulk.parsing import parse_bulk

        return parse_bulk(texts, limits)
    lowering = Lowering(limits)
    errors: list[tuple[int, CoveyError]] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            lowering.add(parse(text, limits=limits))
        except CoveyError as error:
            errors.append((row, error))
            lowering.add(FALSE)
    return lowering.finish(), errors


def listed(rows: Sequence[tuple[str, str | Filter]], errors: Mapping[int, CoveyError]) -> list[BadSubscription]:
    """Errors by row as a report has them."""
    return [BadSubscription(row, rows[row][0], errors[row]) for row in sorted(errors)]


def _texts(rows: Sequence[tuple[str, str | Filter]]) -> tuple[list[str], dict[int, CoveyError]]:
    """All filters as text; what is neither text nor a filter is an error, and stands as FALSE."""
    errors: dict[int, CoveyError] = {}
    texts: list[str] = []
    for number, (_, given) in enumerate(rows):
        if isinstance(given, str):
            try:
                given.encode()
            except UnicodeEncodeError as error:
                errors[number] = FilterError(f"the filter is not text: {error.reason} at {error.start}")
                texts.append("FALSE")
            else:
                texts.append(given)
        elif isinstance(given, Filter):
            texts.append(str(given))
        else:
            wrong = isinstance(given, CoveyError)
            errors[number] = given if wrong else no_filter(given)
            texts.append("FALSE")
    return texts, errors


def no_filter(given: object) -> FilterError:
    """What is wrong with what is neither text nor a filter."""
    if given is None:
        return FilterError("no filter; a subscription to all events has the filter TRUE")
    return FilterError(f"a filter is text or a covey filter, not {type(given).__name__}")


def translated(
    rows: Iterable[tuple[str, str | Filter]], dialect: str, limits: Limits, schema: Schema | None = None
) -> list[tuple[str, str | Filter]]:
    """The rows with texts of another dialect read; in the place of a filter that can't be read stands its error, which
    is reported with the row."""
    check_dialect(dialect)
    if dialect == "sql":
        return list(rows)
    fit = None if schema is None or dialect not in UNTYPED else schema.fit
    return [(id, _translated(given, dialect, limits, fit)) for id, given in rows]


def _translated(
    given: str | Filter, dialect: str, limits: Limits, fit: Callable[[Filter], Filter] | None
) -> str | Filter:
    if not isinstance(given, str):
        return given
    try:
        condition = in_sql(given, dialect, limits)
        return condition if fit is None else fit(condition)
    except CoveyError as error:
        return error  # type: ignore[return-value]


def bad_ids(rows: Sequence[tuple[str, str | Filter]]) -> list[tuple[int, CoveyError]]:
    """Rows whose id can't be one, or stands in an earlier row."""
    seen: set[str] = set()
    bad: list[tuple[int, CoveyError]] = []
    for number, (id, condition) in enumerate(rows):
        try:
            if id is None and isinstance(condition, CoveyError):  # a row that couldn't be read at all
                raise condition
            check_id(id)
            id.encode()
            if id in seen:
                raise DuplicateIdError(f"subscription {id!r} stands in an earlier row too, and the first counts")
        except CoveyError as error:
            bad.append((number, error))
        except UnicodeEncodeError as error:
            bad.append((number, CoveyError(f"the id {id!r} is not text: {error.reason}")))
        else:
            seen.add(id)
    return bad


def _selected(flat: Flat, rows: NDArray[np.int64]) -> Flat:
    """Some of the subscriptions; leaves of the others stay behind unused."""
    lengths = np.diff(flat.starts)[rows]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    take = np.repeat(flat.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
    return replace(flat, tokens=flat.tokens[take], starts=starts)


def _checked(flat: Flat, texts: list[str], schema: Schema, limits: Limits, errors: dict[int, CoveyError]) -> Flat:
    """The subscriptions as the schema reads them. Only rows with a leaf that the schema may refuse or widen are looked
    at one by one."""
    suspicious = _suspicious(flat, schema)
    if not suspicious.any():
        return flat
    token_row = np.repeat(np.arange(flat.count), np.diff(flat.starts))
    leaf = flat.tokens >= 0
    rows = np.unique(token_row[leaf][suspicious[flat.tokens[leaf]]])
    changed = list(texts)
    for row in rows.tolist():
        if row in errors:
            continue
        try:
            changed[row] = str(schema.check(parse(texts[row], limits=limits)))
        except CoveyError as error:
            errors[row] = error
    return _parsed(pa.array(changed, pa.large_string()), limits)[0]


def _suspicious(flat: Flat, schema: Schema) -> NDArray[np.bool_]:
    """For each leaf whether its attribute's type is another than the leaf's kind, or has subtypes."""
    expected = np.full(len(flat.names), -1, dtype=np.int64)
    for attribute, name in enumerate(flat.names):
        kind = schema.type_of(name)
        if kind is not None:
            expected[attribute] = _KINDS[kind.kind]
        if name == schema.type_attribute:
            expected[attribute] = -2
    wanted = expected[flat.leaf_attribute]
    named = (wanted != -1) & (flat.leaf_operator != IS_NULL)
    result: NDArray[np.bool_] = named & ((wanted != flat.leaf_kind) | (flat.leaf_kind == LIST))  # an element's type
    return result
