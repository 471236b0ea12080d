"""Filters as JSON, for tables and for programs that write filters: one key an operator, read without a grammar.

    {"and": [{"attribute": "company", "in": ["IBM", "Dell"]}, {"not": {"attribute": "price", ">": 1000}}]}

`true`, `false` and `null` are the constants TRUE, FALSE and unknown. Constants of a predicate are JSON's own, and
`{"timestamp": "2024-01-31T12:00:00Z"}` and `{"double": "NaN"}` for what JSON lacks. What is tested is an attribute, or
a term as SQL: `{"term": "price * quantity", ">": 1000}`. Errors name the place by its
path: `at $.and[1]: …`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NoReturn

from covey.errors import FilterError, FilterSyntaxError, LimitError
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or, all_of, any_of
from covey.filters.predicates import (
    OPERATORS,
    TEXT_TESTS,
    ArrayContains,
    Between,
    Compare,
    ElementTest,
    In,
    IsNull,
    Predicate,
    TextTest,
)
from covey.filters.terms import Path, Term, is_path, known_term, present
from covey.filters.values import Scalar
from covey.language.bounds import over_limit
from covey.language.literals import CASTS
from covey.language.operands import check_predicate
from covey.language.parser import read_term
from covey.limits import DEFAULT_LIMITS, Limits

_TRUTHS: Final[dict[bool | None, str]] = {True: "is_true", False: "is_false", None: "is_unknown"}
_TRUTH_OF: Final = {name: truth for truth, name in _TRUTHS.items()}
_SAME: Final = {"==": "=", "<>": "!="}
_OTHER_TESTS: Final = (
    *OPERATORS,
    *_SAME,
    "between",
    "in",
    "array_contains",
    "any",
    "all",
    "is_null",
    "exists",
    "present",
)
_BOOLEANS: Final = ("and", "or", "not", *_TRUTH_OF)


def to_json(condition: Filter) -> Any:
    """The filter as an object for `json.dumps`."""
    match condition:
        case Constant(value):
            return value
        case And(parts):
            return {"and": [to_json(part) for part in parts]}
        case Or(parts):
            return {"or": [to_json(part) for part in parts]}
        case Not(part):
            return {"not": to_json(part)}
        case Is(part, truth):
            return {_TRUTHS[truth]: to_json(part)}
        case Predicate():
            return _term_to_json(condition.term) | _test_to_json(condition)
    raise TypeError(f"{type(condition).__name__} is not a filter")


def _term_to_json(term: Term) -> dict[str, Any]:
    if isinstance(term, Path):
        return {"attribute": term.name}
    return {"term": term.sql}


def _test_to_json(predicate: Predicate) -> dict[str, Any]:
    match predicate:
        case IsNull():
            return {"is_null": True}
        case Compare(_, operator, value):
            return {operator: _value_to_json(value)}
        case Between(_, low, high):
            return {"between": [_value_to_json(low), _value_to_json(high)]}
        case In(_, values):
            return {"in": [_value_to_json(value) for value in values]}
        case ArrayContains(_, value):
            return {"array_contains": _value_to_json(value)}
        case ElementTest(_, condition, every, variable):
            named = {} if variable == "x" else {"as": variable}
            return {"all" if every else "any": to_json(condition), **named}
        case TextTest():
            first, *more = predicate.texts().items() or [("", True)]
            return {predicate.name: first[1], **dict(more)}
    raise TypeError(f"{type(predicate).__name__} has no JSON form; say it in json_form")


def _text_test(name: str) -> type[TextTest] | None:
    """The test on text of that key; other names of its function aren't keys."""
    kind = TEXT_TESTS.get(name)
    return kind if kind is not None and kind.name == name else None


def _tests() -> tuple[str, ...]:
    """The keys of all tests."""
    return (*_OTHER_TESTS, *(name for name in TEXT_TESTS if _text_test(name) is not None))


def _value_to_json(value: Scalar | None) -> Any:
    if isinstance(value, datetime):
        return {"timestamp": value.replace(tzinfo=None).isoformat() + "Z"}
    if isinstance(value, float) and not math.isfinite(value):
        return {"double": "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"}
    return value


def parse_json(text: str, limits: Limits) -> Filter:
    """The filter of a JSON text."""
    if len(text) > limits.text_length:
        raise over_limit(f"the filter has {len(text):,} characters", "text_length", limits)
    try:
        loaded = json.loads(text, object_pairs_hook=_object, parse_constant=_not_json)
    except json.JSONDecodeError as error:
        raise FilterSyntaxError(f"this is not JSON: {error.msg}", text, error.pos) from None
    except ValueError as error:  # an integer with more digits than Python reads
        raise FilterError(f"this is not JSON that can be read: {error}") from None
    return from_json(loaded, limits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    loaded: dict[str, Any] = {}
    for key, value in pairs:
        if key in loaded:
            raise FilterError(f"the key {_short(key)} stands twice in one object; join two tests by and")
        loaded[key] = value
    return loaded


def _not_json(constant: str) -> NoReturn:
    raise FilterError(f'{constant} is not JSON; write {{"double": "{constant}"}}')


def from_json(form: Any, limits: Limits = DEFAULT_LIMITS) -> Filter:
    """The filter of what `to_json` gives, or of the same written by hand."""
    return _Reader(limits).condition(form, "$", 1)


class _Reader:
    __slots__ = ("limits",)

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def condition(self, form: Any, path: str, depth: int) -> Filter:
        if depth > self.limits.depth:
            raise over_limit(f"the filter is nested {depth:,} levels deep or more", "depth", self.limits)
        if form is None or isinstance(form, bool):
            return Constant(form)
        if not isinstance(form, dict):
            raise _error(path, f"a filter is an object, true, false or null, not {_kind(form)}")
        if "attribute" in form or "term" in form:
            if "any" in form or "all" in form:
                return self.element_test(form, path, depth)
            return self.predicate(form, path)
        if len(form) != 1:
            raise _error(path, f'an object has "attribute" or "term" and one test, or one of {", ".join(_BOOLEANS)}')
        ((key, inner),) = form.items()
        match key:
            case "and" | "or":
                if not isinstance(inner, list):
                    raise _error(f"{path}.{key}", f"{key} takes a list of filters, not {_kind(inner)}")
                parts = [self.condition(part, f"{path}.{key}[{at}]", depth + 1) for at, part in enumerate(inner)]
                return all_of(parts) if key == "and" else any_of(parts)
            case "not":
                return Not(self.condition(inner, f"{path}.not", depth + 1))
        if key in _TRUTH_OF:
            return Is(self.condition(inner, f"{path}.{key}", depth + 1), _TRUTH_OF[key])
        if key in _tests():
            raise _error(path, f'{key} tests an attribute; add "attribute": "its name"')
        raise _error(
            path, f"the operator {_short(key)} is not known; use one of {', '.join(_BOOLEANS)}, or attribute and a test"
        )

    def predicate(self, form: dict[str, Any], path: str) -> Filter:
        attribute = self.subject(form, path)
        names = [key for key in form if key not in ("attribute", "term")]
        own: tuple[str, ...] = ()
        if len(names) > 1:
            kinds = [kind for key in names if (kind := _text_test(key)) is not None]
            own = tuple(kinds[0].fields())[1:] if kinds else ()
            names = [key for key in names if key not in own]
        if len(names) != 1:
            raise _error(path, f'an attribute has one test (like may have "escape"), of {", ".join(_tests())}')
        name = names[0]
        argument, here = form[name], f"{path}.{name}"
        try:
            kind = _text_test(name)
            if kind is not None:
                more = {key: self.text(form[key], f"{path}.{key}") for key in own if key in form}
                return check_predicate(self.text_test(kind, attribute, argument, here, more))
            return check_predicate(self.test(attribute, name, argument, here))
        except FilterError as error:
            if isinstance(error, LimitError) or str(error).startswith("at $"):
                raise
            raise FilterError(f"at {path}: {error}") from None

    def subject(self, form: dict[str, Any], path: str) -> str:
        """The name of what is tested: an attribute, or a term written as SQL."""
        key = "attribute" if "attribute" in form else "term"
        given = form[key]
        if "term" in form and key != "term":
            raise _error(path, "a test has an attribute or a term, not both")
        if not isinstance(given, str):
            what = "an attribute's name is a string" if key == "attribute" else "a term is a string, written as SQL"
            raise _error(f"{path}.{key}", f"{what}, not {_kind(given)}")
        _check_unicode(given, f"{path}.{key}")
        if key == "attribute":
            if not is_path(given):
                raise _error(
                    f"{path}.{key}", "a name that begins with = is that of a term; write it as term, without ="
                )
            return given
        try:
            return known_term(read_term(given, self.limits)).name
        except LimitError:
            raise
        except FilterError as error:
            raise _error(f"{path}.{key}", str(error)) from None

    def element_test(self, form: dict[str, Any], path: str, depth: int) -> Filter:
        """`{"attribute": "tags", "any": a filter on "x"}`; `"as"` names the element otherwise."""
        key = "any" if "any" in form else "all"
        if set(form) - {"attribute", "term", key, "as"}:
            raise _error(path, f'{key} has a filter on the element "x", and may have "as": another name for it')
        attribute, variable = self.subject(form, path), self.text(form.get("as", "x"), f"{path}.as")
        condition = self.condition(form[key], f"{path}.{key}", depth + 1)
        try:
            return ElementTest(attribute, condition, key == "all", variable)
        except FilterError as error:
            raise _error(path, str(error)) from None

    def test(self, attribute: str, name: str, argument: Any, path: str) -> Filter:
        if name in OPERATORS or name in _SAME:
            return Compare(attribute, _SAME.get(name, name), self.value(argument, path))  # type: ignore[arg-type]
        match name:
            case "between":
                low, high = self.values(argument, path, 2)
                return Between(attribute, low, high)
            case "in":
                return In(attribute, self.values(argument, path))
            case "array_contains":
                return ArrayContains(attribute, self.value(argument, path))
            case "present":
                if not isinstance(argument, bool) or not is_path(attribute):
                    raise _error(path, f"present takes true or false, of an attribute, not {_kind(argument)}")
                return Compare(present(attribute).name, "=", argument)
            case "is_null" | "exists":
                if not isinstance(argument, bool):
                    raise _error(path, f"{name} takes true or false, not {_kind(argument)}")
                return IsNull(attribute) if (name == "is_null") is argument else Not(IsNull(attribute))
        raise _error(path, f"the test {_short(name)} is not known; use one of {', '.join(_tests())}")

    def text_test(self, kind: type[TextTest], attribute: str, argument: Any, path: str, more: dict[str, str]) -> Filter:
        build: Callable[..., Filter] = kind
        if kind.fields():
            return build(attribute, self.text(argument, path, pattern=kind.bounded), **more)
        if argument is not True:
            raise _error(path, f"{kind.name} takes true, not {_kind(argument)}")
        return build(attribute)

    def values(self, form: Any, path: str, count: int | None = None) -> tuple[Scalar | None, ...]:
        if not isinstance(form, list) or (count is not None and len(form) != count):
            raise _error(path, f"a list of {'values' if count is None else f'{count} values'} is expected")
        if len(form) > self.limits.set_values:
            raise over_limit(f"in has {len(form):,} values", "set_values", self.limits)
        return tuple(self.value(value, f"{path}[{at}]") for at, value in enumerate(form))

    def value(self, form: Any, path: str) -> Scalar | None:
        if form is None or isinstance(form, (bool, int)):
            return form
        if isinstance(form, str):
            return self.text(form, path)
        if isinstance(form, float):
            if not math.isfinite(form):
                raise _error(path, 'the number is not finite; write {"double": "Infinity"}')
            return form
        if isinstance(form, dict) and len(form) == 1:
            ((type_name, inner),) = form.items()
            if type_name in ("timestamp", "date", "double") and isinstance(inner, str):
                try:
                    return CASTS[type_name.upper()](inner)
                except (ValueError, OverflowError) as error:
                    raise _error(path, str(error)) from None
        raise _error(
            path,
            'a constant is a string, number, true, false, null, {"timestamp": "…"}, {"date": "…"} or {"double": "…"}',
        )

    def text(self, form: Any, path: str, *, pattern: bool = False) -> str:
        if not isinstance(form, str):
            raise _error(path, f"a string is expected, not {_kind(form)}")
        if pattern and len(form) > self.limits.pattern_length:
            raise over_limit(f"the pattern has {len(form):,} characters", "pattern_length", self.limits)
        _check_unicode(form, path)
        return form


def _check_unicode(text: str, path: str) -> None:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _error(path, "half of a surrogate pair is not a character")


def _kind(form: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(form), "a number")


def _short(key: str) -> str:
    return ascii(key[:40])


def _error(path: str, message: str) -> FilterError:
    shown = path if len(path) <= 200 else "$…" + path[-200:]
    return FilterError(f"at {shown}: {message}")
