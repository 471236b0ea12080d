"""Variable orders: which tests a diagram asks first.

`attribute`  tests on one attribute together, attributes by name.
`frequency`  by how many subscriptions use a test, rarest on top.
`random`     shuffled by a seed.
`learned`    attribute by attribute, from history (Li, Hou and Jacobsen, section 3.2; `history/asked.py`): what many
             subscriptions have in common stands at the bottom, what occurs together close to each other.

In all but `random`, tests of one attribute are sorted by constant, so that neighbouring thresholds are neighbours.

`among` is for tests that come one by one, to an order that is there. The paper orders attributes first and variables of
one attribute within it, so a new test goes to those of its attribute, by its constant: two subscriptions that differ in
one test then go on alike below it (figure 5), whichever comes first.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from covey.errors import CoveyError
from covey.filters.predicates import Compare, In
from covey.filters.two_valued import Test, attribute_of, predicate_of
from covey.filters.values import kind_of, order_key
from covey.history.asked import History, learned_attributes

OrderName: TypeAlias = Literal["attribute", "frequency", "random", "learned"]
ORDERS: tuple[OrderName, ...] = get_args(OrderName)


def arrange(tests: Sequence[Test], order: OrderName, history: History | None = None, *, seed: int = 0) -> list[Test]:
    """The `tests` from top to bottom.

    `order`: one of `ORDERS`.
    `history`: what `frequency` and `learned` go by.
    `seed`: for `random`.
    """
    known = history or History()
    match order:
        case "attribute":
            return sorted(tests, key=lambda test: (attribute_of(test), _within_attribute(test)))
        case "frequency":
            return sorted(tests, key=lambda test: (known.tests[test], attribute_of(test), _within_attribute(test)))
        case "random":
            shuffled = sorted(tests, key=lambda test: (attribute_of(test), _within_attribute(test)))
            random.Random(seed).shuffle(shuffled)
            return shuffled
        case "learned":
            place = {name: at for at, name in enumerate(learned_attributes(map(attribute_of, tests), known))}
            return sorted(tests, key=lambda test: (place[attribute_of(test)], _within_attribute(test)))
    raise CoveyError(f"order {order!r} is not known; use one of {', '.join(ORDERS)}")


def among(standing: Sequence[Test], new: Sequence[Test], place: Mapping[str, int]) -> list[Test]:
    """The standing tests from top to bottom in their order, with new ones among them.

    A new test goes to the standing ones of its attribute; where there are none, above the attributes that `place` has
    further down; where it has no place, to the bottom, in the order of `new`.
    """
    spans: dict[str, list[int]] = {}
    for at, test in enumerate(standing):
        spans.setdefault(attribute_of(test), []).append(at)
    gaps: dict[int, list[tuple[tuple[Any, ...], Test]]] = {}
    for number, test in enumerate(new):
        gap, rank = _gap(test, number, standing, spans, place)
        gaps.setdefault(gap, []).append((rank, test))
    merged: list[Test] = []
    for at in range(len(standing) + 1):
        if at in gaps:
            merged += [test for _, test in sorted(gaps[at], key=lambda pair: pair[0])]
        merged += standing[at : at + 1]
    return merged


def _gap(
    test: Test, number: int, standing: Sequence[Test], spans: Mapping[str, list[int]], place: Mapping[str, int]
) -> tuple[int, tuple[Any, ...]]:
    """Before which standing test a new one goes, and by what it is sorted among others that go there: first what
    belongs to the attribute above, then attributes between, then what belongs to the attribute below."""
    name, within = attribute_of(test), _within_attribute(test)
    if name in spans:
        for at in spans[name]:
            if within < _within_attribute(standing[at]):
                return at, (2, 0, within)
        return spans[name][-1] + 1, (0, 0, within)
    if name in place:
        lower = (at for other, span in spans.items() if place.get(other, -1) > place[name] for at in span)
        return min(lower, default=len(standing)), (1, place[name], within)
    return len(standing), (3, number)


def _within_attribute(test: Test) -> tuple[str, tuple[int, object], str, str]:
    predicate = predicate_of(test)
    operator = type(test).__name__ + type(predicate).__name__
    match predicate:
        case Compare(_, sign, value) if value is not None:
            return kind_of(value).value, order_key(value), sign, operator
        case In(_, (value, *_)) if value is not None:
            return kind_of(value).value, order_key(value), operator, str(predicate)
    return "", (0, 0), operator, str(predicate)
