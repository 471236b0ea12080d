"""Message selectors: those of JMS 2.0 as `jms`, and AMQP's SQL filter expressions, as RabbitMQ reads them, as `amqp`.

    condition  := alternative (OR alternative)*       alternative := negation (AND negation)*
    negation   := NOT negation | comparison
    comparison := sum [(= | <> | < | <= | > | >=) sum | [NOT] BETWEEN sum AND sum | [NOT] IN (sum, …)
                       | [NOT] LIKE 'pattern' [ESCAPE 'c'] | IS [NOT] NULL]
    sum, product, sign as everywhere; a primary is a literal, an identifier or a condition in parentheses

A selector is three-valued: what is null makes a test unknown. But a comparison of unlike kinds (a number with a text)
is false, where SQL here has it unknown, which shows under NOT. So a condition is written in two ways:
as a filter that is true where the condition is true, and as one that is true where it is false (`_Selectors.filter`).
What the standard leaves open is as ActiveMQ, Artemis and Qpid have it, which agree: `<>` is NOT `=`, of unlike kinds
too, `5 / 2` is 2.5, an attribute's sum is a condition that never holds, LIKE of what isn't text is false, `+` of a text
joins it, and an escape character escapes `%`, `_` and itself, and is itself elsewhere. Of text and Booleans JMS has
only `=` and `<>`: being below a literal of theirs is false. In AMQP, as RabbitMQ has it, texts are in order, LIKE of
what isn't text is unknown, all characters can be escaped, integers have no octal form and texts no `+`.

AMQP's sections are prefixes of names: `properties.group-id` or `p.group-id`, `header.priority` or `h.priority`, which
is 4 where it is missing; `application-properties.color` or, in AMQP, `a.color` is plain `color`. In AMQP other names
with dots are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from covey.errors import FilterError, FilterSyntaxError
from covey.filters.algebra import FALSE, TRUE, UNKNOWN, And, Filter, Is, Not, Or, all_of, any_of
from covey.filters.predicates import Between, Compare, In, IsNull, Like, Operator
from covey.filters.term_functions import compare_raw
from covey.filters.terms import Fixed, Path, Term, call, comparison, fixed, known_term
from covey.filters.values import Kind
from covey.language.bounds import over_limit
from covey.language.operands import FLIPPED
from covey.language.scanning import Scanner
from covey.language.selector_tokens import KEYWORDS, TOKEN, like_pattern, read_amqp, read_jms
from covey.limits import Limits

_PRIORITY: Final = "header.priority"
_DEFAULT_PRIORITY: Final = 4
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_UNORDERED: Final = frozenset({Kind.BOOLEAN})
"""Kinds of which no value is below another; in JMS texts too, which AMQP orders."""
_TERM_DEPTH: Final = 40
"""Operations inside each other in one value."""


@dataclass(frozen=True, slots=True)
class Test:
    """A test of values, written as filters: where it is true, and where it is false."""

    holds: Filter
    fails: Filter


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Joined:
    """AND or OR of several."""

    parts: tuple[Condition, ...]
    conjunction: bool


Condition: TypeAlias = Test | Negation | Joined


def parse_jms(text: str, limits: Limits) -> Filter:
    """The filter of a JMS message selector; an empty one selects everything."""
    return TRUE if not text.strip() else _Selectors(text, limits, amqp=False).parse()


def parse_amqp(text: str, limits: Limits) -> Filter:
    """The filter of an AMQP SQL filter expression."""
    return _Selectors(text, limits, amqp=True).parse()


class _Selectors:
    """Reads one selector."""

    def __init__(self, text: str, limits: Limits, *, amqp: bool) -> None:
        """Read a text as AMQP's expression or as JMS's selector."""
        self.scan = Scanner(text, limits, TOKEN, KEYWORDS, read_amqp if amqp else read_jms)
        self.limits = limits
        self.amqp = amqp
        self.unordered = _UNORDERED if amqp else _UNORDERED | {Kind.STRING}

    def parse(self) -> Filter:
        """The filter of the whole text."""
        condition = self.condition()
        if self.scan.kind != "end":
            raise self.scan.unexpected("join conditions by AND or OR")
        return self.filter(condition, True)

    def filter(self, condition: Condition, wanted: bool) -> Filter:
        """A filter that is true exactly where the condition is true, or where it is false."""
        match condition:
            case Test(holds, fails):
                return holds if wanted else fails
            case Negation(part):
                return self.filter(part, not wanted)
            case Joined(parts, conjunction):
                written = tuple(self.filter(part, wanted) for part in parts)
                return And(written) if conjunction is wanted else Or(written)

    # Conditions.

    def condition(self) -> Condition:
        """Alternatives."""
        return self.required(self.disjunction(), self.scan.position)

    def disjunction(self) -> Condition | Term:
        return self.joined("OR", lambda: self.joined("AND", self.negation))

    def joined(self, word: str, member: Callable[[], Condition | Term]) -> Condition | Term:
        start = self.scan.position
        first = member()
        if self.scan.kind != word:
            return first
        parts = [self.required(first, start)]
        while self.scan.accept(word):
            start = self.scan.position
            parts.append(self.required(member(), start))
        return Joined(tuple(parts), word == "AND")

    def negation(self) -> Condition | Term:
        negations = 0
        while self.scan.accept("NOT"):
            negations += 1
        start = self.scan.position
        self.scan.deepen(negations)
        inner = self.comparison()
        self.scan.depth -= negations
        if not negations:
            return inner
        condition = self.required(inner, start)
        return Negation(condition) if negations % 2 else condition

    def required(self, part: Condition | Term, position: int) -> Condition:
        """A part where a condition stands: a Boolean attribute or literal is one."""
        if isinstance(part, Path):
            return Test(Compare(part.name, "=", True), Compare(part.name, "=", False))
        if isinstance(part, Fixed) and isinstance(part.constant, bool):
            return Test(TRUE, FALSE) if part.constant else Test(FALSE, TRUE)
        if not isinstance(part, Term):
            return part
        if not isinstance(part, Fixed):
            return Test(UNKNOWN, UNKNOWN)
        raise self.scan.error("a number or a text is not a condition; compare it with something", position)

    def comparison(self) -> Condition | Term:
        start = self.scan.position
        left = self.sum()
        scan = self.scan
        if scan.kind == "comparison":
            operator: Operator = scan.take().value
            at = scan.position
            right = self.sum()
            if scan.kind == "comparison":
                raise scan.unexpected("comparisons don't follow each other; join them by AND")
            return self.compared(left, operator, right, at)
        negated = scan.kind == "NOT" and scan.ahead() in ("BETWEEN", "IN", "LIKE")
        if negated:
            scan.take()
        if scan.kind not in ("BETWEEN", "IN", "LIKE", "IS"):
            return left
        word = scan.kind
        subject = self.value(left, start)
        scan.take()
        match word:
            case "BETWEEN":
                test = self.between(subject)
            case "IN":
                test = self.is_in(subject)
            case "LIKE":
                test = self.like(subject)
            case _:
                return self.is_null(subject)
        return Negation(test) if negated else test

    def compared(self, left: Condition | Term, operator: Operator, right: Condition | Term, at: int) -> Condition:
        if isinstance(left, Term) and isinstance(right, Term):
            return self.test(left, operator, right)
        condition, other = (right, left) if isinstance(left, Term) else (left, right)
        if isinstance(other, Fixed) and isinstance(other.constant, bool) and operator in ("=", "!="):
            assert not isinstance(condition, Term)
            return condition if (operator == "=") is other.constant else Negation(condition)
        raise self.scan.error("a condition compares only with TRUE and FALSE, by = and <>", at)

    def test(self, left: Term, operator: Operator, right: Term) -> Test:
        """A comparison of two values. Of unlike kinds it is false, of null unknown."""
        if isinstance(left, Fixed) and not isinstance(right, Fixed):
            left, operator, right = right, FLIPPED[operator], left
        there = _there(left, right)
        if operator == "!=":
            same = _compared(left, "=", right)
            return Test(all_of((*there, _untrue(same))), same)
        holds = _compared(left, operator, right)
        if operator in ("<", "<=", ">", ">=") and self.unordered & {left.kind, right.kind}:
            holds = FALSE
        return Test(holds, all_of((*there, _untrue(holds))))

    def between(self, subject: Term) -> Condition:
        low = self.value(self.sum(), self.scan.position)
        self.scan.expect("AND", "BETWEEN takes two ends: a BETWEEN 1 AND 5")
        high = self.value(self.sum(), self.scan.position)
        least, most = self.test(subject, ">=", low), self.test(subject, "<=", high)
        holds: Filter = And((least.holds, most.holds))
        if isinstance(low, Fixed) and isinstance(high, Fixed) and not isinstance(subject, Fixed):
            ends: Any = (low.constant, high.constant)
            kinds = {low.kind, high.kind}
            if len(kinds) == 1 and None not in kinds and not kinds & self.unordered:
                holds = Between(_named(subject), *ends)
        return Test(holds, Or((least.fails, most.fails)))

    def is_in(self, subject: Term) -> Condition:
        self.scan.expect("(", "IN takes a list in parentheses: a IN ('x', 'y')")
        members = [self.value(self.sum(), self.scan.position)]
        while self.scan.accept(","):
            members.append(self.value(self.sum(), self.scan.position))
        self.scan.expect(")", "the values of IN are separated by commas and closed by )")
        if len(members) > self.limits.set_values:
            raise over_limit(f"IN has {len(members):,} values", "set_values", self.limits)
        found: list[Filter] = []
        kinds: dict[Kind, list[Any]] = {}
        for member in members:
            if isinstance(member, Fixed) and member.kind is not None and not isinstance(subject, Fixed):
                kinds.setdefault(member.kind, []).append(member.constant)
            else:
                found.append(_compared(subject, "=", member))
        found[:0] = [In(_named(subject), tuple(dict.fromkeys(values))) for values in kinds.values()]
        holds = any_of(found)
        return Test(holds, all_of((*_there(subject), _untrue(holds))))

    def like(self, subject: Term) -> Condition:
        scan = self.scan
        at = scan.position
        pattern: str = scan.expect("string", "LIKE takes a pattern in quotes").value
        escape = ""
        if scan.accept("ESCAPE"):
            escape_at = scan.position
            escape = scan.expect("string", "ESCAPE takes one character in quotes").value
            if len(escape) != 1:
                raise scan.error("ESCAPE takes one character in quotes", escape_at)
        if len(pattern) > self.limits.pattern_length:
            raise over_limit(f"the pattern has {len(pattern):,} characters", "pattern_length", self.limits)
        if self.amqp and _CONTROL.search(pattern):
            raise scan.error("a pattern of AMQP has no control characters", at)
        written = like_pattern(pattern, escape, every=self.amqp)
        if written is None:
            raise scan.error("the pattern ends in its escape character; a character must follow it", at)
        if isinstance(subject, Fixed):
            known = isinstance(subject.constant, str) and Like("text", written).holds(subject.constant)
            return Test(TRUE, FALSE) if known else Test(FALSE, TRUE)
        test = Like(_named(subject), written)
        return Test(test, Not(test) if self.amqp else all_of((*_there(subject), _untrue(test))))

    def is_null(self, subject: Term) -> Condition:
        negated = self.scan.accept("NOT")
        self.scan.expect("NULL", "IS takes NULL or NOT NULL")
        null = _null(subject)
        test = Test(null, Not(null))
        return Negation(test) if negated else test

    # Values.

    def sum(self) -> Condition | Term:
        return self.operations(("+", "-"), lambda: self.operations(("*", "/", "%"), self.sign))

    def operations(self, operators: tuple[str, ...], member: Callable[[], Condition | Term]) -> Condition | Term:
        start = self.scan.position
        left = member()
        while self.scan.kind in operators:
            token = self.scan.take()
            at = self.scan.position
            left = self.computed(token.kind, token.position, self.value(left, start), self.value(member(), at))
        return left

    def computed(self, operator: str, position: int, *operands: Term) -> Term:
        if operator == "+" and not self.amqp and Kind.STRING in [operand.kind for operand in operands]:
            operator = "concat"
        try:
            term = call(operator, operands)
        except FilterError as error:
            raise self.scan.error(str(error), position) from None
        if term.depth() > _TERM_DEPTH:
            raise self.scan.error(f"more than {_TERM_DEPTH} operations inside each other are too many", position)
        return term

    def sign(self) -> Condition | Term:
        if self.scan.kind not in ("+", "-"):
            return self.primary()
        negative, start = False, self.scan.position
        while self.scan.kind in ("+", "-"):
            negative ^= self.scan.take().kind == "-"
        value = self.value(self.primary(), start)
        if value.kind not in (None, Kind.NUMBER):
            raise self.scan.error("a sign stands only before a number", start)
        if negative:
            return self.computed("negative", start, value)
        return value if isinstance(value, Fixed) else self.computed("+", start, value, fixed(0))

    def primary(self) -> Condition | Term:
        scan = self.scan
        token = scan.take()
        match token.kind:
            case "number" | "string":
                return fixed(token.value)
            case "TRUE" | "FALSE":
                return fixed(token.kind == "TRUE")
            case "section":
                return _PRIORITY_TERM if token.value == _PRIORITY else Path(token.value)
            case "bracketed":
                return Path(token.value)
            case "word":
                if scan.kind == "(":
                    raise self.function(token.value, token.position)
                return Path(token.value)
            case "(":
                scan.deepen()
                inner = self.disjunction()
                scan.expect(")", "close the parenthesis")
                scan.depth -= 1
                return inner
        scan.at -= token.kind != "end"
        raise scan.unexpected("write an identifier, a literal, or a condition in parentheses")

    def function(self, name: str, position: int) -> FilterSyntaxError:
        if name.upper() in ("UTC", "NOW"):
            return self.scan.error(
                f"{name}() is the time, and a filter is about one event; write the constant", position
            )
        return self.scan.error(f"the function {name[:40]} is not part of selectors", position)

    def value(self, part: Condition | Term, position: int) -> Term:
        if isinstance(part, Term):
            return part
        raise self.scan.error("a value is expected here, not a condition", position)


_PRIORITY_TERM: Final = call("coalesce", (Path(_PRIORITY), fixed(_DEFAULT_PRIORITY)))


def _named(term: Term) -> str:
    """A term by its name, under which it is kept."""
    return known_term(term).name


def _null(term: Term) -> Filter:
    if isinstance(term, Fixed):
        return TRUE if term.constant is None else FALSE
    return IsNull(_named(term))


def _there(*terms: Term) -> list[Filter]:
    """That none of these is null."""
    return [Not(_null(term)) for term in dict.fromkeys(terms) if not isinstance(term, Fixed)]


def _compared(left: Term, operator: Operator, right: Term) -> Filter:
    """A comparison that is true where the selector's is; elsewhere false or unknown."""
    if any(isinstance(side, Fixed) and side.constant is None for side in (left, right)):
        return UNKNOWN
    if left.kind is not None and right.kind is not None and left.kind is not right.kind:
        return FALSE
    if isinstance(right, Fixed):
        if not isinstance(left, Fixed):
            return Compare(_named(left), operator, right.constant)  # type: ignore[arg-type]
        order = compare_raw(left.constant, right.constant)
        return TRUE if order is not None and _HOLDS[operator](order) else FALSE
    if isinstance(left, Fixed):
        return _compared(right, FLIPPED[operator], left)
    compared, swapped = comparison(left, right)
    return Compare(_named(compared), FLIPPED[operator] if swapped else operator, 0)


_HOLDS: Final[dict[str, Callable[[int], bool]]] = {
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def _untrue(condition: Filter) -> Filter:
    """False where it is known; here also where kinds are unlike."""
    if condition in (TRUE, FALSE, UNKNOWN):
        return FALSE if condition == TRUE else TRUE
    return Not(Is(condition, True))
