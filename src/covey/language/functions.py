"""The functions that filters may call, as a table. Each turns its arguments into a filter.

A builder takes the call and gives the filter; what doesn't fit is an error at the argument. To add a function: a
builder and a line in `FUNCTIONS`, and a line in `docs/language.md`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final, NamedTuple

from covey.errors import FilterSyntaxError
from covey.filters.algebra import And, Filter, Not
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Contains,
    EndsWith,
    IsNull,
    Like,
    Predicate,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.filters.values import Scalar
from covey.language.literals import CASTS
from covey.language.operands import Literal, Operand, test


class Call(NamedTuple):
    """A function call in a text."""

    text: str
    name: str
    position: int
    arguments: list[Operand]
    positions: list[int]

    def error(self, argument: int, message: str) -> FilterSyntaxError:
        """An error at one argument."""
        return FilterSyntaxError(message.replace("\n", "\\n"), self.text, self.positions[argument])

    def subject(self, argument: int = 0) -> str | Literal:
        """An argument that is an attribute (or a constant, which folds)."""
        operand = self.arguments[argument]
        if isinstance(operand, Filter):
            raise self.error(argument, f"{self.name} takes an attribute here, not a condition")
        return operand

    def attribute(self, argument: int = 0) -> str:
        """An argument that is an attribute."""
        operand = self.arguments[argument]
        if not isinstance(operand, str):
            raise self.error(argument, f"{self.name} takes an attribute here: a name without quotes")
        return operand

    def constant(self, argument: int) -> Scalar | None:
        """An argument that is a constant."""
        operand = self.arguments[argument]
        if isinstance(operand, Literal):
            return operand.value
        hint = f"; a string is written in quotes: '{operand}'" if isinstance(operand, str) else ""
        raise self.error(argument, f"{self.name} takes a constant here{hint}")

    def string(self, argument: int) -> str:
        """An argument that is a string."""
        value = self.constant(argument)
        if not isinstance(value, str):
            raise self.error(argument, f"{self.name} takes a string here, in quotes")
        return value


def _text(predicate: type[Predicate]) -> Callable[[Call], Filter]:
    def build(call: Call) -> Filter:
        return test(predicate, call.subject(), call.string(1))

    return build


def _contains(call: Call) -> Filter:
    first, second = call.arguments
    if isinstance(first, Literal) and isinstance(second, str):
        return test(SubstringOf, second, call.string(0))
    return test(Contains, call.subject(), call.string(1))


def _like(call: Call) -> Filter:
    escape = call.string(2) if len(call.arguments) == 3 else "\\"
    return test(Like, call.subject(), call.string(1), escape)


def _array_contains(call: Call) -> Filter:
    return ArrayContains(call.attribute(), call.constant(1))


def _is_null(call: Call) -> Filter:
    return test(IsNull, call.subject())


def _is_not_null(call: Call) -> Filter:
    return Not(test(IsNull, call.subject()))


def _exists(call: Call) -> Filter:
    return Not(IsNull(call.attribute()))


def _in_rectangle(call: Call) -> Filter:
    x, y = call.attribute(0), call.attribute(1)
    x0, y0, x1, y1 = (call.constant(argument) for argument in range(2, 6))
    return And((Between(x, x0, x1), Between(y, y0, y1)))


class Function(NamedTuple):
    """A function: how it is called, with how many arguments, and what it means."""

    signature: str
    arity: tuple[int, ...]
    build: Callable[[Call], Filter]


FUNCTIONS: Final[dict[str, Function]] = {
    "contains": Function("contains(attribute, 'text')", (2,), _contains),
    "superstring": Function("superstring(attribute, 'text')", (2,), _text(Contains)),
    "startswith": Function("startswith(attribute, 'text')", (2,), _text(StartsWith)),
    "endswith": Function("endswith(attribute, 'text')", (2,), _text(EndsWith)),
    "substring_of": Function("substring_of(attribute, 'text')", (2,), _text(SubstringOf)),
    "substring": Function("substring(attribute, 'text')", (2,), _text(SubstringOf)),
    "like": Function("like(attribute, 'pattern')", (2, 3), _like),
    "rlike": Function("rlike(attribute, 'pattern')", (2,), _text(RLike)),
    "regexp": Function("regexp(attribute, 'pattern')", (2,), _text(RLike)),
    "regexp_like": Function("regexp_like(attribute, 'pattern')", (2,), _text(RLike)),
    "array_contains": Function("array_contains(attribute, constant)", (2,), _array_contains),
    "exists": Function("exists(attribute)", (1,), _exists),
    "isnull": Function("isnull(attribute)", (1,), _is_null),
    "isnotnull": Function("isnotnull(attribute)", (1,), _is_not_null),
    "in_rectangle": Function("in_rectangle(x, y, x0, y0, x1, y1)", (6,), _in_rectangle),
}

_AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max", "mean", "first", "last", "any", "every", "some"})
_REMEDIES: Final = {
    "lower": "write the cases out, or use RLIKE '(?i)…'",
    "upper": "write the cases out, or use RLIKE '(?i)…'",
    "ilike": "use RLIKE '(?i)…'",
    "array": "write a IN (…) to test a value against several constants",
    "isnan": "write attribute = double('NaN')",
    "coalesce": "write (attribute IS NULL OR …), or use the default semantics",
    "date_add": "compute the constant first",
    "current_timestamp": "a filter is about one event, not about the time; compute the constant first",
    "current_date": "a filter is about one event, not about the time; compute the constant first",
    "now": "a filter is about one event, not about the time; compute the constant first",
}


def call_function(call: Call) -> Filter:
    """The filter that a call of a known function means."""
    function = FUNCTIONS[call.name.lower()]
    if len(call.arguments) not in function.arity:
        counts = " or ".join(map(str, function.arity))
        raise FilterSyntaxError(
            f"{call.name} takes {counts} argument{'s' if function.arity != (1,) else ''}, not {len(call.arguments)}; "
            f"write {function.signature}",
            call.text,
            call.position,
        )
    return function.build(call)


def unknown_function(text: str, position: int, name: str) -> FilterSyntaxError:
    """What to write instead of a function that there isn't."""
    lower = name.lower()
    if lower in _AGGREGATES:
        message = f"the aggregate {name} is not supported; a filter is about one event"
    elif lower in _REMEDIES:
        message = f"the function {name} is not supported; {_REMEDIES[lower]}"
    else:
        names = [*FUNCTIONS, *(cast.lower() for cast in CASTS), "cast"]
        near = difflib.get_close_matches(lower[:40], names, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(FUNCTIONS)}"
        message = f"the function {name[:40]} is not known; {remedy}"
    return FilterSyntaxError(message, text, position)
