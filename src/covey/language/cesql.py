"""CloudEvents SQL 1.0, with its own casts and errors.

    expression := comparison ((AND | OR | XOR) expression)?
    comparison := sum ((= | != | <> | < | <= | > | >=) sum)*
    sum        := product ((+ | -) product)*           product := tested ((* | / | %) tested)*
    tested     := unary ([NOT] LIKE 'pattern' | [NOT] IN (expression, …))*
    unary      := (NOT | -) unary | EXISTS name | name | literal | FUNCTION(…) | ( expression )

As a filter, an expression passes an event if it is true and nothing that was evaluated raised an error (section 1.2 of
the specification). AND and OR evaluate their right side only where the left one doesn't decide. So an error is SQL's
unknown but for one thing: `error OR TRUE` is an error, where SQL has TRUE. A condition therefore gives two filters
(`Condition`): one that is true where it is true without an error, one that is true where it is false without one.

Operands are cast to what an operator takes, at run time, since attributes have no types (`filters/dialect_functions`).
Attributes that every CloudEvent has as text (`id`, `source`, …) are tested as they are, so that these rules are indexed
and related like those of SQL; others through `cesql_string(name)` and its like.

AND, OR and XOR bind alike and to the right, as the specification's grammar and the libraries made of it have it:
`a AND b OR c` is `a AND (b OR c)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from covey.filters.algebra import FALSE, TRUE, UNKNOWN, Filter, Not, all_of, depth
from covey.filters.conditional import case
from covey.filters.predicates import Compare, In, IsNull, Like, Operator
from covey.filters.term_functions import compare_raw
from covey.filters.terms import Fixed, Path, Term, call, comparison, fixed, known_term
from covey.filters.values import Kind
from covey.language.bounds import over_limit
from covey.language.operands import FLIPPED
from covey.language.scanning import Scanner, Token
from covey.limits import Limits

_KEYWORDS: Final = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "IN", "EXISTS", "TRUE", "FALSE"})
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<integer>[0-9]++)(?![A-Za-z_])
    | (?P<word>[A-Za-z0-9_]++)
    | (?P<string>'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+")
    | (?P<comparison><=|>=|<>|!=|=|<|>)
    | (?P<mark>[(),+*/%-])
    | (?P<end>\Z)
    | (?P<wrong>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_REQUIRED: Final = frozenset({"id", "source", "specversion", "type"})
_TEXTS: Final = _REQUIRED | {"subject", "datacontenttype", "dataschema"}
"""Attributes that are text wherever they are."""
_FUNCTIONS: Final[dict[str, tuple[str, int, int | None]]] = {
    "INT": ("cesql_int", 1, 1),
    "BOOL": ("cesql_bool", 1, 1),
    "STRING": ("cesql_string", 1, 1),
    "ABS": ("cesql_abs", 1, 1),
    "LENGTH": ("cesql_length", 1, 1),
    "LOWER": ("cesql_lower", 1, 1),
    "UPPER": ("cesql_upper", 1, 1),
    "TRIM": ("cesql_trim", 1, 1),
    "CONCAT": ("cesql_concat", 0, None),
    "CONCAT_WS": ("cesql_concat_ws", 1, None),
    "LEFT": ("cesql_left", 2, 2),
    "RIGHT": ("cesql_right", 2, 2),
    "SUBSTRING": ("cesql_substring", 2, 3),
}
_OPERATIONS: Final = {
    "+": "cesql_add", "-": "cesql_subtract", "*": "cesql_multiply", "/": "cesql_divide", "%": "cesql_remainder",
}  # fmt: skip
_HIGHEST: Final = 2**31 - 1
_LIKE_A_NUMBER: Final = re.compile(r"[+-]?[0-9]+|true|false", re.IGNORECASE)
_TERM_DEPTH: Final = 40
"""Operations inside each other in one value."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A Boolean expression: the filter that is true where it is true, and the one that is true where it is false.
    Where neither is, there is an error. `terms` are those whose being missing is the error, if it is that simple."""

    holds: Filter
    fails: Filter
    terms: frozenset[str] | None = None

    @property
    def known(self) -> Filter:
        """A filter that is true where there is no error, or at least where the condition is false."""
        if self.terms is None:
            return self.fails
        return all_of(Not(IsNull(name)) for name in sorted(self.terms))


Expression: TypeAlias = Condition | Term


def parse_cesql(text: str, limits: Limits) -> Filter:
    """The filter of a CloudEvents SQL expression."""
    reader = _Reader(Scanner(text, limits, _TOKEN, _KEYWORDS, _read), limits)
    found = reader.whole()
    if depth(found) > limits.depth:
        raise over_limit(f"the filter is nested {depth(found):,} levels deep", "depth", limits)
    return found


class _Reader:
    def __init__(self, scan: Scanner, limits: Limits) -> None:
        self.scan = scan
        self.limits = limits

    def whole(self) -> Filter:
        found = self.expression()
        if self.scan.kind != "end":
            raise self.scan.unexpected("join conditions by AND, OR or XOR")
        if isinstance(found, Condition):
            return found.holds
        if isinstance(found, Path):
            return Compare(found.name, "=", True)
        if found.kind not in (None, Kind.BOOLEAN):
            kind = "an integer" if found.kind is Kind.NUMBER else "a string"
            raise self.scan.error(f"the expression gives {kind}, and a filter is TRUE or FALSE; compare it", 0)
        return self.condition(found).holds

    # Conditions.

    def expression(self) -> Expression:
        first = self.comparisons()
        if self.scan.kind not in ("AND", "OR", "XOR"):
            return first
        parts, words = [self.condition(first)], list[str]()
        while self.scan.kind in ("AND", "OR", "XOR"):
            words.append(self.scan.take().kind)
            parts.append(self.condition(self.comparisons()))
        found = parts.pop()
        while words:
            found = _JOINED[words.pop()](parts.pop(), found)
        return found

    def comparisons(self) -> Expression:
        left = self.sum()
        while self.scan.kind == "comparison":
            operator: Operator = self.scan.take().value
            left = self.compared(left, operator, self.sum())
        return left

    def compared(self, left: Expression, operator: Operator, right: Expression) -> Condition:
        first, second = self.value(left), self.value(right)
        if operator in ("=", "!="):
            same = self.equal(first, second)
            return same if operator == "=" else _negated(same)
        first, second = call("cesql_int", (first,)), call("cesql_int", (second,))
        if isinstance(second, Fixed):
            return _tested(first, operator, second)
        if isinstance(first, Fixed):
            return _tested(second, FLIPPED[operator], first)
        compared, swapped = comparison(first, second)
        return _test(Compare(_named(compared), FLIPPED[operator] if swapped else operator, 0), compared)

    def equal(self, left: Term, right: Term) -> Condition:
        """`=`, with the left side cast to the right one's type."""
        if not isinstance(right, Fixed) or isinstance(left, Fixed):
            return _truth(call("cesql_equal", (left, right)))
        if isinstance(right.constant, str):
            return _tested(_as_text(left), "=", right)
        return _tested(call("cesql_bool" if isinstance(right.constant, bool) else "cesql_int", (left,)), "=", right)

    def condition(self, part: Expression) -> Condition:
        """A part where a Boolean is needed."""
        if isinstance(part, Condition):
            return part
        return _truth(part if part.kind is Kind.BOOLEAN else call("cesql_bool", (part,)))

    # Values.

    def value(self, part: Expression) -> Term:
        """A part where a value is needed."""
        if isinstance(part, Term):
            return part
        if part.holds in (TRUE, FALSE, UNKNOWN):
            return fixed(part.holds == TRUE if part.holds != UNKNOWN and part.fails != UNKNOWN else None)
        return case([(part.holds, fixed(True)), (part.fails, fixed(False))])

    def sum(self) -> Expression:
        return self.operations(("+", "-"), lambda: self.operations(("*", "/", "%"), self.tested))

    def operations(self, operators: tuple[str, ...], member: object) -> Expression:
        assert callable(member)
        left: Expression = member()
        while self.scan.kind in operators:
            token = self.scan.take()
            right: Expression = member()
            left = self.bounded(call(_OPERATIONS[token.kind], (self.value(left), self.value(right))), token.position)
        return left

    def bounded(self, term: Term, position: int) -> Term:
        if term.depth() > _TERM_DEPTH:
            raise self.scan.error(f"more than {_TERM_DEPTH} operations inside each other are too many", position)
        return term

    def tested(self) -> Expression:
        subject = self.unary()
        while True:
            negated = self.scan.kind == "NOT" and self.scan.ahead() in ("LIKE", "IN")
            if negated:
                self.scan.take()
            if self.scan.accept("LIKE"):
                test = self.like(self.value(subject))
            elif self.scan.accept("IN"):
                test = self.is_in(self.value(subject))
            else:
                return subject
            subject = _negated(test) if negated else test

    def like(self, subject: Term) -> Condition:
        pattern: str = self.scan.expect("string", "LIKE takes a pattern in quotes").value
        if len(pattern) > self.limits.pattern_length:
            raise over_limit(f"the pattern has {len(pattern):,} characters", "pattern_length", self.limits)
        # Only \% and \_ are escapes; every other backslash is itself.
        written = re.sub(r"\\(?![%_])", r"\\\\", pattern)
        text = _as_text(subject)
        if isinstance(text, Fixed):
            if not isinstance(text.constant, str):
                return _UNKNOWN
            return _constant(Like("text", written).holds(text.constant))
        return _test(Like(_named(text), written), text)

    def is_in(self, subject: Term) -> Condition:
        self.scan.expect("(", "IN takes a list in parentheses: a IN (1, 2)")
        members = [self.value(self.expression())]
        while self.scan.accept(","):
            members.append(self.value(self.expression()))
        self.scan.expect(")", "the values of IN are separated by commas and closed by )")
        if len(members) > self.limits.set_values:
            raise over_limit(f"IN has {len(members):,} values", "set_values", self.limits)
        if not all(isinstance(member, Fixed) for member in members):
            return self.one_by_one(subject, members)
        whole = _truth(call("cesql_in", (subject, *members)))
        texts: list[Any] = [member.constant for member in members if isinstance(member, Fixed)]
        if isinstance(subject, Fixed) or len(texts) != len(members) or None in texts:
            return whole
        if isinstance(subject, Path) and subject.name in _TEXTS:
            cast = [call("cesql_string", (member,)) for member in members]
            values: tuple[Any, ...] = tuple(dict.fromkeys(one.constant for one in cast if isinstance(one, Fixed)))
            return _test(In(subject.name, values), subject)
        if all(isinstance(text, str) and not _LIKE_A_NUMBER.fullmatch(text) for text in texts):
            # No number is one of these, so only NOT tells this from casting them to the value's type.
            text = _as_text(subject)
            return Condition(In(_named(text), tuple(dict.fromkeys(texts))), whole.fails)
        return whole

    def one_by_one(self, subject: Term, members: list[Term]) -> Condition:
        """`IN` of values that may be missing: the first that is equal decides, and an error before it stays."""
        found = _truth(call("cesql_in", (subject, members[-1])))
        for member in reversed(members[:-1]):
            found = _either(_truth(call("cesql_in", (subject, member))), found)
        return found

    def unary(self) -> Expression:
        scan = self.scan
        token = scan.take()
        match token.kind:
            case "NOT" | "-":
                scan.deepen()
                if token.kind == "-" and scan.kind == "integer":
                    inner: Expression = fixed(-self.integer(scan.take(), 1))
                elif token.kind == "-":
                    inner = self.bounded(call("cesql_negative", (self.value(self.unary()),)), token.position)
                else:
                    inner = _negated(self.condition(self.unary()))
                scan.depth -= 1
                return inner
            case "EXISTS":
                return self.exists()
            case "integer":
                return fixed(self.integer(token, 0))
            case "string":
                return fixed(token.value)
            case "TRUE" | "FALSE":
                return fixed(token.kind == "TRUE")
            case "(":
                scan.deepen()
                found = self.expression()
                scan.expect(")", "close the parenthesis")
                scan.depth -= 1
                return found
            case "word":
                return self.function(token.value, token.position) if scan.kind == "(" else self.attribute(token)
        scan.at -= token.kind != "end"
        raise scan.unexpected("write an attribute, a literal, a function or an expression in parentheses")

    def attribute(self, token: Token) -> Term:
        if "_" in token.value:
            raise self.scan.error("the name of an attribute is letters and digits", token.position)
        return Path(token.value.lower())

    def integer(self, token: Token, more: int) -> int:
        """An integer of 32 bits; a negative one may be larger by one."""
        if len(token.value) > 20 or int(token.value) > _HIGHEST + more:
            raise self.scan.error("an integer has 32 bits in CloudEvents SQL", token.position)
        return int(token.value)

    def exists(self) -> Condition:
        token = self.scan.take()
        if token.kind not in ("word", "integer"):
            self.scan.at -= token.kind != "end"
            raise self.scan.unexpected("EXISTS takes the name of an attribute: EXISTS subject")
        name = token.value.lower()
        if name in _REQUIRED:
            return _constant(True)
        missing = IsNull(name)
        return Condition(Not(missing), missing, frozenset())

    def function(self, name: str, position: int) -> Expression:
        found = _FUNCTIONS.get(name.upper())
        if found is None:
            known = ", ".join(_FUNCTIONS)
            raise self.scan.error(f"the function {name[:40]} is not part of CloudEvents SQL; it has {known}", position)
        arguments = self.arguments()
        term, least, most = found
        if len(arguments) < least or (most is not None and len(arguments) > most):
            count = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise self.scan.error(f"{name.upper()} takes {count} arguments, not {len(arguments)}", position)
        return self.bounded(call(term, arguments) if arguments else fixed(""), position)

    def arguments(self) -> list[Term]:
        self.scan.deepen()
        self.scan.expect("(", "arguments stand in parentheses")
        found: list[Term] = []
        while not self.scan.accept(")"):
            if found:
                self.scan.expect(",", "arguments are separated by commas and closed by )")
            found.append(self.value(self.expression()))
        self.scan.depth -= 1
        return found


def _as_text(subject: Term) -> Term:
    if (isinstance(subject, Path) and subject.name in _TEXTS) or subject.kind is Kind.STRING:
        return subject
    return call("cesql_string", (subject,))


def _named(term: Term) -> str:
    """A term by its name, under which it is kept."""
    return known_term(term).name


def _constant(value: bool | None) -> Condition:
    if value is None:
        return _UNKNOWN
    return Condition(TRUE, FALSE, frozenset()) if value else Condition(FALSE, TRUE, frozenset())


_UNKNOWN: Final = Condition(UNKNOWN, UNKNOWN)


def _truth(term: Term) -> Condition:
    """A Boolean term as a condition."""
    if isinstance(term, Fixed):
        return _constant(term.constant if isinstance(term.constant, bool) else None)
    name = _named(term)
    return Condition(Compare(name, "=", True), Compare(name, "=", False), frozenset({name}))


def _tested(term: Term, operator: Operator, constant: Fixed) -> Condition:
    value: Any = constant.constant
    if value is None or (isinstance(term, Fixed) and term.constant is None):
        return _UNKNOWN
    if isinstance(term, Fixed):
        order = compare_raw(term.constant, value)
        assert order is not None, "both sides were cast to one type"
        return _constant(
            {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]
        )
    return _test(Compare(_named(term), operator, value), term)


def _test(test: Filter, term: Term) -> Condition:
    needed = frozenset() if term.name in _REQUIRED else frozenset({term.name})
    return Condition(test, Not(test), needed)


def _negated(part: Condition) -> Condition:
    return Condition(part.fails, part.holds, part.terms)


def _both(left: Condition, right: Condition) -> Condition:
    terms = _together(left, right)
    if _implied(left, right):
        return Condition(_and(left.holds, right.holds), _or(left.fails, right.fails), terms)
    return Condition(_and(left.holds, right.holds), _or(left.fails, _and(left.holds, right.fails)), terms)


def _either(left: Condition, right: Condition) -> Condition:
    terms = _together(left, right)
    if _implied(left, right):
        return Condition(_or(left.holds, right.holds), _and(left.fails, right.fails), terms)
    return Condition(_or(left.holds, _and(left.known, right.holds)), _and(left.fails, right.fails), terms)


def _one(left: Condition, right: Condition) -> Condition:
    unlike = _or(_and(left.holds, right.fails), _and(left.fails, right.holds))
    return Condition(unlike, _or(_and(left.holds, right.holds), _and(left.fails, right.fails)))


def _implied(left: Condition, right: Condition) -> bool:
    """Whether the left side has no error wherever the right one has none: then no order of evaluation shows."""
    return left.terms is not None and right.terms is not None and left.terms <= right.terms


def _together(left: Condition, right: Condition) -> frozenset[str] | None:
    """The terms of both, where both sides go wrong for the same reason; otherwise the left one may hide the right's."""
    return left.terms if left.terms == right.terms else None


def _and(left: Filter, right: Filter) -> Filter:
    return FALSE if FALSE in (left, right) else right if left == TRUE else left if right == TRUE else left & right


def _or(left: Filter, right: Filter) -> Filter:
    return TRUE if TRUE in (left, right) else right if left == FALSE else left if right == FALSE else left | right


_JOINED: Final = {"AND": _both, "OR": _either, "XOR": _one}


def _read(kind: str, written: str, position: int, text: str) -> object:  # noqa: ARG001
    match kind:
        case "string":
            quote = written[0]
            return written[1:-1].replace("\\" + quote, quote)
        case "comparison":
            return "!=" if written == "<>" else written
    return written
