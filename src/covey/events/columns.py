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

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from covey.errors import EventError
from covey.events.arrow import column_of
from covey.events.pieces import Columns, Piece, PieceType, pieces_of_values
from covey.filters.semantics import attribute_value
from covey.filters.values import Value

if TYPE_CHECKING:
    from covey.events.schema import Schema

__all__ = ["Batch", "Columns", "Piece", "PieceType", "columns", "row"]

Batch: TypeAlias = "pa.Table | pa.RecordBatch | Sequence[Mapping[str, Any]]"

_PLAIN = frozenset((float, int, str, bool))


def columns(batch: Batch, names: Iterable[str], schema: Schema | None = None) -> Columns:
    """The named attributes of a batch; no others are decoded.

    With a schema, values are brought to its types or an EventError names the row. Mandatory attributes and defaults
    are not looked at here: `Schema.decode` validates whole events.
    """
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        length = batch.num_rows
        found = {name: column_of(batch, name) for name in names}
    elif isinstance(batch, Sequence) and not isinstance(batch, (str, bytes)):
        length = len(batch)
        found = {name: pieces_of_values(_values(batch, name), name) for name in names}
    else:
        raise TypeError(f"a batch is an Arrow table, a record batch or a list of mappings, not {type(batch).__name__}")
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


def row(event: Mapping[str, Any], names: Iterable[str], schema: Schema | None = None) -> dict[str, Value]:
    """The named attributes of one event that it defines, normalised (and brought to the schema's types)."""
    found: dict[str, Value] = {}
    for name in names:
        given: Any = event.get(name)
        if type(given) in _PLAIN:
            found[name] = given
            continue
        if given is None and "." not in name:
            continue
        value = _attribute(event, name)
        if value is not None:
            found[name] = value
    if schema is not None:
        for name in found:
            found[name] = schema.coerce(name, found[name])
    return found
