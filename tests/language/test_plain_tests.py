"""Plain conjunctions are read as the parser reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import CoveyError
from covey.filters import Filter
from covey.filters.casting import TYPE_WORDS
from covey.filters.predicates import TEXT_TESTS
from covey.filters.quoting import KEYWORDS
from covey.filters.term_functions import NAMED
from covey.language.parser import _Parser
from covey.language.plain_tests import read_plain
from covey.limits import DEFAULT_LIMITS, Limits

WORDS = sorted({*KEYWORDS, *TYPE_WORDS, *TEXT_TESTS, *NAMED, "CASE", "ILIKE", "DIV", "INTERVAL", "ANY", "r", "END"})
NAMES = st.one_of(st.sampled_from("abc"), st.sampled_from(WORDS), st.sampled_from(WORDS).map(str.lower))
NUMBERS = st.one_of(
    st.integers(0, 10**17).map(str), st.from_regex(r"[0-9]{1,12}\.[0-9]{0,7}", fullmatch=True),
    st.sampled_from(["1e5", "-1", ".5", "5L", "0", "00", "007", "0.0", "00.10"]),
)  # fmt: skip
CONSTANTS = st.one_of(
    NUMBERS, st.text("ab\\'é %", max_size=4).map("'{}'".format), st.sampled_from(["TRUE", "NULL", "'x' 'y'"])
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(["", "", "NOT ", "(", "((", "(NOT "])) + draw(NAMES)
        kind = draw(st.integers(0, 2))
        if kind == 0:
            values = ", ".join(draw(st.lists(CONSTANTS, max_size=3)))
            pieces.append(f"{name} {draw(st.sampled_from(['IN', 'IN', 'NOT IN']))} ({values})")
        elif kind == 1:
            operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "!=", "<=>"]))
            pieces.append(f"{name} {operator} {draw(CONSTANTS)}")
        else:
            pieces.append(f"{name} BETWEEN {draw(NUMBERS)} AND {draw(NUMBERS)}")
        pieces.append(draw(st.sampled_from([" AND ", " OR ", ") OR ", ") AND ", " AND ", " OR ", "  AND ", " or "])))
    ends = ["", "", "", ")", ")", " ", " AND", " IS TRUE", "\n", " -- x"]
    return "".join(pieces[:-1]) + draw(st.sampled_from(ends))


def general(text: str) -> Filter | None:
    try:
        return _Parser(text, DEFAULT_LIMITS).parse()
    except CoveyError:
        return None


@given(texts())
def test_what_is_read_is_what_the_parser_reads(text: str) -> None:
    found = read_plain(text, DEFAULT_LIMITS)
    if found is not None:
        wanted = general(text)
        assert found == wanted
        assert str(found) == str(wanted)
        assert hash(found) == hash(wanted)


def test_any_word_of_the_language_as_a_name() -> None:
    for word in (*WORDS, *map(str.lower, WORDS)):
        for test in ("= 1", "= 1.5", "= 'x'", "BETWEEN 1 AND 2", "< 2 AND a = 1", "IN (1, 2)"):
            text = f"{word} {test}"
            found = read_plain(text, DEFAULT_LIMITS)
            assert found is None or found == general(text), text


@pytest.mark.parametrize(
    "text",
    [
        "symbol = 'S439' AND price BETWEEN 43.88 AND 143.88 AND volume BETWEEN 104157 AND 204157", "p >= 0.5",
        "_a1 = '' AND b < 999999999999999",
        "(symbol IN ('S0', 'S40') AND price BETWEEN 665.6 AND 685.6) OR (sector = 's' AND NOT volume < 915908)",
        "price BETWEEN 665.6 AND 685.6 AND symbol IN ('S0', 'S40') OR a IN (1, 2.5) AND NOT volume < 915908 OR b = 1",
        "(a = 1)", "NOT a = 1", "(a = 1) OR b = 2",
    ],
)  # fmt: skip
def test_what_subscriptions_mostly_are_is_read(text: str) -> None:
    assert read_plain(text, DEFAULT_LIMITS) == general(text) != None  # noqa: E711


def test_limits_are_the_parsers() -> None:
    assert read_plain("a = 1 AND b = 2", Limits(tokens=7)) is None
    assert read_plain("a = 1 AND b = 2", Limits(text_length=14)) is None
    assert read_plain("a IN (1, 2) AND b = 2", Limits(set_values=1)) is None
    assert read_plain("(NOT a = 1)", Limits(depth=2)) is None
