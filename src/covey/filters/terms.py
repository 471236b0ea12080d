"""What a predicate tests: a term, which is an attribute's path or an expression over some.

A term has a name, and equal terms have equal names: a path's name is the path, that of any other term is `=` and its
SQL in normal form (`=price * quantity`). Whatever compares, codes or indexes predicates goes by that name
(`Predicate.attribute`) and so treats each term as an attribute of its own, whatever it is made of. Only what evaluates,
prints, types or asks which attributes an event must define looks at the term itself (`Predicate.term`).

Terms mean what Spark SQL means by them, with its types as far as covey has values of them: whole numbers are BIGINT,
others DOUBLE, a literal with a point DECIMAL, times are UTC. Where Spark would fail (overflow, division by zero, a cast
that can't be) the term is missing, so the test is unknown and no other rule notices. A value of a kind that a function
doesn't take makes it missing too; nothing is cast unless the text says so.

Normal form: the operands of `+`, `*` and of comparisons are in order, terms of several before attributes, constants
last; `||`, concat and coalesce have no calls of themselves within; one name for each function; CASE with conditions,
whatever was written. Terms are made by `call`, `cast`, `fixed` here and by `conditional.py`, which keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Final, TypeAlias

from covey.errors import FilterError
from covey.filters.casting import CastType, cast_value
from covey.filters.quoting import constant_to_sql, name_to_sql
from covey.filters.term_functions import FUNCTIONS, Raw, TermFunction, fits
from covey.filters.values import Exact, Kind, Scalar, Value, exact, kind_of

Lookup: TypeAlias = Callable[[str], Value | None]
"""The value of an attribute by its dotted path; None where it is missing."""

MARK: Final = "="
"""What the name of a term begins with that isn't a path."""

ADDITIVE, MULTIPLICATIVE, UNARY, PRIMARY = 1, 2, 3, 4
"""How tightly a term's text binds."""

_PRESENT: Final = f"{MARK}is_present("
_KEPT_TERMS: Final = 65_536
_INTERVAL: Final = ()
"""Stands for an interval, which is there but compares with intervals alone."""
_SORTED: Final = frozenset({"+", "*", "compare"})
_FLAT: Final = frozenset({"concat", "coalesce"})
_BINDING: Final = {
    "+": ADDITIVE, "-": ADDITIVE, "*": MULTIPLICATIVE, "/": MULTIPLICATIVE, "%": MULTIPLICATIVE, "div": MULTIPLICATIVE,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Something that an event gives a value for."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def sql(self) -> str:
        """Its text."""
        return self.name[len(MARK) :]

    @property
    def binding(self) -> int:
        """How tightly its text binds."""
        return PRIMARY

    @property
    def kind(self) -> Kind | None:
        """The kind of its values, if the term says so by itself."""
        return None

    def depth(self) -> int:
        """How deeply terms are nested in it; an attribute has depth 1."""
        return 1 + max((part.depth() for part in self.parts()), default=0)

    def parts(self) -> tuple[Term, ...]:
        """The terms that it is made of."""
        return ()

    def attributes(self) -> tuple[str, ...]:
        """The attributes that it takes its value from, each once."""
        return tuple(dict.fromkeys(name for part in self.parts() for name in part.attributes()))

    def raw(self, lookup: Lookup) -> Raw:
        """Its value while it is part of another term; None where it is missing."""
        raise NotImplementedError

    def value(self, lookup: Lookup) -> Value | None:
        """Its value, given those of attributes; None where it is missing."""
        return plain_value(self.raw(lookup))


@dataclass(frozen=True, slots=True, eq=False)
class Path(Term):
    """An attribute, by its dotted path."""

    @property
    def sql(self) -> str:  # noqa: D102
        return name_to_sql(self.name)

    def attributes(self) -> tuple[str, ...]:  # noqa: D102
        return (self.name,)

    def raw(self, lookup: Lookup) -> Raw:  # noqa: D102
        value = lookup(self.name)
        return value.digits if isinstance(value, Exact) else value

    def value(self, lookup: Lookup) -> Value | None:  # noqa: D102
        return lookup(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(Term):
    """A constant inside a term."""

    constant: Raw

    @property
    def binding(self) -> int:  # noqa: D102
        return UNARY if self.sql.startswith("-") else PRIMARY

    @property
    def kind(self) -> Kind | None:  # noqa: D102
        return kind_of_raw(self.constant)

    def raw(self, lookup: Lookup) -> Raw:  # noqa: ARG002, D102
        return self.constant


@dataclass(frozen=True, slots=True, eq=False)
class Call(Term):
    """A function or operator of terms."""

    function: TermFunction
    arguments: tuple[Term, ...]

    @property
    def binding(self) -> int:  # noqa: D102
        if self.function.name == "negative":
            return UNARY
        return _BINDING.get(self.function.name, ADDITIVE if self.function.name == "concat" else PRIMARY)

    @property
    def kind(self) -> Kind | None:  # noqa: D102
        return self.function.gives

    def parts(self) -> tuple[Term, ...]:  # noqa: D102
        return self.arguments

    def raw(self, lookup: Lookup) -> Raw:  # noqa: D102
        return self.function.value([argument.raw(lookup) for argument in self.arguments])


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Term):
    """`CAST(term AS type)`; missing where it can't be done."""

    argument: Term
    type: CastType

    @property
    def kind(self) -> Kind | None:  # noqa: D102
        return self.type.kind

    def parts(self) -> tuple[Term, ...]:  # noqa: D102
        return (self.argument,)

    def raw(self, lookup: Lookup) -> Raw:  # noqa: D102
        found: Raw = cast_value(self.argument.raw(lookup), self.type)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Present(Term):
    """Whether an event has an attribute at all, be it null: TRUE or FALSE. It isn't made of the attribute's value, so
    the event is asked for it by the term's own name, and it stands in no other term."""

    path: str

    @property
    def kind(self) -> Kind | None:
        return Kind.BOOLEAN

    def attributes(self) -> tuple[str, ...]:
        return (self.path,)

    def raw(self, lookup: Lookup) -> Raw:
        return lookup(self.name)


def present(path: str) -> Present:
    """The term of an attribute's presence."""
    if not is_path(path):
        raise FilterError("is_present and is_missing ask for an attribute, not for an expression")
    term = known_term(Present(f"{_PRESENT}{name_to_sql(path)})", path))
    assert isinstance(term, Present)
    return term


def is_presence(name: str) -> bool:
    """Whether this is the name of an attribute's presence."""
    return name.startswith(_PRESENT)


@dataclass(frozen=True, slots=True, eq=False)
class Text(Term):
    """All that an event says, as one text. No attribute gives it, so the event is asked for it by the term's own name,
    and it stands in no other term."""

    @property
    def kind(self) -> Kind | None:
        return Kind.STRING

    def raw(self, lookup: Lookup) -> Raw:
        return lookup(self.name)


EVENT_TEXT: Final = f"{MARK}event_text()"
"""The name of the term that is an event's text."""


def event_text() -> Text:
    """The term of an event's text."""
    term = known_term(Text(EVENT_TEXT))
    assert isinstance(term, Text)
    return term


def of_whole_event(name: str) -> bool:
    """Whether the event itself is asked for this term, by its name."""
    return name == EVENT_TEXT or is_presence(name)


def refuse_presence(terms: Iterable[Term]) -> None:
    """What the event itself is asked for stands in no other term."""
    for term in terms:
        if isinstance(term, Present):
            raise FilterError("is_present and is_missing stand alone; join them to other tests by AND, OR, NOT")
        if isinstance(term, Text):
            raise FilterError("event_text() is tested as it is; it stands in no other term")


SPARK_ONLY: Final = "spark:"
"""How the names of attributes begin that only Spark computes: the SQL that it computes follows."""


@lru_cache(maxsize=_KEPT_TERMS)
def depth_of(term: Term) -> int:
    """`term.depth()`, kept: rules name few terms."""
    return term.depth()


def plain_value(raw: Raw) -> Value | None:
    """What a term gives to the test on it."""
    if isinstance(raw, Decimal):
        return exact(raw)
    if isinstance(raw, timedelta):
        return _INTERVAL
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return datetime(raw.year, raw.month, raw.day, tzinfo=UTC)
    return raw


def kind_of_raw(raw: Raw) -> Kind | None:
    """The kind of a value inside a term; None of a missing one and of an interval."""
    if raw is None or isinstance(raw, timedelta):
        return None
    if isinstance(raw, Decimal):
        return Kind.NUMBER
    if isinstance(raw, date):
        return Kind.TIMESTAMP
    return kind_of(raw)


def fixed(value: Raw) -> Fixed:
    """The term of a constant."""
    return Fixed(MARK + _constant_to_sql(value), value)


def _constant_to_sql(value: Raw) -> str:
    """A constant inside a term, so that it reads back as of its type: DOUBLE is marked, since `1.5` is DECIMAL."""
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}BD"
    if isinstance(value, float) and value - value == 0.0:
        return f"{value!r}D"
    if isinstance(value, timedelta):
        seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-6)
        return f"INTERVAL '{seconds.normalize():f}' SECOND"
    if isinstance(value, tuple):
        raise FilterError("a list is not a constant of a term")
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"CAST('{value.isoformat()}' AS DATE)"
    return constant_to_sql(value)


def call(name: str, arguments: Sequence[Term]) -> Term:
    """The term of a function, by its own name, in normal form. FilterError where arguments are of a wrong kind."""
    return _called(name, tuple(arguments))


@lru_cache(maxsize=_KEPT_TERMS)
def _called(name: str, arguments: tuple[Term, ...]) -> Term:
    function = FUNCTIONS[name]
    given = list(arguments)
    refuse_presence(given)
    if name in _FLAT:
        given = [inner for one in given for inner in (one.arguments if _is_call(one, name) else (one,))]  # type: ignore[attr-defined]
    if name in _SORTED:
        given.sort(key=_place)
    for place, argument in enumerate(given):
        kind = argument.kind
        if kind is not None and not function.accepts(place, kind):
            raise FilterError(
                f"{function.shown} takes {function.wanted(place)} here, not {_a(kind)} such as {argument.sql}; "
                f"write CAST({argument.sql} AS …) if that is meant"
            )
    if all(isinstance(argument, Fixed) for argument in given):
        return fixed(function.value([argument.constant for argument in given]))  # type: ignore[attr-defined]
    return Call(MARK + _call_to_sql(name, given), function, tuple(given))


def _place(term: Term) -> tuple[int, str]:
    """Terms of several first, so that chains need no parentheses, then attributes, then constants."""
    return (2 if isinstance(term, Fixed) else int(isinstance(term, Path)), term.sql)


def _is_call(term: Term, name: str) -> bool:
    return isinstance(term, Call) and term.function.name == name


def _a(kind: Kind) -> str:
    return f"a {kind.value}"


def _call_to_sql(name: str, arguments: Sequence[Term]) -> str:
    binding = _BINDING.get(name)
    if binding is not None:
        left, right = arguments
        return f"{enclosed(left, binding)} {name} {enclosed(right, binding + 1)}"
    if name == "negative":
        return f"-{enclosed(arguments[0], PRIMARY)}"
    if name == "concat" and len(arguments) > 1:
        first, *more = arguments
        return " || ".join([enclosed(first, ADDITIVE), *(enclosed(one, MULTIPLICATIVE) for one in more)])
    if name == "element":
        return f"{enclosed(arguments[0], PRIMARY)}[{arguments[1].sql}]"
    return f"{name}({', '.join(argument.sql for argument in arguments)})"


def enclosed(term: Term, binding: int) -> str:
    """A term's text as a part of another's, in parentheses where it binds looser."""
    return term.sql if term.binding >= binding else f"({term.sql})"


def cast(argument: Term, type: CastType) -> Term:
    """`CAST(argument AS type)`."""
    refuse_presence((argument,))
    if isinstance(argument, Fixed):
        return fixed(cast_value(argument.constant, type))
    return Cast(f"{MARK}CAST({argument.sql} AS {type.name})", argument, type)


def comparison(left: Term, right: Term) -> tuple[Term, bool]:
    """The term that is -1, 0 or 1 as left is below, equal to or above right, and whether they changed sides."""
    for one, other in ((left, right), (right, left)):
        if one.kind is not None and other.kind is not None and one.kind is not other.kind:
            raise FilterError(
                f"{one.sql}, {_a(one.kind)}, is compared with {other.sql}, {_a(other.kind)}; write CAST(… AS …)"
            )
    compared = call("compare", (left, right))
    return compared, isinstance(compared, Call) and compared.arguments[0] != left


_made: dict[str, Term] = {}
"""Terms that were read not long ago, by name."""
_reader: list[str] = []


def terms_read_by(module: str) -> None:
    """Import this module for its `read_term(sql)` once a term is asked for that isn't known here."""
    _reader[:] = [module]


def known_term(term: Term) -> Term:
    """Keep a term at hand under its name."""
    if len(_made) >= _KEPT_TERMS:
        _made.clear()
        term_of.cache_clear()
    return _made.setdefault(term.name, term)


@lru_cache(maxsize=_KEPT_TERMS)
def term_of(name: str) -> Term:
    """The term of a name."""
    if not name.startswith(MARK):
        return Path(name)
    term = _made.get(name)
    if term is None:
        if not _reader:
            raise RuntimeError("nothing reads terms yet; import covey.language first")
        term = import_module(_reader[0]).read_term(name[len(MARK) :])
        if not isinstance(term, Term) or term.name != name:
            raise FilterError(f"{name!r} is not the name of a term, which is = and its SQL in normal form")
    return term


def is_path(name: str) -> bool:
    """Whether this is the name of an attribute rather than of another term."""
    return not name.startswith(MARK)


__all__ = ["SPARK_ONLY", "Call", "Cast", "Fixed", "Lookup", "Path", "Raw", "Scalar", "Term", "fits", "term_of"]
