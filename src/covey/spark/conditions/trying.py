"""Expressions written so that one that fails is null, and so that it is known that it failed.

A column is computed for every row and one rule must not end the job for all, so what can fail is written in Spark's
try-forms. Null alone doesn't say that something failed: `coalesce(1 / x, 5)` would answer 5 where Spark raises. So
beside its value each expression has the condition under which it failed, and the test is unknown where that holds.

Most expressions are strict: null only where an input is null, or where they failed. Of such a chain the condition is
that its value is null and none of its inputs is, whatever its depth, so its text stays short. What may be null for its
own reasons (`nullif`, a key that isn't in the map), and what doesn't evaluate all its arguments (`CASE`, `coalesce`,
AND and OR), is an input to what stands above it, and has the condition worked out for the branches that Spark takes.

Texts that meet numbers or dates are cast by Spark's analyser, and such a cast fails for most texts: it is written out
as a TRY_CAST to the type that the analyser takes. `binding` holds the type of the result against that of the original.

What has no try-form (`UntriableError`) is computed whole: the test as it is written, within the one function of Spark's
that catches whatever its arguments raise, `try_to_binary`. The test's truth goes through it as a text, so a null that
comes out is a failure and nothing else. It stands in a lambda function because Spark computes what two expressions
share before both, and so outside of what catches; into lambda functions it doesn't look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from covey.errors import FilterError
from covey.spark.conditions.constants import Value
from covey.spark.conditions.functions import CASTS, MOST_REPEATED, Function, function_of
from covey.spark.conditions.lambdas import with_elements
from covey.spark.conditions.syntax import (
    BetweenTest,
    Binary,
    Call,
    Case,
    CastTo,
    Collated,
    Field,
    InList,
    IsTest,
    Item,
    Junction,
    Lambda,
    LikeTest,
    Literal,
    Name,
    Named,
    Negation,
    Node,
    Unary,
    Variable,
    VariantPath,
    Word,
    inside,
    parameters_sql,
    quoted,
    rebuilt,
)

TypeOf = Callable[[Node], DataType]
MOST_NESTED: Final = 6
"""So deep values that are written twice may stand within each other."""


class UntriableError(FilterError):
    """An expression without a try-form; a test that has it is computed whole."""


def whole(node: Node) -> Tried:
    """A test as it is, null where anything in it fails."""
    sql = _apart(node, MOST_NESTED).sql()
    text = f"transform(array(0), `covey whole` -> coalesce(CAST(({sql}) AS STRING), 'null'))[0]"
    caught = f"CAST(try_to_binary({text}, 'utf-8') AS STRING)"
    value = f"CASE {caught} WHEN 'true' THEN true WHEN 'false' THEN false END"
    return Tried(value, (value,), False, (f"({caught}) IS NULL",))


def _apart(node: Node, nested: int) -> Node:
    """The same with values written twice where Spark would compute them once, which it does beforehand: outside of any
    try, and whether they are needed or not."""
    if isinstance(node, BetweenTest) or (isinstance(node, Call) and node.name == "nullif"):
        if not nested:
            raise UntriableError(f"BETWEEN and nullif() stand more than {MOST_NESTED} deep within each other")
        nested -= 1
    match rebuilt(node, lambda part: _apart(part, nested)):
        case BetweenTest(value, low, high):
            return Junction("AND", (Binary(">=", value, low), Binary("<=", value, high)))
        case Call("nullif", (value, other)):
            return Case(None, ((Binary("=", value, other), Literal("NULL", "null")),), value)
        case same:
            return same


_TRIED: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_LOWEST: Final = {ByteType: -(2**7), ShortType: -(2**15), IntegerType: -(2**31)}
_TEXT_CASTS: Final = {"i": "INT", "n": "DOUBLE", "d": "DATE", "t": "TIMESTAMP", "b": "BOOLEAN"}
_DECIMAL_DIGITS: Final = 38
_ROUNDED_DIGITS: Final = 34
"""Digits that Java's decimals keep when they are negated."""
MOST_TEXT: Final = 65_536
"""Characters of one expression in its try-form."""


@dataclass(frozen=True, slots=True)
class Tried:
    """An expression's value as SQL that doesn't fail, and when it failed."""

    value: str
    inputs: tuple[str, ...] = ()
    """What it is null for, if it is null without having failed."""
    can_fail: bool = False
    """Whether it may be null without an input being null."""
    fails: tuple[str, ...] = ()
    """Conditions, never null, under which something below its inputs failed."""

    @property
    def failed(self) -> str | None:
        """The condition under which it failed, never null; None if it can't."""
        parts = list(self.fails)
        if self.can_fail:
            given = "".join(f" AND ({text}) IS NOT NULL" for text in self.inputs)
            parts.append(f"(({self.value}) IS NULL{given})")
        return " OR ".join(parts) if parts else None

    @property
    def column(self) -> str:
        """The value, null where it failed."""
        return f"CASE WHEN {self.failed} THEN NULL ELSE {self.value} END" if self.fails else self.value


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes expressions over the events' columns in their try-forms."""

    type_of: TypeOf
    functions: Collection[str]
    """Functions that the caller has registered and named."""
    known: Callable[[Node], Value | None]
    """The value of a constant that Spark has evaluated."""

    def tried(self, node: Node) -> Tried:
        """A node in its try-form."""
        found = self._tried(node)
        if found.failed is not None and (value := self.known(node)) is not None:
            found = Tried(node.sql(), ("NULL",) if value.kind == "null" else ())  # it didn't fail, so it won't
        if len(found.value) + sum(map(len, found.fails)) > MOST_TEXT:
            raise UntriableError(f"the expression takes more than {MOST_TEXT:,} characters in Spark's try-forms")
        return found

    def _tried(self, node: Node) -> Tried:
        match node:
            case Literal(_, kind):
                return Tried(node.sql(), ("NULL",) if kind == "null" else ())
            case Name() | Variable():
                return Tried(node.sql(), (node.sql(),))
            case Field(record, name):
                of = self.tried(record)
                return self._barrier(f"({of.value}).{quoted(name)}", of)
            case VariantPath(base, path):
                of = self.tried(base)
                return self._barrier(f"({of.value}):{path}", of)
            case Item():
                return self._item(node)
            case Unary():
                return self._signed(node)
            case Binary():
                return self._binary(node)
            case CastTo() | Collated():
                return self._cast(node)
            case Call():
                return self._call(node)
            case Case():
                return self._case(node)
            case Lambda():
                return self._lambda(node)
            case Named(value, name):
                of = self.tried(value)
                return self._strict(f"{of.value} AS {quoted(name)}", of)
            case Word():
                raise UntriableError(f"{node.sql()} is a word of its own")
        return self._condition(node)

    # Chains

    def _strict(self, value: str, *parts: Tried, can_fail: bool = False) -> Tried:
        return Tried(
            value,
            tuple(dict.fromkeys(text for part in parts for text in part.inputs)),
            can_fail or any(part.can_fail for part in parts),
            tuple(dict.fromkeys(text for part in parts for text in part.fails)),
        )

    def _barrier(self, value: str, *parts: Tried) -> Tried:
        """Something that may be null for its own reasons, all of whose parts are evaluated."""
        return Tried(value, (value,), False, tuple(part.failed for part in parts if part.failed is not None))

    # Operators

    def _signed(self, node: Unary) -> Tried:
        operand = self._as(node.operand, "n") if node.operator != "~" else self.tried(node.operand)
        if node.operator != "-":
            return self._strict(f"{node.operator} ({operand.value})", operand)
        return self._guarded(f"- ({operand.value})", operand, self.type_of(node.operand))

    def _guarded(self, value: str, operand: Tried, kind: DataType) -> Tried:
        """What fails for the lowest integer alone, which has no positive counterpart."""
        if isinstance(kind, DecimalType) and kind.precision > _ROUNDED_DIGITS:
            raise UntriableError(
                f"{value} rounds decimals of more than {_ROUNDED_DIGITS} digits, which can then overflow"
            )
        if isinstance(kind, (FractionalType, StringType, NullType)):
            return self._strict(value, operand)
        if isinstance(kind, LongType):
            lowest = "(-9223372036854775807L - 1L)"
        elif type(kind) in _LOWEST:
            lowest = f"({_LOWEST[type(kind)]})"
        else:
            raise UntriableError(f"{value} of {kind.simpleString()} can fail, and Spark has no way to try it")
        return self._strict(f"CASE WHEN ({operand.value}) <> {lowest} THEN {value} END", operand, can_fail=True)

    def _binary(self, node: Binary) -> Tried:
        if node.operator in ("=", "!=", "<", "<=", ">", ">=", "<=>"):
            left, right = self._alike([node.left, node.right])
            text = f"({left.value}) {node.operator} ({right.value})"
            return self._barrier(text, left, right) if node.operator == "<=>" else self._strict(text, left, right)
        if node.operator == "||":
            left, right = self.tried(node.left), self.tried(node.right)
            return self._strict(f"({left.value}) || ({right.value})", left, right)
        left, right = self._operands(node)
        if node.operator in _TRIED:
            text = f"{_TRIED[node.operator]}({left.value}, {right.value})"
            return self._strict(text, left, right, can_fail=not self._is_plain(node))
        if node.operator == "DIV":
            return self._divided(node, left, right)
        return self._strict(f"({left.value}) {node.operator} ({right.value})", left, right)

    def _is_plain(self, node: Binary) -> bool:
        """Sums and products of doubles never fail."""
        kinds = (self.type_of(node.left), self.type_of(node.right))
        return node.operator in "+-*" and all(isinstance(kind, (FloatType, DoubleType)) for kind in kinds)

    def _operands(self, node: Binary) -> tuple[Tried, Tried]:
        """Operands of arithmetic; a text is cast as the analyser would."""
        kinds = [self.type_of(node.left), self.type_of(node.right)]
        texts = [isinstance(kind, StringType) for kind in kinds]
        if all(texts):
            return self._as(node.left, "n"), self._as(node.right, "n")
        if any(texts) and not any(isinstance(kind, (NumericType, NullType)) for kind in kinds):
            raise UntriableError(f"{node.sql()} casts a text, which can fail, and Spark has no way to try it")
        if any(texts) or node.operator in ("%", "DIV"):
            left, right = self._alike([node.left, node.right])
            return left, right
        return self.tried(node.left), self.tried(node.right)

    def _divided(self, node: Binary, left: Tried, right: Tried) -> Tried:
        kinds = (self.type_of(node.left), self.type_of(node.right))
        if not all(isinstance(kind, (IntegralType, DecimalType, StringType)) for kind in kinds):
            raise UntriableError(f"{node.sql()} can fail, and Spark has no way to try it")
        whole = f"({left.value}) DIV nullif({right.value}, 0)"
        text = (
            f"CASE WHEN ({left.value}) <=> (-9223372036854775807L - 1L) AND ({right.value}) <=> -1 THEN NULL "
            f"ELSE {whole} END"
        )
        if any(isinstance(kind, DecimalType) for kind in kinds):
            raise UntriableError(
                f"{node.sql()} of decimals can overflow, and Spark has no way to try it; use / and floor"
            )
        return self._strict(text, left, right, can_fail=True)

    def _item(self, node: Item) -> Tried:
        base, key = self.tried(node.base), self.tried(node.key)
        kind = self.type_of(node.base)
        if isinstance(kind, ArrayType):
            if isinstance(self.type_of(node.key), StringType):
                raise UntriableError(f"{node.sql()}: the place in an array is an integer")
            inner = f"get({base.value}, {key.value})"
            outside = f"(({key.value}) < 0 OR ({key.value}) >= size({base.value}))"
            failed = f"coalesce({outside}, false)"
            return Tried(inner, (inner,), False, (failed, *self._failures(base, key)))
        if isinstance(kind, MapType) and isinstance(self.type_of(node.key), StringType) != isinstance(
            kind.keyType, StringType
        ):
            raise UntriableError(
                f"{node.sql()}: the map's keys are of type {kind.keyType.simpleString()}; write such a key"
            )
        return self._barrier(f"({base.value})[{key.value}]", base, key)

    def _failures(self, *parts: Tried) -> tuple[str, ...]:
        return tuple(part.failed for part in parts if part.failed is not None)

    def _cast(self, node: CastTo | Collated) -> Tried:
        value = self.tried(node.value)
        if isinstance(node, Collated):
            return self._strict(f"({value.value}) COLLATE {node.collation}", value)
        if re.search(r"(?i)\bchar|varchar", node.type):
            raise UntriableError(f"a rule casts to STRING, not to {node.type}")
        text = f"TRY_CAST({value.value} AS {node.type})"
        if node.trying:
            return self._barrier(text, value)
        total = node.type.upper() == "STRING" or _widens(self.type_of(node.value), node.type)
        return self._strict(text, value, can_fail=not total)

    # Functions

    def _call(self, node: Call) -> Tried:
        if node.name in CASTS:
            if len(node.arguments) != 1:
                raise FilterError(f"{node.name}() takes one value")
            return self._cast(CastTo(node.arguments[0], node.name.upper()))
        function = function_of(node.name, self.functions)
        if function is None:
            parts = [self.tried(argument) for argument in node.arguments]
            return self._barrier(_called(node.name, parts), *parts)
        if function.behaviour == "lazy":
            return self._lazy(node)
        if function.behaviour == "lambda":
            return self._with_lambda(node)
        if function.behaviour == "whole":
            raise UntriableError(f"{node.name}() can fail, and Spark has no way to try it")
        if function.behaviour in ("pattern", "count"):
            self._check_constants(node, function)
        parts = self._arguments(node, function)
        text = _called(node.name, parts)
        match function.behaviour:
            case "strict":
                return self._strict(text, *parts)
            case "fails":
                return self._failing(node, function, parts)
        return self._barrier(text, *parts)

    def _arguments(self, node: Call, function: Function) -> list[Tried]:
        if "=" in function.parameters and function.name != "array":
            return self._alike(list(node.arguments))
        if function.name == "array":
            return self._alike(list(node.arguments)) if node.arguments else []
        letters = [function.parameter(place) for place in range(len(node.arguments))]
        return [self._as(argument, letter) for argument, letter in zip(node.arguments, letters, strict=True)]

    def _failing(self, node: Call, function: Function, parts: list[Tried]) -> Tried:
        kinds = [self.type_of(argument) for argument in node.arguments]
        if function.form in ("abs", "negative"):
            return self._guarded(_called(node.name, parts), parts[0], kinds[0])
        if function.form in ("floor", "ceil"):
            text = _called(node.name, parts)
            if len(parts) > 1:
                raise UntriableError(f"{node.name}() to a place behind the point can overflow")
            if not isinstance(kinds[0], (FloatType, DoubleType, StringType)):
                return self._strict(text, *parts)
            value = parts[0].value
            near = f"({value}) >= -9.223372036854775808E18D AND ({value}) < 9.223372036854775807E18D OR isnan({value})"
            return self._strict(f"CASE WHEN {near} THEN {text} END", *parts, can_fail=True)
        if function.form == "element_at":
            if isinstance(kinds[0], MapType):
                return self._barrier(_called("try_element_at", parts), *parts)
            tried = f"try_element_at({parts[0].value}, nullif({parts[1].value}, 0))"
            outside = f"coalesce(abs({parts[1].value}) > size({parts[0].value}) OR ({parts[1].value}) = 0, false)"
            return Tried(tried, (tried,), False, (outside, *self._failures(*parts)))
        if "{" in function.form:
            return self._strict(function.form.format(*(part.value for part in parts)), *parts, can_fail=True)
        text = _called(function.form, parts)
        if function.form == "try_variant_get":
            missing = f"({text}) IS NULL AND variant_get({parts[0].value}, {parts[1].value}) IS NOT NULL"
            return Tried(text, (text,), False, (f"({missing})", *self._failures(*parts)))
        return self._strict(text, *parts, can_fail=True)

    def _check_constants(self, node: Call, function: Function) -> None:
        """A number is a small constant; a pattern is a constant, which `binding` has Spark try once."""
        rest = node.arguments[1:] if function.name != "space" else node.arguments
        for place, argument in enumerate(rest):
            if function.behaviour == "pattern" and any(isinstance(one, Name) for one in inside(argument)):
                raise UntriableError(f"the pattern of {node.name}() must be a constant, so that it can be checked")
            if function.behaviour == "count" and place == 0:
                number = argument.value if isinstance(argument, Literal) and argument.kind == "integer" else None
                if not isinstance(number, int) or abs(number) > MOST_REPEATED:
                    raise UntriableError(f"{node.name}() of any number can fail")
                if node.name.endswith("round") and number < 0:
                    raise UntriableError(f"{node.name}() to a negative place can overflow")

    def _lazy(self, node: Call) -> Tried:
        arguments = list(node.arguments)
        if node.name in ("if", "iff") and len(arguments) == 3:
            return self._case(Case(None, ((arguments[0], arguments[1]),), arguments[2]))
        if node.name == "nvl2" and len(arguments) == 3:
            return self._case(Case(None, ((Negation(IsTest(arguments[0], "NULL")), arguments[1]),), arguments[2]))
        if node.name in ("if", "iff", "nvl2"):
            raise FilterError(f"{node.name}() takes three values")
        parts = self._alike(arguments)
        value = _called("coalesce", parts)
        if not self._failures(*parts):
            return Tried(value, (value,))
        steps = "".join(
            f" WHEN {part.failed or 'false'} THEN true WHEN ({part.value}) IS NOT NULL THEN false" for part in parts
        )
        return Tried(value, (value,), False, (f"CASE{steps} ELSE false END",))

    def _case(self, node: Case) -> Tried:
        branches = list(node.branches)
        if node.operand is not None:
            branches = [(Binary("=", node.operand, when), then) for when, then in branches]
        conditions = [self._as(when, "b") for when, _ in branches]
        results = [then for _, then in branches] + ([node.otherwise] if node.otherwise is not None else [])
        values = self._alike(results)
        text = "".join(f" WHEN {when.value} THEN {then.value}" for when, then in zip(conditions, values, strict=False))
        last = values[-1] if node.otherwise is not None else None
        value = f"CASE{text}{f' ELSE {last.value}' if last is not None else ''} END"
        if not self._failures(*conditions, *values):
            return Tried(value, (value,))
        steps = "".join(
            f" WHEN {when.failed or 'false'} THEN true WHEN {when.value} THEN {then.failed or 'false'}"
            for when, then in zip(conditions, values, strict=False)
        )
        otherwise = (last.failed if last is not None else None) or "false"
        return Tried(value, (value,), False, (f"CASE{steps} ELSE {otherwise} END",))

    def _with_lambda(self, node: Call) -> Tried:
        if not any(isinstance(one, Lambda) for one in node.arguments):
            raise FilterError(f"{node.name}() takes a lambda function, such as x -> x > 5")
        parts = []
        for argument in node.arguments:
            writer = self
            if isinstance(argument, Lambda):
                element = with_elements(node, argument)
                writer = Writer(lambda one, element=element: self.type_of(element(one)), self.functions, self.known)  # type: ignore[misc]
            parts.append(writer.tried(argument))
        return self._barrier(_called(node.name, parts), *parts)

    def _lambda(self, node: Lambda) -> Tried:
        body = self.tried(node.body)
        if body.failed is not None:
            raise UntriableError(
                f"{node.body.sql()} can fail inside a lambda function, where Spark has no way to say for which element"
            )
        return Tried(f"{parameters_sql(node.parameters)} -> {body.value}")

    # Conditions inside values

    def _condition(self, node: Node) -> Tried:
        match node:
            case Junction(operator, parts):
                return self._junction(operator, [self._as(part, "b") for part in parts])
            case Negation(part):
                inner = self._as(part, "b")
                return self._strict(f"NOT ({inner.value})", inner)
            case IsTest(part, what):
                inner = self.tried(part)
                return self._barrier(f"({inner.value}) IS {what}", inner)
            case InList(value, items):
                of, *among = self._alike([value, *items])
                return self._barrier(f"({of.value}) IN ({', '.join(one.value for one in among)})", of, *among)
            case BetweenTest(value, low, high):
                return self.tried(Junction("AND", (Binary(">=", value, low), Binary("<=", value, high))))
            case LikeTest(operator, value, pattern, escape):
                if any(isinstance(one, (Name, Variable)) for one in inside(pattern)):
                    raise UntriableError(f"the pattern of {operator} must be a constant, so that it can be checked")
                of, like = self.tried(value), self.tried(pattern)
                behind = f" ESCAPE {escape.sql()}" if escape is not None else ""
                return self._strict(f"({of.value}) {operator} ({like.value}){behind}", of, like)
        raise UntriableError(f"{node.sql()} is not read inside a value")

    def _junction(self, operator: str, parts: list[Tried]) -> Tried:
        value = f" {operator} ".join(f"({part.value})" for part in parts)
        if not self._failures(*parts):
            return Tried(value, (value,))
        decided = "FALSE" if operator == "AND" else "TRUE"
        steps = "".join(
            f" WHEN {part.failed or 'false'} THEN true WHEN ({part.value}) IS {decided} THEN false" for part in parts
        )
        return Tried(value, (value,), False, (f"CASE{steps} ELSE false END",))

    # Casts that the analyser adds

    def _as(self, node: Node, letter: str) -> Tried:
        """An argument where a number, a date or the like is due: a text is cast."""
        tried = self.tried(node)
        if letter in _TEXT_CASTS and isinstance(self.type_of(node), StringType):
            return self._strict(f"TRY_CAST({tried.value} AS {_TEXT_CASTS[letter]})", tried, can_fail=True)
        return tried

    def _alike(self, nodes: list[Node]) -> list[Tried]:
        """Values that are brought to one type: texts are cast to that of the others. Decimals never fail: where their
        digits are too many for one type, what is behind the point is rounded."""
        kinds = [self.type_of(node) for node in nodes]
        others = [kind for kind in kinds if not isinstance(kind, (StringType, NullType))]
        if not others or len(others) == len([kind for kind in kinds if not isinstance(kind, NullType)]):
            return [self.tried(node) for node in nodes]
        target = _beside_text(others, nodes)
        return [
            self._strict(f"TRY_CAST({tried.value} AS {target})", tried, can_fail=True)
            if isinstance(kind, StringType)
            else tried
            for kind, tried in zip(kinds, map(self.tried, nodes), strict=True)
        ]


def _beside_text(others: list[DataType], nodes: list[Node]) -> str:
    """What a text is cast to where it meets these types."""
    if all(isinstance(kind, IntegralType) for kind in others):
        return "BIGINT"
    if all(isinstance(kind, NumericType) for kind in others):
        return "DOUBLE"
    first = others[0]
    if all(kind == first for kind in others) and isinstance(
        first, (DateType, TimestampType, TimestampNTZType, BooleanType)
    ):
        return str(first.simpleString()).upper()
    shown = ", ".join(sorted({kind.simpleString() for kind in others}))
    raise UntriableError(f"a text meets {shown} in {', '.join(node.sql() for node in nodes)}; cast one of them")


def _called(name: str, parts: list[Tried]) -> str:
    return f"{name}({', '.join(part.value for part in parts)})"


_WIDTHS: Final = {
    "TINYINT": ByteType,
    "SMALLINT": ShortType,
    "INT": IntegerType,
    "INTEGER": IntegerType,
    "BIGINT": LongType,
}
_ORDER: Final = (ByteType, ShortType, IntegerType, LongType)


def _widens(kind: DataType, target: str) -> bool:
    """Whether a cast can't fail: from a number to a double, or to an integer that is no narrower."""
    name = target.upper()
    if isinstance(kind, NumericType) and name in ("DOUBLE", "FLOAT"):
        return True
    if isinstance(kind, IntegralType) and name in _WIDTHS:
        return _ORDER.index(type(kind)) <= _ORDER.index(_WIDTHS[name])
    return isinstance(kind, DateType) and name in ("TIMESTAMP", "TIMESTAMP_NTZ")
