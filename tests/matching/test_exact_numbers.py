"""Numbers of any length compare exactly, compiled or not: integers beyond 36 digits, decimals with long fractions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import covey
from covey.errors import FilterError
from covey.filters import attr

BIG = 12345678901234567890123456789012345677
LONG = Decimal("0.1000000000000000055")
WIDE = Decimal("9007199254740993.5")


def _found(text: str, values: list[Any], column: pa.Array | None = None) -> list[bool]:
    """What batch, single and interpreter say, which must be the same."""
    index = covey.Index()
    index.add_many([("x", text)])
    index.parts()
    condition = covey.parse(text)
    single = [bool(index.match({"d": value})) for value in values]
    assert [condition.matches({"d": value}) for value in values] == single
    assert [bool(ids) for ids in index.match_batch([{"d": value} for value in values]).to_pylist()] == single
    if column is not None:
        assert [bool(ids) for ids in index.match_batch(pa.table({"d": column})).to_pylist()] == single
    return single


def test_integers_of_any_length_compare_exactly() -> None:
    values = [BIG - 1, BIG, BIG + 1, float(BIG), 5]
    decimals = pa.array([Decimal(int(value)) for value in values[:3]], pa.decimal128(38, 0))
    assert _found(f"d > {BIG}", values)[:3] == [False, False, True]
    assert _found(f"d > {BIG}", values[:3], decimals) == [False, False, True]
    assert _found(f"d = {BIG}", values) == [False, True, False, False, False]
    assert _found(f"d <=> {BIG}", values) == [False, True, False, False, False]
    assert _found(f"NOT d <= {BIG - 1}", values)[:3] == [False, True, True]
    assert _found(f"d IN ({BIG}, 5)", values) == [False, True, False, False, True]
    assert _found(f"d BETWEEN {BIG} AND {BIG + 1}", values)[:3] == [False, True, True]
    huge = 10**350
    assert _found(f"d < {huge}", [huge - 1, huge, 1e308]) == [True, False, True]


def test_a_literal_with_a_point_keeps_its_digits() -> None:
    values = [Decimal("0.1"), LONG, 0.1]
    column = pa.array([Decimal("0.1"), LONG], pa.decimal128(38, 19))
    assert _found("d = 0.1", values) == [True, False, True]
    assert _found("d = 0.1", values[:2], column) == [True, False]
    assert _found("d > 0.1", values) == [False, True, False]
    assert _found(f"d = {LONG}", values) == [False, True, True]  # its nearest double is 0.1
    assert _found(f"d = {LONG}", values[:2], column) == [False, True]
    assert _found(f"d IN ({LONG}, 7)", [*values, 7]) == [False, True, True, True]
    assert _found(f"d BETWEEN 0.1 AND {LONG}", values) == [True, True, True]
    assert _found(f"d < {LONG}", values) == [True, False, False]
    assert str(covey.parse(f"d = {LONG}")) == f"d = {LONG}"
    assert _found(f"d <=> {LONG}", values) == [False, True, True]
    assert str(covey.parse(f"d <=> {LONG}")) == f"d <=> {LONG}"
    assert _found("d > 9007199254740993", [WIDE, 9007199254740993, 9007199254740994]) == [True, False, True]
    assert _found("d < 9007199254740994", [WIDE, 9007199254740993, 9007199254740994]) == [True, True, False]
    assert _found("d = 9007199254740993.0", [9007199254740993, 9007199254740992]) == [True, False]


def test_python_constants_keep_their_digits_too() -> None:
    assert (attr("d") == LONG) == covey.parse(f"d = {LONG}")
    assert (attr("d") == Decimal("0.1")) == covey.parse("d = 0.1")
    with pytest.raises(FilterError, match="more digits than a double"):
        attr("d").is_in([LONG])
