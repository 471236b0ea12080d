"""Rules bound to a table: filters that mean on its rows what `events.where(rule)` means.

A rule's AND, OR, NOT and IS stay covey's. Each test under them becomes one of these, whichever comes first:

- a test of covey's on a column of the events, where covey's answer is Spark's: same kind, or a constant that Spark's
  analyser would cast, which Spark is then asked to do;
- the same on a term: an expression that Spark computes as a column beside the events' own (`price * quantity > 5`,
  `CAST(amount AS DOUBLE) = 5.0`), one for all rules that have it;
- a column of truths: the whole test, computed by Spark (`a < b`, `exists(tags, x -> x LIKE 'a%')`, `place IS NULL`).

What Spark's analyser refuses is an error of that rule, with its reason. So nothing is answered that Spark would answer
otherwise, but for terms that fail: those are unknown (`trying`), unless they are to raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DataType

from covey.errors import CoveyError, FilterError, FilterSyntaxError, LimitError
from covey.filters import FALSE, TRUE, UNKNOWN, And, Compare, Filter, Is, IsNull, Not, Or, SubstringOf
from covey.filters.predicates import TEXT_TESTS, TextTest
from covey.filters.semantics import Semantics
from covey.filters.terms import SPARK_ONLY
from covey.language import parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.spark.conditions import syntax
from covey.spark.conditions.analysis import types_of
from covey.spark.conditions.comparing import Comparing, is_plain_text
from covey.spark.conditions.constants import Constants
from covey.spark.conditions.dialect_calls import DIALECT_CALLS, in_spark
from covey.spark.conditions.functions import CASTS, FUNCTIONS, check_growth, function_of, is_bounded
from covey.spark.conditions.lambdas import with_elements
from covey.spark.conditions.names import Names, is_scalar
from covey.spark.conditions.parser import parse_condition
from covey.spark.conditions.trying import Tried, UntriableError, Writer, whole

OnTermError = Literal["unknown", "raise"]
DERIVED: Final = SPARK_ONLY
_TRUTH: Final = {"TRUE": True, "FALSE": False, "NULL": None, "UNKNOWN": None}


@dataclass(frozen=True, slots=True)
class Settings:
    """How rules are read and what becomes of terms that fail."""

    functions: tuple[str, ...] = ()
    """Functions that are registered in the session and that rules may call."""
    on_term_error: OnTermError = "unknown"
    semantics: Semantics = "sql"
    limits: Limits = DEFAULT_LIMITS


@dataclass(slots=True)
class Bound:
    """Rules as filters over columns."""

    filters: list[Filter | CoveyError]
    """For each rule its filter, or what is wrong with it."""
    columns: dict[str, str] = field(default_factory=dict)
    """What the attributes of these filters are, as SQL over the events."""
    failures: dict[str, str] = field(default_factory=dict)
    """For attributes that may fail the condition, never null, under which they did."""
    derived: frozenset[str] = frozenset()
    """Attributes that are no columns of the events."""


def bind(events: DataFrame, rules: Sequence[str], settings: Settings) -> Bound:
    """Bind rules to the columns of a table."""
    binding = _Binding(events, settings)
    trees = [binding.parsed(rule) for rule in rules]
    good = [tree for tree in trees if isinstance(tree, syntax.Node)]
    binding.analyse(good)
    filters = binding.filters(trees)
    if binding.constants.convert():
        binding.columns.clear()
        filters = binding.filters(trees)
    if binding.untried():
        binding.columns.clear()
        filters = binding.filters(trees)
    return binding.verified(filters)


class _Binding:
    """One table's columns, and what was found out of rules over it."""

    def __init__(self, events: DataFrame, settings: Settings) -> None:
        spark = events.sparkSession
        self.events = events
        self.settings = settings
        self.ansi = str(spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"
        self.names = Names(events)
        self.constants = Constants(spark)
        self.types: dict[str, DataType | FilterError] = {}
        self.columns: dict[str, tuple[syntax.Node, Tried]] = {}
        self.patterns: dict[str, syntax.Node] = {}
        self.untriable: dict[str, UntriableError] = {}
        """Terms that Spark gives another type in their try-forms."""
        self._comparing = Comparing(
            self.type_of,
            self.constants,
            self.attribute,
            self.ansi,
            self.names.char_length,
            lambda node: is_constant(node, settings.functions),
        )

    # Reading

    def parsed(self, rule: str) -> syntax.Node | CoveyError:
        try:
            tree = self.names.resolved(checked(rule, self.settings.functions, self.settings.limits))
            return in_spark(tree, self.type_of)
        except RecursionError:
            return LimitError("the filter is nested too deeply")
        except FilterSyntaxError as error:
            return self._as_covey_says(rule, error)
        except CoveyError as error:
            return error

    def _as_covey_says(self, rule: str, error: CoveyError) -> CoveyError:
        """A mistake in the words of covey's own parser, which knows what people mean, if it finds one too."""
        try:
            parse(rule, limits=self.settings.limits)
        except CoveyError as found:
            return found
        return error

    def analyse(self, trees: Sequence[syntax.Node]) -> None:
        """Ask Spark for the types of all terms and the values of all constants."""
        texts: dict[str, str] = {}
        constants: dict[str, syntax.Node] = {}
        for tree in dict.fromkeys(trees):
            texts |= {node.sql(): _like_it(node) or node.sql() for node in self._typed(tree)}
            constants |= {node.sql(): node for node in self._constants(tree)}
            for check in _checks(tree):
                self.patterns[check.sql()] = check
        types = types_of(self.events, texts.values())
        self.types = {text: types[asked] for text, asked in texts.items()}
        self.constants.evaluate([*constants.values(), *self.patterns.values()])

    def _typed(self, node: syntax.Node) -> Iterator[syntax.Node]:
        """All parts of a tree whose types matter, parameters of lambda functions replaced by elements."""
        if not _is_compared(node, self.settings.functions):
            yield node
        if isinstance(node, syntax.Call) and not _is_whole(node) and _has_lambda(node):
            for argument in node.arguments:
                if isinstance(argument, syntax.Lambda):
                    yield from self._typed(with_elements(node, argument)(argument.body))
                else:
                    yield from self._typed(argument)
            return
        if is_constant(node, self.settings.functions) or _is_whole(node):
            return
        for child in node.children():
            yield from self._typed(child)

    def _constants(self, node: syntax.Node) -> Iterator[syntax.Node]:
        """The largest constants of a tree; what joins conditions is covey's, so those are taken one by one."""
        joins = isinstance(node, (syntax.Junction, syntax.Negation, syntax.IsTest))
        if not joins and is_constant(node, self.settings.functions):
            if not isinstance(node, syntax.Word):
                yield node
            return
        for child in node.children():
            yield from self._constants(child)

    def type_of(self, node: syntax.Node) -> DataType:
        """The type that Spark gives an expression."""
        text = node.sql()
        if text not in self.types:
            self.types.update(types_of(self.events, [text]))
        found = self.types[text]
        if isinstance(found, FilterError):
            raise found
        return found

    # Binding

    def filters(self, trees: Sequence[syntax.Node | CoveyError]) -> list[Filter | CoveyError]:
        return [tree if isinstance(tree, CoveyError) else self._bound(tree) for tree in trees]

    def _bound(self, tree: syntax.Node) -> Filter | CoveyError:
        try:
            for check in _checks(tree):
                self.constants.value(check)
            found = self.filter_of(tree)
            if self.settings.semantics != "strict":
                return found
            named = dict.fromkeys(node for node in syntax.inside(tree) if isinstance(node, syntax.Name))
            return And((found, *(Not(self._is_null(name)) for name in named))) if named else found
        except CoveyError as error:
            return error

    def filter_of(self, node: syntax.Node) -> Filter:
        """A condition as a filter."""
        match node:
            case syntax.Junction(operator, parts):
                bound = tuple(self.filter_of(part) for part in parts)
                return And(bound) if operator == "AND" else Or(bound)
            case syntax.Negation(part):
                return Not(self.filter_of(part))
            case syntax.IsTest(part, what) if _is_condition(part):
                return Is(self.filter_of(part), _TRUTH[what])
            case syntax.IsTest(part, "NULL"):
                return self._is_null(part)
            case syntax.IsTest(part, what) if is_constant(part, self.settings.functions):
                return Is(self.filter_of(part), _TRUTH[what])
            case syntax.IsTest(part, what):
                return Is(self._truth(part), _TRUTH[what])
            case syntax.Binary("<=>", left, right):
                return self._null_safe(left, right)
        if is_constant(node, self.settings.functions):
            value = self.constants.value(node)
            if value.kind not in ("boolean", "null"):
                raise FilterError(f"{node.sql()} is no condition")
            return UNKNOWN if value.value is None else TRUE if value.value else FALSE
        own = self._own(node)
        return own if own is not None else self._test(node)

    def _test(self, node: syntax.Node) -> Filter:
        try:
            found = self._comparing.test(node)
        except UntriableError:
            found = None
        return found if found is not None else self._truth(node)

    def _own(self, node: syntax.Node) -> Filter | None:
        """Functions of covey's own, which Spark doesn't have."""
        if not isinstance(node, syntax.Call):
            return None
        match node.name, node.arguments:
            case "exists", (part,):
                return Not(self._is_null(part))
            case "superstring", (part, text):
                return self.filter_of(syntax.Call("contains", (part, text)))
            case "substring", (_, syntax.Literal(_, "string")):
                return self._text_test(SubstringOf, node)
            case name, (_, *_) if name in _OWN and name in TEXT_TESTS:
                return self._text_test(TEXT_TESTS[name], node)
            case "in_rectangle", (x, y, left, bottom, right, top):
                tests = (syntax.BetweenTest(x, left, right), syntax.BetweenTest(y, bottom, top))
                return And(tuple(self.filter_of(test) for test in tests))
            case "isnull", (part,):
                return self.filter_of(syntax.IsTest(part, "NULL"))
            case "isnotnull", (part,):
                return Not(self.filter_of(syntax.IsTest(part, "NULL")))
            case (("coalesce" | "nvl" | "ifnull"), (part, syntax.Literal(_, "boolean", instead))) if self._is_truth(
                part
            ):
                # So it is no term: rules that are told from unknown to false are many, and each has its own.
                truth = self.filter_of(syntax.IsTest(part, "FALSE" if instead else "TRUE"))
                return Not(truth) if instead else truth
            case "equal_null", (left, right):
                return self._null_safe(left, right)
            case (("like" | "ilike" | "rlike" | "regexp" | "regexp_like"), (part, pattern)):
                operator = node.name.upper() if node.name in ("like", "ilike") else "RLIKE"
                return self.filter_of(syntax.LikeTest(operator, part, pattern))  # type: ignore[arg-type]
        return None

    def _is_truth(self, node: syntax.Node) -> bool:
        return _is_condition(node) or isinstance(self.type_of(node), BooleanType)

    def _text_test(self, test: type[TextTest], node: syntax.Call) -> Filter:
        """A test on text of covey's own."""
        term, *rest = node.arguments
        if not is_plain_text(self.type_of(term)):
            raise FilterError(f"{node.name}() tests a text, which {term.sql()} is not")
        if not all(is_constant(one, self.settings.functions) for one in rest):
            raise FilterError(f"{node.name}() takes constants behind what it tests")
        return test(self.attribute(term), *(str(self.constants.value(one).value) for one in rest))

    def _is_null(self, part: syntax.Node) -> Filter:
        kind = self.type_of(part)
        if isinstance(part, syntax.Name) and is_scalar(kind):
            return IsNull(self.attribute(part))
        return self._truth(syntax.IsTest(part, "NULL"))

    def _null_safe(self, left: syntax.Node, right: syntax.Node) -> Filter:
        for one, other in ((left, right), (right, left)):
            if isinstance(other, syntax.Literal) and other.kind == "null":
                return self.filter_of(syntax.IsTest(one, "NULL"))
            if isinstance(one, syntax.Name) and is_constant(other, self.settings.functions):
                equal = self._test(syntax.Binary("=", one, other))
                if isinstance(equal, Compare) and not equal.attribute.startswith(DERIVED):
                    return Compare(equal.attribute, "<=>", equal.value)
        return self._truth(syntax.Binary("<=>", left, right))

    def _truth(self, node: syntax.Node) -> Filter:
        """A test that Spark computes whole."""
        kind = self.type_of(node)
        if not isinstance(kind, BooleanType):
            raise FilterError(f"{node.sql()} is of type {kind.simpleString()}, not a condition")
        return Compare(self.attribute(node), "=", True)

    def attribute(self, node: syntax.Node) -> str:
        """The attribute that stands for a term, whose column is noted."""
        plain = self.names.dotted(node)
        name = plain if plain is not None else DERIVED + node.sql()
        if name not in self.columns:
            if plain is None and sum(name.startswith(DERIVED) for name in self.columns) >= self.settings.limits.terms:
                raise LimitError(
                    f"the rules have more distinct terms than the limit (terms) of {self.settings.limits.terms:,}"
                )
            self.columns[name] = node, self._written(node)
        return name

    def _written(self, node: syntax.Node) -> Tried:
        if self.settings.on_term_error == "raise":
            return Tried(node.sql())
        try:
            if node.sql() in self.untriable:
                raise self.untriable[node.sql()]
            if self.ansi:
                return Writer(self.type_of, self.settings.functions, self.constants.known).tried(node)
            return self._without_ansi(node)
        except UntriableError:
            self._check_folds(node)
            if not isinstance(self.type_of(node), BooleanType):
                raise
            return whole(node)

    def _without_ansi(self, node: syntax.Node) -> Tried:
        """Without ANSI mode arithmetic and casts don't fail, and some functions do."""
        for part in syntax.inside(node):
            known = FUNCTIONS.get(part.name) if isinstance(part, syntax.Call) else None
            if known is not None and known.behaviour in ("fails", "whole", "pattern"):
                raise UntriableError(f"{known.name}() can fail")
            if isinstance(part, syntax.LikeTest) and _names_any(part.pattern):
                raise UntriableError(f"the pattern of {part.sql()} can be wrong")
        return Tried(node.sql())

    def _check_folds(self, node: syntax.Node) -> None:
        for call in syntax.inside(node):
            if isinstance(call, syntax.Call) and call.name in ("aggregate", "reduce") and len(call.arguments) > 1:
                start = call.arguments[1]
                if any(isinstance(one, syntax.Variable) for one in syntax.inside(start)):
                    raise FilterError(f"{call.name}() inside a lambda function must start with a constant")
                if not is_bounded(self.type_of(start)):
                    kind = self.type_of(start).simpleString()
                    raise FilterError(f"what {call.name}() carries on is of type {kind}, which can grow without bound")

    # Holding what was written against Spark

    def untried(self) -> bool:
        """Note the terms that Spark gives another type, or refuses, as they are written; whether there are any."""
        types = self._types_of_columns()
        for node, tried in self.columns.values():
            if tried.column == node.sql():
                continue
            kind = types[tried.column]
            if isinstance(kind, FilterError):
                self.untriable[node.sql()] = UntriableError(str(kind))
            elif kind != self.type_of(node):
                self.untriable[node.sql()] = UntriableError(
                    f"{node.sql()} is of type {self.type_of(node).simpleString()}, and in Spark's try-forms of type "
                    f"{kind.simpleString()}; cast its parts"
                )
        return bool(self.untriable)

    def _types_of_columns(self) -> dict[str, DataType | FilterError]:
        types = types_of(self.events, [tried.column for _, tried in self.columns.values()])
        return types | types_of(self.events, [tried.failed for _, tried in self.columns.values() if tried.failed])

    def verified(self, filters: list[Filter | CoveyError]) -> Bound:
        """What Spark refuses is an error of the rules that have it."""
        types = self._types_of_columns()
        wrong: dict[str, FilterError] = {}
        for name, (_, tried) in self.columns.items():
            for text in (tried.column, tried.failed):
                found = types[text] if text else None
                if isinstance(found, FilterError):
                    wrong[name] = found
        checked = [one if isinstance(one, CoveyError) else _unless(one, wrong) for one in filters]
        used = {name for one in checked if isinstance(one, Filter) for name in one.attributes()}
        kept = {name: tried for name, (_, tried) in self.columns.items() if name in used}
        return Bound(
            checked,
            {name: tried.column for name, tried in kept.items()},
            {name: tried.failed for name, tried in kept.items() if tried.failed is not None},
            frozenset(name for name in kept if self.names.dotted(self.columns[name][0]) is None),
        )


def checked(rule: str, functions: Sequence[str], limits: Limits) -> syntax.Node:
    """A rule by Spark's grammar, all of whose functions rules may call."""
    tree = parse_condition(rule, limits)
    match tree:
        case syntax.Binary("=", syntax.Name(parts), syntax.Literal(_, "boolean", True)) if parts[0].startswith(DERIVED):
            # A rule that an index kept because only Spark reads it.
            tree = parse_condition(".".join(parts)[len(DERIVED) :], limits)
    for node in syntax.inside(tree):
        if isinstance(node, syntax.Call) and node.name not in _OWN:
            check_call(node, functions)
    return tree


def _unless(found: Filter, wrong: dict[str, FilterError]) -> Filter | CoveyError:
    return next((wrong[name] for name in found.attributes() if name in wrong), found)


_OWN: Final = frozenset({"in_rectangle", *TEXT_TESTS} - {*FUNCTIONS})
"""Functions of covey's own, which Spark doesn't have."""


def is_constant(node: syntax.Node, functions: Sequence[str]) -> bool:
    """Whether an expression has nothing of the event in it."""
    if isinstance(node, syntax.Literal):
        return True
    named = (syntax.Name, syntax.Variable, syntax.Lambda)
    registered = {name.lower() for name in functions}
    return not any(
        isinstance(one, named) or (isinstance(one, syntax.Call) and one.name in registered)
        for one in syntax.inside(node)
    )


def _like_it(node: syntax.Node) -> str | None:
    """A constant that has the type of this one: of a hundred thousand in a list Spark is asked about one."""
    match node:
        case syntax.Literal(_, "string"):
            return "''"
        case syntax.Literal(_, "integer", int(value)) if abs(value) < 2**63 - 1:
            return "1" if abs(value) < 2**31 - 1 else f"{2**62}"
    return None


def _is_condition(node: syntax.Node) -> bool:
    """Whether it is a test, by its form."""
    kinds = (syntax.Junction, syntax.Negation, syntax.IsTest, syntax.InList, syntax.BetweenTest, syntax.LikeTest)
    if isinstance(node, syntax.Binary):
        return node.operator in ("=", "!=", "<", "<=", ">", ">=", "<=>")
    return isinstance(node, kinds)


def _is_compared(node: syntax.Node, functions: Sequence[str]) -> bool:
    """Whether it is a test of a term against constants, whose own type is known."""
    match node:
        case syntax.Junction() | syntax.Negation() | syntax.IsTest():
            return True
        case syntax.Binary("=" | "!=" | "<" | "<=" | ">" | ">=" | "<=>", left, right):
            return is_constant(left, functions) != is_constant(right, functions)
        case syntax.InList(_, items):
            return all(is_constant(item, functions) for item in items)
        case syntax.BetweenTest(_, low, high):
            return is_constant(low, functions) and is_constant(high, functions)
        case syntax.LikeTest(_, _, pattern):
            return is_constant(pattern, functions)
        case syntax.Lambda():
            return True
        case syntax.Call(name) if name in _OWN or (name == "exists" and len(node.arguments) == 1):
            return True
    return False


def _has_lambda(node: syntax.Call) -> bool:
    return any(isinstance(one, syntax.Lambda) for one in node.arguments)


def _is_whole(node: syntax.Node) -> bool:
    """Whether a test with it is computed whole, so that the types within don't matter."""
    known = FUNCTIONS.get(node.name) if isinstance(node, syntax.Call) else None
    return known is not None and known.behaviour == "whole"


def check_call(node: syntax.Call, functions: Sequence[str]) -> None:
    """Refuse a function that rules may not call."""
    if node.name in ("exists", "substring") or node.name in CASTS or node.name in DIALECT_CALLS:
        return
    function_of(node.name, functions)
    check_growth(node)


def _checks(tree: syntax.Node) -> Iterator[syntax.Node]:
    """Patterns with nothing to match, which Spark is asked to read: one that it can't would end the job."""
    empty = syntax.Literal("''", "string", "")
    for node in syntax.inside(tree):
        if isinstance(node, syntax.LikeTest) and not _names_any(node.pattern):
            yield syntax.LikeTest(node.operator, empty, node.pattern, node.escape)
        elif isinstance(node, syntax.Call) and len(node.arguments) > 1:
            known = FUNCTIONS.get(node.name)
            if known is None or known.behaviour != "pattern" or any(_names_any(one) for one in node.arguments[1:]):
                continue
            _check_groups(node)
            first = syntax.Literal("TIMESTAMP '2000-01-01'", "other") if node.name == "date_format" else empty
            yield syntax.Call(node.name, (first, *node.arguments[1:]))


def _names_any(node: syntax.Node) -> bool:
    return any(isinstance(one, (syntax.Name, syntax.Variable)) for one in syntax.inside(node))


def _check_groups(node: syntax.Call) -> None:
    """A group that the expression doesn't have fails only where the expression matches, so it is counted here."""
    if not node.name.startswith("regexp_extract"):
        return
    pattern, *rest = node.arguments[1:]
    group = rest[0] if rest else syntax.Literal("1", "integer", 1)
    try:
        count = re.compile(str(pattern.value)).groups if isinstance(pattern, syntax.Literal) else 0
    except (re.error, OverflowError):
        count = 0
    number = group.value if isinstance(group, syntax.Literal) and group.kind == "integer" else None
    if not isinstance(number, int) or not 0 <= number <= count:
        raise FilterError(f"{node.name}() takes a group that its expression has; 0 is the whole match")
