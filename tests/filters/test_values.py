"""Values: what is normalised to what, what compares, and in which order."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.filters.values import EPOCH, Exact, Kind, compare, instant, kind_of, microseconds, normalise

NUMBERS = st.integers() | st.floats()
SCALARS = st.one_of(NUMBERS, st.text(max_size=3), st.booleans(), st.datetimes(timezones=st.just(UTC)))


@pytest.mark.parametrize(
    ("given_value", "wanted"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (2**53 + 1, 2**53 + 1),
        (1.5, 1.5),
        ("x", "x"),
        (Decimal("5.00"), 5),
        (Decimal("1e30"), 10**30),
        (Decimal("0.1"), Exact(Decimal("0.1"))),
        (Decimal("Infinity"), math.inf),
        (Decimal("-Infinity"), -math.inf),
        (date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
        (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
        (datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2024, 1, 1, tzinfo=UTC)),
        ([1, None, "x"], (1, None, "x")),
        ((), ()),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.array([1, 2]), (1, 2)),
        (np.datetime64("2024-01-01T00:00:00.000001999", "ns"), datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (np.datetime64("2024-01-01"), datetime(2024, 1, 1, tzinfo=UTC)),
        (np.datetime64("NaT"), None),
    ],
)
def test_values_are_normalised(given_value: Any, wanted: Any) -> None:
    found = normalise(given_value)
    assert found == wanted
    assert type(found) is type(wanted)


def test_nan_stays_nan() -> None:
    for value in (math.nan, Decimal("NaN"), np.float64("nan")):
        found = normalise(value)
        assert type(found) is float
        assert math.isnan(found)


@pytest.mark.parametrize(
    "wrong", [b"x", {"a": 1}, {1}, Fraction(1, 3), 1j, timedelta(1), [[b"x"]], np.timedelta64(1, "s")]
)
def test_what_has_no_kind_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="not a value that filters compare"):
        normalise(wrong)


def test_kinds() -> None:
    kinds = {
        True: Kind.BOOLEAN,
        2: Kind.NUMBER,
        0.5: Kind.NUMBER,
        "": Kind.STRING,
        EPOCH: Kind.TIMESTAMP,
        (): Kind.LIST,
    }
    assert all(kind_of(value) is kind for value, kind in kinds.items())


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (2**53 + 1, float(2**53), 1),
        (10**400, math.inf, -1),
        (math.nan, math.inf, 1),
        (math.nan, math.nan, 0),
        (math.nan, 10**400, 1),
        (-0.0, 0.0, 0),
        (-0.0, 0, 0),
        ("\uffff", "\U00010000", -1),
        ("", "a", -1),
        (False, True, -1),
        (True, 1, None),
        ("1", 1, None),
        (EPOCH, 0, None),
    ],
)
def test_comparison(left: Any, right: Any, order: int | None) -> None:
    assert compare(left, right) == order
    assert compare(right, left) == (None if order is None else -order)


@given(st.lists(SCALARS, min_size=3, max_size=3))
def test_values_of_one_kind_are_in_one_total_order(values: list[Any]) -> None:
    for a, b, c in itertools.permutations(values):
        assert compare(a, a) == 0
        if compare(a, b) in (-1, 0) and compare(b, c) in (-1, 0):
            assert compare(a, c) in (-1, 0)


@given(st.text(max_size=4), st.text(max_size=4))
def test_strings_are_in_the_order_of_their_utf_8_bytes(left: str, right: str) -> None:
    a, b = left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    assert compare(left, right) == (a > b) - (a < b)


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_are_their_microseconds(when: datetime) -> None:
    assert instant(microseconds(when)) == when


@given(SCALARS | st.lists(SCALARS, max_size=3))
def test_normalising_twice_changes_nothing(value: Any) -> None:
    once = normalise(value)
    assert repr(normalise(once)) == repr(once)


def test_lists_hold_lists_and_records_to_a_depth() -> None:
    record = {"a": object()}
    assert normalise([[1, [None]], record]) == ((1, (None,)), record)
    nested: list[Any] = []
    for _ in range(32):
        nested = [nested]
    with pytest.raises(TypeError, match="nested more than 32 deep"):
        normalise(nested)
