"""Filters to flat arrays: the form in which a million subscriptions are compiled at once.

A subscription becomes a run of tokens in postfix order. A token >= 0 pushes a leaf; a negative one is an operator
(AND and OR take two operands) or a constant. A leaf is one comparison of one attribute with one constant, or one
pattern. BETWEEN and IN are written out as AND and OR of leaves, which SQL's logic allows without changing a value. An
IN with very many constants is one leaf instead: its truth is a term, a derived attribute that is looked up in a set.

Numbers, timestamps and booleans are kept as a pair (nearest double, what it misses by), which orders exactly as the
values do: rounding is monotone, and the remainder decides between values that round alike. So 2^53 + 1 isn't 2^53,
and NaN is the pair just above infinity.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from covey.errors import LimitError
from covey.filters import (
    And,
    ArrayContains,
    Between,
    Compare,
    Constant,
    ElementTest,
    Filter,
    In,
    Is,
    IsNull,
    Not,
    Or,
    Predicate,
)
from covey.filters.conditional import truth_term
from covey.filters.patterns import Wildcards
from covey.filters.predicates import TextTest, plainest
from covey.filters.terms import comparison, fixed, known_term, term_of
from covey.filters.values import Exact, Scalar, microseconds
from covey.kernels.opcodes import (
    AND,
    BOOLEAN,
    EQ,
    FALSE,
    GE,
    GT,
    IS_FALSE,
    IS_NULL,
    IS_TRUE,
    IS_UNKNOWN,
    LE,
    LIST,
    LT,
    NOT,
    NULL_SAFE_EQ,
    NUMBER,
    OR,
    PATTERN,
    STRING,
    TIMESTAMP,
    TRUE,
    UNKNOWN,
)
from covey.limits import DEFAULT_LIMITS, Limits

_OPERATORS = {"=": EQ, "<": LT, "<=": LE, ">": GT, ">=": GE, "<=>": NULL_SAFE_EQ}

FEW_VALUES = 4_096
"""Constants of an IN list that are compared one by one; a longer list is a term."""

_LARGEST_REMAINDER = 2**63 - 1
"""Integers beyond some 2^115 that round to the same double aren't told apart any further than this."""
_EVERY_INTEGER = 2**53
"""Below this every integer is a double."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Subscriptions in postfix form. Row i's tokens are `tokens[starts[i]:starts[i + 1]]`."""

    names: list[str]
    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    leaf_attribute: NDArray[np.int32]
    leaf_operator: NDArray[np.uint8]
    leaf_kind: NDArray[np.uint8]
    leaf_number: NDArray[np.float64]
    leaf_remainder: NDArray[np.int64]
    leaf_text: NDArray[np.int32]
    """For string constants an index into `strings`, for patterns one into `patterns`."""
    strings: list[str]
    patterns: list[Predicate]

    @property
    def count(self) -> int:
        """How many subscriptions."""
        return len(self.starts) - 1


def number_pair(value: bool | int | float | datetime) -> tuple[float, int]:
    """A number, boolean or timestamp as (nearest double, remainder)."""
    if isinstance(value, datetime):
        value = microseconds(value)
    if isinstance(value, float):
        if math.isnan(value):
            return (math.inf, 1)
        if isinstance(value, Exact):
            return _exact_pair(value)
        return (value + 0.0, 0)  # -0.0 + 0.0 is 0.0
    try:
        nearest = float(value)
    except OverflowError:
        return (math.inf, -1) if value > 0 else (-math.inf, 1)
    if math.isinf(nearest):
        return (math.inf, -1) if value > 0 else (-math.inf, 1)
    return (nearest, max(-_LARGEST_REMAINDER, min(_LARGEST_REMAINDER, value - int(nearest))))


def _exact_pair(value: Exact) -> tuple[float, int]:
    """A decimal between the doubles and integers around it; only searched for, never a constant."""
    near = float(value)
    if abs(near) >= _EVERY_INTEGER:
        return near, value.digits - int(near)  # type: ignore[return-value]  # a fraction of what integers have there
    stands_for = Decimal(repr(near))
    return near + 0.0, int(value.digits > stands_for) - int(value.digits < stands_for)


def is_told_apart(value: int) -> bool:
    """Whether the pair of an integer is that of no other."""
    nearest, remainder = number_pair(value)
    return math.isfinite(nearest) and abs(remainder) < _LARGEST_REMAINDER


class Lowering:
    """Collects filters and gives them back as `Flat`."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._names: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._patterns: dict[Predicate, int] = {}
        self._tokens = array("i")
        self._starts = array("q", [0])
        self._attribute = array("i")
        self._operator = array("B")
        self._kind = array("B")
        self._number = array("d")
        self._remainder = array("q")
        self._text = array("i")

    def add(self, condition: Filter) -> None:
        """Append one filter; where it is over a limit, an error, and nothing is appended."""
        tokens, leaves = len(self._tokens), len(self._attribute)
        try:
            self._emit(condition)
            if len(self._tokens) - tokens > self._limits.diagram_nodes:
                raise LimitError(
                    f"the filter has {len(self._tokens) - tokens} predicates and operators; "
                    f"the limit (diagram_nodes) is {self._limits.diagram_nodes}"
                )
        except BaseException:
            del self._tokens[tokens:]
            for column in (
                self._attribute, self._operator, self._kind, self._number, self._remainder, self._text,
            ):  # fmt: skip
                del column[leaves:]
            raise
        self._starts.append(len(self._tokens))

    def finish(self) -> Flat:
        """All that was added."""
        return Flat(
            names=list(self._names),
            tokens=np.array(self._tokens, dtype=np.int32),
            starts=np.array(self._starts, dtype=np.int64),
            leaf_attribute=np.array(self._attribute, dtype=np.int32),
            leaf_operator=np.array(self._operator, dtype=np.uint8),
            leaf_kind=np.array(self._kind, dtype=np.uint8),
            leaf_number=np.array(self._number, dtype=np.float64),
            leaf_remainder=np.array(self._remainder, dtype=np.int64),
            leaf_text=np.array(self._text, dtype=np.int32),
            strings=list(self._strings),
            patterns=list(self._patterns),
        )

    def _emit(self, condition: Filter) -> None:
        match condition:
            case And(parts):
                self._join(parts, AND)
            case Or(parts):
                self._join(parts, OR)
            case Not(part):
                self._emit(part)
                self._tokens.append(NOT)
            case Is(part, truth):
                self._emit(part)
                self._tokens.append(IS_UNKNOWN if truth is None else IS_TRUE if truth else IS_FALSE)
            case Constant(value):
                self._tokens.append(UNKNOWN if value is None else TRUE if value else FALSE)
            case IsNull(name):
                self._leaf(name, IS_NULL, NUMBER)
            case Compare(name, "!=", value):
                self._comparison(name, EQ, value)
                self._tokens.append(NOT)
            case Compare(name, operator, value):
                self._comparison(name, _OPERATORS[operator], value)
            case Between(name, low, high):
                self._comparison(name, GE, low)
                self._comparison(name, LE, high)
                self._tokens.append(AND)
            case In(_, values) if len(values) > FEW_VALUES:
                self._comparison(known_term(truth_term(condition)).name, EQ, True)
            case In(name, values):
                for position, value in enumerate(values):
                    self._comparison(name, EQ, value)
                    if position:
                        self._tokens.append(OR)
            case TextTest():
                self._text_test(condition)
            case ArrayContains(name) | ElementTest(name):
                self._leaf(name, PATTERN, LIST, text=self._pattern_number(condition))
            case _:
                raise TypeError(f"{type(condition).__name__} is no filter that can be matched; say how in lowering")

    def _join(self, parts: Iterable[Filter], operator: int) -> None:
        for position, part in enumerate(parts):
            self._emit(part)
            if position:
                self._tokens.append(operator)

    def _comparison(self, name: str, operator: int, value: Scalar | None) -> None:
        if value is None:
            if operator == NULL_SAFE_EQ:
                self._leaf(name, IS_NULL, NUMBER)
            else:
                # The attribute is still named: strict semantics asks for it.
                self._leaf(name, PATTERN, LIST, text=self._pattern_number(Compare(name, "=", None)))
        elif isinstance(value, str):
            self._leaf(name, operator, STRING, text=self._strings.setdefault(value, len(self._strings)))
        elif type(value) is int and not -_EVERY_INTEGER < value < _EVERY_INTEGER and not is_told_apart(value):
            self._long_integer(name, operator, value)
        else:
            kind = BOOLEAN if isinstance(value, bool) else TIMESTAMP if isinstance(value, datetime) else NUMBER
            self._leaf(name, operator, kind, *number_pair(value))

    def _long_integer(self, name: str, operator: int, value: int) -> None:
        """An integer that no pair of numbers tells from its neighbours is compared by a term."""
        compared = known_term(comparison(term_of(name), fixed(value))[0]).name
        self._leaf(compared, operator, NUMBER)

    def _text_test(self, test: TextTest) -> None:
        """A word alone is compared; of other tests the plainest that says the same is kept."""
        plain = plainest(test)
        form = plain.form() if plain is test else None
        match form.tokens if isinstance(form, Wildcards) and not form.ignore_case else None:
            case ():
                self._comparison(test.attribute, EQ, "")
            case (str() as text,):
                self._comparison(test.attribute, EQ, text)
            case _:
                self._leaf(test.attribute, PATTERN, STRING, text=self._pattern_number(plain))

    def _pattern_number(self, predicate: Predicate) -> int:
        return self._patterns.setdefault(predicate, len(self._patterns))

    def _leaf(
        self, name: str, operator: int, kind: int, number: float = 0.0, remainder: int = 0, text: int = -1
    ) -> None:
        self._tokens.append(len(self._attribute))
        self._attribute.append(self._names.setdefault(name, len(self._names)))
        self._operator.append(operator)
        self._kind.append(kind)
        self._number.append(number)
        self._remainder.append(remainder)
        self._text.append(text)
