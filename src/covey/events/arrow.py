"""Arrow arrays to pieces, without visiting rows one by one wherever Arrow or NumPy can do it.

To read one more Arrow type: a function here from an array without chunks to pieces, and a line in `_DECODERS`.
Each decoder is given the row numbers of the values that aren't null (None where all are valid).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import EventError
from covey.events.pieces import (
    INT64_MAX,
    Piece,
    Rows,
    column_values,
    distinct_words,
    fall_back,
    normal_value,
    objects,
    pieces_of_values,
)

Decoder: TypeAlias = Callable[[pa.Array, "Rows | None", str], tuple[Piece, ...]]
Fields: TypeAlias = Callable[[str], "pa.Array | pa.ChunkedArray | None"]

_DAY = 86_400_000_000
_KEPT_DIGITS = 10**15
_LARGEST_EXACT_SCALE = 18
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}


def column_of(batch: pa.Table | pa.RecordBatch, name: str, *, decimals: bool = False) -> tuple[Piece, ...]:
    """The pieces of an attribute of a table or record batch; `decimals` with a fraction are kept as such for terms,
    which compute with them, where tests alone take the doubles that stand for them."""
    pieces: tuple[Piece, ...] = ()
    for array in _candidates(_top_level(batch), name):
        kept = decimals and pa.types.is_decimal(array.type) and array.type.scale > 0
        found = pieces_of_values(array.to_pylist(), name) if kept else decode(array, name)
        pieces = fall_back(pieces, found, batch.num_rows) if pieces else found
        if any(piece.rows is None for piece in pieces):
            break
    return pieces


def _top_level(batch: pa.Table | pa.RecordBatch) -> Fields:
    def field(name: str) -> pa.Array | pa.ChunkedArray | None:
        places = batch.schema.get_all_field_indices(name)
        if len(places) > 1:
            raise EventError(f"column {name!r} occurs {len(places)} times; give each column a name of its own")
        return batch.column(places[0]) if places else None

    return field


def _inside(array: pa.Array | pa.ChunkedArray) -> Fields:
    """The fields of a struct (null where the struct is), or the values of a map by key."""

    def of_struct(name: str) -> pa.Array | pa.ChunkedArray | None:
        from pyarrow import compute  # here and below: takes longer to import than a first match on mappings does

        place = array.type.get_field_index(name)
        return compute.struct_field(array, [place]) if place >= 0 else None

    def of_map(name: str) -> pa.Array | pa.ChunkedArray | None:
        from pyarrow import compute

        return compute.map_lookup(array, pa.scalar(name, array.type.key_type), "last")

    return of_struct if pa.types.is_struct(array.type) else of_map


def _is_record(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return bool(pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type))
    return bool(pa.types.is_struct(kind))


def _candidates(fields: Fields, name: str) -> Iterator[pa.Array | pa.ChunkedArray]:
    """The arrays that may hold the attribute, in the order in which `attribute_value` tries them."""
    literal = fields(name)
    if literal is not None and not _is_record(literal.type):
        yield literal
    head, dot, rest = name.partition(".")
    while dot:
        inner = fields(head)
        if inner is not None and _is_record(inner.type):
            yield from _candidates(_inside(inner), rest)
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"


def decode(array: pa.Array | pa.ChunkedArray, name: str) -> tuple[Piece, ...]:
    """The pieces of one Arrow array of scalars or lists of scalars."""
    kind = array.type
    while isinstance(kind, pa.BaseExtensionType):
        array, kind = array.cast(kind.storage_type), kind.storage_type
    if pa.types.is_run_end_encoded(kind):
        from pyarrow import compute

        return decode(compute.run_end_decode(array), name)
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        return decode(array.cast(kind.value_type), name)
    decoder = next((decoder for applies, decoder in _DECODERS if applies(kind)), None)
    if decoder is None:
        raise EventError(f"column {name!r} is of Arrow type {kind}, which filters can't compare; cast it first")
    if len(array) == 0 or pa.types.is_null(kind):
        return ()
    if _is_text(kind):
        array = array.cast(pa.large_string()) if pa.types.is_string_view(kind) else array
        array = array.dictionary_encode()
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type):
            array = array.unify_dictionaries()
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if array.null_count == 0:
        return decoder(array, None, name)
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    return decoder(array, rows, name) if len(rows) else ()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _raw(array: pa.Array, dtype: Any, rows: Rows | None) -> NDArray[Any]:
    """The array's own memory as NumPy sees it; gathered where some rows are null."""
    buffer = array.buffers()[1]
    values = np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * np.dtype(dtype).itemsize)
    return values if rows is None else values[rows]


def _integers(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:  # noqa: ARG001
    values = _raw(array, array.type.to_pandas_dtype(), rows)
    if not pa.types.is_uint64(array.type):
        return (Piece("int", rows, values.astype(np.int64, copy=False)),)
    large = values > INT64_MAX
    if not large.any():
        return (Piece("int", rows, values.view(np.int64)),)
    places = np.arange(len(values), dtype=np.int64) if rows is None else rows
    big = Piece("bigint", None if large.all() and rows is None else places[large], objects(values[large].tolist()))
    return (big,) if large.all() else (Piece("int", places[~large], values[~large].view(np.int64)), big)


def _doubles(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:  # noqa: ARG001
    values = _raw(array, array.type.to_pandas_dtype(), rows)
    return (Piece("double", rows, values.astype(np.float64, copy=False)),)


def _booleans(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:  # noqa: ARG001
    valid = array if rows is None else array.drop_null()
    return (Piece("boolean", rows, valid.to_numpy(zero_copy_only=False).view(np.uint8)),)


def _strings(array: pa.DictionaryArray, rows: Rows | None, name: str) -> tuple[Piece, ...]:  # noqa: ARG001
    """Arrow allows null and repeated words in a dictionary; a piece's words are distinct."""
    words = array.dictionary
    if pa.types.is_string_view(words.type):
        words = words.cast(pa.large_string())
    codes = _raw(array.indices, array.type.index_type.to_pandas_dtype(), rows)
    if words.null_count or len(words.unique()) < len(words):
        words, places = distinct_words(words)
        codes = places[codes]
        valid = codes >= 0
        if not valid.all():
            rows = np.flatnonzero(valid) if rows is None else rows[valid]
            codes = codes[valid]
    return (Piece("string", rows, codes.astype(np.int32, copy=False), words),) if len(codes) else ()


def _timestamps(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:
    values = _raw(array, np.int64, rows)
    unit = array.type.unit
    if unit == "ns":
        return (Piece("timestamp", rows, values // 1_000),)
    return (Piece("timestamp", rows, values if unit == "us" else _scaled(values, _MICROSECONDS[unit], name)),)


def _dates(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:
    if pa.types.is_date32(array.type):
        days = _raw(array, np.int32, rows).astype(np.int64)
    else:
        days = _raw(array, np.int64, rows) // (_DAY // 1_000)
    return (Piece("timestamp", rows, _scaled(days, _DAY, name)),)


def _scaled(values: NDArray[np.int64], factor: int, name: str) -> NDArray[np.int64]:
    bound = INT64_MAX // factor
    if values.max() > bound or values.min() < -bound:
        raise EventError(f"column {name!r} has an instant further from 1970 than 292,000 years; filters can't hold it")
    return values * factor


def _decimals(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:
    """Whole values are integers, others the nearest double where that keeps all digits, which 15 always are.

    Such digits are divided by an exact power of ten, and IEEE division rounds once, so that is the nearest double;
    whole values only need 64 bits. What is wider goes through Python's Decimal.
    """
    scale = array.type.scale
    if pa.types.is_decimal256(array.type) or not 0 <= scale <= _LARGEST_EXACT_SCALE:
        return pieces_of_values(array.to_pylist(), name)
    words = _raw(array.cast(pa.decimal128(38, scale)), np.dtype([("low", "<i8"), ("high", "<i8")]), rows)
    digits = np.ascontiguousarray(words["low"])
    whole = digits % 10**scale == 0
    plain = words["high"] == digits >> 63
    plain &= whole | ((digits > -_KEPT_DIGITS) & (digits < _KEPT_DIGITS))
    places = np.arange(len(array), dtype=np.int64) if rows is None else rows
    pieces: tuple[Piece, ...] = ()
    integral, fractional = plain & whole, plain & ~whole
    if integral.any():
        chosen = rows if integral.all() else places[integral]
        pieces += (Piece("int", chosen, digits[integral] // 10**scale),)
    if fractional.any():
        chosen = rows if fractional.all() else places[fractional]
        pieces += (Piece("double", chosen, digits[fractional].astype(np.float64) / 10.0**scale),)
    if plain.all():
        return pieces
    wide: list[Any] = [None] * len(array)
    for row in places[~plain].tolist():
        wide[row] = array[row].as_py()
    return fall_back(pieces, pieces_of_values(wide, name), len(array))


def _lists(array: pa.Array, rows: Rows | None, name: str) -> tuple[Piece, ...]:
    flat = array.flatten()
    inner = flat.type
    if pa.types.is_nested(inner):
        return (Piece("list", rows, objects(_nested_lists(array, name))),)
    try:
        elements = column_values(decode(flat, name), len(flat))
    except OverflowError:
        raise EventError(f"column {name!r} has an instant outside the years 1 to 9999 in a list") from None
    lengths = array.value_lengths().drop_null().to_numpy()
    ends = np.cumsum(lengths)
    bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return (Piece("list", rows, objects([tuple(elements[start:end]) for start, end in bounds])),)


def _nested_lists(array: pa.Array, name: str) -> list[Any]:
    """Lists of records and of lists, value by value: what is inside them is only looked at by tests of elements."""
    try:
        values = array.drop_null().to_pylist(maps_as_pydicts="lossy")
    except OverflowError:
        raise EventError(f"column {name!r} has an instant outside the years 1 to 9999 in a list") from None
    return [normal_value(value, name) for value in values]


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


_DECODERS: tuple[tuple[Callable[[pa.DataType], bool], Decoder], ...] = (
    (pa.types.is_floating, _doubles),
    (pa.types.is_integer, _integers),
    (_is_text, _strings),
    (pa.types.is_dictionary, _strings),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_date, _dates),
    (pa.types.is_decimal, _decimals),
    (_is_list, _lists),
    (pa.types.is_null, _integers),
)
