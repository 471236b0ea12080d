"""Spaces make rectangles of intervals by attribute, and points of events."""

from __future__ import annotations

import pytest

from covey.relations.subsumption import Integer, NegativeSpace, Nominal, Number, Range, Rectangle, RectangleError, Space

SHOP = Space([Number("price", 0, 1000), Nominal("colour", ["red", "blue"]), Integer("size")])


def test_an_unnamed_attribute_is_the_whole_dimension_with_absent_values() -> None:
    rectangle = SHOP.rectangle({"price": (10, 20)})
    assert SHOP.point({"price": 15}) in rectangle
    assert SHOP.point({"price": 15, "colour": "pink", "size": "large"}) in rectangle
    assert SHOP.point({"colour": "red"}) not in rectangle
    assert SHOP.point({"price": "cheap"}) not in rectangle
    assert SHOP.rectangle({}) == SHOP.whole()


def test_intervals_are_written_as_pairs_ranges_or_values() -> None:
    assert (
        SHOP.rectangle({"size": 4})
        == SHOP.rectangle({"size": (4, 4)})
        == SHOP.rectangle({"size": Range(3, 5, True, True)})
    )
    assert SHOP.rectangle({"size": (4, None)}) == SHOP.rectangle({"size": Range(4)})


def test_an_event_outside_of_the_space_has_no_point() -> None:
    assert SHOP.point({"price": 1001}) is None


def test_nested_attributes_are_found_by_their_dotted_name() -> None:
    space = Space([Integer("item.size")])
    assert space.point({"item": {"size": 4}}) == space.point({"item.size": 4}) == (4,)


def test_the_union_of_known_values_others_and_absent_ones_is_needed_to_subsume_an_unconstrained_attribute() -> None:
    space = Space([Nominal("colour", ["red", "blue"], optional=False)])
    negative = NegativeSpace(space)
    for name in ("red", "blue"):
        negative.subscribe(name, space.rectangle({"colour": name}))
    assert negative.is_subsumed(space.rectangle({"colour": ("red", "blue")}))
    assert not negative.is_subsumed(space.whole())
    closed = Space([Nominal("colour", ["red", "blue"], other=False, optional=False)])
    negative = NegativeSpace(closed)
    for name in ("red", "blue"):
        negative.subscribe(name, closed.rectangle({"colour": name}))
    assert negative.is_subsumed(closed.whole())


def test_partly_constrained_subscriptions_subsume_across_dimensions() -> None:
    space = Space([Number("x"), Number("y")])
    negative = NegativeSpace(space)
    negative.subscribe("low", space.rectangle({"x": Range(None, 5)}))
    negative.subscribe("high", space.rectangle({"x": Range(5, None, low_open=True)}))
    assert negative.is_subsumed(space.rectangle({"x": (1, 9), "y": 3}))
    assert not negative.is_subsumed(space.rectangle({"y": 3})), "an event without x meets it, and nothing else"


def test_a_hole_of_one_point_is_seen() -> None:
    space = Space([Number("x", optional=False)])
    negative = NegativeSpace(space)
    negative.subscribe(1, space.rectangle({"x": Range(1, 2, True, True)}))
    negative.subscribe(2, space.rectangle({"x": Range(2, 3, True, True)}))
    assert not negative.is_subsumed(space.rectangle({"x": Range(1, 3, True, True)}))
    assert negative.is_subsumed(space.rectangle({"x": (1.5, 1.75)}))
    negative.subscribe(3, space.rectangle({"x": 2}))
    assert negative.is_subsumed(space.rectangle({"x": Range(1, 3, True, True)}))


def test_the_integer_between_two_large_doubles_is_seen() -> None:
    space = Space([Number("x", optional=False)])
    negative = NegativeSpace(space)
    negative.subscribe(1, space.rectangle({"x": Range(None, 2.0**53)}))
    negative.subscribe(2, space.rectangle({"x": Range(2.0**53 + 2, None)}))
    assert not negative.is_subsumed(space.whole())


def test_rectangles_know_covering_and_intersection() -> None:
    outer, inner, aside = Rectangle((0, 0), (5, 5)), Rectangle((1, 1), (5, 4)), Rectangle((5, 0), (6, 5))
    assert outer.covers(inner)
    assert not inner.covers(outer)
    assert outer.intersects(inner)
    assert not outer.intersects(aside)


def test_mistakes_are_named() -> None:
    with pytest.raises(RectangleError, match="each low must be below its high"):
        Rectangle((1,), (1,))
    with pytest.raises(RectangleError, match="attribute weight is not a dimension"):
        SHOP.rectangle({"weight": 1})
    with pytest.raises(RectangleError, match="no value of the space"):
        SHOP.rectangle({"price": (2000, 3000)})
    with pytest.raises(RectangleError, match="use \\(low, high\\)"):
        SHOP.rectangle({"size": (1, 2, 3)})
    with pytest.raises(RectangleError, match="each of another attribute"):
        Space([Number("a"), Integer("a")])
    with pytest.raises(RectangleError, match="1 to 64"):
        Space([])
