"""The functions that filters may call, as a table. Each turns its arguments into a filter.

A builder takes the call and gives the filter; what doesn't fit is an error at the argument. Tests on text are functions
by themselves. To add another: a builder and a line in `FUNCTIONS`, and a line in `docs/language.md`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final, NamedTuple

from covey.errors import FilterSyntaxError
from covey.filters.algebra import And, Filter, Not
from covey.filters.predicates import (
    TEXT_TESTS,
    ArrayContains,
    Between,
    Compare,
    Contains,
    IsNull,
    SubstringOf,
    TextTest,
)
from covey.filters.term_functions import NAMED
from covey.filters.terms import Term, event_text, known_term, present
from covey.filters.values import Scalar
from covey.language.literals import CASTS
from covey.language.operands import Literal, Operand, Subject, test


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

    def subject(self, argument: int = 0) -> Subject:
        """An argument that is a term (or a constant, which folds)."""
        operand = self.arguments[argument]
        if isinstance(operand, Filter):
            raise self.error(argument, f"{self.name} takes an attribute here, not a condition")
        return operand

    def attribute(self, argument: int = 0) -> str:
        """An argument that is an attribute or another term; its name."""
        operand = self.arguments[argument]
        if isinstance(operand, Term):
            return known_term(operand).name
        if not isinstance(operand, str):
            raise self.error(argument, f"{self.name} takes an attribute here: a name without quotes")
        return operand

    def constant(self, argument: int) -> Scalar | None:
        """An argument that is a constant."""
        operand = self.arguments[argument]
        if isinstance(operand, Literal):
            return operand.scalar
        hint = f"; a string is written in quotes: '{operand}'" if isinstance(operand, str) else ""
        raise self.error(argument, f"{self.name} takes a constant here{hint}")

    def string(self, argument: int) -> str:
        """An argument that is a string."""
        value = self.constant(argument)
        if not isinstance(value, str):
            raise self.error(argument, f"{self.name} takes a string here, in quotes")
        return value


def _text(kind: type[TextTest], name: str) -> Function:
    """The function that a test on text is: its term first, then its texts."""
    fields = kind.fields()
    needed = [f"'{field}'" for field, default in fields.items() if default is None]

    def build(call: Call) -> Filter:
        return test(kind, call.subject(), *map(call.string, range(1, len(call.arguments))))

    arity = tuple(range(1 + len(needed), 2 + len(fields)))
    return Function(f"{name}({', '.join(['attribute', *needed])})", arity, build, kind.bounded)


def _contains(call: Call) -> Filter:
    first, second = call.arguments
    if isinstance(first, Literal) and isinstance(second, (str, Term)):
        return test(SubstringOf, second, call.string(0))
    return test(Contains, call.subject(), call.string(1))


def _array_contains(call: Call) -> Filter:
    return ArrayContains(call.attribute(), call.constant(1))


def _is_null(call: Call) -> Filter:
    return test(IsNull, call.subject())


def _is_not_null(call: Call) -> Filter:
    return Not(test(IsNull, call.subject()))


def _exists(call: Call) -> Filter:
    return Not(IsNull(call.attribute()))


def _is_present(call: Call) -> Term:
    return present(call.attribute())


def _is_missing(call: Call) -> Filter:
    return Compare(present(call.attribute()).name, "=", False)


def _in_rectangle(call: Call) -> Filter:
    x, y = call.attribute(0), call.attribute(1)
    x0, y0, x1, y1 = (call.constant(argument) for argument in range(2, 6))
    return And((Between(x, x0, x1), Between(y, y0, y1)))


class Function(NamedTuple):
    """A function: how it is called, with how many arguments, and what it means."""

    signature: str
    arity: tuple[int, ...]
    build: Callable[[Call], Filter | Term]
    takes_patterns: bool = False
    """Whether the limit on the length of patterns is about its texts."""


FUNCTIONS: Final[dict[str, Function]] = {
    "contains": Function("contains(attribute, 'text')", (2,), _contains),
    **{name: _text(kind, name) for name, kind in TEXT_TESTS.items() if name != "contains"},
    "array_contains": Function("array_contains(attribute, constant)", (2,), _array_contains),
    "exists": Function("exists(attribute)", (1,), _exists),
    "is_present": Function("is_present(attribute)", (1,), _is_present),
    "is_missing": Function("is_missing(attribute)", (1,), _is_missing),
    "event_text": Function("event_text()", (0,), lambda _: event_text()),
    "isnull": Function("isnull(attribute)", (1,), _is_null),
    "isnotnull": Function("isnotnull(attribute)", (1,), _is_not_null),
    "in_rectangle": Function("in_rectangle(x, y, x0, y0, x1, y1)", (6,), _in_rectangle),
}

_AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max", "mean", "first", "last", "any", "every", "some"})
_CLOCK: Final = "a filter is about one event, not about the time; compute the constant first"
_CHANCE: Final = "a filter gives one answer for one event, and this one gives another each time"
_CONTEXT: Final = "a filter is about the event, not about who matches it or where"
_CODE: Final = "filters can't run code"
_REFUSED: Final = {
    **dict.fromkeys(
        ("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "current_time", "unix_timestamp"),
        _CLOCK,
    ),
    **dict.fromkeys(("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle"), _CHANCE),
    **dict.fromkeys(
        (
            "current_user", "user", "session_user", "current_database", "current_schema", "current_catalog", "version",
            "current_timezone", "input_file_name", "input_file_block_start", "input_file_block_length",
            "spark_partition_id", "monotonically_increasing_id",
        ),
        _CONTEXT,
    ),
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), _CODE),
}  # fmt: skip
"""Functions that no filter may call, each with its reason."""
_REMEDIES: Final = {
    "array": "write a IN (…) to test a value against several constants",
    "isnan": "write attribute = double('NaN')",
    "date_add": "write CAST(attribute AS DATE) + days",
    "datediff": "write CAST(a AS DATE) - CAST(b AS DATE), and compare it with an interval",
}


def function_named(name: str) -> Function | None:
    """A function by its name in any case; None where there is none."""
    lower = name.lower()
    known = FUNCTIONS.get(lower)
    if known is None and lower in TEXT_TESTS:
        return _text(TEXT_TESTS[lower], lower)
    return known


def call_function(function: Function, call: Call) -> Filter | Term:
    """The filter or term that a call of a function means."""
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
    elif lower in _REFUSED:
        message = f"the function {name} is refused; {_REFUSED[lower]}"
    elif lower in _REMEDIES:
        message = f"the function {name} is not supported; {_REMEDIES[lower]}"
    else:
        names = [*FUNCTIONS, *NAMED, *(cast.lower() for cast in CASTS), "cast", "try_cast", "if"]
        near = difflib.get_close_matches(lower[:40], names, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join((*FUNCTIONS, *NAMED))}"
        message = f"the function {name[:40]} is not known; {remedy}"
    return FilterSyntaxError(message, text, position)
