"""The functions that terms are made of, as a table: name, arguments, and the value that they give for some values.

Each is pure and deterministic. A function that isn't lenient is missing where an argument is missing, and where one is
of a kind that it doesn't take. What fails in Spark fails here (ArithmeticError, ValueError), which makes it missing.
To add one: a line in `FUNCTIONS`, and one in `docs/language.md`; whatever parses, prints and matches finds it here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

from covey.filters import arithmetic
from covey.filters.casting import text_of
from covey.filters.dialect_functions import CESQL
from covey.filters.times import FIELDS, moment, truncated
from covey.filters.values import Exact, Kind, Value, compare

Raw: TypeAlias = "Value | Decimal | date | timedelta | None"
"""A value inside a term: besides those of attributes a decimal, a date and an interval."""

Takes: TypeAlias = Literal["any", "number", "whole", "string", "text", "time", "list", "sum"]
"""What an argument may be: `whole` a whole number, `text` what concat turns into text, `sum` what can be added."""

_KINDS: Final[dict[Takes, frozenset[Kind]]] = {
    "any": frozenset(Kind),
    "number": frozenset({Kind.NUMBER}),
    "whole": frozenset({Kind.NUMBER}),
    "string": frozenset({Kind.STRING}),
    "text": frozenset(Kind) - {Kind.LIST},
    "time": frozenset({Kind.TIMESTAMP}),
    "list": frozenset({Kind.LIST}),
    "sum": frozenset({Kind.NUMBER, Kind.TIMESTAMP}),
}
_WANTED: Final[dict[Takes, str]] = {
    "any": "any value", "number": "a number", "whole": "a whole number", "string": "a string", "text": "a string",
    "time": "a timestamp", "list": "a list", "sum": "a number, a timestamp or an interval",
}  # fmt: skip
_TYPES: Final[dict[Takes, tuple[type, ...]]] = {
    "any": (object,),
    "number": (int, float, Decimal),
    "whole": (int,),
    "string": (str,),
    "text": (str, int, float, Decimal, date),
    "time": (date,),
    "list": (tuple,),
    "sum": (int, float, Decimal, date, timedelta),
}


def fits(value: Raw, takes: Takes) -> bool:
    """Whether a value may be such an argument."""
    return isinstance(value, _TYPES[takes]) and (takes in ("any", "text") or not isinstance(value, bool))


@dataclass(frozen=True, slots=True)
class TermFunction:
    """A function of values."""

    name: str
    """Its name in normal form; operators are named by their sign."""
    takes: tuple[Takes, ...]
    """What each argument may be; the last is that of all further ones."""
    least: int
    most: int | None
    """How many arguments there may be; None for any number."""
    evaluate: Callable[..., Any]
    gives: Kind | None = None
    """The kind of its values, where it is always the same."""
    lenient: bool = False
    """Whether it looks at missing arguments itself."""
    aliases: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its name for people."""
        return {"negative": "-", "element": "[ ]"}.get(self.name, self.name)

    def wanted(self, place: int) -> str:
        """What the argument at a place may be, in words."""
        return _WANTED[self._takes(place)]

    def accepts(self, place: int, kind: Kind) -> bool:
        """Whether the argument at a place may be of that kind."""
        return kind in _KINDS[self._takes(place)]

    def _takes(self, place: int) -> Takes:
        return self.takes[min(place, len(self.takes) - 1)]

    def value(self, arguments: Sequence[Raw]) -> Raw:
        """What it gives for some values; None where that is missing."""
        if not self.lenient:
            for place, argument in enumerate(arguments):
                if argument is None or not fits(argument, self._takes(place)):
                    return None
        try:
            found: Raw = self.evaluate(*arguments)
            return found
        except (ArithmeticError, ValueError):
            return None


def compare_raw(left: Raw, right: Raw) -> int | None:
    """-1, 0 or 1 as left is below, equal to or above right; None where they don't compare."""
    if isinstance(left, timedelta) or isinstance(right, timedelta):
        if not (isinstance(left, timedelta) and isinstance(right, timedelta)):
            return None
        return -1 if left < right else int(left > right)
    a, b = _comparable(left), _comparable(right)
    if a is None or b is None:
        return None
    if isinstance(a, Decimal) != isinstance(b, Decimal) and not isinstance(a, (str, bool, datetime)):
        if isinstance(a, float) or isinstance(b, float):
            a, b = float(a), float(b)
        elif not isinstance(b, (str, bool, datetime)):
            return -1 if a < b else int(a > b)
        else:
            return None
    elif isinstance(a, Decimal) and isinstance(b, Decimal):
        return -1 if a < b else int(a > b)
    return None if isinstance(a, Decimal) or isinstance(b, Decimal) else compare(a, b)


def _comparable(value: Raw) -> Any:
    if isinstance(value, date):
        return moment(value)
    if isinstance(value, Exact):
        return value.digits
    return None if isinstance(value, (tuple, timedelta)) else value


def _coalesce(*values: Raw) -> Raw:
    return next((value for value in values if value is not None), None)


def _null_if(value: Raw, other: Raw) -> Raw:
    return None if compare_raw(value, other) == 0 else value


def _extreme(sign: int) -> Callable[..., Raw]:
    def found(*values: Raw) -> Raw:
        best: Raw = None
        for value in values:
            if value is None:
                continue
            if best is None:
                best = value
                continue
            order = compare_raw(value, best)
            if order is None:
                raise ValueError("values of different kinds have no order")
            if order == sign:
                best = value
        return best

    return found


def _concat(*values: Raw) -> str:
    return "".join(map(text_of, values))


def _part(text: str, start: int, length: int | None = None) -> str:
    """SQL's substr: from 1 on, from the end where negative; characters before the first count."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


def _left(text: str, length: int) -> str:
    return text[:length] if length > 0 else ""


def _right(text: str, length: int) -> str:
    return text[-length:] if length > 0 else ""


def _replace(text: str, old: str, new: str = "") -> str:
    return text.replace(old, new) if old else text


def _position(text: str, part: str) -> int:
    return text.find(part) + 1


def _element(values: tuple[Any, ...], place: int) -> Raw:
    return values[place] if 0 <= place < len(values) else None


def _field(name: str) -> Callable[[date], int]:
    field = FIELDS[name]
    return lambda value: field(moment(value))


_NUMBER, _STRING = Kind.NUMBER, Kind.STRING
_LISTED: Final = (
    TermFunction("+", ("sum",), 2, 2, arithmetic.add),
    TermFunction("-", ("sum",), 2, 2, arithmetic.subtract),
    TermFunction("*", ("number",), 2, 2, arithmetic.multiply, _NUMBER),
    TermFunction("/", ("number",), 2, 2, arithmetic.divide, _NUMBER),
    TermFunction("%", ("number",), 2, 2, arithmetic.remainder, _NUMBER, aliases=("mod",)),
    TermFunction("div", ("number",), 2, 2, arithmetic.quotient, _NUMBER),
    TermFunction("negative", ("sum",), 1, 1, arithmetic.negative),
    TermFunction("abs", ("number",), 1, 1, arithmetic.absolute, _NUMBER),
    TermFunction("round", ("number", "whole"), 1, 2, arithmetic.rounded, _NUMBER),
    TermFunction("floor", ("number",), 1, 1, arithmetic.floor, _NUMBER),
    TermFunction("ceil", ("number",), 1, 1, arithmetic.ceil, _NUMBER, aliases=("ceiling",)),
    TermFunction("sign", ("number",), 1, 1, arithmetic.sign, _NUMBER, aliases=("signum",)),
    TermFunction("power", ("number",), 2, 2, arithmetic.power, _NUMBER, aliases=("pow",)),
    TermFunction("sqrt", ("number",), 1, 1, arithmetic.square_root, _NUMBER),
    TermFunction("compare", ("any",), 2, 2, compare_raw, _NUMBER),
    TermFunction("coalesce", ("any",), 1, None, _coalesce, lenient=True, aliases=("nvl", "ifnull")),
    TermFunction("nullif", ("any",), 2, 2, _null_if, lenient=True),
    TermFunction("greatest", ("any",), 2, None, _extreme(1), lenient=True),
    TermFunction("least", ("any",), 2, None, _extreme(-1), lenient=True),
    TermFunction("concat", ("text",), 1, None, _concat, _STRING),
    TermFunction("lower", ("string",), 1, 1, str.lower, _STRING, aliases=("lcase",)),
    TermFunction("upper", ("string",), 1, 1, str.upper, _STRING, aliases=("ucase",)),
    TermFunction("trim", ("string",), 1, 1, lambda text: text.strip(" "), _STRING),
    TermFunction("ltrim", ("string",), 1, 1, lambda text: text.lstrip(" "), _STRING),
    TermFunction("rtrim", ("string",), 1, 1, lambda text: text.rstrip(" "), _STRING),
    TermFunction("length", ("string",), 1, 1, len, _NUMBER, aliases=("char_length", "character_length", "len")),
    TermFunction("substr", ("string", "whole", "whole"), 2, 3, _part, _STRING),
    TermFunction("left", ("string", "whole"), 2, 2, _left, _STRING),
    TermFunction("right", ("string", "whole"), 2, 2, _right, _STRING),
    TermFunction("replace", ("string",), 2, 3, _replace, _STRING),
    TermFunction("instr", ("string",), 2, 2, _position, _NUMBER),
    *(
        TermFunction(name, ("time",), 1, 1, _field(name), _NUMBER, aliases=("dayofmonth",) if name == "day" else ())
        for name in FIELDS
    ),
    TermFunction("date_trunc", ("string", "time"), 2, 2, truncated, Kind.TIMESTAMP),
    TermFunction("element", ("list", "whole"), 2, 2, _element),
    TermFunction("size", ("list",), 1, 1, len, _NUMBER, aliases=("cardinality", "array_size")),
    *(TermFunction(name, ("any",), least, most, evaluate, Kind(kind)) for name, least, most, evaluate, kind in CESQL),
)

FUNCTIONS: Final[dict[str, TermFunction]] = {function.name: function for function in _LISTED}
"""Every function by its own name."""

NAMED: Final[dict[str, TermFunction]] = {
    name: function
    for function in _LISTED
    if function.name.isidentifier() and function.name not in ("negative", "element", "div")
    for name in (function.name, *function.aliases)
} | {"mod": FUNCTIONS["%"]}
"""Every function that is called by a name, by all its names."""
