"""Predicates: a test on the value of one term (`covey.filters.terms`), an attribute or an expression over some.

Constants are normalised when a predicate is made (`covey.filters.values`), so equal predicates are equal values.
A constant of None is SQL's NULL: a comparison with it is unknown.

A test on text is a `TextTest`: it says its name in SQL and JSON, whether a text meets it, and the form of that
(`covey.filters.patterns`), and everything else follows: printing, parsing as a function, JSON, matching, relations.
`CONTRIBUTING.md` has the way to add one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from covey.errors import FilterError, FilterTypeError
from covey.filters.algebra import Filter, leaves
from covey.filters.patterns import (
    ANY_TEXT,
    Expression,
    Form,
    PartOf,
    Tokens,
    Wildcards,
    like_automaton,
    like_tokens,
    regular_expression,
)
from covey.filters.terms import Term, known_term, term_of
from covey.filters.values import Kind, Scalar, is_double, kind_of, normalise

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "<=>"]
LARGEST_INTEGER = 10**400
MOST_LAMBDAS = 8
"""How deeply tests of lists within lists are nested."""
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=", "<=>")
FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "<=>": "<=>",
}
"""The operator that says the same with the sides changed."""


@dataclass(frozen=True, slots=True, repr=False)
class Predicate(Filter):
    """A test on one term, made of the term or of its name."""

    attribute: str
    """The term's name; of an attribute, its dotted path."""

    def __post_init__(self) -> None:
        check_name(self)

    @property
    def term(self) -> Term:
        """What is tested."""
        return term_of(self.attribute)

    def _named(self) -> tuple[str, ...]:
        return term_of(self.attribute).attributes()


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(Predicate):
    """The event doesn't define the attribute. `a IS NOT NULL` and `EXISTS(a)` are its negation."""


@dataclass(frozen=True, slots=True, repr=False)
class Compare(Predicate):
    """`attribute operator constant`. `<=>` is null-safe equality: never unknown."""

    operator: Operator
    value: Scalar | None

    def __post_init__(self) -> None:
        check_name(self)
        if self.operator not in OPERATORS:
            raise FilterError(f"{self.operator!r} is not an operator; use one of {' '.join(OPERATORS)}")
        object.__setattr__(self, "value", constant(self.attribute, self.value))

    # -0.0 and 0.0, 1 and 1.0, and True and 1 are equal in Python, but not the same text; NaN isn't equal to itself.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compare) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, self.operator, identity(self.value))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Between(Predicate):
    """`attribute BETWEEN low AND high`, both ends included."""

    low: Scalar | None
    high: Scalar | None

    def __post_init__(self) -> None:
        check_name(self)
        object.__setattr__(self, "low", constant(self.attribute, self.low))
        object.__setattr__(self, "high", constant(self.attribute, self.high))
        one_kind(self.attribute, (self.low, self.high), "the two ends of BETWEEN")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Between) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, identity(self.low), identity(self.high))


def checked_compare(attribute: str, operator: Operator, value: int | float | str) -> Compare:
    """A comparison of what is known to be right: a name and a constant as a predicate holds them. At a third of what
    finding that out takes."""
    made = object.__new__(Compare)
    object.__setattr__(made, "attribute", attribute)
    object.__setattr__(made, "operator", operator)
    object.__setattr__(made, "value", value)
    return made


def checked_between(attribute: str, low: int | float, high: int | float) -> Between:
    """The same of a range."""
    made = object.__new__(Between)
    object.__setattr__(made, "attribute", attribute)
    object.__setattr__(made, "low", low)
    object.__setattr__(made, "high", high)
    return made


class Members(NamedTuple):
    """The constants of an IN list, to be looked up. Those of one kind that compare equal are equal in Python too, but
    for NaN."""

    kind: Kind | None
    values: frozenset[Scalar]
    has_nan: bool
    has_null: bool

    @classmethod
    def of(cls, values: Iterable[Scalar | None]) -> Members:
        """Those of some values of one kind."""
        known = frozenset(value for value in values if value is not None and value == value)
        others = [value for value in values if value is None or value != value]
        kind = next((kind_of(value) for value in (*known, *others) if value is not None), None)
        return cls(kind, known, any(value is not None for value in others), None in others)

    def truth(self, value: Scalar) -> bool | None:
        """SQL's truth of `value IN (…)`."""
        if self.kind is not kind_of(value):
            return None
        if value in self.values or (self.has_nan and value != value):
            return True
        return None if self.has_null else False


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class In(Predicate):
    """`attribute IN (constants)`; a None among them is SQL's NULL."""

    values: tuple[Scalar | None, ...]
    _members: Members | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self)
        values = tuple(constant(self.attribute, value) for value in self.values)
        if not values:
            raise FilterError(f"IN on {self.attribute!r} has no values; write at least one")
        one_kind(self.attribute, values, "the values of IN")
        object.__setattr__(self, "values", values)

    def members(self) -> Members:
        """The constants, to be looked up; made when first asked for."""
        if self._members is None:
            object.__setattr__(self, "_members", Members.of(self.values))
        assert self._members is not None
        return self._members

    def __eq__(self, other: object) -> bool:
        return isinstance(other, In) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, tuple(identity(value) for value in self.values))


@dataclass(frozen=True, slots=True, repr=False)
class TextTest(Predicate):
    """A test that a text meets or doesn't; of anything else it is unknown. Its fields are texts."""

    name: ClassVar[str]
    """Its function in SQL and its key in JSON, in lower case."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names of the function."""
    infix: ClassVar[bool] = False
    """Whether it is printed as an operator, `a LIKE 'x'`, which the grammar must know."""
    bounded: ClassVar[bool] = False
    """Whether the limit on the length of patterns is about its texts."""
    ignore_case: ClassVar[bool] = False
    """Whether texts are tested in lower case, against texts in lower case."""

    def __post_init__(self) -> None:
        check_name(self)
        names: tuple[str, ...] = self.__match_args__
        for name in names[1:]:
            check_text(self.attribute, getattr(self, name))
        self.check()

    @classmethod
    def fields(cls) -> dict[str, str | None]:
        """The names of its texts, and what they are where they aren't given; None where they must be."""
        known = cls.__dataclass_fields__.values()
        own = (field for field in known if field.name in cls.__match_args__[1:])
        return {field.name: None if field.default is MISSING else field.default for field in own}

    def texts(self) -> dict[str, str]:
        """Its texts by their names, but for those that needn't be given."""
        known = self.__dataclass_fields__
        names: tuple[str, ...] = self.__match_args__
        return {name: text for name in names[1:] if (text := getattr(self, name)) != known[name].default}

    def check(self) -> None:
        """Raise FilterError where the fields say no test."""

    def holds(self, text: str) -> bool:
        """Whether a text meets the test."""
        raise NotImplementedError(f"{type(self).__name__} doesn't say which texts meet it; write its holds")

    def form(self) -> Form:
        """What the test asks for, as far as others can use it; `Opaque` if they can't."""
        raise NotImplementedError(f"{type(self).__name__} has no form; give Opaque() if there is none")


TEXT_TESTS: dict[str, type[TextTest]] = {}
"""Every test on text by its names."""

Test = TypeVar("Test", bound=type[TextTest])


def text_test(test: Test) -> Test:
    """Have a test on text be known by its names: to be put on its class."""
    for name in (test.name, *test.aliases):
        if TEXT_TESTS.setdefault(name, test) is not test:
            raise TypeError(f"a test on text is named {name!r} already: {TEXT_TESTS[name].__name__}")
    return test


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class Like(TextTest):
    """SQL's LIKE: `%` is any text, `_` any one character, `escape` makes the next one literal."""

    name: ClassVar[str] = "like"
    infix: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    pattern: str
    escape: str = "\\"

    def check(self) -> None:  # noqa: D102
        like_tokens(self.pattern, self.escape)

    def holds(self, text: str) -> bool:  # noqa: D102
        return like_automaton(self.pattern, self.escape).fullmatch(text) is not None

    def form(self) -> Form:  # noqa: D102
        return Wildcards(like_tokens(self.pattern, self.escape))


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class RLike(TextTest):
    """A regular expression (RE2's syntax) that is found somewhere in the attribute's value."""

    name: ClassVar[str] = "rlike"
    aliases: ClassVar[tuple[str, ...]] = ("regexp", "regexp_like")
    infix: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    pattern: str

    def check(self) -> None:  # noqa: D102
        regular_expression(self.pattern)

    def holds(self, text: str) -> bool:  # noqa: D102
        return regular_expression(self.pattern).search(text) is not None

    def form(self) -> Form:  # noqa: D102
        return Expression(self.pattern)


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class StartsWith(TextTest):
    """The attribute's value starts with the text."""

    name: ClassVar[str] = "startswith"

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return text.startswith(self.text)

    def form(self) -> Form:  # noqa: D102
        return Wildcards(_around(self.text, after=True))


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class EndsWith(TextTest):
    """The attribute's value ends with the text."""

    name: ClassVar[str] = "endswith"

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return text.endswith(self.text)

    def form(self) -> Form:  # noqa: D102
        return Wildcards(_around(self.text, before=True))


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class Contains(TextTest):
    """The attribute's value contains the text: it is a superstring of it."""

    name: ClassVar[str] = "contains"
    aliases: ClassVar[tuple[str, ...]] = ("superstring",)

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return self.text in text

    def form(self) -> Form:  # noqa: D102
        return Wildcards(_around(self.text, before=True, after=True))


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class SubstringOf(TextTest):
    """The attribute's value is contained in the text: it is a substring of it."""

    name: ClassVar[str] = "substring_of"
    aliases: ClassVar[tuple[str, ...]] = ("substring",)

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return text in self.text

    def form(self) -> Form:  # noqa: D102
        return PartOf(self.text)


def _around(text: str, *, before: bool = False, after: bool = False) -> Tokens:
    """A text with gaps before and after it; of an empty text the gap alone."""
    if not text:
        return (ANY_TEXT,)
    return (*((ANY_TEXT,) if before else ()), text, *((ANY_TEXT,) if after else ()))


def plainest(test: TextTest) -> TextTest:
    """The plainest test that says the same: most LIKE patterns are a prefix, a suffix or a substring."""
    if isinstance(test, (StartsWith, EndsWith, Contains)) and test.text:
        return test
    form = test.form()
    if not isinstance(form, Wildcards) or form.ignore_case:
        return test
    match form.tokens:
        case (gap,) if gap == ANY_TEXT:
            return Contains(test.attribute, "")
        case (str(text), after) if after == ANY_TEXT:
            return StartsWith(test.attribute, text)
        case (before, str(text)) if before == ANY_TEXT:
            return EndsWith(test.attribute, text)
        case (before, str(text), after) if before == after == ANY_TEXT:
            return Contains(test.attribute, text)
    return test


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ArrayContains(Predicate):
    """The attribute is a list that has the constant among its elements."""

    value: Scalar | None

    def __post_init__(self) -> None:
        check_name(self)
        object.__setattr__(self, "value", constant(self.attribute, self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayContains) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, identity(self.value))


@dataclass(frozen=True, slots=True, repr=False)
class ElementTest(Predicate):
    """`exists(attribute, x -> condition)`: some element of a list meets the condition; `forall` where it is `every`.

    The condition names the element by its variable, and the fields of a record in the list by `x.field`. Inside, logic
    is SQL's under all semantics: an element that is NULL makes a test unknown.
    """

    condition: Filter
    every: bool = False
    variable: str = "x"

    def __post_init__(self) -> None:
        check_name(self)
        check_text(self.attribute, self.variable)
        if not isinstance(self.condition, Filter):
            raise FilterTypeError(f"the elements of {self.attribute!r} are tested by a filter, not {self.condition!r}")
        for leaf in leaves(self.condition):
            for name in leaf._named():
                if name != self.variable and not name.startswith(f"{self.variable}."):
                    raise FilterError(
                        f"{name!r} is not about the element {self.variable!r} of {self.attribute!r}; "
                        f"write {self.variable} or {self.variable}.field, and join other tests by AND, OR"
                    )
        if _lambdas(self) > MOST_LAMBDAS:
            raise FilterError(f"tests of elements are nested more than {MOST_LAMBDAS} deep")


def _lambdas(test: ElementTest) -> int:
    inner = (leaf for leaf in leaves(test.condition) if isinstance(leaf, ElementTest))
    return 1 + max(map(_lambdas, inner), default=0)


def check_name(predicate: Predicate) -> None:
    """Terms are named by text; of a predicate made of the term itself, the name is kept."""
    attribute: object = predicate.attribute
    if not isinstance(attribute, str):
        if not isinstance(attribute, Term):
            raise FilterTypeError(f"an attribute's name is a string, not {attribute!r}")
        object.__setattr__(predicate, "attribute", known_term(attribute).name)
    check_text(predicate.attribute, predicate.attribute)


def check_text(attribute: str, text: object) -> None:
    """Text that can be written as UTF-8, which lone surrogates can't."""
    if not isinstance(text, str):
        raise FilterTypeError(f"{attribute!r} is compared with {text!r} as text; use a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(f"{text!r} is not text: {error.reason} at {error.start}") from None


def constant(attribute: str, value: Any) -> Scalar | None:
    """A constant as filters hold it, or an error that names the attribute."""
    try:
        normal = decimal_constant(value) if isinstance(value, Decimal) else normalise(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise FilterTypeError(f"{attribute!r} is compared with what can't be a constant: {error}") from None
    if isinstance(normal, int) and abs(normal) > LARGEST_INTEGER:
        raise FilterTypeError(f"{attribute!r} is compared with an integer of more than 400 digits; use infinity")
    if isinstance(normal, str):
        check_text(attribute, normal)
    if isinstance(normal, tuple):
        raise FilterTypeError(f"{attribute!r} is compared with a list; use array_contains or IN")
    return normal


def decimal_constant(value: Decimal) -> int | float:
    """A decimal as the constant that a predicate holds: `5` is whole, `5.0` and `0.1` are doubles that print so."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or is_double(value):
        return float(value) if not isinstance(exponent, int) or exponent < 0 else int(value)
    if value == value.to_integral_value():
        return int(value)
    raise FilterTypeError(
        f"{value} has more digits than a double; compare the attribute with it by itself, in SQL or with attr"
    )


def identity(value: Scalar | None) -> tuple[str, str]:
    """What makes a constant the same constant: its type and its exact value."""
    return (type(value).__name__, repr(value))


def one_kind(attribute: str, values: Iterable[Scalar | None], what: str) -> Kind | None:
    """The one kind of all values that aren't NULL; an error where there are several."""
    kinds = {kind_of(value) for value in values if value is not None}
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.value for kind in kinds))
        raise FilterTypeError(f"{what} on {attribute!r} mix {names}; use values of one kind")
    return kinds.pop() if kinds else None


def compared_with(test: Predicate) -> tuple[Scalar | None, ...]:
    """The constants that a comparison, a range or a list of values has; none for other tests."""
    match test:
        case Compare(_, _, value):
            return (value,)
        case Between(_, low, high):
            return (low, high)
        case In(_, values):
            return tuple(values)
    return ()
