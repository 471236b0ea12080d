"""The functions of other dialects (`covey.filters.dialect_functions`), which Spark doesn't have, in Spark's own.

CloudEvents SQL casts every operand, and what it calls an error makes the value missing. On Spark the types of columns
are known, so each cast is the one that its column needs, and an error is null: these are no terms that fail. A function
is written as SQL over its arguments and read again, so what follows knows nothing of dialects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    FractionalType,
    IntegerType,
    IntegralType,
    NullType,
    ShortType,
    StringType,
)

from covey.errors import FilterError
from covey.filters.dialect_functions import CESQL
from covey.limits import Limits
from covey.spark.conditions import syntax
from covey.spark.conditions.parser import parse_condition

DIALECT_CALLS: Final = frozenset({*(name for name, *_ in CESQL), "java_divide"})
"""Functions that are written here."""

TypeOf = Callable[[syntax.Node], DataType]
_BLANKS: Final = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_DIGITS: Final = 20
"""Digits that a text may have which is an integer, as the interpreter has it."""
_WIDEST: Final = Limits(text_length=1_000_000, tokens=100_000, depth=1_000)
"""What is written here is as long as it is."""


def in_spark(tree: syntax.Node, type_of: TypeOf) -> syntax.Node:
    """A tree without functions of other dialects."""
    if not any(isinstance(node, syntax.Call) and node.name in DIALECT_CALLS for node in syntax.inside(tree)):
        return tree
    tree = syntax.rebuilt(tree, lambda child: in_spark(child, type_of))
    if not isinstance(tree, syntax.Call) or tree.name not in DIALECT_CALLS:
        return tree
    return parse_condition(_Casting(type_of).written(tree), _WIDEST)


class _Casting:
    """Writes calls, by the types of their arguments."""

    def __init__(self, type_of: TypeOf) -> None:
        self._type_of = type_of

    def written(self, call: syntax.Call) -> str:
        """A call as SQL."""
        given = call.arguments
        name = call.name.removeprefix("cesql_")
        match name, given:
            case "string", (value,):
                return self.string(value)
            case "int", (value,):
                return self.integer(value)
            case "bool", (value,):
                return self.boolean(value)
            case "equal", (left, right):
                cast = self._cast_like(right)
                return f"({cast(left)}) = ({cast(right)})"
            case "in", (value, *members):
                return self._among(value, members)
            case (("add" | "subtract" | "multiply"), (left, right)):
                return f"try_{name}({self.integer(left)}, {self.integer(right)})"
            case "remainder", (left, right):
                return f"try_mod({self.integer(left)}, {self.integer(right)})"
            case "divide", (left, right):
                return f"try_cast(({self.integer(left)}) DIV nullif({self.integer(right)}, 0) AS INT)"
            case "negative", (value,):
                return f"try_subtract(0, {self.integer(value)})"
            case "abs", (value,):
                number = self.integer(value)
                return f"CASE WHEN ({number}) < 0 THEN try_subtract(0, {number}) ELSE {number} END"
            case (("length" | "lower" | "upper"), (value,)):
                return f"{name}({self.string(value)})"
            case "trim", (value,):
                return f"btrim({self.string(value)}, '{_BLANKS}')"
            case "concat", _:
                return f"concat({', '.join(map(self.string, given))})"
            case "concat_ws", (delimiter, *values):
                return self._joined(self.string(delimiter), [self.string(value) for value in values])
            case (("left" | "right"), (value, count)):
                number = self.integer(count)
                return f"CASE WHEN ({number}) >= 0 THEN {name}({self.string(value)}, {number}) END"
            case "substring", (value, start, *rest):
                return self._substring(value, start, rest)
            case "java_divide", (left, right):
                return self._java_divide(left, right)
        raise FilterError(f"{call.name}() does not take {len(given)} values")

    def string(self, value: syntax.Node) -> str:
        """STRING."""
        match self._type_of(value):
            case StringType():
                return f"({value.sql()})"
            case BooleanType() | DateType() | NullType():
                return f"CAST({value.sql()} AS STRING)"
            case IntegralType() | FractionalType():
                return f"CAST({self.integer(value)} AS STRING)"
        raise self._refused(value)

    def integer(self, value: syntax.Node) -> str:
        """INTEGER: a whole number of 32 bits, a truth, or a text that is a whole number."""
        text = value.sql()
        match self._type_of(value):
            case IntegerType():
                return f"({text})"
            case ByteType() | ShortType() | BooleanType() | NullType():
                return f"CAST({text} AS INT)"
            case IntegralType():
                return f"try_cast({text} AS INT)"
            case FractionalType():
                return f"CASE WHEN ({text}) = try_cast({text} AS INT) THEN try_cast({text} AS INT) END"
            case StringType():
                signs = f"translate({text}, '0123456789', '') IN ('', '+', '-')"
                short = f"length(translate({text}, '+-', '')) <= {_DIGITS}"
                return f"CASE WHEN {signs} AND {short} THEN try_cast({text} AS INT) END"
        raise self._refused(value)

    def boolean(self, value: syntax.Node) -> str:
        """BOOLEAN: texts are `true` and `false`, whatever their case; of numbers only 0 is false."""
        match self._type_of(value):
            case BooleanType():
                return f"({value.sql()})"
            case StringType():
                return f"CASE lower({value.sql()}) WHEN 'true' THEN true WHEN 'false' THEN false END"
        return f"({self.integer(value)}) <> 0"

    def _cast_like(self, model: syntax.Node) -> Callable[[syntax.Node], str]:
        match self._type_of(model):
            case BooleanType():
                return self.boolean
            case IntegralType() | FractionalType():
                return self.integer
        return self.string

    def _among(self, value: syntax.Node, members: list[syntax.Node]) -> str:
        cast = self._cast_like(value)
        among = [cast(member) for member in members]
        known = " AND ".join(f"({text}) IS NOT NULL" for text in among)
        return f"CASE WHEN {known} THEN ({cast(value)}) IN ({', '.join(among)}) END"

    def _joined(self, delimiter: str, values: list[str]) -> str:
        if not values:
            return f"CASE WHEN ({delimiter}) IS NOT NULL THEN '' END"
        between = [text for value in values for text in (delimiter, value)]
        return f"CASE WHEN ({delimiter}) IS NOT NULL THEN concat({', '.join(between[1:])}) END"

    def _substring(self, value: syntax.Node, start: syntax.Node, rest: list[syntax.Node]) -> str:
        text, first = self.string(value), self.integer(start)
        count = self.integer(rest[0]) if rest else f"length({text})"
        within = f"abs(CAST({first} AS BIGINT)) <= length({text}) AND ({count}) >= 0"
        return f"CASE WHEN {within} THEN if(({first}) = 0, '', substring({text}, {first}, {count})) END"

    def _java_divide(self, left: syntax.Node, right: syntax.Node) -> str:
        if all(isinstance(self._type_of(one), IntegralType) for one in (left, right)):
            lowest = f"(({left.sql()}) = -9223372036854775808L AND ({right.sql()}) = -1)"
            return f"CASE WHEN NOT {lowest} THEN ({left.sql()}) DIV nullif({right.sql()}, 0) END"
        return f"try_divide(CAST({left.sql()} AS DOUBLE), CAST({right.sql()} AS DOUBLE))"

    def _refused(self, value: syntax.Node) -> FilterError:
        kind = self._type_of(value).simpleString()
        return FilterError(f"{value.sql()} is of type {kind}, which this dialect can't cast on Spark; cast the column")
