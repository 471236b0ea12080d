"""EventBridge's patterns: the cases of each matcher, and what they mean beside a plain evaluator over flat fields."""

import fnmatch
import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tools.conformance import own

import covey
from covey.errors import FilterError, LimitError
from covey.limits import Limits

CASES = own.cases("eventbridge")


def text_of(case: dict[str, Any]) -> str:
    return case["filter"] if isinstance(case["filter"], str) else json.dumps(case["filter"])


@pytest.mark.parametrize("case", CASES, ids=map(text_of, CASES))
def test_cases(case: dict[str, Any]) -> None:
    if case["matches"] is None:
        with pytest.raises(FilterError) as error:
            covey.parse(text_of(case), dialect="eventbridge")
        assert "\n" not in str(error.value).partition("\n  ")[0]
        return
    condition = covey.parse(text_of(case), dialect="eventbridge")
    assert condition.matches(case["event"]) is case["matches"]
    assert covey.parse(str(condition)) == condition
    index = covey.Index()
    index.add("one", text_of(case), dialect="eventbridge")
    assert bool(index.match(case["event"])) is case["matches"]


# A plain evaluator: events are flat fields, each with where in which lists it stands.


def flat(value: Any, path: str = "", lists: tuple[tuple[str, int], ...] = ()) -> list[tuple[str, Any, Any]]:
    if isinstance(value, dict):
        return [leaf for key, one in value.items() for leaf in flat(one, f"{path}.{key}".lstrip("."), lists)]
    if isinstance(value, list):
        return [leaf for at, one in enumerate(value) for leaf in flat(one, path, (*lists, (path, at)))]
    return [(path, value, lists)]


def met(matcher: Any, value: Any) -> bool:
    if not isinstance(matcher, dict):
        return type(matcher) is type(value) and matcher == value
    ((key, given),) = matcher.items()
    text = isinstance(value, str)
    if key == "anything-but":
        listed = given if isinstance(given, list) else [given]
        return not any(met(one, value) for one in listed)
    return {
        "prefix": lambda: text and value.startswith(given),
        "suffix": lambda: text and value.endswith(given),
        "equals-ignore-case": lambda: text and value.lower() == given.lower(),
        "wildcard": lambda: text and fnmatch.fnmatchcase(value, given),
        "numeric": lambda: type(value) is int and (value > given[1] if given[0] == ">" else value <= given[1]),
        "exists": lambda: given,
    }[key]()


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    leaves = flat(event)
    wanted = [(path, matchers) for path, matchers in flat_pattern(pattern)]
    choices: list[list[Any]] = []
    for path, matchers in wanted:
        found = [lists for name, value, lists in leaves if name == path and any(met(one, value) for one in matchers)]
        if not any(name == path for name, _, _ in leaves) and {"exists": False} in matchers:
            found = [()]
        choices.append(found)
    return any(consistent(chosen) for chosen in itertools.product(*choices))


def flat_pattern(pattern: dict[str, Any], path: str = "") -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    for key, value in pattern.items():
        name = f"{path}.{key}".lstrip(".")
        found += flat_pattern(value, name) if isinstance(value, dict) else [(name, value)]
    return found


def consistent(chosen: tuple[tuple[tuple[str, int], ...], ...]) -> bool:
    """Whether no two fields are in different elements of one list; a list of values is no list of records."""
    places: dict[str, set[int]] = {}
    for lists in chosen:
        for path, at in lists:
            places.setdefault(path, set()).add(at)
    return all(len(ats) == 1 for ats in places.values())


VALUES = ["a", "ab", "B", 1, 5, True]
MATCHERS: list[Any] = [
    *VALUES,
    {"prefix": "a"},
    {"suffix": "b"},
    {"equals-ignore-case": "b"},
    {"wildcard": "a*"},
    {"numeric": [">", 2]},
    {"numeric": ["<=", 2]},
    {"anything-but": "a"},
    {"anything-but": ["a", "B"]},
    {"anything-but": [1]},
    {"anything-but": {"prefix": "a"}},
    {"exists": True},
    {"exists": False},
]


def drawn_event(draw: random.Random) -> dict[str, Any]:
    def value() -> Any:
        return draw.choice([*VALUES, [], draw.sample(VALUES, 2)])

    def record() -> dict[str, Any]:
        return {key: value() for key in ("p", "q") if draw.random() < 0.7}

    event: dict[str, Any] = {key: value() for key in ("s", "t") if draw.random() < 0.7}
    event["r"] = draw.choice([record(), [record(), record()], [record()]])
    return event


def drawn_pattern(draw: random.Random) -> dict[str, Any]:
    def matchers() -> list[Any]:
        return draw.sample(MATCHERS, draw.choice([1, 1, 2]))

    pattern: dict[str, Any] = {key: matchers() for key in ("s", "t") if draw.random() < 0.4}
    inner = {key: matchers() for key in ("p", "q") if draw.random() < 0.6}
    if inner or not pattern:
        pattern["r"] = inner or {"p": matchers()}
    return pattern


def test_random_patterns_agree_with_a_plain_evaluator() -> None:
    draw = random.Random(11)
    events = [drawn_event(draw) for _ in range(40)]
    true = 0
    for _ in range(150):
        pattern = drawn_pattern(draw)
        condition = covey.parse(json.dumps(pattern), dialect="eventbridge")
        again = covey.parse(str(condition))
        for event in events:
            wanted = matches(pattern, event)
            true += wanted
            assert condition.matches(event) is wanted, (pattern, event, str(condition))
            assert again.matches(event) is wanted
    assert true > 500


SMALL = Limits(text_length=65_536, set_values=4_096)


def test_limits_hold() -> None:
    wide = {"$or": [{"a": ["x"]}, {"b": ["y"]}]}
    for text in (
        json.dumps({str(number): wide for number in range(12)}),
        '{"a":' * 300 + '["x"]' + "}" * 300,
        '{"a":["' + "x" * 70_000 + '"]}',
        '{"a":[{"wildcard":"' + "x" * 2_000 + '"}]}',
        '{"a":[' + "1," * 20_000 + "1]}",
    ):
        with pytest.raises(LimitError):
            covey.parse(text, dialect="eventbridge", limits=SMALL)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "$or", "prefix", "numeric", "exists", "anything-but"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(200), deadline=None)
@given(JSON)
def test_any_json_is_a_pattern_or_one_line(form: Any) -> None:
    try:
        condition = covey.parse(json.dumps(form), dialect="eventbridge")
    except FilterError as error:
        if "\n" in str(error):
            raise
    else:
        assert covey.parse(str(condition)) == condition


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        covey.parse(text, dialect="eventbridge")
    except FilterError:
        return
