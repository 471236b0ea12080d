"""JMS selectors and AMQP's SQL filter expressions: the cases of both, and what they mean beside a plain evaluator."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tools.conformance import own

import covey
from covey.errors import FilterError, FilterSyntaxError, LimitError

CASES = [(dialect, case) for dialect in ("jms", "amqp") for case in own.cases(dialect)]


@pytest.mark.parametrize(("dialect", "case"), CASES, ids=[f"{dialect}: {case['filter']}" for dialect, case in CASES])
def test_cases(dialect: str, case: dict[str, Any]) -> None:
    if case["matches"] is None:
        with pytest.raises(FilterSyntaxError) as error:
            covey.parse(case["filter"], dialect=dialect)
        assert "\n" not in error.value.message
        return
    condition = covey.parse(case["filter"], dialect=dialect)
    assert condition.matches(case["event"]) is case["matches"]
    again = covey.parse(str(condition))
    assert again == condition
    index = covey.Index()
    index.add("one", case["filter"], dialect=dialect)
    assert bool(index.match(case["event"])) is case["matches"]


def truth(node: Any, event: dict[str, Any], dialect: str) -> bool | None:
    """A condition's truth, as JMS has it: unknown of null, unequal of unlike kinds."""
    kind, *parts = node
    if kind == "NOT":
        inner = truth(parts[0], event, dialect)
        return None if inner is None else not inner
    if kind in ("AND", "OR"):
        truths = [truth(part, event, dialect) for part in parts]
        decisive = kind == "OR"
        return decisive if decisive in truths else None if None in truths else not decisive
    left, right = (event.get(part[1:]) if isinstance(part, str) and part[0] == "@" else part for part in parts)
    if left is None or right is None:
        return None
    if _kind(left) != _kind(right):
        return bool(kind == "<>")
    if isinstance(left, bool) and kind not in ("=", "<>") and bool in map(type, parts):
        return False  # of two attributes JMS doesn't say it; there they are ordered as in SQL
    if dialect == "jms" and kind in ("<", ">=") and any(isinstance(part, str) and part[0] != "@" for part in parts):
        return False
    return {"=": left == right, "<>": left != right, "<": left < right, ">=": left >= right}[kind]


def _kind(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def written(node: Any) -> str:
    kind, *parts = node
    if kind == "NOT":
        return f"NOT ({written(parts[0])})"
    if kind in ("AND", "OR"):
        return f"({written(parts[0])} {kind} {written(parts[1])})"
    return f"{_value(parts[0])} {kind} {_value(parts[1])}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return value[1:] if isinstance(value, str) and value[0] == "@" else repr(value)


def drawn(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        kind = draw.choice(["=", "<>", "<", ">="])
        return (kind, draw.choice(["@a", "@b", 1, "x"]), draw.choice(["@a", "@b", 1, 2.5, "x", True]))
    kind = draw.choice(["AND", "OR", "NOT"])
    return (kind, *(drawn(draw, depth - 1) for _ in range(1 if kind == "NOT" else 2)))


EVENTS = [
    {key: value for key, value in (("a", a), ("b", b)) if value is not None}
    for a, b in itertools.product((None, 1, 2.5, 3, "x", "y", True), (None, 1, "x", False))
]


@pytest.mark.parametrize("dialect", ["jms", "amqp"])
def test_random_selectors_agree_with_a_plain_evaluator(dialect: str) -> None:
    draw = random.Random(3)
    true = 0
    for _ in range(300):
        node = drawn(draw, draw.randrange(4))
        condition = covey.parse(written(node), dialect=dialect)
        again = covey.parse(str(condition))
        for event in EVENTS:
            wanted = truth(node, event, dialect) is True
            true += wanted
            assert condition.matches(event) is wanted, (written(node), str(condition), event)
            assert again.matches(event) is wanted
    assert true > 500


def test_limits_hold() -> None:
    for text in ("(" * 200 + "a" + ")" * 200, "NOT " * 500 + "a", "a " * 70_000, "a + " * 3_000 + "1 > 2"):
        with pytest.raises((LimitError, FilterSyntaxError)):
            covey.parse(text, dialect="jms")


WORDS = ["a", "p.b-c", "5", "0x1F", "1E3", "'x'", "(", ")", "AND", "OR", "NOT", "=", "<>", "+", "-", "/", "IN", "LIKE"]
WORDS += ["ESCAPE", "BETWEEN", "IS", "NULL", ",", "TRUE", '"', "$"]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["jms", "amqp"]))
def test_any_words_are_a_selector_or_one_line(words: list[str], dialect: str) -> None:
    try:
        condition = covey.parse(" ".join(words), dialect=dialect)
    except FilterSyntaxError as error:
        if "\n" in error.message:
            raise
    else:
        assert covey.parse(str(condition)) == condition


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        covey.parse(text, dialect="jms")
    except FilterError:
        return
