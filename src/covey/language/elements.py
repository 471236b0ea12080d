"""Tests of a list's elements as Spark writes them: `exists(tags, x -> x LIKE 'a%')`, `forall(…)`, `arrays_overlap(…)`.

Inside a lambda names are its variable, or fields of it: `x -> x.price > 5 AND x.kind = 'a'` tests one and the same
record. Whatever the variable is called, the filter calls it `x`, so that equal tests are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from covey.errors import FilterError, FilterSyntaxError
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.predicates import ElementTest, In, Predicate
from covey.filters.terms import Path
from covey.filters.values import Scalar
from covey.language.bounds import over_limit
from covey.language.operands import Literal, Operand
from covey.limits import Limits

ELEMENT_FUNCTIONS: Final = frozenset({"EXISTS", "FORALL", "ARRAYS_OVERLAP"})
VARIABLE: Final = "x"


class Reads(Protocol):
    """What a parser of SQL offers here."""

    at: int
    depth: int
    kinds: list[str]
    limits: Limits
    opened: list[int]
    positions: list[int]

    def expression(self) -> Operand: ...  # noqa: D102

    def condition(self, operand: Operand, at: int) -> Filter: ...  # noqa: D102

    def constant(self, where: str) -> Scalar | None: ...  # noqa: D102

    def deepen(self, levels: int) -> None: ...  # noqa: D102

    def close_call(self, at: int) -> None: ...  # noqa: D102

    def word(self, at: int) -> str: ...  # noqa: D102

    def name_at(self, at: int) -> str: ...  # noqa: D102

    def error(self, message: str, at: int) -> FilterSyntaxError: ...  # noqa: D102


def element_call(parser: Reads, at: int) -> Filter | None:
    """The test that a call at this token is; None where it is another one, as `exists(attribute)` is."""
    kinds, word = parser.kinds, parser.word(at)
    if word == "ARRAYS_OVERLAP":
        return _called(parser, at, lambda: _overlap(parser))
    if word == "EXISTS" and not (kinds[at + 2] == "name" and kinds[at + 3] == ","):
        return None
    return _called(parser, at, lambda: _quantified(parser, word))


def _called(parser: Reads, at: int, read: Callable[[], Filter]) -> Filter:
    parser.deepen(1)
    parser.opened.append(parser.positions[at + 1])
    parser.at = at + 2
    try:
        found = read()
    except FilterError as error:
        if isinstance(error, FilterSyntaxError):
            raise
        raise parser.error(str(error), at) from None
    parser.close_call(at)
    return found


def _quantified(parser: Reads, word: str) -> Filter:
    example = f"{word.lower()}(attribute, x -> x = 5)"
    name = _attribute(parser, example)
    _expect(parser, ",", example)
    kinds, positions, at = parser.kinds, parser.positions, parser.at
    arrow = kinds[at : at + 3] == ["name", "sign", "comparison"] and positions[at + 2] == positions[at + 1] + 1
    if not arrow or parser.name_at(at + 1) != "-" or parser.name_at(at + 2) != ">":
        raise parser.error(f"a lambda is expected here; write {example}", at)
    variable = parser.name_at(at)
    if "." in variable:
        raise parser.error("a lambda's variable is a name without dots", at)
    parser.at = at + 3
    condition = parser.condition(parser.expression(), at + 3)
    return element_test(name, condition, variable, every=word == "FORALL")


def element_test(name: str, condition: Filter, variable: str, *, every: bool) -> Filter:
    """A test of elements whose variable is called `x`, if all that names it can be renamed."""
    test = ElementTest(name, condition, every, variable)
    if variable == VARIABLE:
        return test
    renamed = _renamed(condition, len(variable))
    return test if renamed is None else ElementTest(name, renamed, every)


def _renamed(condition: Filter, length: int) -> Filter | None:
    """The condition about `x`; None where some term is more than the element or a field of it."""
    match condition:
        case Predicate():
            if not isinstance(condition.term, Path):
                return None
            return replace(condition, attribute=VARIABLE + condition.attribute[length:])
        case Constant():
            return condition
        case And(parts) | Or(parts):
            inner = [part for part in (_renamed(one, length) for one in parts) if part is not None]
            return type(condition)(tuple(inner)) if len(inner) == len(parts) else None
        case Not(part):
            below = _renamed(part, length)
            return None if below is None else Not(below)
        case Is(part, truth):
            below = _renamed(part, length)
            return None if below is None else Is(below, truth)
    raise TypeError(f"{type(condition).__name__} is not a filter")


def _overlap(parser: Reads) -> Filter:
    """`arrays_overlap(attribute, array(…))`, the two in either order."""
    example = "arrays_overlap(attribute, array('a', 'b'))"
    values = _array(parser)
    if values is None:
        name = _attribute(parser, example)
        _expect(parser, ",", example)
        values = _array(parser)
    else:
        _expect(parser, ",", example)
        name = _attribute(parser, example)
    if values is None:
        raise parser.error(f"a list of constants is expected here; write {example}", parser.at)
    return ElementTest(name, In(VARIABLE, values))


def _array(parser: Reads) -> tuple[Scalar | None, ...] | None:
    at = parser.at
    if parser.word(at) != "ARRAY" or parser.kinds[at + 1] != "(":
        return None
    parser.at = at + 2
    values = [parser.constant("array")]
    while parser.kinds[parser.at] == ",":
        parser.at += 1
        values.append(parser.constant("array"))
    if parser.kinds[parser.at] != ")":
        raise parser.error("the values of array are separated by commas and closed by )", parser.at)
    parser.at += 1
    if len(values) > parser.limits.set_values:
        raise over_limit(f"array has {len(values):,} values", "set_values", parser.limits)
    return tuple(values)


def _attribute(parser: Reads, example: str) -> str:
    at = parser.at
    operand = parser.expression()
    if isinstance(operand, (Filter, Literal)) or not isinstance(operand, str):
        raise parser.error(f"an attribute is expected here; write {example}", at)
    return operand


def _expect(parser: Reads, kind: str, example: str) -> None:
    if parser.kinds[parser.at] != kind:
        raise parser.error(f"{kind} is expected here; write {example}", parser.at)
    parser.at += 1
