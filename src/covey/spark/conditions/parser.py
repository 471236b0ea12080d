"""A condition's tree, by Spark's grammar (its `SqlBaseParser`): what binds how tightly, and what a predicate is.

From tight to loose: fields, items, `::` and `:`; signs; `* / % DIV`; `+ - ||`; shifts; `&`; `^`; `|`; comparisons; one
predicate (IS, IN, BETWEEN, LIKE …); NOT; AND; OR. A query, a window or an aggregate is no condition of one event, and
refused here; functions are looked at in `functions`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NoReturn

from covey.errors import FilterSyntaxError, LimitError
from covey.limits import Limits
from covey.spark.conditions.lexer import Token, tokens_of
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
)

_LEVELS: Final = (
    ({"|"},), ({"^"},), ({"&"},), ({"<<", ">>", ">>>"},), ({"+", "-", "||"},), ({"*", "/", "%", "DIV"},),
)  # fmt: skip
_COMPARISONS: Final = {
    "=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", "!>": "<=", ">": ">", ">=": ">=", "!<": ">=",
    "<=>": "<=>",
}  # fmt: skip
_TYPED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME"})
_UNITS: Final = frozenset(
    f"{unit}{plural}"
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    for plural in ("", "S")
)
_RESERVED: Final = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS", "WHEN",
    "THEN", "ELSE", "END", "ESCAPE", "DIV", "AS", "FROM", "COLLATE"})  # fmt: skip
_ALSO_FUNCTIONS: Final = frozenset({"LIKE", "ILIKE", "RLIKE", "REGEXP", "COLLATE"})
_WITH_UNITS: Final = {
    "timestampdiff": "timestampdiff", "datediff": "timestampdiff", "date_diff": "timestampdiff",
    "timestampadd": "timestampadd", "dateadd": "timestampadd", "date_add": "timestampadd",
}  # fmt: skip
"""Functions whose first argument of three is a unit, by the name that they then have."""
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
_LOCAL_DIGITS: Final = 18
"""An integer of so many digits is a BIGINT beyond doubt."""


def parse_condition(text: str, limits: Limits) -> Node:
    """The tree of a condition."""
    parser = _Parser(text, limits)
    node = parser.condition()
    if parser.kind != "end":
        parser.wrong()
    return node


class _Parser:
    """One text; `at` is the token that comes next."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.tokens = tokens_of(text, limits)
        self.at = 0
        self.depth = 0
        self.variables: list[frozenset[str]] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        return self.token.kind

    def wrong(self, message: str | None = None) -> NoReturn:
        token = self.token
        shown = "the condition ends too early" if token.kind == "end" else f"{token.text!r} is not expected here"
        raise FilterSyntaxError(message or shown, self.text, token.start)

    def next_is(self, *words: str) -> bool:
        return self.token.upper in words and self.kind in ("word", "mark")

    def take(self, *words: str) -> Token | None:
        if self.next_is(*words):
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def expect(self, word: str) -> Token:
        found = self.take(word)
        if found is None:
            self.wrong(f"{word} is missing")
        return found

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise LimitError(f"the filter is nested deeper than the limit (depth) of {self.limits.depth}")

    # Conditions

    def condition(self) -> Node:
        self.deeper()
        parts = [self.conjunction()]
        while self.take("OR"):
            parts.append(self.conjunction())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Junction("OR", tuple(parts))

    def conjunction(self) -> Node:
        parts = [self.negation()]
        while self.take("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Junction("AND", tuple(parts))

    def negation(self) -> Node:
        if self.take("NOT", "!"):
            self.deeper()
            part = Negation(self.negation())
            self.depth -= 1
            return part
        return self.predicate()

    def predicate(self) -> Node:
        value = self.value()
        negated = self.take("NOT") is not None
        test = self.test_of(value, negated)
        if test is None and negated:
            self.wrong()
        return value if test is None else test

    def test_of(self, value: Node, negated: bool) -> Node | None:
        if self.next_is("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            self.at += 1
            return self.like(value, self.tokens[self.at - 1].upper, negated)
        test = self.other_test(value)
        return Negation(test) if negated and test is not None else test

    def other_test(self, value: Node) -> Node | None:
        if self.take("IS"):
            return self.is_test(value)
        if self.take("IN"):
            return self.in_list(value)
        if self.take("BETWEEN"):
            if self.next_is("SYMMETRIC", "ASYMMETRIC"):
                self.wrong("BETWEEN SYMMETRIC is not read; write both orders")
            low = self.value()
            self.expect("AND")
            return BetweenTest(value, low, self.value())
        return None

    def is_test(self, value: Node) -> Node:
        negated = self.take("NOT") is not None
        if self.take("DISTINCT"):
            self.expect("FROM")
            same: Node = Binary("<=>", value, self.value())
            return same if negated else Negation(same)
        what = self.take("NULL", "TRUE", "FALSE", "UNKNOWN")
        if what is None:
            self.wrong("after IS comes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        test = IsTest(value, what.upper)  # type: ignore[arg-type]
        return Negation(test) if negated else test

    def in_list(self, value: Node) -> Node:
        self.expect("(")
        self.no_query()
        items = [self.condition()]
        while self.take(","):
            items.append(self.condition())
            if len(items) > self.limits.set_values:
                raise LimitError(f"IN has more values than the limit (set_values) of {self.limits.set_values:,}")
        self.expect(")")
        return InList(value, tuple(items))

    def like(self, value: Node, operator: str, negated: bool) -> Node:
        kind = "RLIKE" if operator == "REGEXP" else operator
        quantifier = self.take("ANY", "SOME", "ALL") if kind != "RLIKE" else None
        if quantifier is not None and self.next_is("("):
            self.expect("(")
            patterns = [self.value()]
            while self.take(","):
                patterns.append(self.value())
            self.expect(")")
            tests: list[Node] = [LikeTest(kind, value, pattern) for pattern in patterns]  # type: ignore[arg-type]
            # NOT LIKE ANY asks for one that it isn't like, so the negation goes inside.
            tests = [Negation(test) for test in tests] if negated else tests
            return tests[0] if len(tests) == 1 else Junction("AND" if quantifier.upper == "ALL" else "OR", tuple(tests))
        if quantifier is not None:
            self.at -= 1
        pattern = self.value()
        escape = None
        if kind != "RLIKE" and self.take("ESCAPE"):
            found = self.primary()
            if not isinstance(found, Literal) or found.kind not in ("string", "other"):
                self.wrong("after ESCAPE comes one character in quotes")
            escape = found
        test = LikeTest(kind, value, pattern, escape)  # type: ignore[arg-type]
        return Negation(test) if negated else test

    # Values

    def value(self) -> Node:
        left = self.operation(0)
        while self.kind == "mark" and self.token.upper in _COMPARISONS:
            operator = _COMPARISONS[self.token.upper]
            self.at += 1
            left = Binary(operator, left, self.operation(0))
        return left

    def operation(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.signed()
        left = self.operation(level + 1)
        while self.next_is(*_LEVELS[level][0]):
            operator = self.token.upper
            self.at += 1
            left = Binary(operator, left, self.operation(level + 1))
        return left

    def signed(self) -> Node:
        sign = self.take("-", "+", "~")
        if sign is None:
            return self.primary()
        if sign.text == "-" and self.kind == "number":
            self.at += 1
            return self.postfix(_number(f"-{self.tokens[self.at - 1].text}"))
        self.deeper()
        operand = self.signed()
        self.depth -= 1
        return Unary(sign.text, operand)

    def primary(self) -> Node:
        return self.postfix(self.plain())

    def postfix(self, base: Node) -> Node:
        steps = 0
        while True:
            if self.take("."):
                base = self.field(base)
            elif self.take("["):
                base = Item(base, self.value())
                self.expect("]")
            elif self.take("::"):
                base = CastTo(base, self.type())
            elif self.take(":"):
                base = VariantPath(base, self.variant_path())
            elif self.take("COLLATE"):
                base = Collated(base, self.word("a collation"))
            else:
                return base
            steps += 1
            if steps > self.limits.depth:
                raise LimitError(f"the filter is nested deeper than the limit (depth) of {self.limits.depth}")

    def field(self, base: Node) -> Node:
        name = self.word("a field")
        if isinstance(base, (Name, Variable)):
            return type(base)((*base.parts, name))
        return Field(base, name)

    def word(self, what: str) -> str:
        token = self.token
        if token.kind not in ("word", "quoted"):
            self.wrong(f"{what} is missing")
        self.at += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def variant_path(self) -> str:
        start = self.token
        if not self.next_is("["):
            self.word("a path")
        while True:
            if self.take("."):
                self.word("a field")
            elif self.take("["):
                if self.kind not in ("number", "string"):
                    self.wrong("a path has [0], ['name'] and .name")
                self.at += 1
                self.expect("]")
            else:
                return self.text[start.start : self.tokens[self.at - 1].end]

    def plain(self) -> Node:
        token = self.token
        match token.kind:
            case "number":
                self.at += 1
                return _number(token.text)
            case "string" | "raw":
                return self.strings()
            case "binary":
                self.at += 1
                return Literal(token.text, "other")
            case "quoted":
                if self.tokens[self.at + 1].text == "(":
                    self.wrong("a function's name has no backquotes")
                return self.name()
            case "word":
                return self.of_word()
            case "mark" if token.text == "(":
                return self.parenthesis()
        return self.wrong("a rule has no parameters" if token.text in ("?", ":") else None)

    def strings(self) -> Node:
        first = self.at
        while self.kind in ("string", "raw"):
            self.at += 1
        found = self.tokens[first : self.at]
        text = " ".join(token.text for token in found)
        inner = text[1:-1]
        if len(found) == 1 and found[0].kind == "string" and "\\" not in text and text[0] not in inner:
            return Literal(text, "string", inner)
        return Literal(text, "other")

    def parenthesis(self) -> Node:
        mark = self.at
        if self.is_lambda():
            self.expect("(")
            names = [self.word("a parameter")]
            while self.take(","):
                names.append(self.word("a parameter"))
            self.expect(")")
            return self.lambda_of(names)
        self.at = mark
        self.expect("(")
        self.no_query()
        inner = self.named()
        if not self.next_is(",") and not isinstance(inner, Named):
            self.expect(")")
            return inner
        items = [inner]  # a row, which Spark makes a record of
        while self.take(","):
            items.append(self.named())
            if len(items) > self.limits.set_values:
                raise LimitError(f"a row has more values than the limit (set_values) of {self.limits.set_values:,}")
        self.expect(")")
        return Call("struct", tuple(items))

    def named(self) -> Node:
        """A condition, or a field of a record with its name."""
        value = self.condition()
        return Named(value, self.word("a name")) if self.take("AS") else value

    def is_lambda(self) -> bool:
        """Whether names in parentheses and an arrow come next."""
        place = self.at + 1
        while self.tokens[place].kind in ("word", "quoted") and self.tokens[place + 1].text == ",":
            place += 2
        return [token.text for token in self.tokens[place + 1 : place + 3]] == [")", "->"]

    def lambda_of(self, names: list[str]) -> Node:
        self.expect("->")
        self.variables.append(frozenset(name.lower() for name in names))
        body = self.condition()
        self.variables.pop()
        return Lambda(tuple(names), body)

    def of_word(self) -> Node:
        token, after = self.token, self.tokens[self.at + 1]
        word = token.upper
        if word in ("NULL", "TRUE", "FALSE"):
            self.at += 1
            if word == "NULL":
                return Literal("NULL", "null")
            return Literal(word, "boolean", word == "TRUE")
        if after.kind in ("string", "raw") and word in _TYPED:
            self.at += 2
            return Literal(f"{word} {after.text}", "other")
        if word == "INTERVAL" and (after.kind in ("string", "number") or after.text == "-"):
            return self.interval()
        if word == "CASE":
            return self.case()
        if after.text == "->":
            self.at += 1
            return self.lambda_of([token.text])
        if after.text == "(" and (word not in _RESERVED or word in _ALSO_FUNCTIONS):
            return self.call()
        if word in _RESERVED or word in _QUERIES:
            self.wrong()
        return self.name()

    def name(self) -> Node:
        first = self.word("a name")
        if any(first.lower() in names for names in self.variables):
            return Variable((first,))
        return Name((first,))

    def interval(self) -> Node:
        start = self.at
        self.at += 1
        self.take("-")
        while self.kind in ("number", "string"):
            self.at += 1
            while self.token.upper in _UNITS and self.kind == "word":
                self.at += 1
            if self.take("TO"):
                self.word("a unit")
        text = self.text[self.tokens[start].start : self.tokens[self.at - 1].end]
        return Literal(text, "other")

    def case(self) -> Node:
        self.expect("CASE")
        self.deeper()
        operand = None if self.next_is("WHEN") else self.condition()
        branches = []
        while self.take("WHEN"):
            when = self.condition()
            self.expect("THEN")
            branches.append((when, self.condition()))
        if not branches:
            self.wrong("CASE needs a WHEN")
        otherwise = self.condition() if self.take("ELSE") else None
        self.expect("END")
        self.depth -= 1
        return Case(operand, tuple(branches), otherwise)

    def call(self) -> Node:
        name = self.word("a function").lower()
        self.expect("(")
        if name in ("cast", "try_cast"):
            value = self.condition()
            self.expect("AS")
            kind = self.type()
            self.expect(")")
            return CastTo(value, kind, name == "try_cast")
        special = self.special(name)
        if special is None:
            special = self.arguments(name)
        if self.next_is("OVER", "FILTER", "WITHIN", "IGNORE", "RESPECT"):
            self.wrong(f"{self.token.upper} makes a query of it; a rule is about one event")
        return special

    def arguments(self, name: str) -> Call:
        if self.take(")"):
            return Call(name, ())
        if self.next_is("DISTINCT", "*"):
            self.wrong("an aggregate is not a condition about one event")
        self.no_query()
        found = [self.argument()]
        while self.take(","):
            found.append(self.argument())
            if len(found) > self.limits.set_values:
                raise LimitError(f"{name} has more arguments than the limit (set_values)")
        self.expect(")")
        if name in _WITH_UNITS and len(found) == 3 and isinstance(found[0], Name) and len(found[0].parts) == 1:
            unit = found[0].parts[0].upper()
            if unit in _UNITS or unit in ("QUARTER", "DAYOFYEAR"):
                return Call(_WITH_UNITS[name], (Word(unit), *found[1:]))
        return Call(name, tuple(found))

    def argument(self) -> Node:
        if self.tokens[self.at + 1].text == "=>":
            self.wrong("arguments by name are not read; give them in their order")
        return self.named()

    def special(self, name: str) -> Call | None:
        """The forms with words between their arguments."""
        if name == "extract":
            field = self.word("a field")
            self.expect("FROM")
            source = self.condition()
            self.expect(")")
            return Call("date_part", (Literal(f"'{field}'", "string", field), source))
        if name == "trim" and self.next_is("BOTH", "LEADING", "TRAILING"):
            side = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}[self.token.upper]
            self.at += 1
            what = None if self.next_is("FROM") else self.value()
            self.expect("FROM")
            source = self.condition()
            self.expect(")")
            if what is None:
                return Call(side, (source,))
            return Call(side, (source, what) if side == "btrim" else (what, source))
        if name in ("substring", "substr", "position", "trim", "overlay"):
            mark = self.at
            first = self.value() if not self.next_is(")") else None
            if first is not None and name == "position" and self.take("IN"):
                whole = self.value()
                self.expect(")")
                return Call("position", (first, whole))
            if first is not None and name in ("substring", "substr") and self.take("FROM"):
                rest = [self.value()]
                if self.take("FOR"):
                    rest.append(self.value())
                self.expect(")")
                return Call("substring", (first, *rest))
            if first is not None and name == "overlay" and self.take("PLACING"):
                parts = [first, self.value()]
                self.expect("FROM")
                parts.append(self.value())
                if self.take("FOR"):
                    parts.append(self.value())
                self.expect(")")
                return Call("overlay", tuple(parts))
            if self.next_is("FROM", "PLACING", "FOR"):
                self.wrong()
            self.at = mark
        return None

    def type(self) -> str:
        """The text of a type, such as `DECIMAL(10, 2)` or `ARRAY<INT>`."""
        start = self.token
        self.word("a type")
        if self.take("("):
            while self.take(",") or self.kind == "number":
                self.at += self.kind == "number"
            self.expect(")")
        elif self.next_is("<") and start.upper in ("ARRAY", "MAP", "STRUCT"):
            depth = 0
            while True:
                text = self.token.text
                if self.kind not in ("word", "quoted", "mark", "number") or self.kind == "end":
                    self.wrong("a type ends too early")
                depth += {"<": 1, ">": -1, ">>": -2, ">>>": -3}.get(text, 0)
                self.at += 1
                if depth <= 0:
                    break
        while self.take("WITHOUT", "WITH", "TIME", "ZONE", "LOCAL", "TO") or (
            self.kind == "word" and start.upper == "INTERVAL" and self.token.upper in _UNITS
        ):
            self.at += self.token.upper in _UNITS and self.kind == "word"
        return " ".join(self.text[start.start : self.tokens[self.at - 1].end].split())

    def no_query(self) -> None:
        if self.next_is("SELECT", "WITH", "VALUES", "FROM") and self.tokens[self.at + 1].text not in (")", ","):
            self.wrong("a query inside a rule is not allowed; a rule is about one event")


def _number(text: str) -> Literal:
    digits = text.lstrip("-")
    if digits.isdigit() and len(digits) <= _LOCAL_DIGITS:
        return Literal(text, "integer", int(text))
    whole, dot, fraction = digits.partition(".")
    if dot and (whole + fraction).isdigit() and len(whole + fraction) <= _LOCAL_DIGITS:
        return Literal(text, "decimal", Decimal(text))
    return Literal(text, "other")
