"""A column as pieces: the rows of one attribute grouped by the physical type of their values.

One attribute may hold values of several types in one batch (JSON does), so a column is a tuple of pieces, at most one
of each type, and a row that stands in no piece doesn't define the attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import EventError
from covey.filters.values import Exact, Value, instant, microseconds, normalise

if TYPE_CHECKING:
    from covey.events.term_formulas import Formulas

PieceType: TypeAlias = Literal["int", "double", "string", "boolean", "timestamp", "list", "bigint"]
Rows: TypeAlias = NDArray[np.int64]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows of one column whose values are of one physical type."""

    type: PieceType
    rows: Rows | None
    """Ascending row numbers, or None for every row of the batch."""
    values: NDArray[Any]
    """int64 for int and timestamp, float64 for double, uint8 for boolean, int32 codes for string; objects for bigint
    (Python ints outside int64, and decimals) and for list (tuples of normalised scalars and None). To be read, not
    written."""
    dictionary: pa.Array | None = None
    """For string: the distinct strings that `values` index. Some may be unused."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The attributes of a batch of events; rows in no piece of an attribute don't define it."""

    length: int
    pieces: Mapping[str, tuple[Piece, ...]]
    formulas: Formulas | None = None
    """Terms that have no pieces, since they are computed where they are asked for."""

    def computed(self, names: Iterable[str]) -> Columns:
        """The same with pieces for some of the formulas; they stay formulas to whoever doesn't look for pieces."""
        assert self.formulas is not None
        return replace(self, pieces={**self.pieces, **self.formulas.pieces(names)})


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of Python objects, one dimension even where the objects are tuples of one length."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def python_values(piece: Piece) -> list[Any]:
    """The piece's values as the algebra knows them."""
    match piece.type:
        case "string":
            assert piece.dictionary is not None
            words = piece.dictionary.to_pylist()
            return [words[code] for code in piece.values.tolist()]
        case "boolean":
            return list(piece.values.astype(bool).tolist())
        case "timestamp":
            return [instant(value) for value in piece.values.tolist()]
    return list(piece.values.tolist())


def column_values(pieces: Iterable[Piece], length: int) -> list[Value | None]:
    """A whole column as the algebra's values, None where a row doesn't define the attribute. Slow: one by one."""
    column: list[Value | None] = [None] * length
    for piece in pieces:
        rows: Iterable[int] = range(length) if piece.rows is None else piece.rows.tolist()
        for row, value in zip(rows, python_values(piece), strict=True):
            column[row] = value
    return column


def pieces_of_values(values: Sequence[Any], name: str) -> tuple[Piece, ...]:
    """Pieces of a column of Python values; None is missing. One pass where all values have one plain type."""
    types = set(map(type, values))
    rows: Rows | None = None
    if type(None) in types:
        types.discard(type(None))
        rows = np.array([row for row, value in enumerate(values) if value is not None], dtype=np.int64)
        values = [value for value in values if value is not None]
    if not types:
        return ()
    if len(types) == 1:
        piece = _plain_piece(types.pop(), rows, values, name)
        if piece is not None:
            return (piece,)
    return _mixed_pieces(values, rows, name)


def _plain_piece(kind: type, rows: Rows | None, values: Sequence[Any], name: str) -> Piece | None:
    """The one piece of values that all have this very type (no subclass), or None for the general way."""
    if kind is float:
        return Piece("double", rows, np.array(values, dtype=np.float64))
    if kind is str:
        return _string_piece(rows, values, name)
    if kind is bool:
        return Piece("boolean", rows, np.array(values, dtype=np.bool_).view(np.uint8))
    if kind is int:
        try:
            return Piece("int", rows, np.array(values, dtype=np.int64))
        except OverflowError:
            return None
    return None


def _string_piece(rows: Rows | None, values: Sequence[str], name: str) -> Piece:
    try:
        encoded = pa.array(values, pa.large_string()).dictionary_encode()
    except UnicodeEncodeError as error:
        raise EventError(f"attribute {name!r}: {error.object!r:.80} is not text: {error.reason}") from None
    return Piece("string", rows, encoded.indices.to_numpy(), encoded.dictionary)


def _mixed_pieces(values: Sequence[Any], rows: Rows | None, name: str) -> tuple[Piece, ...]:
    grouped: dict[PieceType, tuple[list[int], list[Any]]] = {}
    for position, given in enumerate(values):
        value = None if isinstance(given, Mapping) else normal_value(given, name)
        if value is not None:
            positions, found = grouped.setdefault(_type_of(value), ([], []))
            positions.append(position)
            found.append(value)
    pieces = []
    for kind, (positions, found) in grouped.items():
        chosen: Rows | None = np.array(positions, dtype=np.int64)
        if len(positions) == len(values):
            chosen = rows
        elif rows is not None:
            chosen = rows[chosen]
        pieces.append(_piece_of_type(kind, chosen, found, name))
    return tuple(pieces)


def normal_value(value: Any, name: str) -> Value | None:
    """`normalise`, with an error that names the attribute."""
    try:
        return normalise(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise EventError(f"attribute {name!r}: {error}") from None


def _type_of(value: Value) -> PieceType:
    match value:
        case bool():
            return "boolean"
        case int():
            return "int" if INT64_MIN <= value <= INT64_MAX else "bigint"
        case float():
            return "bigint" if isinstance(value, Exact) else "double"
        case str():
            return "string"
        case datetime():
            return "timestamp"
    return "list"


def _piece_of_type(kind: PieceType, rows: Rows | None, values: list[Any], name: str) -> Piece:
    match kind:
        case "int":
            return Piece(kind, rows, np.array(values, dtype=np.int64))
        case "double":
            return Piece(kind, rows, np.array(values, dtype=np.float64))
        case "boolean":
            return Piece(kind, rows, np.array(values, dtype=np.bool_).view(np.uint8))
        case "timestamp":
            return Piece(kind, rows, np.array([microseconds(value) for value in values], dtype=np.int64))
        case "string":
            return _string_piece(rows, values, name)
    return Piece(kind, rows, objects(values))


def fall_back(first: tuple[Piece, ...], second: Iterable[Piece], length: int) -> tuple[Piece, ...]:
    """A column that is `first` where that defines a row, and else `second`; still at most one piece of each type."""
    free = ~defined_rows(first, length)
    merged = {piece.type: piece for piece in first}
    for piece in second:
        rows = all_rows(piece, length)
        kept = free[rows]
        if kept.any():
            added = replace(piece, rows=rows[kept], values=piece.values[kept])
            merged[piece.type] = _union(merged[piece.type], added) if piece.type in merged else added
    return tuple(_whole(piece, length) for piece in merged.values())


def defined_rows(pieces: Iterable[Piece], length: int) -> NDArray[np.bool_]:
    """Which rows define the attribute."""
    defined = np.zeros(length, dtype=np.bool_)
    for piece in pieces:
        if piece.rows is None:
            defined[:] = True
        else:
            defined[piece.rows] = True
    return defined


def all_rows(piece: Piece, length: int) -> Rows:
    """The piece's row numbers, spelled out."""
    return np.arange(length, dtype=np.int64) if piece.rows is None else piece.rows


def _whole(piece: Piece, length: int) -> Piece:
    return replace(piece, rows=None) if piece.rows is not None and len(piece.rows) == length else piece


def _union(left: Piece, right: Piece) -> Piece:
    """One piece of two of the same type whose rows are disjoint."""
    assert left.rows is not None
    assert right.rows is not None
    rows = np.concatenate((left.rows, right.rows))
    order = np.argsort(rows)
    dictionary = None
    values = right.values
    if left.dictionary is not None and right.dictionary is not None:
        words = pa.chunked_array([part.cast(pa.large_string()) for part in (left.dictionary, right.dictionary)])
        dictionary, codes = distinct_words(words.combine_chunks())
        values = np.concatenate((codes[left.values], codes[len(left.dictionary) + values]))
    else:
        values = np.concatenate((left.values, values))
    return Piece(left.type, rows[order], values[order], dictionary)


def distinct_words(words: pa.Array) -> tuple[pa.Array, NDArray[np.int32]]:
    """The distinct strings among `words`, and for each of `words` its place among them (-1 for null)."""
    encoded = words.dictionary_encode()
    return encoded.dictionary, encoded.indices.fill_null(-1).to_numpy()


def without_nan_rows(pieces: Iterable[Piece], length: int) -> tuple[Piece, ...]:
    """The column without the rows that are NaN."""
    kept: list[Piece] = []
    for piece in pieces:
        if piece.type == "double":
            numbers = ~np.isnan(piece.values)
            if not numbers.all():
                if not numbers.any():
                    continue
                piece = replace(piece, rows=all_rows(piece, length)[numbers], values=piece.values[numbers])
        kept.append(piece)
    return tuple(kept)
