"""Columns that a kernel reads from lines of JSON are those of the events that Python reads from them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

import covey
from covey.errors import EventError
from covey.events import columns
from covey.events.byte_batches import name_tree
from covey.events.json_batches import JsonLines
from covey.events.json_lines import BadLine, parse_json
from covey.events.pieces import column_values, python_values
from covey.filters.event_texts import text_of
from covey.kernels import json_lines as kernels

NAMES = ("a", "b", "a.b", "a.b.c", "x y", "é", "n.m", "")

keys = st.sampled_from(["a", "b", "c", "m", "n", "a.b", "a.b.c", "x y", "é", "", "z", "n.m", 'q"', "b.c"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([0, -0.0, 1e22, 1e23, 0.1, 123456789012345678, 9007199254740993.0, 5e-324])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
events = st.dictionaries(keys, values, max_size=6)


def as_python_reads(lines: Iterable[bytes]) -> tuple[list[dict[str, Any]], list[int]]:
    """The events of lines, and the numbers of bad lines."""
    found, bad = [], []
    for number, line in enumerate(lines, 1):
        try:
            event = parse_json(line, first=number == 1)
        except EventError:
            bad.append(number)
            continue
        if event is not None:
            found.append(event)
    return found, bad


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and (left == right or repr(left) == repr(right))


def check(buffer: bytes) -> None:
    lines = buffer.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    expected, wrong = as_python_reads(lines)
    bad: list[BadLine] = []
    try:
        wanted = columns(expected, NAMES)
    except EventError:
        return  # a list of records: said of a batch of dicts in the same words
    found = columns(JsonLines(buffer, bad=bad), NAMES)
    assert [line.line for line in bad] == wrong
    assert found.length == len(expected)
    for name in NAMES:
        left = column_values(found.pieces[name], found.length)
        right = column_values(wanted.pieces[name], wanted.length)
        assert all(map(same, left, right)), (name, left, right)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(events, max_size=5), st.booleans())
def test_events_are_read_as_python_reads_them(given: list[dict[str, Any]], plain: bool) -> None:
    check(
        "\n".join(json.dumps(event, ensure_ascii=plain).replace("\n", " ") for event in given).encode(
            "utf-8", "replace"
        )
    )


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(events, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damaged_lines_are_bad_where_python_says_so(given: list[dict[str, Any]], chance: random.Random) -> None:
    data = bytearray("\n".join(map(json.dumps, given)).encode())
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data))
        match chance.randrange(3):
            case 0:
                data[at] = chance.choice(b'{}[]",:\\0-+.eE \t\r\ntfnu\xff\xc3\xa9\x00')
            case 1:
                del data[at]
            case _:
                data.insert(at, chance.choice(b'{}[]",:\\0-.e \xed\xa0\x80'))
        if not data:
            return
    check(bytes(data))


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"",
        b"  \t",
        b"\xef\xbb\xbf{}",
        b"null",
        b"[]",
        b'{"a":1}x',
        b'{"a":1,}',
        b'{"a" 1}',
        b'{"a":01}',
        b'{"a":-}',
        b'{"a":1.}',
        b'{"a":.5}',
        b'{"a":1e}',
        b'{"a":+1}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":Infinity}',
        b'{"a":nul}',
        b'{"a":"\x01"}',
        b'{"a":"\\x"}',
        b'{"a":"\\u12"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":"\\u0041"}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xf0\x9f\x98\x80"}',
        b'{"a":"\xc0\x80"}',
        b'{"a":"\xf4\x90\x80\x80"}',
        b'{"a":1,"a":2}',
        b'{"a":{"b":1},"a":{"c":2}}',
        b'{"a.b":1,"a":{"b":2}}',
        b'{"a.b":null,"a":{"b":2}}',
        b'{"a":{"b":{"c":1}},"a.b.c":2}',
        b'{"a.b":{"c":7}}',
        b'{"a":{"b.c":7}}',
        b'{"\\u0061":1}',
        b'{"a":{"b":{}}}',
        b'{"a":[{"b":1}]}',
        b'{"z":[[[{"a":1}]]],"a":1}',
        b'{"z":' + b"[" * 100 + b"]" * 100 + b',"a":1}',
        b'{"a":1 , "b" : [1, 2] } ',
        b'{"a":' + b"1" * 5000 + b"}",
        b'{"z":' + b"1" * 5000 + b"}",
        b'{"a":1.7976931348623157e309}',
        b'{"a":4.9e-324}',
        b'{"a":{"b":1}',
        b'{"a":{"b":1}}}',
        b'{"a":{"b":1},}',
        b'{"a":{"b":1}"b":2}',
        b"{,}",
        b'{"a":tru}',
        b'{"a":truee}',
    ],
)
def test_unusual_lines_are_read_as_python_reads_them(line: bytes) -> None:
    check(line)
    check(b'{"a": 1}\n' + line + b'\n{"a": {"b": "x"}}\n')


def test_what_the_kernel_reads_itself_is_what_is_usual() -> None:
    lines = [b'{"a": 1.5, "b": "text", "n": {"m": [1, 2], "k": true}, "z": {"deep": [{"x": null}]}}'] * 10
    data = np.frombuffer(b"".join(lines), np.uint8)
    ends = np.cumsum([len(line) for line in lines])
    starts = ends - len(lines[0])
    tree = name_tree(NAMES)
    found = kernels.Found(
        np.empty(10, np.uint8), np.zeros((len(NAMES), 10), np.uint8), np.empty((len(NAMES), 10), np.int64),
        np.zeros((len(NAMES), 10), np.int32),
    )  # fmt: skip
    kernels.read_lines(data, starts, ends, 0, 10, tree.arrays, found, np.zeros(tree.nodes, np.int64))
    assert found.lines.tolist() == [kernels.EVENT] * 10
    assert found.kinds[0].tolist() == [kernels.DOUBLE] * 10
    assert found.kinds[1].tolist() == [kernels.STRING] * 10


def test_an_index_matches_lines_as_it_matches_events() -> None:
    chance = random.Random(1)
    index = covey.Index()
    index.add_many((f"s{at}", f"price < {at} AND sym IN ('a', 'b{at % 5}') OR n.m = {at % 7}") for at in range(500))
    given = [
        {"price": chance.choice([chance.random() * 500, chance.randrange(500)]), "sym": f"b{chance.randrange(6)}",
         "n": {"m": chance.randrange(9)}}
        for _ in range(10_000)
    ]  # fmt: skip
    buffer = "\n".join(map(json.dumps, given)).encode()
    for threads in (1, 2):
        assert index.match_json_lines(buffer, threads=threads).to_pylist() == index.match_batch(given).to_pylist()
    assert index.match_json(json.dumps(given[0])) == index.match(given[0])


def test_a_bad_line_is_named_and_skipped_or_raised() -> None:
    index = covey.Index()
    index.add("cheap", "price < 10")
    buffer = b'{"price": 5}\n{"price": \n\n{"price": 6}'
    with pytest.raises(EventError, match="line 2: not JSON"):
        index.match_json_lines(buffer)
    bad: list[BadLine] = []
    assert index.match_json_lines(buffer, bad=bad).to_pylist() == [["cheap"], ["cheap"]]
    assert [(line.line, line.text) for line in bad] == [(2, '{"price": ')]
    with pytest.raises(EventError, match="blank"):
        index.match_json(b" ")


def test_escapes_are_resolved_without_python() -> None:
    texts = ["C:\\Windows\\a.exe", 'say "x"', "a/b", "\b\f\n\r\t", "\x00\x7f", "é ß ſ", "漢字", "plain", ""]
    lines = [b'{"s": %s}' % json.dumps(text, ensure_ascii=ascii).encode() for text in texts for ascii in (False, True)]
    lines.append(b'{"s": "\\/\\u00E9\\u00e9"}')
    batch = JsonLines(b"\n".join(lines))
    length, pieces = batch.pieces(["s"])
    assert length == len(lines)
    (piece,) = pieces["s"]
    assert piece.type == "string"
    assert piece.rows is None  # none of them was left to Python
    assert python_values(piece) == [text for text in texts for _ in range(2)] + ["/éé"]


def _texts(lines: list[bytes]) -> list[Any]:
    batch = JsonLines(b"\n".join(lines))
    length, _ = batch.pieces(["s"])
    return column_values(batch.event_texts(), length)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=5), min_size=1, max_size=4), st.booleans())
def test_the_text_of_an_event_is_what_python_says(events: list[dict[str, Any]], ascii: bool) -> None:
    lines = []
    for event in events:
        text = json.dumps(event, ensure_ascii=ascii)
        try:
            lines.append(text.encode())
        except UnicodeEncodeError:
            return
    try:
        wanted = [text_of(parse_json(line) or {}) for line in lines]
    except EventError:
        return
    assert _texts(lines) == wanted


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": 1.0, "b": -0.0, "c": 0.0001, "d": 0.00001, "e": 1.50, "f": 1e3, "g": 1E5, "h": -0}',
        b'{"a": 0.1, "b": 123456789012345.6, "c": 99999999999999.5, "d": 1e400, "e": 0.00012, "f": 100.0, "g": 10.010}',
        b'{"a": 1, "a": 2, "b": {"c": 1, "c": "x"}, "d": [1, [2, {"e": null}], []], "f": {}}',
        b'{"a\\u0041": 1, "b": [true, false, null, "x\\ny"], "c" : { "d" :[ 1 , 2.5 ] } }',
        b"{ }",
        b'{"a": ""}',
        b'{"a": "", "b": ""}',
    ],
)
def test_what_prints_otherwise_than_it_is_written_is_left_to_python(line: bytes) -> None:
    assert _texts([line, b'{"s": "between"}', line]) == [
        text_of(json.loads(line)),
        "between",
        text_of(json.loads(line)),
    ]
