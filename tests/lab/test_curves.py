from __future__ import annotations

import pytest

from covey.lab.curves import at, bend, crossing, curve


def test_a_curve_is_read_off_the_rows_that_have_the_values() -> None:
    rows = [{"x": 2, "y": 5.0, "of": "a"}, {"x": 1, "y": 3.0, "of": "a"}, {"x": 1, "y": 9.0, "of": "b"}]
    assert curve(rows, "x", "y", of="a") == [(1, 3.0), (2, 5.0)]


def test_between_points_a_curve_is_straight_and_beyond_them_flat() -> None:
    points = [(0.0, 1.0), (0.5, 2.0), (1.0, 6.0)]
    assert [at(points, x) for x in (-1, 0.25, 0.75, 2)] == [1.0, 1.5, 4.0, 6.0]


def test_a_curve_bends_where_it_turns_up_most() -> None:
    assert bend([(0.0, 1.0), (0.5, 1.1), (0.75, 1.2), (1.0, 9.0)]) == 0.75
    assert bend([(0.0, 0.0), (0.05, 0.0), (0.25, 5.0), (1.0, 6.0)]) == 0.05


def test_a_curve_that_rises_at_once_has_no_bend() -> None:
    assert bend([(0.0, 0.0), (0.5, 4.0), (1.0, 5.0)]) is None


def test_a_crossing_is_where_the_first_curve_comes_to_be_above_for_good() -> None:
    flat = [(0.0, 2.0), (1.0, 2.0)]
    assert crossing([(0.0, 1.0), (0.4, 1.0), (0.6, 3.0), (1.0, 4.0)], flat) == pytest.approx(0.5)
    assert crossing([(0.0, 1.0), (0.2, 3.0), (0.4, 1.0), (0.8, 3.0)], flat) == pytest.approx(0.6)


def test_curves_that_end_below_or_are_above_from_the_start_do_not_cross() -> None:
    flat = [(0.0, 2.0), (1.0, 2.0)]
    assert crossing([(0.0, 1.0), (0.5, 3.0), (1.0, 1.0)], flat) is None
    assert crossing([(0.0, 3.0), (0.5, 3.0), (1.0, 4.0)], flat) is None
