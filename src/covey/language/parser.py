"""Tokens to a filter, by recursive descent with SQL's precedence as Spark's grammar has it.

Written by hand because a general SQL parser (sqlglot reads some 10,000 expressions a second) is too slow for a
million subscriptions and can't put a caret under the token that is wrong.

Spark's grammar, in short; NOT binds tighter than AND and looser than every test, a comparison is itself a value
(so `a = 1 IS TRUE` is `(a = 1) IS TRUE`), and at most one test other than a comparison follows a value:

    expression := term ((AND | OR) term)*         AND before OR
    term       := (NOT | !)* value test?
    value      := operand (comparison operand)*
    test       := IS [NOT] (NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM operand)
                | [NOT] (IN (…) | BETWEEN operand AND operand | LIKE operand [ESCAPE operand] | RLIKE operand)
    operand    := attribute | constant | function(…) | ( expression ) | (+ | -) operand

An expression in parentheses may turn out to be a mere value (`(a) = 5`), so every rule gives an operand, and it
becomes a condition where one is needed. Recursion goes only through parentheses and function arguments, three
Python frames a level, and `limits.depth` bounds it.
"""

from __future__ import annotations

from typing import Any, Final

from covey.errors import FilterError, FilterSyntaxError
from covey.filters.algebra import And, Filter, Is, Not, Or
from covey.filters.predicates import Between, Compare, In, IsNull, Like, Operator, Predicate, RLike
from covey.filters.values import Scalar
from covey.language.bounds import over_limit
from covey.language.functions import FUNCTIONS, Call, call_function, unknown_function
from covey.language.lexer import tokenize
from covey.language.literals import CASTS
from covey.language.mistakes import ARITHMETIC, left_over, query_word, two_attributes, unexpected
from covey.language.operands import FLIPPED, Literal, Operand, as_condition, compare_condition, test
from covey.limits import Limits

_AFTER_TERM: Final = frozenset({"AND", "OR", ")", "end"})
_TESTS: Final = frozenset({"IS", "IN", "BETWEEN", "LIKE", "RLIKE", "REGEXP", "NOT"})
_WORDS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_TRUTHS: Final = {"TRUE": True, "FALSE": False, "UNKNOWN": None}


def parse_sql(text: str, limits: Limits) -> Filter:
    """The filter of a SQL WHERE condition."""
    return _Parser(text, limits).parse()


class _Parser:
    __slots__ = ("at", "depth", "kinds", "limits", "opened", "positions", "text", "tokens", "values")

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.tokens = tokenize(text, limits)
        self.kinds, self.values, self.positions = self.tokens
        self.at = 0
        self.depth = 0
        self.opened: list[int] = []

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
        if kind == "name" and kinds[at + 1] == "comparison" and kinds[at + 2] == "constant":
            values = self.values
            self.at = at + 3
            compared = Compare(values[at], values[at + 1], values[at + 2])  # type: ignore[arg-type]
            return compared if kinds[at + 3] in _AFTER_TERM else self.tests(self.comparisons(compared, at), at)
        if kind != "NOT":
            return self.tests(self.comparisons(self.operand(), at), at)
        while kinds[self.at] == "NOT":
            self.at += 1
        start = self.at
        negations = start - at
        self.deepen(negations)
        negated = self.condition(self.tests(self.comparisons(self.operand(), start), start), start)
        self.depth -= negations
        for _ in range(negations):
            negated = Not(negated)
        return negated

    def comparisons(self, left: Operand, start: int) -> Operand:
        while self.kinds[self.at] == "comparison":
            operator: Operator = self.values[self.at]  # type: ignore[assignment]
            self.at = at = self.at + 1
            left = self.compared(left, operator, self.operand(), start, at)
        return left

    def compared(self, left: Operand, operator: Operator, right: Operand, start: int, at: int) -> Filter:
        if isinstance(left, str) and isinstance(right, str):
            raise self.error(two_attributes(left, right), at)
        if isinstance(right, Literal) and not isinstance(left, Filter):
            return self.made(start, Compare, left, operator, right.value)
        if isinstance(left, Literal) and isinstance(right, str):
            return self.made(start, Compare, right, FLIPPED[operator], left.value)
        condition, constant = (left, right) if isinstance(left, Filter) else (right, left)
        if isinstance(condition, Filter) and isinstance(constant, Literal):
            result = compare_condition(condition, operator, constant.value)
            if result is not None:
                return result
        raise self.error(
            "a condition compares only with TRUE, FALSE and NULL, by =, != and <=>; join conditions by AND, OR", at
        )

    def tests(self, subject: Operand, start: int) -> Operand:
        kind = self.kinds[self.at]
        if kind in _AFTER_TERM or kind not in _TESTS:
            return subject
        if kind == "IS":
            self.at += 1
            return self.is_test(subject, start)
        negated = kind == "NOT"
        if negated:
            kind = self.kinds[self.at + 1]
            if kind not in _TESTS or kind == "IS":
                return subject
            self.at += 1
        if isinstance(subject, Filter):
            raise self.error(f"{kind} tests an attribute, not a condition; join conditions by AND, OR", self.at)
        self.at += 1
        if kind == "IN":
            result = self.made(start, In, subject, self.list_of_constants())
        elif kind == "BETWEEN":
            low = self.constant("BETWEEN")
            self.expect("AND", "BETWEEN takes two ends: a BETWEEN 1 AND 5")
            result = self.made(start, Between, subject, low, self.constant("BETWEEN"))
        elif kind == "LIKE":
            result = self.like(subject, start)
        else:
            result = self.made(start, RLike, subject, self.pattern(kind))
        return Not(result) if negated else result

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
            same = self.compared(subject, "<=>", self.operand(), start, self.at - 1)
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
            if following == "(" and not self.backquoted(at):
                return self.call(at)
            if following == "constant":
                typed = self.typed_constant(at)
                if typed is not None:
                    return typed
            self.at = at + 1
            name: str = self.values[at]  # type: ignore[assignment]
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

    def signed(self) -> Literal:
        start = self.at
        negative = False
        while self.kinds[self.at] == "sign":
            negative ^= self.values[self.at] == "-"
            self.at += 1
        at = self.at
        operand = self.operand()
        if not isinstance(operand, Literal):
            raise self.error(ARITHMETIC, start)
        value = operand.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error("a sign stands only before a number", at)
        return Literal(-value) if negative else operand

    def typed_constant(self, at: int) -> Literal | None:
        """`TIMESTAMP '…'` and `DATE '…'`."""
        word, value = self.word(at), self.values[at + 1]
        if word not in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE") or not isinstance(value, str):
            return None
        self.at = at + 2
        return self.cast(word, value, at)

    def cast(self, type_name: str, value: Scalar | None, at: int) -> Literal:
        if value is None:
            return Literal(None)
        try:
            return Literal(CASTS[type_name](value))
        except (ValueError, OverflowError) as error:
            raise self.error(str(error), at) from None

    def constant(self, where: str) -> Scalar | None:
        at = self.at
        if self.kinds[at] == "constant":
            self.at = at + 1
            return self.values[at]
        operand = self.operand()
        if isinstance(operand, Literal):
            return operand.value
        if isinstance(operand, str):
            raise self.error(f"{where} takes constants; a string is written in quotes: '{operand}'", at)
        raise self.error(f"{where} takes constants, not a condition", at)

    def list_of_constants(self) -> tuple[Scalar | None, ...]:
        opening = self.at
        self.expect("(", "IN takes a list in parentheses: a IN (1, 2)")
        if self.kinds[self.at] == ")":
            raise self.error("IN takes at least one value: a IN (1, 2)", self.at)
        values = [self.constant("IN")]
        while self.kinds[self.at] == ",":
            self.at += 1
            values.append(self.constant("IN"))
        if self.kinds[self.at] != ")":
            if self.kinds[self.at] == "end":
                raise left_over(self.text, self.tokens, self.at, self.positions[opening])
            raise self.error("the values of IN are separated by commas and closed by )", self.at)
        self.at += 1
        if len(values) > self.limits.set_values:
            raise over_limit(f"IN has {len(values):,} values", "set_values", self.limits)
        return tuple(values)

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

    def like(self, subject: str | Literal, start: int) -> Filter:
        if self.word(self.at) in ("ANY", "SOME", "ALL"):
            raise self.error("LIKE ANY and LIKE ALL are not supported; join several LIKE by OR, AND", self.at)
        pattern = self.pattern("LIKE")
        if self.word(self.at) != "ESCAPE":
            return self.made(start, Like, subject, pattern)
        self.at += 1
        return self.made(start, Like, subject, pattern, self.pattern("ESCAPE"))

    # Functions.

    def call(self, at: int) -> Operand:
        name = self.word(at)
        self.at = at + 2
        if name == "CAST":
            return self.cast_call(at)
        if name not in CASTS and name.lower() not in FUNCTIONS:
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
        if name in CASTS:
            return self.converted(name, call.arguments, at)
        if name in ("LIKE", "RLIKE", "REGEXP", "REGEXP_LIKE"):
            for argument in call.arguments:
                if isinstance(argument, Literal) and isinstance(argument.value, str):
                    self.check_pattern(argument.value)
        try:
            return call_function(call)
        except FilterSyntaxError:
            raise
        except FilterError as error:
            raise self.error(str(error), at) from None

    def close_call(self, at: int) -> None:
        if self.kinds[self.at] != ")":
            raise left_over(self.text, self.tokens, self.at, self.positions[at + 1])
        self.at += 1
        self.opened.pop()
        self.depth -= 1

    def converted(self, type_name: str, arguments: list[Operand], at: int) -> Literal:
        if len(arguments) != 1 or not isinstance(arguments[0], Literal):
            name = type_name.lower()
            raise self.error(f"only a constant can be converted: {name}('…'); compare an attribute as it is", at)
        return self.cast(type_name, arguments[0].value, at)

    def cast_call(self, at: int) -> Literal:
        """`CAST(constant AS type)`."""
        self.deepen(1)
        self.opened.append(self.positions[at + 1])
        operand = self.expression()
        if self.word(self.at) != "AS":
            raise self.error("CAST is written CAST(constant AS type)", self.at)
        self.at += 1
        type_name = self.word(self.at)
        if type_name not in CASTS:
            raise self.error(f"CAST knows the types {', '.join(CASTS)}", self.at)
        self.at += 1
        self.close_call(at)
        return self.converted(type_name, [operand], at)

    # Small things.

    def condition(self, operand: Operand, at: int) -> Filter:
        if isinstance(operand, Filter):
            return operand
        result = as_condition(operand)
        if result is None:
            raise self.error("a constant alone is not a condition; compare an attribute with it: a = 5", at)
        return result

    def made(self, at: int, predicate: type[Predicate], subject: str | Literal, *arguments: Any) -> Filter:
        try:
            return test(predicate, subject, *arguments)
        except FilterError as error:
            raise self.error(str(error), at) from None

    def word(self, at: int) -> str:
        """The unquoted word at a token, in capitals; an empty string where there is none."""
        value = self.values[at]
        if self.kinds[at] == "constant" or not isinstance(value, str) or self.backquoted(at):
            return ""
        return value.upper()

    def backquoted(self, at: int) -> bool:
        return self.text.startswith("`", self.positions[at])

    def expect(self, kind: str, remedy: str) -> None:
        if self.kinds[self.at] != kind:
            raise self.error(remedy, self.at)
        self.at += 1

    def deepen(self, levels: int) -> None:
        self.depth += levels
        if self.depth > self.limits.depth:
            raise over_limit(f"the filter is nested {self.depth:,} levels deep or more", "depth", self.limits)

    def error(self, message: str, at: int) -> FilterSyntaxError:
        return FilterSyntaxError(message.replace("\n", "\\n"), self.text, self.positions[at])
