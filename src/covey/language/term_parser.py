"""The part of the grammar that makes terms: operators, subscripts, CASE, CAST, intervals and functions of values.

    value    := operand (operator operand)*           * / % DIV before + - ||
    operand  := … | CASE [value] (WHEN … THEN …)+ [ELSE …] END | CAST(… AS type) | INTERVAL n unit … | operand[…]

What is made of constants alone is a constant, folded here by the functions that define it. Recursion goes through
parentheses, brackets, calls and CASE, all under `limits.depth`; `limits.term_depth` bounds what chains of operators
make, since evaluating a term recurses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Final

from covey.errors import FilterError, FilterSyntaxError, LimitError
from covey.filters import terms
from covey.filters.algebra import Filter, Is, Not
from covey.filters.casting import TYPE_WORDS, CastType, cast_value
from covey.filters.conditional import case
from covey.filters.term_functions import NAMED, TermFunction
from covey.filters.terms import Raw, Term
from covey.filters.times import UNITS
from covey.language.bounds import over_limit
from covey.language.lexer import tokenize
from covey.language.literals import CASTS
from covey.language.mistakes import left_over
from covey.language.operands import Literal, Operand, as_condition, as_term, compare_terms, operand_of
from covey.limits import Limits

INFIX: Final = frozenset({"sign", "arithmetic", "name", "["})
"""Kinds of token after which a value may go on; of names only DIV."""

_OPERATORS: Final = {
    "+": ("+", 1), "-": ("-", 1), "||": ("concat", 1), "*": ("*", 2), "/": ("/", 2), "%": ("%", 2), "DIV": ("div", 2),
}  # fmt: skip
_BITWISE: Final = frozenset("&|^~")
_CASE_BEGINS: Final = frozenset({"name", "constant", "(", "TRUE", "FALSE", "NULL"})
_VARIABLE: Final = frozenset({"month", "year", "quarter"})
_LARGEST_PRECISION: Final = 38


class TermParser:
    """Reads tokens; the grammar of conditions is below it."""

    __slots__ = ("at", "depth", "kinds", "limits", "opened", "positions", "text", "tokens", "values")

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.tokens = tokenize(text, limits)
        self.kinds, self.values, self.positions = self.tokens
        self.at = 0
        self.depth = 0
        self.opened: list[int] = []

    # What the grammar of conditions gives.

    def expression(self) -> Operand:
        """A condition or a value."""
        raise NotImplementedError

    def operand(self) -> Operand:
        """What operators join."""
        raise NotImplementedError

    # Operators.

    def value(self) -> Operand:
        """An operand, or a term of several."""
        start = self.at
        left = self.operand()
        return self.infix(left, start, 1) if self.kinds[self.at] in INFIX else left

    def infix(self, left: Operand, start: int, loosest: int) -> Operand:
        """A value that goes on after its first operand, with operators that bind no looser than given."""
        left = self.subscripts(left, start)
        operands = [left]
        while True:
            operator = self.operator()
            if operator is None or operator[1] < loosest:
                return left
            self.at = at = self.at + 1
            right = self.subscripts(self.operand(), at)
            following = self.operator()
            if following is not None and following[1] > operator[1]:
                right = self.infix(right, at, following[1])
                following = self.operator()
            operands.append(right)
            chained = operator == following == _OPERATORS["||"]
            if chained and not all(isinstance(operand, Literal) for operand in operands):
                continue  # one term of all: made one by one, a chain would take the square of its length
            left = self.called(operator[0], operands, start)
            operands = [left]

    def operator(self) -> tuple[str, int] | None:
        """The operator that stands here and how tightly it binds."""
        kind = self.kinds[self.at]
        if kind == "name":
            return _OPERATORS["DIV"] if self.word(self.at) == "DIV" else None
        if kind not in ("sign", "arithmetic"):
            return None
        sign = str(self.values[self.at])
        if sign in _BITWISE:
            raise self.error(f"{sign} is not supported; conditions are joined by AND, OR and NOT", self.at)
        return _OPERATORS[sign]

    def subscripts(self, left: Operand, start: int) -> Operand:
        """`list[0]` and `map['key']`, any number of them."""
        while self.kinds[self.at] == "[":
            self.deepen(1)
            self.at = at = self.at + 1
            inner = self.expression()
            if self.kinds[self.at] != "]":
                raise self.error("the bracket is not closed; ] is missing", self.at)
            self.at += 1
            self.depth -= 1
            if isinstance(inner, Literal) and isinstance(inner.value, str):
                if not isinstance(left, str):
                    raise self.error("a key in brackets follows an attribute that is a map: m['key']", at)
                left = f"{left}.{inner.value}"
            else:
                left = self.called("element", (left, inner), start)
        return left

    def negated(self, operand: Operand, at: int) -> Operand:
        """Unary minus."""
        return self.called("negative", (operand,), at)

    def called(self, name: str, arguments: Sequence[Operand], at: int) -> Operand:
        """A function of values, folded where all are constants."""
        try:
            return self.checked(terms.call(name, [as_term(argument) for argument in arguments]))
        except (FilterSyntaxError, LimitError):
            raise
        except FilterError as error:
            raise self.error(str(error), at) from None

    def checked(self, term: Term) -> Operand:
        """A term within its limits, as an operand."""
        depth = terms.depth_of(term)
        if depth > self.limits.term_depth:
            raise over_limit(f"the filter has a term nested {depth:,} levels deep or more", "term_depth", self.limits)
        return operand_of(term)

    # Functions.

    def term_function(self, name: str) -> TermFunction | None:
        """The function of values that has this name, in any case."""
        return NAMED.get(name.lower())

    def call_term(self, function: TermFunction, arguments: Sequence[Operand], at: int) -> Operand:
        """A call of a function of values."""
        count, written = len(arguments), str(self.values[at])
        least, most = function.least, function.most
        if written.lower() in ("nvl", "ifnull"):
            least = most = 2
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            raise self.error(f"{written} takes {wanted} arguments, not {count}", at)
        if function.name == "coalesce" and count == 2:
            condition, instead = arguments
            if isinstance(condition, Filter) and isinstance(instead, Literal) and isinstance(instead.value, bool):
                # No term: what unknown is told to be stays a condition, which matchers and relations look into.
                return Not(Is(condition, False)) if instead.value else Is(condition, True)
        return self.called(function.name, arguments, at)

    def if_call(self, arguments: Sequence[Operand], at: int) -> Operand:
        """`if(condition, then, else)`."""
        if len(arguments) != 3:
            raise self.error(f"if takes 3 arguments, not {len(arguments)}; write if(condition, then, else)", at)
        condition, then, otherwise = arguments
        return self.made_case([(self.condition(condition, at), as_term(then))], as_term(otherwise), at)

    def made_case(self, branches: Sequence[tuple[Filter, Term]], otherwise: Term | None, at: int) -> Operand:
        """A CASE within its limits."""
        try:
            return self.checked(case(branches, otherwise))
        except (FilterSyntaxError, LimitError):
            raise
        except FilterError as error:
            raise self.error(str(error), at) from None

    # CASE.

    def begins_case(self, at: int) -> bool:
        """Whether CASE … END begins here, rather than an attribute of that name."""
        return self.word(at) == "CASE" and self.kinds[at + 1] in _CASE_BEGINS

    def case(self, start: int) -> Operand:
        """`CASE WHEN condition THEN value … END`, and `CASE value WHEN value THEN value … END`."""
        self.deepen(1)
        self.at = start + 1
        subject = None if self.word(self.at) == "WHEN" else self.expression()
        branches: list[tuple[Filter, Term]] = []
        while self.word(self.at) == "WHEN":
            self.at = at = self.at + 1
            given = self.expression()
            condition = self.condition(given, at) if subject is None else self.case_test(subject, given, at)
            self.expect_word("THEN", "after WHEN comes THEN: CASE WHEN a > 5 THEN 1 ELSE 0 END")
            branches.append((condition, as_term(self.expression())))
        if not branches:
            raise self.error("CASE takes at least one WHEN: CASE WHEN a > 5 THEN 1 ELSE 0 END", self.at)
        otherwise = None
        if self.word(self.at) == "ELSE":
            self.at += 1
            otherwise = as_term(self.expression())
        self.expect_word("END", "CASE is closed by END: CASE WHEN a > 5 THEN 1 ELSE 0 END")
        self.depth -= 1
        return self.made_case(branches, otherwise, start)

    def case_test(self, subject: Operand, given: Operand, at: int) -> Filter:
        """Whether CASE's own value equals one of a WHEN."""
        raise NotImplementedError

    def expect_word(self, word: str, remedy: str) -> None:
        """Skip a word that must be here."""
        if self.word(self.at) != word:
            raise self.error(remedy, self.at)
        self.at += 1

    # CAST.

    def cast_call(self, at: int) -> Operand:
        """`CAST(value AS type)` and `try_cast`; both are missing where the cast fails. A constant must be castable."""
        self.deepen(1)
        self.opened.append(self.positions[at + 1])
        operand = self.expression()
        if self.word(self.at) != "AS":
            raise self.error("CAST is written CAST(value AS type)", self.at)
        self.at += 1
        type_at = self.at
        word = self.word(self.at)
        if word not in TYPE_WORDS:
            raise self.error(f"CAST knows the types {', '.join(TYPE_WORDS)}", self.at)
        self.at += 1
        type = self.cast_type(TYPE_WORDS[word], type_at)
        self.close_call(at)
        return self.converted(type, operand, at, fails=self.word(at) == "CAST")

    def cast_type(self, word: str, at: int) -> CastType:
        """A type, with the precision and scale that may follow it."""
        if word != "DECIMAL":
            return CastType(word)
        numbers: list[int] = []
        if self.kinds[self.at] == "(":
            while not numbers or self.kinds[self.at] == ",":
                self.at += 1
                number = self.values[self.at]
                if self.kinds[self.at] != "constant" or isinstance(number, bool) or not isinstance(number, int):
                    raise self.error("DECIMAL takes a precision and a scale: DECIMAL(10, 2)", self.at)
                numbers.append(number)
                self.at += 1
            if self.kinds[self.at] != ")" or len(numbers) > 2:
                raise self.error("DECIMAL takes a precision and a scale: DECIMAL(10, 2)", self.at)
            self.at += 1
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])
        if not 0 < precision <= _LARGEST_PRECISION or scale > precision:
            raise self.error(f"DECIMAL has at most {_LARGEST_PRECISION} digits, and no more after the point", at)
        return CastType(word, precision, scale)

    def converted(self, type: CastType, operand: Operand, at: int, *, fails: bool) -> Operand:
        """A value as one of a type. Where a constant can't be, that is a mistake to be shown, but for try_cast."""
        if not isinstance(operand, Literal):
            return self.checked(terms.cast(as_term(operand), type))
        if type.word == "DECIMAL" or not fails or operand.value is None or type.word not in CASTS:
            return Literal(cast_value(operand.value, type))
        if type.word == "STRING" and not isinstance(operand.value, str):
            return Literal(cast_value(operand.value, type))
        try:
            return Literal(CASTS[type.word](operand.value))  # type: ignore[arg-type]
        except (ValueError, OverflowError) as error:
            raise self.error(str(error), at) from None

    def close_call(self, at: int) -> None:
        """The closing parenthesis of a call."""
        if self.kinds[self.at] != ")":
            raise left_over(self.text, self.tokens, self.at, self.positions[at + 1])
        self.at += 1
        self.opened.pop()
        self.depth -= 1

    # Intervals.

    def begins_interval(self, at: int) -> bool:
        """Whether `INTERVAL 1 DAY` begins here, rather than an attribute of that name."""
        if self.word(at) != "INTERVAL":
            return False
        if self.kinds[at + 1] == "constant":
            return True
        return self.kinds[at + 1] == "sign" and self.kinds[at + 2] == "constant" and self.unit(at + 3) is not None

    def interval(self, start: int) -> Literal:
        """`INTERVAL 1 DAY 2 HOURS`, `INTERVAL '1' DAY` and `INTERVAL '1 day'`: of fixed length only."""
        self.at = start + 1
        total = timedelta()
        first = self.values[self.at]
        if isinstance(first, str) and self.unit(self.at + 1) is None:
            self.at += 1
            words = first.split()
            if len(words) % 2 or not words:
                raise self.error("an interval is written INTERVAL '2' HOUR, or INTERVAL '2 hours'", start)
            for number, name in zip(words[::2], words[1::2], strict=True):
                total += self.length(number, name, start)
            return Literal(total)
        while self.kinds[self.at] in ("constant", "sign"):
            at = self.at
            negative = False
            if self.kinds[at] == "sign":
                if self.kinds[at + 1] != "constant" or self.unit(at + 2) is None:
                    break
                negative, at = self.values[at] == "-", at + 1
            unit = self.unit(at + 1)
            if unit is None:
                break
            length = self.length(self.values[at], unit, at)
            total += -length if negative else length
            self.at = at + 2
        if self.at == start + 1:
            raise self.error("an interval is written INTERVAL 2 HOURS, with a unit", start)
        return Literal(total)

    def unit(self, at: int) -> str | None:
        """The unit of an interval that stands here, in the singular."""
        if at >= len(self.kinds) or self.kinds[at] != "name":
            return None
        word = self.word(at).lower().removesuffix("s")
        return word if word in UNITS or word in _VARIABLE else None

    def length(self, number: Raw, unit: str, at: int) -> timedelta:
        """So many units."""
        name = unit.lower().removesuffix("s")
        if name in _VARIABLE:
            raise self.error(f"an interval of a {name} has no fixed length; use days", at)
        if name not in UNITS:
            raise self.error(f"{unit!r} is not a unit of intervals; use one of {', '.join(UNITS)}", at)
        try:
            exact = Decimal(number) if isinstance(number, (int, str, Decimal)) else None
            if exact is None or not exact.is_finite() or (name != "second" and exact % 1):
                raise self.error("an interval has a whole number of units, and only seconds a fraction", at)
            return timedelta(microseconds=int(exact * (UNITS[name] // timedelta(microseconds=1))))
        except (ArithmeticError, OverflowError):
            raise self.error("the interval is too long, or not a number", at) from None

    # Small things.

    def condition(self, operand: Operand, at: int) -> Filter:
        """An operand where a condition must be."""
        if isinstance(operand, Filter):
            return operand
        result = as_condition(operand)
        if result is None:
            if isinstance(operand, Term):
                raise self.error(f"{operand.sql} is not a condition; compare it: {operand.sql} > 5", at)
            raise self.error("a constant alone is not a condition; compare an attribute with it: a = 5", at)
        return result

    def compared_terms(self, left: Operand, operator: str, right: Operand, at: int) -> Filter:
        """A comparison of two terms."""
        try:
            result = compare_terms(left, operator, right)  # type: ignore[arg-type]
        except (FilterSyntaxError, LimitError):
            raise
        except FilterError as error:
            raise self.error(str(error), at) from None
        return result

    def word(self, at: int) -> str:
        """The unquoted word at a token, in capitals; an empty string where there is none."""
        value = self.values[at]
        if self.kinds[at] == "constant" or not isinstance(value, str) or self.backquoted(at):
            return ""
        return value.upper()

    def backquoted(self, at: int) -> bool:
        """Whether a name is in backquotes."""
        return self.text.startswith("`", self.positions[at])

    def deepen(self, levels: int) -> None:
        """Go so many levels deeper."""
        self.depth += levels
        if self.depth > self.limits.depth:
            raise over_limit(f"the filter is nested {self.depth:,} levels deep or more", "depth", self.limits)

    def error(self, message: str, at: int) -> FilterSyntaxError:
        """An error at a token."""
        return FilterSyntaxError(message.replace("\n", "\\n"), self.text, self.positions[at])
