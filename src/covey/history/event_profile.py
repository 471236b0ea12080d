"""Past events in little space: a uniform sample of whole events, and a sketch of each attribute.

The sample answers questions about several attributes at once, with their dependence; the sketches answer what is too
rare for it. Both merge: every event gets a random priority when it is first seen and the sample keeps the lowest, so
the lowest of two samples together are a uniform sample of both sets of events, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import CoveyError
from covey.events import Batch, Columns, Piece, columns
from covey.events.pieces import column_values
from covey.history.sketches import AttributeSketch, doubles

SAMPLE_EVENTS = 16_384
"""Events that a profile keeps. A fraction p is then known to about sqrt(p / 16,384)."""

_ARROW = {"int": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.large_string()}
_NUMBERS = {"int", "double", "bigint"}
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True, eq=False)
class EventProfile:
    """What some events were like. Not changed once made: merging gives a new one."""

    count: int
    sample: pa.Table
    """A column for each attribute, under its dotted name."""
    priorities: NDArray[np.float64]
    sketches: Mapping[str, AttributeSketch]
    sample_events: int = SAMPLE_EVENTS

    @classmethod
    def of(
        cls,
        events: Batch,
        attributes: Iterable[str],
        *,
        sample_events: int = SAMPLE_EVENTS,
        seed: int | Sequence[int] = 0,
    ) -> EventProfile:
        """The profile of a batch; only the named attributes are looked at."""
        batch = columns(events, attributes)
        sketches: dict[str, AttributeSketch] = {}
        for name, pieces in batch.pieces.items():
            sketches[name] = AttributeSketch()
            sketches[name].update(pieces)
        priorities = np.random.default_rng(seed).random(batch.length)
        rows = _lowest(priorities, sample_events)
        sample = pa.table({name: _taken(batch, name, rows) for name in batch.pieces})
        return cls(batch.length, sample, priorities[rows], sketches, sample_events)

    def merged(self, other: EventProfile) -> EventProfile:
        """The profile of both sets of events. Attributes that only one of them looked at are left out, since nothing
        is known of the other's."""
        names = [name for name in self.sketches if name in other.sketches]
        sketches: dict[str, AttributeSketch] = {}
        for name in names:
            sketches[name] = AttributeSketch.from_json(self.sketches[name].to_json())
            sketches[name].merge(other.sketches[name])
        priorities = np.concatenate((self.priorities, other.priorities))
        rows = _lowest(priorities, min(self.sample_events, other.sample_events))
        sample = _together(self.sample, other.sample, names).take(pa.array(rows))
        return EventProfile(
            self.count + other.count, sample, priorities[rows], sketches, min(self.sample_events, other.sample_events)
        )


def _lowest(priorities: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Rows of the lowest priorities, in their order."""
    if len(priorities) <= most:
        return np.arange(len(priorities))
    return np.sort(np.argpartition(priorities, most)[:most])


def _taken(batch: Columns, name: str, rows: NDArray[np.int64]) -> pa.Array:
    """The chosen rows of one attribute as an Arrow array of one type."""
    pieces = [_piece_rows(piece, rows) for piece in batch.pieces[name]]
    if not pieces:
        return pa.nulls(len(rows))
    if len(pieces) == 1 and pieces[0].type in _ARROW:
        return _plain(pieces[0], len(rows))
    if {piece.type for piece in pieces} <= _NUMBERS:
        return _numbers(pieces, len(rows))
    values: list[Any] = [
        list(value) if isinstance(value, tuple) else value for value in column_values(pieces, len(rows))
    ]
    try:
        return pa.array(values, _INSTANT if pieces[0].type == "timestamp" else None)
    except (pa.ArrowTypeError, OverflowError, ValueError):  # of which ArrowInvalid is one
        kinds = " and ".join(sorted({piece.type for piece in pieces}))
        raise CoveyError(
            f"attribute {name!r} holds {kinds}, which a profile can't keep in one column; leave it out (attributes=)"
        ) from None


def _numbers(pieces: list[Piece], length: int) -> pa.Array:
    """Numbers of several types as doubles, the nearest where they aren't exact."""
    values, missing = np.zeros(length), np.ones(length, bool)
    for piece in pieces:
        rows = slice(None) if piece.rows is None else piece.rows
        values[rows], missing[rows] = doubles(piece.values), False
    return pa.array(values, mask=missing)


def _piece_rows(piece: Piece, rows: NDArray[np.int64]) -> Piece:
    """The piece of a batch that has only these rows, in their order."""
    if piece.rows is None:
        return Piece(piece.type, None, piece.values[rows], piece.dictionary)
    place = np.searchsorted(piece.rows, rows)
    held = np.flatnonzero(np.append(piece.rows, -1)[place] == rows)
    return Piece(piece.type, held, piece.values[place[held]], piece.dictionary)


def _plain(piece: Piece, length: int) -> pa.Array:
    values, missing = piece.values, None
    if piece.rows is not None:
        values = np.zeros(length, piece.values.dtype)
        values[piece.rows] = piece.values
        missing = np.ones(length, bool)
        missing[piece.rows] = False
    if piece.type == "string":
        assert piece.dictionary is not None
        if not len(piece.dictionary):
            return pa.nulls(length, pa.large_string())
        return piece.dictionary.take(pa.array(values, pa.int64(), mask=missing)).cast(pa.large_string())
    return pa.array(values.astype(bool) if piece.type == "boolean" else values, _ARROW[piece.type], mask=missing)


def _together(left: pa.Table, right: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        a, b = left[name].type, right[name].type
        if not (a.equals(b) or pa.types.is_null(a) or pa.types.is_null(b) or (_number(a) and _number(b))):
            raise CoveyError(f"attribute {name!r} is {a} in one profile and {b} in the other; profile them apart")
    return pa.concat_tables([left.select(names), right.select(names)], promote_options="permissive")


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
