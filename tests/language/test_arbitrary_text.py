"""No text raises anything but covey's own errors, and what is read prints and reads again."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import NAMES, PATTERNS, REGULAR_EXPRESSIONS

from covey.errors import CoveyError, FilterSyntaxError
from covey.filters.printing import to_sql
from covey.language import from_json, parse, to_json

SPACED_WORDS = r"""
AND OR NOT ! IN BETWEEN LIKE RLIKE ESCAPE IS NULL TRUE FALSE UNKNOWN DISTINCT FROM SELECT EXISTS CAST AS DOUBLE
TIMESTAMP DATE contains exists like rlike array_contains in_rectangle double float ( ( ) ) , , . = == <> != < <= > >=
<=> => + - * / % && || ; [ ] { ' " ` `x y` -- /* */ \ 0 1 -1 1.5 1e400 3BD 1L 007
"""
KEYS = """and or not is_true is_unknown attribute = <= <=> in between like escape rlike contains is_null exists
array_contains timestamp double date what"""
WORDS = (
    *SPACED_WORDS.split(),
    *("'a'", "'NaN'", "'2024-01-31'", "''", "'\\uD800'", "r'\\d'", "é", "\n", "\0", "\ud800"),
    *NAMES,
    *(f"'{pattern}'" for pattern in PATTERNS),
    *(f"'{pattern}'" for pattern in REGULAR_EXPRESSIONS),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS.split()),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


def read(text: str, dialect: str = "sql") -> None:
    try:
        condition = parse(text, dialect=dialect)
    except FilterSyntaxError as error:
        mistake = error
    except CoveyError:
        return
    else:
        mistake = None
    if mistake is not None:
        assert "\n" not in mistake.message
        assert 0 <= mistake.position <= len(text)
        return
    assert parse(to_sql(condition)) == condition
    assert from_json(to_json(condition)) == condition


@given(st.text(st.characters()) | st.text(st.characters(max_codepoint=127)))
@settings(max_examples=examples(300))
def test_arbitrary_characters(text: str) -> None:
    read(text)
    read(text, "json")


@given(st.lists(st.sampled_from(WORDS), max_size=20), st.sampled_from(["", " "]))
@settings(max_examples=examples(1_000))
def test_arbitrary_words_of_the_language(words: list[str], space: str) -> None:
    read(space.join(words))


@given(
    st.lists(st.sampled_from(["a = 1", "NOT", "AND", "OR", "(", ")", "b IS NULL", "IS TRUE", "NULL", "c"]), max_size=12)
)
@settings(max_examples=examples(1_000))
def test_arbitrary_boolean_structure(words: list[str]) -> None:
    read(" ".join(words))


@given(JSON_VALUES)
@settings(max_examples=examples(500))
def test_arbitrary_json(form: Any) -> None:
    read(json.dumps(form), "json")


@pytest.mark.parametrize(
    "unit", ["'\\\\", "/*", "`", "((", "1", "a.", '"', "-", "1.", "NOT ", "e1", "r'", "=>", "\\", "{", "a "]
)
@pytest.mark.parametrize("end", ["", "x", "'"])
def test_the_longest_texts_are_read_or_refused_at_once(unit: str, end: str) -> None:
    """A text of 65,536 characters takes milliseconds; anything quadratic takes minutes."""
    text = "a = " + unit * (65_000 // len(unit)) + end
    start = time.perf_counter()
    read(text)
    read(text, "json")
    assert time.perf_counter() - start < 5
