"""Filters as Python expressions: `attr("price") <= 1000`, combined with `&`, `|` and `~`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from covey.filters.algebra import Filter, Not
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Like,
    RLike,
    StartsWith,
    SubstringOf,
)


class Attribute:
    """An attribute to be compared; each comparison gives a filter."""

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        return Compare(self.name, "=", value)  # type: ignore[arg-type]

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return Compare(self.name, "!=", value)  # type: ignore[arg-type]

    def __lt__(self, value: Any) -> Filter:
        return Compare(self.name, "<", value)

    def __le__(self, value: Any) -> Filter:
        return Compare(self.name, "<=", value)

    def __gt__(self, value: Any) -> Filter:
        return Compare(self.name, ">", value)

    def __ge__(self, value: Any) -> Filter:
        return Compare(self.name, ">=", value)

    def null_safe_equals(self, value: Any) -> Filter:
        """`attribute <=> value`."""
        return Compare(self.name, "<=>", value)

    def between(self, low: Any, high: Any) -> Filter:
        """Both ends included."""
        return Between(self.name, low, high)

    def is_in(self, values: Iterable[Any]) -> Filter:
        """One of the values."""
        return In(self.name, tuple(values))

    def like(self, pattern: str, escape: str = "\\") -> Filter:
        """SQL's LIKE."""
        return Like(self.name, pattern, escape)

    def rlike(self, pattern: str) -> Filter:
        """A regular expression found somewhere in the value."""
        return RLike(self.name, pattern)

    def startswith(self, text: str) -> Filter:
        """The value starts with the text."""
        return StartsWith(self.name, text)

    def endswith(self, text: str) -> Filter:
        """The value ends with the text."""
        return EndsWith(self.name, text)

    def contains(self, text: str) -> Filter:
        """The value contains the text (superstring)."""
        return Contains(self.name, text)

    def substring_of(self, text: str) -> Filter:
        """The value is a part of the text (substring)."""
        return SubstringOf(self.name, text)

    def has(self, value: Any) -> Filter:
        """The list contains the value."""
        return ArrayContains(self.name, value)

    def is_null(self) -> Filter:
        """The event doesn't define the attribute."""
        return IsNull(self.name)

    def exists(self) -> Filter:
        """The event defines the attribute."""
        return Not(IsNull(self.name))


def attr(name: str) -> Attribute:
    """An attribute by its (dotted) name."""
    return Attribute(name)
