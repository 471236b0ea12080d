"""From a filter to a Boolean function over two-valued tests.

A diagram has one Boolean variable for each *test*. A test is a predicate ("`a < 5` is true") or, as `Is(p, False)`,
"predicate `p` is false". Both are plain yes-or-no questions about an event, also where the predicate itself is
unknown; that is how three-valued logic fits into a two-valued diagram:

`sql`      "the filter is true" and "the filter is false" are two functions, and negation swaps them. Pushed to the
           leaves, a negated comparison becomes its complement (`NOT a < 5` is true exactly where `a >= 5` is: both
           are unknown where `a` is missing or of another kind), so that it shares a variable with filters that say
           `a >= 5` themselves. A predicate without a complement in the language (LIKE, IN, array_contains) becomes
           the test `Is(p, False)`. IS NULL is never unknown: its negation is the complement of its variable.
           A missing attribute makes each of its tests but IS NULL false, which is Li, Hou and Jacobsen's "default
           value 0" (section 3.3).
`simple`, `strict`, `default`
           Two-valued: negation is complement, and `a != c` is the complement of `a = c`, as the interpreter has it.
           What `strict` asks beyond that is kept beside the diagram (`snapshot.py`), what `default` asks happens to
           the event before.

Tests are canonical, so that one question has one variable: `1.0` is `1`, IN lists are sorted and without
duplicates, an IN of one value is an equality, BETWEEN is its two comparisons (the paper's abbreviation), `a <=> 5`
asks whether `a = 5` is true, and a comparison with NULL is no test at all.

The functions are of any type that has `&`, `|` and `~`: decision diagrams here, sets of worlds in tests. Cost: one
operation for each operator of the filter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.predicates import ArrayContains, Between, Compare, In, IsNull, Operator, Predicate
from covey.filters.semantics import Semantics
from covey.filters.values import Scalar, order_key

Test: TypeAlias = Predicate | Is
"""A predicate, or `Is(predicate, False)`."""

COMPLEMENT: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", "<=": ">", ">": "<="}


class Boolean(Protocol):
    """Anything with the three operations."""

    def __and__(self, other: Self, /) -> Self: ...

    def __or__(self, other: Self, /) -> Self: ...

    def __invert__(self) -> Self: ...


Function = TypeVar("Function", bound=Boolean)


def predicate_of(test: Test) -> Predicate:
    """The predicate that a `test` asks about."""
    if isinstance(test, Predicate):
        return test
    if isinstance(test.part, Predicate) and test.truth is False:
        return test.part
    raise TypeError("a test is a predicate, or Is(predicate, False)")


def attribute_of(test: Test) -> str:
    """The attribute that a `test` asks about."""
    return predicate_of(test).attribute


def canonical_constant(value: Scalar) -> Scalar:
    """The one constant among those that compare equal."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class Lowering(Generic[Function]):
    """Turns filters into functions of one type, under one semantics."""

    def __init__(
        self,
        semantics: Semantics,
        test: Callable[[Test], Function],
        true: Function,
        false: Function,
        *,
        variable_for_inequality: bool = False,
    ) -> None:
        """Functions of one type: `test` gives that of a test, `true` and `false` are the constant ones.

        `semantics` says what filters mean. `variable_for_inequality` keeps `!=` as a variable of its own under
        two-valued semantics too, as in Campailla et al.'s count of 208 atoms; exact only if no event lacks the
        attribute or has another kind there.
        """
        self._three_valued = semantics == "sql"
        self._test = test
        self._true = true
        self._false = false
        self._variable_for_inequality = variable_for_inequality

    def holds(self, condition: Filter) -> Function:
        """Where the filter `condition` is true."""
        match condition:
            case Predicate():
                return self._predicate_holds(condition)
            case And(parts):
                result = self.holds(parts[0])
                for part in parts[1:]:
                    result = result & self.holds(part)
                return result
            case Or(parts):
                result = self.holds(parts[0])
                for part in parts[1:]:
                    result = result | self.holds(part)
                return result
            case Not(part):
                return self.fails(part)
            case Constant(value):
                return self._true if value else self._false
            case Is(part, wanted):
                return self._is(part, wanted)
        raise TypeError(f"{type(condition).__name__} is not a filter")

    def fails(self, condition: Filter) -> Function:
        """Where the filter `condition` is false: under two-valued semantics, wherever it isn't true."""
        if not self._three_valued:
            return ~self.holds(condition)
        match condition:
            case Predicate():
                return self._predicate_fails(condition)
            case And(parts):
                result = self.fails(parts[0])
                for part in parts[1:]:
                    result = result | self.fails(part)
                return result
            case Or(parts):
                result = self.fails(parts[0])
                for part in parts[1:]:
                    result = result & self.fails(part)
                return result
            case Not(part):
                return self.holds(part)
            case Constant(value):
                return self._true if value is False else self._false
            case Is(part, wanted):
                return ~self._is(part, wanted)
        raise TypeError(f"{type(condition).__name__} is not a filter")

    def _is(self, part: Filter, wanted: bool | None) -> Function:
        if wanted is True:
            return self.holds(part)
        if wanted is False:
            return self.fails(part)
        return ~(self.holds(part) | self.fails(part))

    def _predicate_holds(self, predicate: Predicate) -> Function:
        match predicate:
            case Compare(attribute, "<=>", None):
                return self._test(IsNull(attribute))
            case Compare(attribute, "<=>", value):
                return self._comparison(attribute, "=", value)
            case Compare(attribute, "!=", value) if not self._three_valued and not self._variable_for_inequality:
                return ~self._comparison(attribute, "=", value)
            case Compare(attribute, operator, value):
                if value is not None and canonical_constant(value) is value:
                    return self._test(predicate)
                return self._comparison(attribute, operator, value)
            case Between(attribute, low, high):
                return self._comparison(attribute, ">=", low) & self._comparison(attribute, "<=", high)
            case In():
                return self._membership(predicate, "=")
            case ArrayContains(attribute, value):
                return self._false if value is None else self._test(_array_contains(attribute, value))
        return self._test(predicate)

    def _predicate_fails(self, predicate: Predicate) -> Function:
        match predicate:
            case IsNull() | Compare(_, "<=>", _):
                return ~self._predicate_holds(predicate)
            case Compare(attribute, operator, value):
                return self._comparison(attribute, COMPLEMENT[operator], value)
            case Between(attribute, low, high):
                return self._comparison(attribute, "<", low) | self._comparison(attribute, ">", high)
            case In(_, values):
                return self._false if None in values else self._membership(predicate, "!=")
            case ArrayContains(attribute, value):
                return self._false if value is None else self._test(Is(_array_contains(attribute, value), False))
        return self._test(Is(predicate, False))

    def _comparison(self, attribute: str, operator: Operator, value: Scalar | None) -> Function:
        if value is None:
            return self._false
        return self._test(Compare(attribute, operator, canonical_constant(value)))

    def _membership(self, predicate: In, operator: Operator) -> Function:
        distinct = {order_key(value): canonical_constant(value) for value in predicate.values if value is not None}
        if not distinct:
            return self._false
        values = tuple(distinct[key] for key in sorted(distinct))
        if len(values) == 1:
            return self._comparison(predicate.attribute, operator, values[0])
        listed = In(predicate.attribute, values)
        return self._test(listed if operator == "=" else Is(listed, False))


def _array_contains(attribute: str, value: Scalar) -> ArrayContains:
    return ArrayContains(attribute, canonical_constant(value))
