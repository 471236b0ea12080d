"""A batch of events as columns: for each attribute that is asked for, its values by physical type.

The rules are those of `covey.filters.values`: numbers are exact (an integer outside 64 bits is a "bigint", a decimal
with a whole value an integer), NaN stays NaN, an instant is microseconds since 1970 in UTC (nanoseconds are floored
to the microsecond, a timestamp without a zone is UTC, a date is its midnight UTC).

Cost: an Arrow column of int64, double or microseconds without nulls is not copied; with nulls it costs one pass for
the row numbers and one to gather. Strings are dictionary-encoded once by Arrow, and dictionary columns keep their
codes. Python visits rows one by one only for lists, for decimals too wide for a machine word, and for events that are
Python mappings already.

A dotted name "a.b" is looked up as `attribute_value` does: the column of just that name first, then column "a" and in
it "b", through structs by field and through maps by key (of equal keys the last); where one is null, the next decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from covey.errors import EventError
from covey.events.arrow import column_of, decode
from covey.events.byte_batches import ByteBatch
from covey.events.pieces import Columns, Piece, PieceType, defined_rows, pieces_of_values, without_nan_rows
from covey.events.term_columns import attributes_of, term_pieces
from covey.events.term_formulas import formulas_of
from covey.events.term_vectors import Vectors
from covey.filters.event_texts import text_of
from covey.filters.semantics import attribute_value, is_present
from covey.filters.terms import EVENT_TEXT, is_path, is_presence, term_of
from covey.filters.values import Scalar, Value

if TYPE_CHECKING:
    from covey.events.schema import Schema

__all__ = ["Batch", "Columns", "Piece", "PieceType", "Source", "columns", "row"]

Batch: TypeAlias = "pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]"
Source: TypeAlias = "Batch | ByteBatch"
"""What columns are read from."""

_NO_DEFAULTS: Mapping[str, Scalar] = {}
_PLAIN = frozenset((float, int, str, bool))
_PLAIN_OR_NULL = _PLAIN | {type(None)}


def columns(
    batch: Source,
    names: Iterable[str],
    schema: Schema | None = None,
    defaults: Mapping[str, Scalar] = _NO_DEFAULTS,
    *,
    if_asked: Collection[str] = (),
    nan_is_missing: bool = False,
) -> Columns:
    """The named attributes and other terms of a batch; nothing else is decoded.

    With a schema, values are brought to its types or an EventError names the row. Mandatory attributes are not looked
    at here: `Schema.decode` validates whole events. `defaults` stand for missing attributes inside terms alone. A term
    is computed, unless the batch is of Arrow and has a column of the term's name; of those to be computed only
    `if_asked` arithmetic is left as formulas, for kernels to compute. With `nan_is_missing` a NaN is as if it weren't
    there.
    """
    listed = list(names)
    computed = [name for name in listed if not is_path(name)]
    if computed:
        return _with_terms(batch, listed, computed, schema, defaults, if_asked, nan_is_missing)
    return _columns(batch, listed, schema, nan_is_missing=nan_is_missing)


def _with_terms(
    batch: Source,
    names: list[str],
    terms: list[str],
    schema: Schema | None,
    defaults: Mapping[str, Scalar],
    if_asked: Collection[str],
    nan_is_missing: bool,
) -> Columns:
    arrow = batch if isinstance(batch, (pa.Table, pa.RecordBatch)) else None
    given = set() if arrow is None else set(terms).intersection(arrow.schema.names)
    needed = attributes_of(name for name in names if name not in given)
    inner = frozenset(attributes_of(name for name in terms if name not in given))
    plain = _columns(batch, needed, schema, inner, nan_is_missing=nan_is_missing)
    found = dict(plain.pieces)
    vectors = Vectors(plain.pieces, plain.length)
    left = (term_of(name) for name in terms if name in if_asked and name not in given)
    formulas = formulas_of(left, vectors, plain.length, defaults)
    for name in terms:
        if arrow is not None and name in given:
            found[name] = decode(arrow.column(name), name)
        elif name == EVENT_TEXT:
            found[name] = batch.event_texts() if isinstance(batch, ByteBatch) else pieces_of_values(_texts(batch), name)
        elif is_presence(name):
            found[name] = (_presence(batch, term_of(name).attributes()[0], plain),)
        elif formulas is None or name not in formulas.steps:
            found[name] = term_pieces(term_of(name), vectors, plain.pieces, plain.length, defaults)
    return Columns(plain.length, found, formulas)


def _presence(batch: Source, name: str, plain: Columns) -> Piece:
    """Whether each event has an attribute. In Arrow a null is how a row lacks it, and nothing tells them apart."""
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        there = defined_rows(plain.pieces[name], plain.length)
    elif isinstance(batch, ByteBatch):
        there = batch.present(name, defined_rows(plain.pieces[name], plain.length))
    else:
        there = np.fromiter((is_present(event, name) for event in batch), dtype=np.bool_, count=plain.length)
    return Piece("boolean", None, there.view(np.uint8))


def _texts(batch: Batch) -> list[str]:
    """The text of each event, for which all of it is read by Python."""
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        return list(map(text_of, batch.to_pylist(maps_as_pydicts="lossy")))
    return list(map(text_of, batch))


def _columns(
    batch: Source,
    names: Sequence[str],
    schema: Schema | None,
    inner: frozenset[str] = frozenset(),
    *,
    nan_is_missing: bool = False,
) -> Columns:
    """The named attributes; those that are `inner` to terms with their decimals."""
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        length = batch.num_rows
        found = {name: column_of(batch, name, decimals=name in inner) for name in names}
    elif isinstance(batch, ByteBatch):
        length, found = batch.pieces(names)
    elif isinstance(batch, Sequence) and not isinstance(batch, (str, bytes)):
        length = len(batch)
        found = {name: pieces_of_values(_values(batch, name), name) for name in names}
    else:
        raise TypeError(f"a batch is an Arrow table, a record batch or a list of mappings, not {type(batch).__name__}")
    if nan_is_missing:
        found = {name: without_nan_rows(pieces, length) for name, pieces in found.items()}
    if schema is not None:
        found = {name: schema.coerce_pieces(name, pieces, length) for name, pieces in found.items()}
    return Columns(length, found)


def _values(events: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    try:
        if "." in name:
            return [_attribute(event, name) for event in events]
        return [event.get(name) for event in events]
    except AttributeError:
        wrong = next(place for place, event in enumerate(events) if not isinstance(event, Mapping))
        raise EventError(f"event {wrong} is a {type(events[wrong]).__name__}, not a mapping of attributes") from None


def _attribute(event: Mapping[str, Any], name: str) -> Value | None:
    try:
        return attribute_value(event, name)
    except (TypeError, ValueError, OverflowError) as error:
        raise EventError(f"attribute {name!r}: {error}") from None


def is_flat(event: Mapping[str, Any]) -> bool:
    """Whether an event's values are all plain, so that it is its own row."""
    return _PLAIN_OR_NULL.issuperset(map(type, event.values()))


def row(event: Mapping[str, Any], names: Iterable[str], schema: Schema | None = None) -> dict[str, Value]:
    """The named attributes of one event that it defines, normalised (and brought to the schema's types)."""
    found: dict[str, Value] = {}
    flat = not any(type(value) not in _PLAIN and isinstance(value, Mapping) for value in event.values())
    for name in names:
        given: Any = event.get(name)
        if type(given) in _PLAIN:
            found[name] = given
            continue
        if given is None and (flat or "." not in name):
            continue
        value = _attribute(event, name)
        if value is not None:
            found[name] = value
    if schema is not None:
        for name in found:
            found[name] = schema.coerce(name, found[name])
    return found
