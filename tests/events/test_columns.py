"""Columns hold what `attribute_value` finds in each event, whichever way the batch comes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from covey.errors import EventError
from covey.events import Columns, Schema, columns, row
from covey.events.pieces import column_values
from covey.filters.semantics import attribute_value
from covey.filters.values import Exact

INT64 = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats() | st.sampled_from([-0.0, 0.0, math.nan, math.inf, -math.inf, 2.0**53])
WORDS = st.sampled_from(["", "a", "b", "IBM", "\U0001f600", "é\x00", "z" * 40]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
INSTANTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
MICROSECONDS = pa.timestamp("us", "UTC")


def same(left: Any, right: Any) -> bool:
    """Equal in type and exact value: NaN is NaN, -0.0 isn't 0.0."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, datetime):
        return bool(left == right)
    return type(left) is type(right) and repr(left) == repr(right)


def values(found: Columns, name: str) -> list[Any]:
    pieces = found.pieces[name]
    assert len({piece.type for piece in pieces}) == len(pieces), "one piece a type"
    for piece in pieces:
        assert piece.rows is None or (np.diff(piece.rows) > 0).all()
        assert len(piece.values) == (found.length if piece.rows is None else len(piece.rows))
        if piece.dictionary is not None:
            assert piece.values.dtype == np.int32
            assert piece.dictionary.null_count == 0
            assert len(set(piece.dictionary.to_pylist())) == len(piece.dictionary)
    covered = [range(found.length) if piece.rows is None else piece.rows.tolist() for piece in pieces]
    assert sum(map(len, covered)) == len(set().union(*covered)), "no row in two pieces"
    return column_values(pieces, found.length)


def check_same(found: Columns, name: str, wanted: list[Any]) -> None:
    got = values(found, name)
    assert len(got) == len(wanted)
    assert all(map(same, got, wanted)), (got, wanted)


ARROW_TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), INT64),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), DOUBLES),
    (pa.float32(), st.floats(width=32)),
    (pa.float16(), st.floats(width=16)),
    (pa.string(), WORDS),
    (pa.large_string(), WORDS),
    (pa.string_view(), WORDS),
    (pa.dictionary(pa.int8(), pa.string()), WORDS),
    (pa.dictionary(pa.int64(), pa.large_string()), WORDS),
    (pa.dictionary(pa.int16(), pa.int64()), INT64),
    (pa.bool_(), st.booleans()),
    (MICROSECONDS, INSTANTS),
    (pa.timestamp("s"), INSTANTS.map(lambda instant: instant.replace(microsecond=0))),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.decimal128(9, 2), st.decimals(-1000, 1000, places=2)),
    (pa.decimal128(38, 3), st.decimals(-(10**30), 10**30, places=3)),
    (pa.decimal128(19, 18), st.decimals(-9, 9, places=18)),
    (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    (pa.decimal256(60, 5), st.decimals(-(10**40), 10**40, places=5)),
    (pa.list_(pa.int64()), st.lists(INT64 | st.none(), max_size=3)),
    (pa.large_list(pa.string()), st.lists(WORDS | st.none(), max_size=3)),
    (pa.list_(pa.float64(), 2), st.lists(DOUBLES | st.none(), min_size=2, max_size=2)),
    (pa.list_(MICROSECONDS), st.lists(INSTANTS | st.none(), max_size=2)),
    (pa.null(), st.none()),
]


@st.composite
def arrow_columns(draw: st.DrawFn) -> tuple[pa.ChunkedArray, list[Any]]:
    """A column in chunks, some sliced, and what it holds."""
    kind, element = draw(st.sampled_from(ARROW_TYPES))
    chunks, held = [], []
    for _ in range(draw(st.integers(1, 3))):
        given_values = draw(st.lists(element | st.none(), max_size=6))
        if pa.types.is_dictionary(kind):
            array = pa.array(given_values, kind.value_type).dictionary_encode().cast(kind)
        else:
            array = pa.array(given_values, kind)
        start = draw(st.integers(0, len(given_values)))
        chunks.append(array.slice(start))
        held += given_values[start:]
    return pa.chunked_array(chunks, kind), held


@given(arrow_columns())
def test_arrow_columns_hold_what_the_same_events_as_mappings_hold(column: tuple[pa.ChunkedArray, list[Any]]) -> None:
    array, held = column
    wanted = [attribute_value({"v": value}, "v") for value in held]
    check_same(columns(pa.table({"v": array}), ["v"]), "v", wanted)
    check_same(columns([{"v": value} for value in held], ["v"]), "v", wanted)


@given(arrow_columns())
def test_a_record_batch_of_one_chunk_reads_as_its_table(column: tuple[pa.ChunkedArray, list[Any]]) -> None:
    table = pa.table({"v": column[0]})
    for batch in table.to_batches():
        check_same(columns(batch, ["v"]), "v", values(columns(pa.Table.from_batches([batch]), ["v"]), "v"))


RECORDS = st.fixed_dictionaries(
    {
        "a": st.none()
        | st.fixed_dictionaries(
            {
                "b": st.none() | INT64,
                "c.d": st.none() | WORDS,
                "c": st.none() | st.fixed_dictionaries({"d": st.none() | WORDS}),
            }
        ),
        "a.b": st.none() | INT64,
        "a.c": st.none() | st.fixed_dictionaries({"d": st.none() | WORDS}),
    }
)
RECORD_TYPE = pa.schema(
    [
        (
            "a",
            pa.struct([("b", pa.int64()), ("c.d", pa.string()), ("c", pa.struct([("d", pa.string())]))]),
        ),
        ("a.b", pa.int64()),
        ("a.c", pa.struct([("d", pa.dictionary(pa.int32(), pa.string()))])),
    ]
)
NAMES = ["a", "a.b", "a.c", "a.c.d", "a.b.c", "x", "a.x"]


@given(st.lists(RECORDS, max_size=8), st.integers(0, 3))
def test_dotted_names_find_in_structs_what_they_find_in_mappings(events: list[dict[str, Any]], start: int) -> None:
    table = pa.Table.from_pylist(events, RECORD_TYPE).slice(start)
    from_arrow, from_mappings = columns(table, NAMES), columns(events[start:], NAMES)
    for name in NAMES:
        wanted = [attribute_value(event, name) for event in events[start:]]
        check_same(from_arrow, name, wanted)
        check_same(from_mappings, name, wanted)
    for event in events:
        found = row(event, NAMES)
        assert found == {
            name: attribute_value(event, name) for name in NAMES if attribute_value(event, name) is not None
        }


def test_maps_are_read_by_key_and_the_last_of_equal_keys_counts() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    table = pa.table({"m": pa.array([[("k", 1)], None, [("j", 2)], [("k", None)], [("k", 3), ("k", 4)], []], kind)})
    found = columns(table, ["m.k", "m.j", "m"])
    assert values(found, "m.k") == [1, None, None, None, 4, None]
    assert values(found, "m.j") == [None, None, 2, None, None, None]
    assert values(found, "m") == [None] * 6
    assert values(columns(table.slice(2), ["m.k"]), "m.k") == [None, None, 4, None]


def test_plain_columns_without_nulls_are_not_copied() -> None:
    doubles, ints = np.arange(10.0), np.arange(10)
    found = columns(pa.table({"d": doubles, "i": ints}), ["d", "i"]).pieces
    assert np.shares_memory(found["d"][0].values, doubles)
    assert np.shares_memory(found["i"][0].values, ints)
    assert found["d"][0].rows is None


def test_dictionary_codes_are_kept() -> None:
    array = pa.array(["x", "y", None, "x"]).dictionary_encode()
    (piece,) = columns(pa.table({"s": array}), ["s"]).pieces["s"]
    assert piece.values.tolist() == [0, 1, 0]
    assert piece.rows is not None
    assert piece.rows.tolist() == [0, 1, 3]


def test_a_dictionary_may_have_null_and_repeated_words() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3]), pa.array(["a", None, "a", "b"]))
    assert values(columns(pa.table({"s": array}), ["s"]), "s") == ["a", None, "a", None, "b"]


def test_chunks_with_different_dictionaries_are_unified() -> None:
    chunks = [pa.array(["x", "y"]).dictionary_encode(), pa.array(["z", "x"]).dictionary_encode()]
    assert values(columns(pa.table({"s": pa.chunked_array(chunks)}), ["s"]), "s") == ["x", "y", "z", "x"]


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63), 2**63 - 1, 2**63, 10**30, -(2**63) - 1])
def test_integers_are_exact_at_any_size(number: int) -> None:
    events = [{"n": number}, {"n": 1}]
    check_same(columns(events, ["n"]), "n", [number, 1])
    check_same(columns(pa.table({"n": pa.array([Decimal(number), Decimal(1)])}), ["n"]), "n", [number, 1])


def test_decimals_keep_their_digits() -> None:
    """More of them than a double keeps, or few, for which the double stands."""
    held = [Decimal(2**53 + 1 + 7_919 * step**3).scaleb(-18) for step in range(500)]
    check_same(columns(pa.table({"v": pa.array(held, pa.decimal128(38, 18))}), ["v"]), "v", list(map(Exact, held)))
    few = [Decimal(10**15 - 1 - 7 * step).scaleb(-18) for step in range(500)]
    check_same(columns(pa.table({"v": pa.array(few, pa.decimal128(38, 18))}), ["v"]), "v", list(map(float, few)))


def test_one_attribute_may_hold_several_types() -> None:
    held = [1, 2.5, "x", None, True, datetime(2024, 1, 1, tzinfo=UTC), (1, None), 2**70, 3, np.float32(0.5), {"k": 1}]
    wanted = [*held[:-2], 0.5, None]
    found = columns([{"v": value} for value in held], ["v"])
    check_same(found, "v", wanted)
    assert {piece.type for piece in found.pieces["v"]} == {
        "int",
        "double",
        "string",
        "boolean",
        "timestamp",
        "list",
        "bigint",
    }


def test_nanoseconds_are_floored_to_the_microsecond_before_1970_too() -> None:
    table = pa.table({"t": pa.array([1_999, -1, 0], pa.timestamp("ns"))})
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert values(columns(table, ["t"]), "t") == [epoch + timedelta(microseconds=n) for n in (1, -1, 0)]


def test_zones_are_instants_and_dates_are_midnight_utc() -> None:
    table = pa.table({"d": pa.array([date(2024, 2, 29)]), "z": pa.array([0], pa.timestamp("ms", "Europe/Berlin"))})
    found = columns(table, ["d", "z"])
    assert values(found, "d") == [datetime(2024, 2, 29, tzinfo=UTC)]
    assert values(found, "z") == [datetime(1970, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize("array", [pa.array([2**62], pa.timestamp("s")), pa.array([2**31 - 1], pa.date32())])
def test_instants_that_64_bits_of_microseconds_cannot_hold_are_refused(array: pa.Array) -> None:
    with pytest.raises(EventError, match="further from 1970"):
        columns(pa.table({"t": array}), ["t"])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x"]),
        pa.array([timedelta(1)]),
        pa.array([1], pa.time32("s")),
        pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())),
    ],
)
def test_types_that_do_not_compare_are_refused_only_where_asked_for(array: pa.Array) -> None:
    table = pa.table({"v": array, "w": [1]})
    assert values(columns(table, ["w"]), "w") == [1]
    with pytest.raises(EventError, match="column 'v' is of Arrow type"):
        columns(table, ["v"])


def test_lists_may_hold_lists_and_records() -> None:
    table = pa.table({"v": pa.array([[[1, None]], None, []]), "w": pa.array([[{"a": 1}, None], [], None])})
    found = columns(table, ["v", "w"])
    assert values(found, "v") == [((1, None),), None, ()]
    assert values(found, "w") == [({"a": 1}, None), (), None]


@pytest.mark.parametrize("wrong", [b"x", "\ud800", [object()], object()])
def test_python_values_that_do_not_compare_are_refused_by_name(wrong: Any) -> None:
    with pytest.raises(EventError, match="attribute 'v'"):
        columns([{"v": wrong}, {"v": 1}], ["v"])


def test_a_column_name_that_occurs_twice_is_refused() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["v", "v"])
    with pytest.raises(EventError, match="occurs 2 times"):
        columns(table, ["v"])


@pytest.mark.parametrize(
    "batch", [[], pa.table({"v": pa.array([], pa.int64())}), pa.table({"v": pa.array([], pa.string())})]
)
def test_an_empty_batch_has_no_pieces(batch: Any) -> None:
    assert columns(batch, ["v", "w"]) == Columns(0, {"v": (), "w": ()})


def test_a_batch_must_be_a_batch() -> None:
    with pytest.raises(TypeError, match="list of mappings"):
        columns({"a": 1}, ["a"])  # type: ignore[arg-type]
    with pytest.raises(EventError, match="event 1 is a int"):
        columns([{"a": 1}, 7], ["a"])  # type: ignore[list-item]


@pytest.mark.parametrize("as_batch", [list, pa.Table.from_pylist])
def test_a_schema_brings_columns_to_its_types(as_batch: Callable[[list[dict[str, Any]]], Any]) -> None:
    schema = Schema({"t": "timestamp", "n": "int", "d": "double", "l": "list<timestamp>"})
    batch = as_batch([{"t": "2024-01-01", "n": 3.0, "d": 1, "l": ["2024-01-01"]}, {"t": None, "n": None}])
    found = columns(batch, ["t", "n", "d", "l"], schema)
    day = datetime(2024, 1, 1, tzinfo=UTC)
    assert values(found, "t") == [day, None]
    assert values(found, "n") == [3, None]
    assert values(found, "d") == [1, None]
    assert values(found, "l") == [(day,), None]
    assert row({"t": "2024-01-01"}, ["t", "n"], schema) == {"t": day}


def test_a_schema_names_the_row_that_breaks_it() -> None:
    with pytest.raises(EventError, match=r"row 2: attribute 'n': 1.5 is a double; expected int"):
        columns(pa.table({"n": [1.0, None, 1.5]}), ["n"], Schema({"n": "int"}))


@settings(max_examples=examples(50))
@given(st.lists(st.one_of(st.none(), INT64, DOUBLES, WORDS, st.booleans(), INSTANTS, st.integers()), max_size=30))
def test_mixed_python_values_come_back_as_they_went_in(held: list[Any]) -> None:
    check_same(columns([{"v": value} for value in held], ["v"]), "v", held)
