"""One event as a dict, which the kernel reads itself or leaves to Python, matches what the interpreter says."""

from __future__ import annotations

import gc
import sys
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

import covey
from covey.filters import matches

NAMES = [f"a{number}" for number in range(12)]


class Text(str):
    __slots__ = ()


VALUES = (
    st.none() | st.booleans() | st.floats() | st.integers() | st.integers(-(2**70), 2**70) | st.text(max_size=20)
    | st.sampled_from(["x", "xy", "y", "Äx", "ß", Text("x"), np.float64(1.5), np.int64(3), Decimal("1.5")])
    | st.sampled_from([datetime(2024, 5, 1, tzinfo=UTC), ["x", 1], ("y",), {"x": 1}, 2**53 + 1, -(2**63), 2**63])
)  # fmt: skip
KEYS = st.sampled_from(NAMES) | st.sampled_from([Text("a1"), "other", "more"])
EVENTS = st.dictionaries(KEYS, VALUES, max_size=16)
TESTS = (
    "= 'x'", "<> 'x'", "> 'w'", "LIKE '%x%'", "ILIKE '%Ä%'", "RLIKE 'x.?y'", "= 3", "< 1.5", ">= 9007199254740993",
    "= TRUE", "IS NULL", "IN (1.5, 2)", "BETWEEN -9223372036854775808 AND 0", "> TIMESTAMP '2024-01-01 00:00:00'",
)  # fmt: skip


def subscriptions(names: list[str], tests: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        (f"s{number}", f"{name} {test} OR {names[number % len(names)]} = 'seldom'")
        for number, (name, test) in enumerate((name, test) for name in names for test in tests)
    ]


def checked(given: list[tuple[str, str]]) -> tuple[covey.Index, dict[str, covey.Filter]]:
    index = covey.Index()
    index.add_many(given)
    return index, {id: covey.parse(text) for id, text in given}


WORLDS = {
    "texts": checked(subscriptions(NAMES, TESTS)),
    "few names": checked(subscriptions(NAMES[:2], TESTS)),
    "no patterns": checked(subscriptions(NAMES, tuple(test for test in TESTS if "LIKE" not in test))),
}


@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(event=EVENTS, ordered=st.booleans())
def test_values_of_every_kind(world: str, event: dict[str, Any], ordered: bool) -> None:
    index, filters = WORLDS[world]
    wanted = [id for id, condition in filters.items() if matches(condition, event)]
    assert index.match(OrderedDict(event) if ordered else event) == wanted
    assert index.match({}) == [id for id, condition in filters.items() if matches(condition, {})]


def test_an_event_that_is_left_in_the_middle_leaves_nothing_behind() -> None:
    index = covey.Index()
    index.add_many([("a", "x = 1"), ("b", "y = 2"), ("c", "s LIKE '%x%'"), ("d", "s IS NULL AND x IS NULL")])
    for bad in (object(), 1j, b"bytes"):
        with pytest.raises(covey.EventError):
            index.match({"x": 1, "s": "x", "y": bad})
        assert index.match({"y": 2}) == ["b", "d"]
    assert index.match({"x": 1, "s": "\ud800x", "y": 2}) == ["a", "b", "c"]
    assert index.match({}) == ["d"]


def test_other_keys_than_strings_name_nothing() -> None:
    index = covey.Index()
    index.add_many([(f"s{number}", f"a{number} = 1") for number in range(50)])
    assert index.match({1: 1, None: 2, ("a1",): 3, "a7": 1}) == ["s7"]  # type: ignore[dict-item]
    assert index.match({Text("a3"): 1, "a7": True}) == ["s3"]


def test_long_texts_find_room_and_many_matches_too() -> None:
    index = covey.Index()
    index.add_many([(number, f"s LIKE '%needle%' AND t <> '{number}'") for number in range(5_000)])
    for size in (10, 5_000, 100_000, 7):
        assert index.match({"s": "n" * size + "needle", "t": "9"}) == [n for n in range(5_000) if n != 9]
        assert index.match({"s": "n" * size, "t": "9"}) == []


def test_references_are_as_many_as_before() -> None:
    index = covey.Index()
    index.add_many([(f"s{number}", f"x < {number} AND s = 'a'") for number in range(100)])
    event = {"x": 1e9 + 0.5, "s": "a" * 3, "more": object()}
    (part,) = index.parts()
    index.match(event)
    watched = [*event, *event.values(), *part.segment.id_list]
    gc.collect()
    before = [sys.getrefcount(one) for one in watched]
    for _ in range(100):
        index.match(event)
        index.match({"x": 50, "s": "a"})
        index.match_json(b'{"x": 50, "s": "a"}')
    assert [sys.getrefcount(one) for one in watched] == before
    kept = [index.match({"x": 50, "s": "a"}) for _ in range(10)]
    assert sys.getrefcount(part.segment.id_list[99]) == before[-1] + len(kept)


def test_threads_match_at_once() -> None:
    index = covey.Index()
    index.add_many([(number, f"x = {number} OR s LIKE '%-{number}-%'") for number in range(200)])
    wrong: list[object] = []

    def run(offset: int) -> None:
        for number in range(2_000):
            one, other = (number + offset) % 200, (number * 7 + offset) % 200
            if index.match({"x": one, "s": f"a-{other}-b"}) != sorted({one, other}):
                wrong.append((one, other))

    threads = [threading.Thread(target=run, args=(7 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
