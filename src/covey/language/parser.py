"""Tokens to a filter, by recursive descent with SQL's precedence as Spark's grammar has it.

Written by hand because a general SQL parser (sqlglot reads some 10,000 expressions a second) is too slow for a
million subscriptions and can't put a caret under the token that is wrong.

Spark's grammar, in short; NOT binds tighter than AND and looser than every test, a comparison is itself a value
(so `a = 1 IS TRUE` is `(a = 1) IS TRUE`), and at most one test other than a comparison follows a value:

    expression := term ((AND | OR) term)*         AND before OR
    term       := (NOT | !)* value test?
    value      := operand (comparison operand)*
    test       := IS [NOT] (NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM operand)
                | [NOT] (IN (…) | BETWEEN operand AND operand | RLIKE operand
                         | (LIKE | ILIKE) (operand [ESCAPE operand] | (ANY | SOME | ALL) (…)))
    operand    := attribute | constant | function(…) | ( expression ) | (+ | -) operand

An expression in parentheses may turn out to be a mere value (`(a) = 5`), so every rule gives an operand, and it
becomes a condition where one is needed. Recursion goes only through parentheses and function arguments, three
Python frames a level, and `limits.depth` bounds it.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from covey.errors import FilterError, FilterSyntaxError
from covey.filters.algebra import And, Filter, Is, Not, Or, all_of, any_of
from covey.filters.caseless import ILike
from covey.filters.casting import TYPE_WORDS, CastType
from covey.filters.predicates import Between, Compare, In, IsNull, Like, Operator, Predicate, RLike
from covey.filters.term_functions import NAMED
from covey.filters.terms import Term
from covey.filters.values import Scalar
from covey.language.bounds import over_limit
from covey.language.elements import ELEMENT_FUNCTIONS, element_call
from covey.language.functions import Call, call_function, function_named, unknown_function
from covey.language.literals import CASTS
from covey.language.mistakes import left_over, not_a_constant, query_word, unexpected
from covey.language.operands import (
    FLIPPED,
    Literal,
    Operand,
    Subject,
    as_term,
    compare_condition,
    is_only_in_terms,
    test,
)
from covey.language.plain_tests import read_plain
from covey.language.term_parser import TermParser
from covey.limits import Limits

_AFTER_TERM: Final = frozenset({"AND", "OR", ")", "end"})
_AFTER_VALUE: Final = frozenset({",", ")"})
_TESTS: Final = frozenset({"IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "NOT"})
_LIKES: Final[dict[str, type[Like] | type[ILike]]] = {"LIKE": Like, "ILIKE": ILike}
_QUANTIFIERS: Final = frozenset({"ANY", "SOME", "ALL"})
_WORDS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_TRUTHS: Final = {"TRUE": True, "FALSE": False, "UNKNOWN": None}
_CASE_WORDS: Final = frozenset({"CASE", "case", "Case"})


def _needs_term(*operands: Operand) -> bool:
    """Whether a constant among these is one that only terms compare with: an interval, or a decimal with more digits
    than a double keeps."""
    return any(isinstance(one, Literal) and is_only_in_terms(one.value) for one in operands)


def _takes_places(arguments: list[Operand]) -> bool:
    """Whether substring is called as Spark has it, with places, rather than as the test with a text."""
    second = arguments[1] if len(arguments) > 1 else None
    return len(arguments) == 3 or not (isinstance(second, Literal) and isinstance(second.value, str))


def parse_sql(text: str, limits: Limits) -> Filter:
    """The filter of a SQL WHERE condition."""
    plain = read_plain(text, limits)
    return _Parser(text, limits).parse() if plain is None else plain


_ANY_SIZE: Final = Limits(text_length=1 << 24, tokens=1 << 22, depth=300, term_depth=300, set_values=1 << 22)
"""For terms that were accepted once."""


def read_term(text: str, limits: Limits = _ANY_SIZE) -> Term:
    """The term of a SQL expression."""
    parser = _Parser(text, limits)
    operand = parser.expression()
    if parser.kinds[parser.at] != "end":
        raise left_over(text, parser.tokens, parser.at, None)
    return as_term(operand)


class _Parser(TermParser):
    __slots__ = ()

    def parse(self) -> Filter:
        operand = self.expression()
        if self.kinds[self.at] != "end":
            raise left_over(self.text, self.tokens, self.at, None)
        return operand if isinstance(operand, Filter) else self.condition(operand, 0)

    # The grammar, from loose to tight.

    def expression(self) -> Operand:
        start = self.at
        operand = self.term()
        kind = self.kinds[self.at]
        if kind != "AND" and kind != "OR":
            return operand
        conjuncts = [self.condition(operand, start)]
        disjuncts: list[Filter] = []
        while True:
            if kind == "OR":
                disjuncts.append(conjuncts[0] if len(conjuncts) == 1 else And(tuple(conjuncts)))
                conjuncts = []
            elif kind != "AND":
                break
            self.at = start = self.at + 1
            conjuncts.append(self.condition(self.term(), start))
            kind = self.kinds[self.at]
        last = conjuncts[0] if len(conjuncts) == 1 else And(tuple(conjuncts))
        return Or((*disjuncts, last)) if disjuncts else last

    def term(self) -> Operand:
        kinds, at = self.kinds, self.at
        kind = kinds[at]
        # `attribute operator constant` is most of what is written, and needs no further calls.
        values = self.values
        if (
            kind == "name"
            and kinds[at + 1] == "comparison"
            and kinds[at + 2] == "constant"
            and (type(values[at + 2]) is not Decimal)
        ):
            self.at = at + 3
            compared = Compare(values[at], values[at + 1], values[at + 2])  # type: ignore[arg-type]
            return compared if kinds[at + 3] in _AFTER_TERM else self.tests(self.comparisons(compared, at), at)
        if kind != "NOT":
            return self.tests(self.comparisons(self.value(), at), at)
        while kinds[self.at] == "NOT":
            self.at += 1
        start = self.at
        negations = start - at
        self.deepen(negations)
        negated = self.condition(self.tests(self.comparisons(self.value(), start), start), start)
        self.depth -= negations
        for _ in range(negations):
            negated = Not(negated)
        return negated

    def comparisons(self, left: Operand, start: int) -> Operand:
        while self.kinds[self.at] == "comparison":
            operator: Operator = self.values[self.at]  # type: ignore[assignment]
            self.at = at = self.at + 1
            left = self.compared(left, operator, self.value(), start, at)
        return left

    def compared(self, left: Operand, operator: Operator, right: Operand, start: int, at: int) -> Filter:
        if isinstance(right, Literal) and not isinstance(left, Filter) and not _needs_term(left, right):
            return self.made(start, Compare, left, operator, right.value)
        if isinstance(left, Literal) and isinstance(right, (str, Term)) and not _needs_term(left):
            return self.made(start, Compare, right, FLIPPED[operator], left.value)
        condition, constant = (left, right) if isinstance(left, Filter) else (right, left)
        if isinstance(condition, Filter) and isinstance(constant, Literal):
            result = compare_condition(condition, operator, constant.scalar)
            if result is not None:
                return result
            raise self.error(
                "a condition compares only with TRUE, FALSE and NULL, by =, != and <=>; join conditions by AND, OR", at
            )
        mistake = not_a_constant(left, right)
        if mistake is not None and not self.backquoted(at):
            raise self.error(mistake, at)
        return self.compared_terms(left, operator, right, at)

    def case_test(self, subject: Operand, given: Operand, at: int) -> Filter:
        return self.compared(subject, "=", given, at, at)

    def tests(self, subject: Operand, start: int) -> Operand:
        kind = self.test_kind(self.at)
        if kind in _AFTER_TERM or kind not in _TESTS:
            return subject
        if kind == "IS":
            self.at += 1
            return self.is_test(subject, start)
        negated = kind == "NOT"
        if negated:
            kind = self.test_kind(self.at + 1)
            if kind not in _TESTS or kind == "IS":
                return subject
            self.at += 1
        if isinstance(subject, Filter):
            raise self.error(f"{kind} tests an attribute, not a condition; join conditions by AND, OR", self.at)
        self.at += 1
        if kind == "IN":
            result = self.membership(subject, start)
        elif kind == "BETWEEN":
            result = self.between(subject, start)
        elif kind in _LIKES:
            if self.word(self.at) in _QUANTIFIERS:
                return self.likes(kind, subject, start, negated)
            result = self.like(kind, subject, start)
        else:
            result = self.made(start, RLike, subject, self.pattern(kind))
        return Not(result) if negated else result

    def test_kind(self, at: int) -> str:
        """The kind of a token where a test may begin; ILIKE is a name anywhere else, as in Spark."""
        kind = self.kinds[at]
        return "ILIKE" if kind == "name" and self.word(at) == "ILIKE" else kind

    def between(self, subject: Subject, start: int) -> Filter:
        low_at = self.at
        low = self.value()
        self.expect("AND", "BETWEEN takes two ends: a BETWEEN 1 AND 5")
        high_at = self.at
        high = self.value()
        if isinstance(low, Literal) and isinstance(high, Literal) and not _needs_term(subject, low, high):
            return self.made(start, Between, subject, low.value, high.value)
        above = self.compared(subject, ">=", low, start, low_at)
        return And((above, self.compared(subject, "<=", high, start, high_at)))

    def membership(self, subject: Subject, start: int) -> Filter:
        values, places = self.listed_values()
        if all(isinstance(value, Literal) for value in values) and not _needs_term(subject, *values):
            return self.made(start, In, subject, tuple(value.value for value in values))  # type: ignore[union-attr]
        tests = [self.compared(subject, "=", value, start, at) for value, at in zip(values, places, strict=True)]
        return any_of(tests)

    def is_test(self, subject: Operand, start: int) -> Filter:
        negated = self.kinds[self.at] == "NOT"
        if negated:
            self.at += 1
        at = self.at
        word = self.word(at)
        self.at += 1
        if word == "NULL":
            result = Is(subject, None) if isinstance(subject, Filter) else self.made(start, IsNull, subject)
        elif word in _TRUTHS:
            result = Is(self.condition(subject, start), _TRUTHS[word])
        elif word == "DISTINCT" and self.word(self.at) == "FROM":
            self.at += 1
            same = self.compared(subject, "<=>", self.value(), start, self.at - 1)
            return same if negated else Not(same)
        else:
            raise self.error(
                "IS takes [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM; to compare with a constant, write =", at
            )
        return Not(result) if negated else result

    def operand(self) -> Operand:
        at = self.at
        kind = self.kinds[at]
        if kind == "name":
            following = self.kinds[at + 1]
            name: str = self.values[at]  # type: ignore[assignment]
            if name in _CASE_WORDS and self.begins_case(at):
                return self.case(at)
            if following == "(" and not self.backquoted(at):
                return self.call(at)
            if following == "constant" or following == "sign":
                typed = self.typed_constant(at)
                if typed is not None:
                    return typed
            self.at = at + 1
            remedy = query_word(name) if following not in _AFTER_TERM and following not in _TESTS else None
            if remedy and following != "comparison" and not self.backquoted(at):
                raise self.error(remedy, at)
            return name
        if kind == "constant":
            self.at = at + 1
            return Literal(self.values[at])
        if kind in _WORDS:
            self.at = at + 1
            return Literal(_WORDS[kind])
        if kind == "(":
            return self.parenthesis()
        if kind == "sign":
            return self.signed()
        if kind in ("LIKE", "RLIKE", "REGEXP") and self.kinds[at + 1] == "(":
            return self.call(at)
        raise unexpected(self.text, self.tokens, at)

    def parenthesis(self) -> Operand:
        self.deepen(1)
        self.opened.append(self.positions[self.at])
        self.at += 1
        inner = self.expression()
        if self.kinds[self.at] != ")":
            raise left_over(self.text, self.tokens, self.at, self.opened[-1])
        self.at += 1
        self.opened.pop()
        self.depth -= 1
        return inner

    # Constants.

    def signed(self) -> Operand:
        negative = False
        while self.kinds[self.at] == "sign":
            negative ^= self.values[self.at] == "-"
            self.at += 1
        at = self.at
        operand = self.subscripts(self.operand(), at)
        if isinstance(operand, Literal):
            value = operand.value
            if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, timedelta, type(None))):
                raise self.error("a sign stands only before a number", at)
            if isinstance(value, Decimal):  # minus alone would lose the sign of zero
                return Literal(value.copy_negate()) if negative else operand
            return Literal(-value) if negative and value is not None else operand
        if isinstance(operand, Filter):
            raise self.error("a sign stands only before a number", at)
        return self.negated(operand, at) if negative else operand

    def typed_constant(self, at: int) -> Literal | None:
        """`TIMESTAMP '…'`, `DATE '…'` and `INTERVAL …`."""
        if self.begins_interval(at):
            return self.interval(at)
        word, value = self.word(at), self.values[at + 1]
        if word not in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE") or not isinstance(value, str):
            return None
        if self.kinds[at + 1] != "constant":
            return None
        self.at = at + 2
        try:
            return Literal(CASTS[word](value))
        except (ValueError, OverflowError) as error:
            raise self.error(str(error), at) from None

    def constant(self, where: str) -> Scalar | None:
        at = self.at
        operand = self.value()
        if isinstance(operand, Literal):
            return operand.scalar
        if isinstance(operand, str):
            raise self.error(f"{where} takes constants; a string is written in quotes: '{operand}'", at)
        raise self.error(f"{where} takes constants, not a {'condition' if isinstance(operand, Filter) else 'term'}", at)

    def listed_values(self) -> tuple[list[Operand], list[int]]:
        opening = self.at
        self.expect("(", "IN takes a list in parentheses: a IN (1, 2)")
        if self.kinds[self.at] == ")":
            raise self.error("IN takes at least one value: a IN (1, 2)", self.at)
        places = [self.at]
        values = [self.listed()]
        while self.kinds[self.at] == ",":
            self.at += 1
            places.append(self.at)
            values.append(self.listed())
        if self.kinds[self.at] != ")":
            if self.kinds[self.at] == "end":
                raise left_over(self.text, self.tokens, self.at, self.positions[opening])
            raise self.error("the values of IN are separated by commas and closed by )", self.at)
        self.at += 1
        if len(values) > self.limits.set_values:
            raise over_limit(f"IN has {len(values):,} values", "set_values", self.limits)
        return values, places

    def listed(self) -> Operand:
        at = self.at
        if self.kinds[at] == "constant" and self.kinds[at + 1] in _AFTER_VALUE:
            self.at = at + 1
            return Literal(self.values[at])
        return self.value()

    def pattern(self, where: str) -> str:
        at = self.at
        value = self.constant(where)
        if not isinstance(value, str):
            raise self.error(f"{where} takes a pattern in quotes", at)
        self.check_pattern(value)
        return value

    def check_pattern(self, pattern: str) -> None:
        if len(pattern) > self.limits.pattern_length:
            raise over_limit(f"the pattern has {len(pattern):,} characters", "pattern_length", self.limits)

    def like(self, kind: str, subject: Subject, start: int) -> Filter:
        pattern = self.pattern(kind)
        if self.word(self.at) != "ESCAPE":
            return self.made(start, _LIKES[kind], subject, pattern)
        self.at += 1
        return self.made(start, _LIKES[kind], subject, pattern, self.pattern("ESCAPE"))

    def likes(self, kind: str, subject: Subject, start: int, negated: bool) -> Filter:
        """`LIKE ANY (…)`, `NOT LIKE ALL (…)`: NOT belongs to each pattern, as in Spark."""
        quantifier = self.word(self.at)
        where = f"{kind} {quantifier}"
        self.at += 1
        parts: list[Filter] = []
        for at, pattern in self.patterns(where):
            if pattern is None:
                parts.append(self.made(start, Compare, subject, "=", None))
                continue
            if not isinstance(pattern, str):
                raise self.error(f"{where} takes patterns in quotes", at)
            self.check_pattern(pattern)
            fits = self.made(start, _LIKES[kind], subject, pattern)
            parts.append(Not(fits) if negated else fits)
        if self.word(self.at) == "ESCAPE":
            raise self.error(f"{where} takes no ESCAPE; write a backslash before %, _ and itself", self.at)
        return all_of(parts) if quantifier == "ALL" else any_of(parts)

    def patterns(self, where: str) -> list[tuple[int, Scalar | None]]:
        """The constants of a list in parentheses, each with the token at which it stands."""
        opening = self.at
        self.expect("(", f"{where} takes patterns in parentheses: a {where} ('x%', '%y')")
        found: list[tuple[int, Scalar | None]] = []
        while True:
            at = self.at
            found.append((at, self.constant(where)))
            if self.kinds[self.at] != ",":
                break
            self.at += 1
        if self.kinds[self.at] != ")":
            raise left_over(self.text, self.tokens, self.at, self.positions[opening])
        self.at += 1
        if len(found) > self.limits.set_values:
            raise over_limit(f"{where} has {len(found):,} patterns", "set_values", self.limits)
        return found

    # Functions.

    def call(self, at: int) -> Operand:
        name = self.word(at)
        if name in ELEMENT_FUNCTIONS:
            about_elements = element_call(self, at)
            if about_elements is not None:
                return about_elements
        self.at = at + 2
        if name in ("CAST", "TRY_CAST"):
            return self.cast_call(at)
        function = function_named(name)
        term_function = self.term_function(name)
        if name not in CASTS and function is None and term_function is None and name not in ("IF", "SUBSTRING"):
            raise unknown_function(self.text, self.positions[at], str(self.values[at]))
        self.deepen(1)
        self.opened.append(self.positions[at + 1])
        call = Call(self.text, str(self.values[at]), self.positions[at], [], [])
        if self.word(self.at) in ("SELECT", "WITH") and self.kinds[self.at + 1] != ")":
            raise self.error("queries and subqueries are not supported; a filter is a condition on one event", self.at)
        while self.kinds[self.at] != ")" or call.arguments:
            call.positions.append(self.positions[self.at])
            call.arguments.append(self.expression())
            if self.kinds[self.at] != ",":
                break
            self.at += 1
        self.close_call(at)
        if name == "IF":
            return self.if_call(call.arguments, at)
        if name == "SUBSTRING" and _takes_places(call.arguments):
            return self.call_term(NAMED["substr"], call.arguments, at)
        if function is None:
            if term_function is not None:
                return self.call_term(term_function, call.arguments, at)
            if len(call.arguments) != 1:
                raise self.error(f"{name.lower()} takes 1 argument, not {len(call.arguments)}", at)
            return self.converted(CastType(TYPE_WORDS[name]), call.arguments[0], at, fails=True)
        if function.takes_patterns:
            for argument in call.arguments:
                if isinstance(argument, Literal) and isinstance(argument.value, str):
                    self.check_pattern(argument.value)
        try:
            return call_function(function, call)
        except FilterSyntaxError:
            raise
        except FilterError as error:
            raise self.error(str(error), at) from None

    # Small things.

    def made(self, at: int, predicate: type[Predicate], subject: Subject, *arguments: Any) -> Filter:
        try:
            return test(predicate, subject, *arguments)
        except FilterError as error:
            raise self.error(str(error), at) from None

    def name_at(self, at: int) -> str:
        """What a token that is no constant says."""
        return str(self.values[at])

    def expect(self, kind: str, remedy: str) -> None:
        if self.kinds[self.at] != kind:
            raise self.error(remedy, self.at)
        self.at += 1
