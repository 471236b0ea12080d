"""Normal forms of the plainest filters, read off them without making a value set.

A table of subscriptions is mostly conjunctions of tests on different attributes with constants that few digits write,
and mostly these tests are in normal form as they stand: what is left to do is to sort them by attribute. Making value
sets and printing them again finds that out too, at ten times the cost. Nothing is decided here that isn't sure: what
isn't of these forms goes the general way (`conjunctions.py`), which tests hold against this one.

Why a test with such constants is its own normal form: bounds of numbers lie between two neighbouring doubles and are
printed by the one that needs fewer digits (`cuts.py`). Two numbers of at most twelve digits differ by more than
neighbours do, so the neighbour of one needs more. A text's neighbour below it ends with a zero character.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from covey.filters.algebra import And, Filter, Not, Or
from covey.filters.predicates import Between, Compare, In
from covey.filters.terms import is_presence
from covey.filters.values import Scalar

DIGITS: Final = 12
"""Characters of a number that is surely printed as it stands."""
_LARGEST: Final = 10 ** (DIGITS - 1)
_ORDERS: Final = frozenset(("<", "<=", ">", ">="))


def plain_conjunction(condition: Filter) -> Filter | None:
    """The normal form of a conjunction under no schema and no defaults; None where that isn't plain to see."""
    if type(condition) is not And:
        return condition if _is_plain(condition) else None
    parts = condition.parts
    names = []
    for part in parts:
        if not _is_plain(part):
            return None
        names.append(part.attribute)  # type: ignore[attr-defined]
    ordered = sorted(names)
    for before, name in pairwise(ordered):
        if before == name:
            return None
    if ordered == names:
        return condition
    by_name = dict(zip(names, parts, strict=True))
    return And(tuple([by_name[name] for name in ordered]))


def is_plain_disjunction(condition: Filter) -> bool:
    """Whether a filter is surely no conjunction: two alternatives, each of which tests an attribute that the other
    doesn't. Then neither covers the other, and more than one attribute differs."""
    if type(condition) is not Or or len(condition.parts) != 2:
        return False
    left, right = map(_tested, condition.parts)
    return left is not None and right is not None and not left <= right and not right <= left


def _tested(condition: Filter) -> set[str] | None:
    """The attributes of a conjunction of plain tests, negated ones too, on different attributes; None for others."""
    parts = condition.parts if type(condition) is And else (condition,)
    names = set()
    for part in parts:
        test = part.part if type(part) is Not else part
        if not _is_plain(test):
            return None
        names.add(test.attribute)  # type: ignore[attr-defined]
    return names if len(names) == len(parts) else None


def _is_plain(test: Filter) -> bool:
    """Whether a test is its own normal form."""
    kind = type(test)
    if kind is Compare:
        assert isinstance(test, Compare)
        value = test.value
        if test.operator == "=":
            plain = _is_text(value) if type(value) is str else _is_short(value)
        else:
            plain = test.operator in _ORDERS and _is_short(value)
    elif kind is Between:
        assert isinstance(test, Between)
        low, high = test.low, test.high
        plain = _is_short(low) and _is_short(high) and low < high  # type: ignore[operator]
    elif kind is In:
        assert isinstance(test, In)
        plain = _are_plain(test.values)
    else:
        return False
    return plain and not is_presence(test.attribute)


def _are_plain(values: tuple[Scalar | None, ...]) -> bool:
    """Whether these are the constants of a list as it is printed: several, ascending."""
    fits = _is_text if type(values[0]) is str else _is_short
    if len(values) < 2 or not all(map(fits, values)):
        return False
    return all(one < other for one, other in pairwise(values))  # type: ignore[operator]


def _is_text(value: Scalar | None) -> bool:
    return type(value) is str and not value.endswith("\0")


def _is_short(value: Scalar | None) -> bool:
    if type(value) is int:
        return -_LARGEST < value < _LARGEST
    return type(value) is float and len(repr(value)) <= DIGITS and not value.is_integer() and value - value == 0
