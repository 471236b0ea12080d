"""Cells are in the order of values, and open and closed bounds fall between them exactly."""

from __future__ import annotations

import math
import operator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.filters.values import compare
from covey.relations.subsumption import Instant, Integer, Nominal, Number, Range, RectangleError
from covey.relations.subsumption.dimensions import ANOTHER_KIND, LARGEST_INTEGER, LARGEST_NUMBER, MISSING
from tests.strategies import numbers, timestamps

NUMBER = Number("a")
COMPARISONS = {
    "<": (operator.lt, lambda c: Range(None, c, high_open=True)),
    "<=": (operator.le, lambda c: Range(None, c)),
    ">": (operator.gt, lambda c: Range(c, None, low_open=True)),
    ">=": (operator.ge, lambda c: Range(c, None)),
}


def holds(dimension: Any, wanted: Range, value: Any) -> bool:
    cells = dimension.cells(wanted)
    return cells is not None and cells[0] <= dimension.cell(value) < cells[1]


@given(numbers(), numbers(), st.sampled_from(sorted(COMPARISONS)))
def test_a_number_is_in_the_cells_of_a_comparison_exactly_if_it_meets_it(
    value: int | float, constant: int | float, name: str
) -> None:
    compares, wanted = COMPARISONS[name]
    try:
        inside = holds(NUMBER, wanted(constant), value)
    except RectangleError:
        assert abs(constant) > 2**54, "only large bounds may be refused"
        return
    order = compare(value, constant)
    assert order is not None
    assert inside == compares(order, 0)


@given(st.integers(-(2**64), 2**64), st.one_of(st.integers(-(2**62), 2**62), st.floats(-1e18, 1e18)), st.data())
def test_an_integer_is_in_the_cells_of_a_comparison_exactly_if_it_meets_it(
    value: int, constant: int | float, data: st.DataObject
) -> None:
    compares, wanted = COMPARISONS[data.draw(st.sampled_from(sorted(COMPARISONS)))]
    near = data.draw(st.sampled_from([value, math.floor(constant), math.ceil(constant)]))
    assert holds(Integer("a"), wanted(constant), near) == compares(near, constant)


@given(timestamps(), timestamps(), st.sampled_from(sorted(COMPARISONS)))
def test_an_instant_is_in_the_cells_of_a_comparison_exactly_if_it_meets_it(
    value: datetime, constant: datetime, name: str
) -> None:
    compares, wanted = COMPARISONS[name]
    assert holds(Instant("t"), wanted(constant), value) == compares(value, constant)


def test_an_open_and_a_closed_end_meet_and_two_open_ends_leave_the_point() -> None:
    open_left, closed_right = NUMBER.cells(Range(1, 2, True, True)), NUMBER.cells(Range(2, 3))
    open_right, point = NUMBER.cells(Range(2, 3, True, True)), NUMBER.cells(Range(2, 2))
    assert open_left is not None
    assert closed_right is not None
    assert open_right is not None
    assert open_left[1] == closed_right[0]
    assert (open_left[1], open_right[0]) == point
    assert point[1] - point[0] == 1


@pytest.mark.parametrize("low", [0.0, 1.0, 0.1, -1.0, 2.0**53 - 1])
def test_nothing_lies_between_neighbouring_doubles_below_2_53(low: float) -> None:
    assert NUMBER.cells(Range(low, math.nextafter(low, math.inf), True, True)) is None


def test_an_integer_lies_between_neighbouring_doubles_from_2_53_on() -> None:
    between = Range(2.0**53, 2.0**53 + 2, True, True)
    assert NUMBER.cells(between) == NUMBER.cells(Range(2**53 + 1, 2**53 + 1))
    assert holds(NUMBER, between, 2**53 + 1)
    assert holds(NUMBER, Range(-(2**53) - 2, -(2**53), True, True), -(2**53) - 1)


def test_a_bound_inside_a_cell_is_refused_and_one_beside_a_double_is_not() -> None:
    with pytest.raises(RectangleError, match="use an Integer dimension"):
        NUMBER.cells(Range(2**60 + 3, None))
    assert NUMBER.cells(Range(2**60 + 1, None)) == NUMBER.cells(Range(2**60, None, low_open=True))
    assert NUMBER.cells(Range(None, 2**60 - 1)) == NUMBER.cells(Range(None, 2**60, high_open=True))
    with pytest.raises(RectangleError, match="beyond 2\\^512"):
        NUMBER.cells(Range(1e300, None))
    with pytest.raises(RectangleError, match="beyond 2\\^62"):
        Integer("a").cells(Range(2**63, None))


def test_zero_has_one_cell_and_nan_is_above_infinity() -> None:
    assert NUMBER.cell(-0.0) == NUMBER.cell(0.0) == NUMBER.cell(0)
    ranks = [-math.inf, -1e300, -LARGEST_NUMBER, -5e-324, 0, 5e-324, 1, LARGEST_NUMBER, 10**300, math.inf, math.nan]
    cells = [NUMBER.cell(value) for value in ranks]
    assert cells == sorted(set(cells))  # type: ignore[type-var]


def test_cells_of_numbers_fit_into_64_bits_with_those_of_absent_values() -> None:
    for dimension in (NUMBER, Integer("a"), Instant("a")):
        assert -(2**63) < dimension.whole()[0] < dimension.whole()[1] < 2**63 - 1


def test_absent_values_have_two_cells_below_all_values() -> None:
    for dimension in (NUMBER, Integer("a", 0, 9), Nominal("a", [1, 2]), Instant("a")):
        first = dimension.values()[0]
        assert dimension.cell(None) == dimension.absent(MISSING) == first - 2
        assert dimension.cell("text") == dimension.absent(ANOTHER_KIND) == first - 1
        assert dimension.whole() == (first - 2, dimension.values()[1])


def test_a_mandatory_attribute_has_no_cells_for_absent_values() -> None:
    number = Number("a", 0, 1, optional=False)
    assert number.whole() == number.values()
    assert number.cell(None) is None
    assert number.cell("text") is None


def test_bounds_cut_intervals_and_values() -> None:
    number = Number("a", 0, 10)
    assert number.cells(Range(-5, 3)) == number.cells(Range(0, 3))
    assert number.cells(Range(11, None)) is None
    assert number.cell(10.5) is None
    assert number.bounds() == (0.0, 10.0)
    assert Number("a", 0).bounds() is None
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert Instant("t", moment, moment + timedelta(seconds=1)).values() == (1704067200000000, 1704067201000001)


def test_integers_beyond_the_largest_bound_share_a_cell_that_every_unbounded_interval_has() -> None:
    integer = Integer("a")
    assert integer.cell(2**63) == integer.cell(10**30) == LARGEST_INTEGER + 1
    assert holds(integer, Range(7, None), 10**30)
    assert holds(integer, Range(None, 7), -(10**30))
    assert holds(integer, Range(-math.inf, math.inf), 10**30)


def test_an_integer_dimension_refuses_fractions() -> None:
    for value in (0.5, math.nan, math.inf):
        with pytest.raises(RectangleError, match="use a Number dimension"):
            Integer("a").cell(value)
    assert Integer("a").cell(3.0) == 3
    assert Integer("a").cells(Range(0.5, 1, high_open=True)) is None


def test_nominal_values_are_in_the_order_given_and_others_share_the_last_cell() -> None:
    colour = Nominal("colour", ["red", "blue", "green"])
    assert [colour.cell(value) for value in ("red", "blue", "green", "pink")] == [0, 1, 2, 3]
    assert colour.cells(Range("blue", "green")) == (1, 3)
    assert colour.cells(Range("blue")) == (1, 4)
    assert colour.cells(Range("green", "red")) is None
    assert Nominal("colour", ["red"], other=False).cell("pink") is None
    with pytest.raises(RectangleError, match="not among the known values"):
        colour.cells(Range("pink"))


def test_dimensions_that_cannot_be_are_refused() -> None:
    for values in ([], ["a", "a"], ["a", 1]):
        with pytest.raises(RectangleError, match="distinct values of one kind"):
            Nominal("a", values)  # type: ignore[arg-type]
    with pytest.raises(RectangleError, match="more than"):
        Nominal("a", range(Nominal.MOST_VALUES + 1))
    with pytest.raises(RectangleError, match="no value lies between"):
        Number("a", 3, 2)
    with pytest.raises(RectangleError, match="is not a number"):
        NUMBER.cells(Range("x"))
