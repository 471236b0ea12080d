"""Filters as SQL text, the inverse of `covey.language.parse`: parsing the text gives the same filter again.

What makes that exact: constants are printed so that their type survives (`1` and `1.0`, `-0.0`, `double('NaN')`),
strings and names are quoted wherever the lexer would read them as something else, and parentheses stand only where
precedence needs them. The text is also Spark SQL, apart from the functions and constants that Spark doesn't have
(`docs/language.md` lists them). Printing keeps its own stack: a filter built in Python can be deeper than Python's.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from functools import lru_cache

from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.predicates import ArrayContains, Between, Compare, ElementTest, In, IsNull, Predicate, TextTest
from covey.filters.quoting import constant_to_sql, name_to_sql, string_to_sql
from covey.filters.terms import ADDITIVE, Call, Fixed, enclosed, term_of
from covey.filters.values import is_double

_KEPT_NAMES = 4_096
_TRUTHS = {True: "TRUE", False: "FALSE", None: "NULL"}
_TESTS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


def to_sql(condition: Filter) -> str:
    """The filter as a SQL WHERE condition."""
    pieces: list[str] = []
    stack: list[str | Filter] = [condition]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif isinstance(item, Not) and not _takes_not(item.part):
            stack.extend(reversed(_enclosed(item.part, And, Or)))
            pieces.append("NOT ")
        else:
            stack.extend(reversed(_pieces(item)))
    return "".join(pieces)


def _enclosed(condition: Filter, *kinds: type[Filter]) -> list[str | Filter]:
    """A filter as a part of another: in parentheses where it is of a kind that binds looser."""
    return ["(", condition, ")"] if isinstance(condition, kinds) else [condition]


def _pieces(condition: Filter) -> list[str | Filter]:
    """A filter as text and the filters within it, in order."""
    negated = isinstance(condition, Not)
    inner = condition.part if isinstance(condition, Not) else condition
    match inner:
        case Constant(value):
            return [_TRUTHS[value]]
        case And(parts):
            return _joined(parts, " AND ", Or)
        case Or(parts):
            return _joined(parts, " OR ")
        case Is(part, truth):
            return ["(", part, f") IS {'NOT ' if negated else ''}{_TESTS[truth]}"]
        case Predicate():
            return [_predicate(inner, "NOT " if negated else "")]
    raise TypeError(f"{type(inner).__name__} is not a filter")


def _takes_not(condition: Filter) -> bool:
    """Whether NOT stands inside, as in `a NOT IN (1)`."""
    return isinstance(condition, (IsNull, In, Between, Is)) or (isinstance(condition, TextTest) and condition.infix)


def _joined(parts: tuple[Filter, ...], operator: str, *enclosed: type[Filter]) -> list[str | Filter]:
    pieces: list[str | Filter] = []
    for part in parts:
        if pieces:
            pieces.append(operator)
        pieces.extend(_enclosed(part, *enclosed))
    return pieces


@lru_cache(maxsize=_KEPT_NAMES)
def _subject(name: str) -> str:
    """The SQL of the term of a name; tables of subscriptions name few."""
    return term_of(name).sql


def _predicate(test: Predicate, negation: str) -> str:
    subject = _subject(test.attribute)
    match test:
        case Compare():
            if test.value == 0 and subject.startswith("compare("):
                return _compared(test, subject)
            return f"{subject} {test.operator} {constant_to_sql(test.value)}"
        case IsNull():
            return f"{subject} IS {negation}NULL"
        case In(_, values):
            return f"{subject} {negation}IN ({', '.join(map(constant_to_sql, values))})"
        case Between(_, low, high):
            return f"{subject} {negation}BETWEEN {constant_to_sql(low)} AND {constant_to_sql(high)}"
        case ArrayContains(_, value):
            return f"array_contains({subject}, {constant_to_sql(value)})"
        case ElementTest(_, condition, every, variable):
            function = "forall" if every else "exists"
            return f"{function}({subject}, {name_to_sql(variable)} -> {to_sql(condition)})"
        case TextTest():
            return _text_test(test, subject, negation)
    raise TypeError(f"{type(test).__name__} has no SQL; say it in printing")


def _compared(test: Compare, subject: str) -> str:
    """The comparison of two terms, as it is written: `a < b` tests whether `compare(a, b)` is below 0."""
    term = test.term
    plain = f"{subject} {test.operator} {constant_to_sql(test.value)}"
    if type(test.value) is not int or not isinstance(term, Call):
        return plain
    left, right = term.arguments
    constant = right.constant if isinstance(right, Fixed) else None
    only_in_terms = isinstance(constant, timedelta) or (isinstance(constant, Decimal) and not is_double(constant))
    if (isinstance(right, Fixed) or test.operator == "<=>") and not only_in_terms:
        return plain  # otherwise it would read as a test with a constant, or as one that looks at both sides
    return f"{enclosed(left, ADDITIVE)} {test.operator} {enclosed(right, ADDITIVE)}"


def _text_test(test: TextTest, subject: str, negation: str) -> str:
    texts = test.texts()
    if not test.infix:
        return f"{test.name}({', '.join([subject, *map(string_to_sql, texts.values())])})"
    (_, first), *more = texts.items()
    rest = "".join(f" {name.upper()} {string_to_sql(text)}" for name, text in more)
    return f"{subject} {negation}{test.name.upper()} {string_to_sql(first)}{rest}"
