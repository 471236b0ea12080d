"""Events as JSON, one or many lines, match what the events that Python reads from them match."""

from __future__ import annotations

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.random_worlds import DEFAULTS, event_of, filter_of
from tests.strategies import events, filters

import covey
from covey.events import BadLine, parse_json
from covey.filters import SEMANTICS, Semantics, TextTest, matches
from covey.filters.algebra import leaves
from covey.filters.values import Scalar
from covey.matching.state import Sealed

SHAPES = (None, 1, (",", ":"))
"""How JSON is written: as usual, over several lines, without spaces."""


class IndexWithDefaults(covey.Index):
    """Defaults without a schema, so that values of all kinds may meet every attribute."""

    @property
    def _defaults(self) -> dict[str, Scalar]:
        return DEFAULTS if self.semantics == "default" else {}


def written(value: Any) -> Any:
    """A value that JSON has, for one that it hasn't."""
    match value:
        case datetime():
            return value.isoformat()
        case dict():
            return {key: written(inner) for key, inner in value.items()}
        case list() | tuple():
            return [written(inner) for inner in value]
    return value


def in_shape(event: Any, shape: object) -> bytes:
    if isinstance(shape, tuple):
        return json.dumps(event, separators=shape, ensure_ascii=False).encode()
    return json.dumps(event, indent=shape).encode()  # type: ignore[arg-type]


def without_text_tests(condition: covey.Filter) -> bool:
    return not any(isinstance(leaf, TextTest) for leaf in leaves(condition))


def check(conditions: list[covey.Filter], batch: list[dict[str, Any]], semantics: Semantics) -> None:
    """Two segments, the second a compiled head; some subscriptions are gone."""
    defaults = DEFAULTS if semantics == "default" else {}
    index = IndexWithDefaults(semantics=semantics)
    half = len(conditions) // 2
    index.add_many((f"s{number}", str(one)) for number, one in enumerate(conditions[:half]))
    index.parts()
    for number, one in enumerate(conditions[half:], start=half):
        index.add(f"s{number}", one)
    for number in range(0, half, 5):
        index.remove(f"s{number}")
    kept = [number for number in range(len(conditions)) if number >= half or number % 5]
    given = [json.loads(in_shape(written(event), None)) for event in batch]
    expected = [
        [f"s{number}" for number in kept if matches(conditions[number], one, semantics=semantics, defaults=defaults)]
        for one in given
    ]
    lines = b"\n".join(in_shape(event, None) for event in given)
    assert index.match_json_lines(lines).to_pylist() == expected
    for shape in SHAPES:
        assert [index.match_json(in_shape(event, shape)) for event in given] == expected
    assert [index.match_json(in_shape(event, None).decode()) for event in given] == expected


def by_kernel(part: Sealed, data: bytes) -> list[Any] | None:
    """What an event matches, where Python needn't read it."""
    found: list[Any] = []
    return found if part.segment.match_json(data, part.deleted, False, found) else None


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("text_tests", [False, True])
def test_an_event_as_json_matches_as_the_interpreter_says(semantics: Semantics, text_tests: bool) -> None:
    rng = random.Random(f"{semantics} {text_tests}")
    conditions = [one for one in (filter_of(rng) for _ in range(150)) if text_tests or without_text_tests(one)]
    check(conditions, [event_of(rng) for _ in range(100)], semantics)


@pytest.mark.thorough
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(filters().filter(without_text_tests), min_size=1, max_size=12),
    st.lists(events(), min_size=1, max_size=8),
    st.sampled_from(SEMANTICS),
)
def test_any_filters_on_any_events(
    conditions: list[covey.Filter], batch: list[dict[str, Any]], semantics: Semantics
) -> None:
    check(conditions, batch, semantics)


def test_what_is_usual_is_matched_without_python() -> None:
    index = covey.Index()
    index.add_many([("a", "s = 'é' AND p < 1.5 AND n = 3 AND b"), ("b", "s > 'd' AND x.y <= -4")])
    (part,) = index.parts()
    event = {"s": "é", "p": 1.25, "n": 3, "b": True, "x": {"y": -4, "z": [1]}, "more": ["x", {"y": None}]}
    data = json.dumps(event, ensure_ascii=False).encode()
    assert by_kernel(part, data) == ["a", "b"]
    assert by_kernel(part, b'{"s": ["a list is left"]}') is None
    assert by_kernel(part, b"{}") == []


def test_strings_of_a_saved_index_are_found(tmp_path: Path) -> None:
    index = covey.Index()
    index.add_many([(f"s{n}", f"company = 'a company called {n}' AND n < 3") for n in range(500)])
    index.save(tmp_path / "rules.covey")
    opened = covey.Index.open(tmp_path / "rules.covey")
    for n in (0, 7, 499):
        assert opened.match_json(json.dumps({"company": f"a company called {n}", "n": 1}).encode()) == [f"s{n}"]
    assert opened.match_json(b'{"company": "another", "n": 1}') == []


def test_tests_on_text_are_matched_without_python() -> None:
    index = covey.Index()
    index.add_many(
        [
            ("a", r"s ILIKE '%C:\\\\Temp%' AND n = 1"), ("b", "s LIKE 'x%y%z'"), ("c", "s RLIKE 'q[0-9]+r'"),
            ("d", "event_text() ILIKE '%late%'"), ("e", "CAST(m AS STRING) LIKE '7%'"),
        ]
    )  # fmt: skip
    (part,) = index.parts()

    def match(event: dict[str, Any]) -> str | None:
        found = by_kernel(part, json.dumps(event, ensure_ascii=False).encode())
        return None if found is None else "".join(found)

    assert match({"s": "in c:\\temp\n", "n": 1}) == "a"
    assert match({"s": 'x\ty"z'}) == "b"
    assert match({"s": "q12r"}) == "c"
    assert match({"s": "q12"}) == ""
    assert match({"other": ["too LATE", {"s": 1}]}) == "d"
    assert match({"s": "", "m": None}) == ""
    # What only Python knows is left to it: a term's value, and the lower case of what isn't ASCII.
    assert match({"m": 71}) is None
    assert index.match_json(b'{"m": 71}') == ["e"]
    assert match({"s": "Ä"}) is None
    assert match({"s": "© 2024 ä – C:\\Temp", "n": 1}) == "a"
    assert match({"s": "c:\\temp", "n": 2}) == ""


def test_strings_are_read_the_same_wherever_in_eight_bytes_something_unusual_stands() -> None:
    index = covey.Index()
    index.add_many([("a", "s = 'none'"), ("b", "s LIKE '%~%'"), ("c", "`a.b` = 1"), ("d", "event_text() LIKE '%~~%'")])
    index.parts()
    lines = []
    for length in range(20):
        for place in range(length):
            for unusual in ('\\"', "\\\\", "\\u00e9", "é", "\n", "~", "~~", ".", '"'):
                text = "x" * place + unusual + "x" * (length - place)
                lines += [f'{{"s":"{text}"}}', f'{{"{text}":1,"s":"~"}}', f'{{"s":"{text}', f'{{"{text}']
    lines += ['{"a.b":1}', '{"xxxxxxxx.b":1,"s":"none"}']
    kept: list[dict[str, Any]] = []
    for line in lines:
        try:
            event = parse_json(line.encode())
        except covey.EventError:
            with pytest.raises(covey.EventError):
                index.match_json(line.encode())
            continue
        assert event is not None
        kept.append(event)
        assert index.match_json(line.encode()) == index.match(event), line
    bad: list[BadLine] = []
    whole = "\n".join(line for line in lines if "\n" not in line).encode()
    assert index.match_json_lines(whole, bad=bad).to_pylist() == [index.match(event) for event in kept]
    assert bad


def test_an_event_that_matches_more_than_there_is_room_for() -> None:
    index = covey.Index()
    index.add_many((f"s{number}", f"x < {number} OR y = 1") for number in range(5_000))
    assert len(index.match_json(b'{"x": -1, "y": 1}')) == 5_000
    assert index.match_json(b'{"x": 4997}') == index.match({"x": 4997}) == ["s4998", "s4999"]


def test_an_event_that_cannot_be_coded_leaves_nothing_behind() -> None:
    index = covey.Index()
    index.add_many([("a", "x = 1"), ("b", "y = 2"), ("c", "x IS NULL")])
    index.parts()
    with pytest.raises(covey.EventError):
        index.match({"x": 1, "y": object()})
    assert index.match({"y": 2}) == ["b", "c"]
    assert index.match_json(b'{"x": 1, "y": [1, 2]}') == ["a"]
    assert index.match_json(b"{}") == ["c"]


def test_an_event_with_texts_that_is_left_or_verified_leaves_nothing_behind() -> None:
    index = covey.Index()
    index.add_many([("a", "s ILIKE '%a%' AND t = 'x'"), ("b", "s IS NULL"), ("c", "s RLIKE 'a+b'"), ("d", "t > 'w'")])
    index.parts()
    assert index.match_json(b'{"s": "aab", "t": "x"}') == ["a", "c", "d"]
    assert index.match_json(b"{}") == ["b"]
    assert index.match_json('{"t": "x", "s": "Äa"}'.encode()) == ["a", "d"]
    assert index.match_json(b'{"s": "ab"}') == ["c"]
    with pytest.raises(covey.EventError):
        index.match({"s": "ab", "t": object()})
    assert index.match({"t": "v"}) == ["b"]
    assert index.match({"s": "ba"}) == []


def test_many_matches_that_are_verified_first() -> None:
    index = covey.Index()
    index.add_many((f"s{number}", f"s RLIKE 'x{number % 700}[a-z]' OR s LIKE 'x%'") for number in range(3_000))
    text = " ".join(f"x{number}y" for number in range(0, 700, 2))
    for wanted in (index.match({"s": text}), index.match_json(json.dumps({"s": text}).encode())):
        assert wanted == [f"s{number}" for number in range(3_000)]
    found = index.match_json(json.dumps({"s": " " + text}).encode())
    assert found == index.match({"s": " " + text})
    assert found == [f"s{number}" for number in range(3_000) if number % 700 % 2 == 0]


lines_of_json = st.lists(
    st.sampled_from([
        b'{"x": 1}', b'{"x": 2, "y": "a"}\r', b"", b"  \r", b"\xef\xbb\xbf{}", b'{"x":1,"x":3}', b'{"x":{"z":1},"x":2}',
        b'{"y":"\\u0061"}', b'{"y":"\\ud83d\\ude00"}', b'{"y":"\\ud83d"}', b'{"x":123456789012345678901234567890}',
        b'{"x":1e400}', b'{"x":NaN}', b'{"x":[1,2]}', b'{"n":{"m":{"k":5}}}', b'{"n.m":{"k":5}}', b'{"n":{"m.k":5}}',
        b' { "x" : 1 , "y" : "b" } ', b'{"x": 1', b'{"x": 1}}', b'{"x" 1}', b"[1]", b"null", b'{"y":"\xff"}', b"{}",
        b'{"y":"\xf0\x9f\x98\x80"}', b'{"\\u0078": 1}', b'{"x": 01}', b'{"y": "a\tb"}',
    ]),
    max_size=8,
)  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(lines_of_json, st.integers(0, 30), st.booleans())
def test_lines_match_as_their_events_do_and_bad_ones_are_named(lines: list[bytes], cut: int, bom: bool) -> None:
    """Valid and not, with any line ends, a byte order mark and a last line that is cut off."""
    buffer = (b"\xef\xbb\xbf" if bom else b"") + b"\n".join(lines)
    buffer = buffer[: max(0, len(buffer) - cut)] if cut < 10 else buffer
    split = buffer.split(b"\n")
    index = small_index()
    expected: list[list[str]] = []
    wrong: dict[int, str] = {}
    for number, line in enumerate(split[:-1] if split[-1] == b"" else split, 1):
        try:
            event = parse_json(line, first=number == 1)
        except covey.EventError as error:
            wrong[number] = f"line {number}: {error}"
        else:
            if event is not None:
                expected.append(index.match(event))
    bad: list[BadLine] = []
    assert index.match_json_lines(buffer, bad=bad).to_pylist() == expected
    assert {line.line: line.message for line in bad} == wrong
    if wrong:
        with pytest.raises(covey.EventError) as raised:
            index.match_json_lines(buffer)
        assert str(raised.value) == wrong[min(wrong)]
    for line in split:
        assert outcome(index, line) == through_python(index, line)


def small_index() -> covey.Index:
    index = covey.Index()
    index.add_many([
        ("one", "x = 1"), ("two", "x >= 2"), ("a", "y = 'a'"), ("between", "y > 'a' AND y < 'c'"), ("face", "y = '😀'"),
        ("deep", "n.m.k = 5"), ("none", "x IS NULL"), ("big", "x = 123456789012345678901234567890"),
    ])  # fmt: skip
    index.parts()
    return index


def outcome(index: covey.Index, line: bytes) -> list[str] | str:
    try:
        return index.match_json(line)
    except covey.EventError as error:
        return str(error)


def through_python(index: covey.Index, line: bytes) -> list[str] | str:
    try:
        event = parse_json(line)
    except covey.EventError as error:
        return str(error)
    return "an event is a JSON object, and this is blank" if event is None else index.match(event)
