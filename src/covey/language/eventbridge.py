"""Event patterns as Amazon EventBridge reads them: JSON that looks like the event, with lists of what a field may be.

    {"source": ["aws.ec2"], "detail": {"state": [{"anything-but": "terminated"}], "cpu": [{"numeric": [">", 90]}]}}

All fields must be met, each by one of the values in its list; `$or` has alternatives. As event-ruler, the library
behind EventBridge, has it: the pattern becomes branches, one for each choice of alternatives, and each branch a list of
values for each path. A field whose value is a list is met if one of its elements is; fields in records of one list are
met in one and the same record. What EventBridge refuses is refused here, with the path of what is wrong: fields without
a list, empty lists and objects, unknown matchers, `**` in wildcards, ranges from high to low, numbers beyond doubles, a
field named twice.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NoReturn, TypeAlias

from covey.errors import FilterError, FilterSyntaxError, LimitError
from covey.filters.algebra import TRUE, And, Filter, Is, Not, all_of, any_of, depth
from covey.filters.caseless import IEndsWith, IEquals, IStartsWith
from covey.filters.networks import CidrMatch
from covey.filters.predicates import ArrayContains, Compare, ElementTest, EndsWith, In, IsNull, Like, StartsWith
from covey.filters.terms import present
from covey.filters.values import Kind, Scalar, kind_of
from covey.language.bounds import over_limit
from covey.limits import Limits

BRANCHES: Final = 1_000
"""Choices of alternatives in one pattern, as many as EventBridge allows."""
_RESERVED: Final = frozenset(
    {"exactly", "prefix", "suffix", "equals-ignore-case", "anything-but", "numeric", "cidr", "exists", "wildcard"}
)
_ELEMENT: Final = "x"
"""What elements are called, in lists within lists too: tests of elements name theirs alone."""
_LISTS: Final = 3
"""Lists of records around each other that a field is looked for in."""
_ENVELOPE: Final = "detail"
"""The field of an event that is a record in every event of EventBridge, never a list of them."""

Test: TypeAlias = Callable[[str], Filter]
"""A test of one value, by its name."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """What a field may be: a constant, or what meets a test. Without both it is `exists`: there, or not there."""

    test: Test | None = None
    constant: Scalar | None = None
    there: bool = True


_ABSENT: Final = Matcher(there=False)
Branch: TypeAlias = dict[tuple[str, ...], list[Matcher]]
Node: TypeAlias = dict[str, "Node | list[Matcher]"]


def parse_eventbridge(text: str, limits: Limits) -> Filter:
    """The filter of an event pattern."""
    if len(text) > limits.text_length:
        raise over_limit(f"the pattern has {len(text):,} characters", "text_length", limits)
    try:
        loaded = json.loads(text, object_pairs_hook=_object, parse_constant=_not_json, parse_float=_float)
    except json.JSONDecodeError as error:
        raise FilterSyntaxError(f"this is not JSON: {error.msg}", text, error.pos) from None
    except ValueError as error:
        raise FilterError(f"this is not JSON that can be read: {error}") from None
    if not isinstance(loaded, dict):
        raise _error("$", "a pattern is an object with a list of values for each field")
    reader = _Reader(limits)
    branches = reader.object(loaded, (), [{}], 1)
    found = any_of(_branch(branch) for whole in branches for branch in _split(whole))
    if depth(found) > limits.depth:
        raise over_limit(f"the pattern is nested {depth(found):,} levels deep", "depth", limits)
    return found


class _Reader:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def object(
        self, form: dict[str, Any], path: tuple[str, ...], branches: list[Branch], level: int, *, reserved: bool = False
    ) -> list[Branch]:
        """The branches with the fields of an object added to each."""
        if not form:
            raise _error(_shown(path), "empty objects are not allowed")
        if level > self.limits.depth:
            raise over_limit(f"the pattern is nested {level:,} levels deep or more", "depth", self.limits)
        for key, value in form.items():
            here = (*path, key)
            if key == "$or":
                branches = self.choice(_alternatives(value, _shown(here)), path, branches, level)
            elif reserved and key in _RESERVED:
                raise _error(_shown(here), f"{key} is a matcher, which can't be a field inside $or")
            elif isinstance(value, dict):
                branches = self.object(value, here, branches, level + 1, reserved=reserved)
            elif isinstance(value, list):
                matchers = self.matchers(value, _shown(here))
                for branch in branches:
                    if here in branch:
                        raise _error(_shown(here), "the field is named twice")
                    branch[here] = matchers
            else:
                raise _error(_shown(here), "a field has an object, or a list of values: write them in [ ]")
        return branches

    def choice(self, forms: list[Any], path: tuple[str, ...], branches: list[Branch], level: int) -> list[Branch]:
        """A branch for each alternative of each branch."""
        if len(branches) * len(forms) > BRANCHES:
            raise LimitError(f"$or makes more than {BRANCHES:,} combinations; the limit BRANCHES is {BRANCHES:,}")
        found: list[Branch] = []
        for form in forms:
            copies = [dict(branch) for branch in branches]
            found += self.object(form, path, copies, level + 1, reserved=True)
        if len(found) > BRANCHES:
            raise LimitError(f"$or makes {len(found):,} combinations; the limit BRANCHES is {BRANCHES:,}")
        return found

    def matchers(self, forms: list[Any], path: str) -> list[Matcher]:
        if not forms:
            raise _error(path, "empty lists are not allowed; write at least one value")
        if len(forms) > self.limits.set_values:
            raise over_limit(f"a field has {len(forms):,} values", "set_values", self.limits)
        return [self.matcher(form, f"{path}[{at}]") for at, form in enumerate(forms)]

    def matcher(self, form: Any, path: str) -> Matcher:
        match form:
            case None:
                return Matcher(_null)
            case bool() | int() | float():
                return Matcher(constant=form)
            case str():
                return _text(self.text(form, path))
            case dict() if len(form) == 1:
                ((key, value),) = form.items()
                return self.named(key, value, f"{path}.{key}")
            case dict():
                raise _error(path, "a matcher is an object with one key")
        raise _error(path, "a value is a string, a number, true, false, null or a matcher")

    def named(self, key: str, value: Any, path: str) -> Matcher:
        """A matcher by its name."""
        match key:
            case "exactly":
                return Matcher(constant=self.text(value, path))
            case "exists":
                if not isinstance(value, bool):
                    raise _error(path, "exists is true or false")
                return Matcher() if value else _ABSENT
            case "anything-but":
                return self.anything_but(value, path)
            case "numeric":
                return Matcher(self.numeric(value, path))
            case "cidr":
                return Matcher(_network(self.text(value, path), path))
            case "prefix" | "suffix" | "equals-ignore-case" | "wildcard":
                return Matcher(self.texts(key, value, path))
        raise _error(path, f"the matcher {key[:40]!a} is not known; there are {', '.join(sorted(_RESERVED))}")

    def texts(self, key: str, value: Any, path: str) -> Test:
        """A test of text."""
        if key in ("prefix", "suffix") and isinstance(value, dict):
            if set(value) != {"equals-ignore-case"}:
                raise _error(path, f"{key} takes a string, or equals-ignore-case and a string")
            inner = self.text(value["equals-ignore-case"], f"{path}.equals-ignore-case")
            return lambda name: (IStartsWith if key == "prefix" else IEndsWith)(name, inner)
        text = self.text(value, path)
        match key:
            case "prefix":
                return lambda name: StartsWith(name, text)
            case "suffix":
                return lambda name: EndsWith(name, text)
            case "equals-ignore-case":
                return lambda name: IEquals(name, text)
        pattern = self.wildcard(text, path)
        return lambda name: Like(name, pattern)

    def wildcard(self, text: str, path: str) -> str:
        """A pattern of `*` and its escapes, as LIKE has it."""
        if len(text) > self.limits.pattern_length:
            raise over_limit(f"the pattern has {len(text):,} characters", "pattern_length", self.limits)
        if re.search(r"(?<!\\)(?:\\\\)*\*\*", text):
            raise _error(path, "two * in a row are not allowed")
        pieces: list[str] = []
        for found in re.finditer(r"\\(.)?|\*|[^\\*]+", text, re.DOTALL):
            written = found[0]
            if written == "*":
                pieces.append("%")
            elif written[0] == "\\":
                if found[1] not in ("*", "\\"):
                    raise _error(path, "a backslash stands only before * and \\")
                pieces.append(_escaped(found[1]))
            else:
                pieces.append(_escaped(written))
        return "".join(pieces)

    def anything_but(self, value: Any, path: str) -> Matcher:
        """Whatever is there and isn't one of these."""
        if isinstance(value, dict):
            if len(value) != 1:
                raise _error(path, "anything-but takes one matcher")
            ((key, inner),) = value.items()
            if key not in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
                raise _error(f"{path}.{key}", "anything-but takes prefix, suffix, equals-ignore-case or wildcard")
            listed = inner if isinstance(inner, list) else [inner]
            if not listed:
                raise _error(f"{path}.{key}", "empty lists are not allowed")
            if key in ("prefix", "suffix") and "" in listed:
                raise _error(f"{path}.{key}", f"an empty {key} is not allowed here")
            tests = [self.texts(key, self.text(one, f"{path}.{key}"), f"{path}.{key}") for one in listed]
            return Matcher(lambda name: _other(name, any_of(test(name) for test in tests)))
        listed = value if isinstance(value, list) else [value]
        if not listed:
            raise _error(path, "empty lists are not allowed")
        numbers = [isinstance(one, (int, float)) and not isinstance(one, bool) for one in listed]
        texts = [isinstance(one, str) for one in listed]
        if not all(numbers) and not all(texts):
            raise _error(path, "anything-but takes strings or numbers, and not both")
        for one in listed:
            _comparable(one, path)
        values = tuple(dict.fromkeys(listed))
        return Matcher(lambda name: _other(name, In(name, values)))

    def numeric(self, value: Any, path: str) -> Test:
        """A number, or a range of them."""
        if not isinstance(value, list) or len(value) not in (2, 4):
            raise _error(path, 'numeric takes an operator and a number, or two of each: [">", 0, "<=", 5]')
        operators, bounds = value[::2], value[1::2]
        for operator, bound in zip(operators, bounds, strict=True):
            if operator not in ("=", "<", "<=", ">", ">="):
                raise _error(path, "an operator is one of = < <= > >=")
            if isinstance(bound, bool) or not isinstance(bound, (int, float)):
                raise _error(path, f"the value of {operator} is a number")
            _comparable(bound, path)
        if len(operators) == 1:
            return lambda name: Compare(name, operators[0], bounds[0])
        if operators[0] not in (">", ">=") or operators[1] not in ("<", "<="):
            raise _error(path, "a range has > or >= first and < or <= then")
        if bounds[0] >= bounds[1]:
            raise _error(path, "a range goes from a lower number to a higher one")
        return lambda name: And((Compare(name, operators[0], bounds[0]), Compare(name, operators[1], bounds[1])))

    def text(self, form: Any, path: str) -> str:
        if not isinstance(form, str):
            raise _error(path, "a string is expected")
        if any("\ud800" <= character <= "\udfff" for character in form):
            raise _error(path, "half of a surrogate pair is not a character")
        return form


def _split(branch: Branch) -> list[Branch]:
    """A field that may be absent or else have a value is two branches: absence is about all records of a list, a value
    about one."""
    found: list[Branch] = [{}]
    for path, matchers in branch.items():
        absent = [matcher for matcher in matchers if matcher == _ABSENT][:1]
        others = [matcher for matcher in matchers if matcher != _ABSENT]
        choices = [choice for choice in (absent, others) if choice]
        found = [{**one, path: choice} for one in found for choice in choices]
        if len(found) > BRANCHES:
            raise LimitError(f"the pattern has more than {BRANCHES:,} combinations; the limit BRANCHES is {BRANCHES:,}")
    return found


def _branch(branch: Branch) -> Filter:
    root: Node = {}
    parts: list[Filter] = []
    for path, matchers in branch.items():
        if matchers == [_ABSENT]:
            parts.append(_untrue(_present(path, "", 0)))
            continue
        node = root
        for step in path[:-1]:
            inner = node.setdefault(step, {})
            assert isinstance(inner, dict), "a field is named once"
            node = inner
        node[path[-1]] = matchers
    return all_of([*parts, *_fields(root, "", 0)])


def _fields(node: Node, prefix: str, lists: int) -> list[Filter]:
    """All that must hold of the fields of a record, whose names have this prefix; `lists` are open around it."""
    found: list[Filter] = []
    for step, below in node.items():
        name = prefix + step
        if isinstance(below, list):
            found.append(_field(name, below))
            continue
        whole = all_of(_fields(below, f"{name}.", lists))
        if name != _ENVELOPE and lists < _LISTS:
            inside = all_of(_fields(below, f"{_ELEMENT}.", lists + 1))
            whole = any_of((whole, ElementTest(name, any_of((inside, ElementTest(_ELEMENT, inside))))))
        found.append(whole)
    return found


def _field(name: str, matchers: list[Matcher]) -> Filter:
    """A field by its value, or by one value in it, where it is a list, in lists within lists too."""
    tests = [matcher.test for matcher in matchers if matcher.test is not None]
    constants = [matcher.constant for matcher in matchers if matcher.constant is not None]
    found = _equal(name, constants)
    found += [test(name) for test in tests]
    of_element = any_of(test(_ELEMENT) for test in tests)
    if tests:
        found.append(ElementTest(name, of_element))
    if tests or constants:
        of_inner = [ArrayContains(_ELEMENT, constant) for constant in dict.fromkeys(constants)]
        found.append(ElementTest(name, any_of((*of_inner, *([ElementTest(_ELEMENT, of_element)] if tests else ())))))
    if Matcher() in matchers:
        found.append(_there(name))
    return any_of(found)


def _equal(name: str, constants: list[Scalar]) -> list[Filter]:
    """One of these, or a list that has one of them."""
    kinds: dict[Kind, dict[Scalar, None]] = {}
    for constant in constants:
        kinds.setdefault(kind_of(constant), {})[constant] = None
    found: list[Filter] = []
    for values in map(tuple, kinds.values()):
        found.append(In(name, values) if len(values) > 1 else Compare(name, "=", values[0]))
        found += [ArrayContains(name, value) for value in values]
    return found


def _there(name: str) -> Filter:
    """A field that has a value, be it null: a list has one if an element does, and a record has none of its own."""
    inner = any_of((_untrue(_is_list(_ELEMENT)), ElementTest(_ELEMENT, _untrue(_is_list(_ELEMENT)))))
    return any_of((And((Not(IsNull(name)), _untrue(_is_list(name)))), _null(name), ElementTest(name, inner)))


def _is_list(name: str) -> Filter:
    """A list; of an element, also a record."""
    return ElementTest(name, TRUE, every=True)


def _present(path: tuple[str, ...], prefix: str, lists: int) -> Filter:
    """That a path leads to a value, through lists of records too."""
    found = [_there(prefix + ".".join(path))]
    for length in range(1, len(path)):
        name = prefix + ".".join(path[:length])
        if name != _ENVELOPE and lists < _LISTS:
            inside = _present(path[length:], f"{_ELEMENT}.", lists + 1)
            found.append(ElementTest(name, any_of((inside, ElementTest(_ELEMENT, inside)))))
    return any_of(found)


def _null(name: str) -> Filter:
    """JSON's null, which isn't a missing field."""
    null = IsNull(name)
    return null if name == _ELEMENT else And((Compare(present(name).name, "=", True), null))


def _other(name: str, these: Filter) -> Filter:
    """A value that is none of these, of whatever kind, null too; a list is looked at by its elements."""
    return any_of((And((Not(IsNull(name)), _untrue(_is_list(name)), _untrue(these))), _null(name)))


def _untrue(condition: Filter) -> Filter:
    return Not(Is(condition, True))


def _alternatives(value: Any, path: str) -> list[Any]:
    """What $or chooses from."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(one, dict) for one in value):
        raise _error(path, "$or takes a list of two objects or more, each a pattern")
    return value


def _text(text: str) -> Matcher:
    """A text; an IPv6 address has several."""
    if ":" in text:
        try:
            network = f"{ipaddress.IPv6Address(text)}/128"
        except ValueError:
            pass
        else:
            return Matcher(lambda name: CidrMatch(name, network))
    return Matcher(constant=text)


def _network(text: str, path: str) -> Test:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        network = None
    if network is None or "/" not in text:
        raise _error(path, f"{text[:60]!a} is not a network; write an address and a length: 10.0.0.0/24")
    if network.prefixlen == network.max_prefixlen:
        raise _error(path, f"a network's length is less than {network.max_prefixlen}; write the address itself")
    return lambda name: CidrMatch(name, str(network))


def _escaped(text: str) -> str:
    return re.sub(r"[\\%_]", lambda found: "\\" + found[0], text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    loaded: dict[str, Any] = {}
    for key, value in pairs:
        if key in loaded:
            raise FilterError(f"the key {key[:40]!a} stands twice in one object")
        loaded[key] = value
    return loaded


class _Rounded(float):
    """A number that was written with more digits than a double has."""


def _float(written: str) -> float:
    value = float(written)
    return value if isfinite(value) and Decimal(repr(value)) == Decimal(written) else _Rounded(value)


def _comparable(value: Any, path: str) -> None:
    """Numbers are compared as doubles, so one that no double is can't be."""
    if isinstance(value, _Rounded) or (isinstance(value, int) and _float(str(value)) != value):
        raise _error(path, "the number has more digits than a double, which can't be compared")


def _not_json(constant: str) -> NoReturn:
    raise FilterError(f"{constant} is not JSON")


def _shown(path: tuple[str, ...]) -> str:
    return "".join(["$", *(f".{step}" for step in path)])


def _error(path: str, message: str) -> FilterError:
    shown = path if len(path) <= 200 else "$…" + path[-200:]
    return FilterError(f"at {ascii(shown)[1:-1]}: {message}")
