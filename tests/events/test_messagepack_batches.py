"""Columns that a kernel reads from MessagePack maps are those of the events that msgspec decodes from them."""

from __future__ import annotations

import random
import struct
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

import covey
from covey.errors import EventError
from covey.events import columns
from covey.events.byte_batches import name_tree
from covey.events.json_lines import BadLine
from covey.events.messagepack_batches import MessagePackMaps, parse_messagepack
from covey.events.pieces import column_values
from covey.kernels import json_lines
from covey.kernels import messagepack as kernels

NAMES = ("a", "b", "a.b", "a.b.c", "é", "n.m", "")

encode = msgspec.msgpack.Encoder().encode
keys = st.sampled_from(["a", "b", "c", "m", "n", "a.b", "a.b.c", "é", "", "z", "n.m", "b.c"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([0, 127, 128, -32, -33, -128, -129, 255, 256, 2**15, 2**16, 2**31, 2**32, 2**63 - 1, 2**63])
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=3)
    | st.just(datetime(2024, 1, 31, tzinfo=UTC))
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(keys | st.integers(0, 3), inner, max_size=3),
    max_leaves=6,
)
events = st.dictionaries(keys, values, max_size=6)


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and (left == right or repr(left) == repr(right))


def check(messages: list[bytes]) -> None:
    expected: list[dict[str, Any]] = []
    wrong: list[int] = []
    for number, message in enumerate(messages, 1):
        try:
            expected.append(parse_messagepack(message))
        except EventError:
            wrong.append(number)
    bad: list[BadLine] = []
    maps = MessagePackMaps.of_messages(messages, bad=bad)
    try:
        wanted = columns(expected, NAMES)
    except EventError:
        with pytest.raises(EventError):
            columns(maps, NAMES)
        return
    found = columns(maps, NAMES)
    assert [line.line for line in bad] == wrong
    assert found.length == len(expected)
    for name in NAMES:
        left = column_values(found.pieces[name], found.length)
        right = column_values(wanted.pieces[name], wanted.length)
        assert all(map(same, left, right)), (name, left, right)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(events, max_size=5))
def test_maps_are_read_as_msgspec_decodes_them(given: list[dict[str, Any]]) -> None:
    check([encode(event) for event in given])


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(events, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damaged_messages_are_bad_where_msgspec_says_so(given: list[dict[str, Any]], chance: random.Random) -> None:
    messages = [bytearray(encode(event)) for event in given]
    for message in messages:
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(message) + 1)
            match chance.randrange(3):
                case 0:
                    message[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del message[at:]
                case _:
                    message.insert(
                        at, chance.choice(b"\x80\x81\x90\xa0\xa1\xc0\xc1\xc4\xc7\xd4\xd9\xdc\xdd\xde\xdf\xff")
                    )
    check([bytes(message) for message in messages])


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x80",
        b"\x80\x80",
        b"\xc0",
        b"\x90",
        b"\x81\xa1a",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\x81\x01\x01",
        b"\x81\xd9\x01a\xcc\xff",
        b"\x81\xda\x00\x01a\xd0\x80",
        b"\x81\xdb\x00\x00\x00\x01a\xd1\x80\x00",
        b"\xde\x00\x01\xa1a\xca" + struct.pack(">f", 0.1),
        b"\xdf\x00\x00\x00\x01\xa1a\xcb" + struct.pack(">d", float("nan")),
        b"\xdf\xff\xff\xff\xff\xa1a\x01",
        b"\x81\xa1z\xdd\xff\xff\xff\xff",
        b"\x81\xa1a\xdb\xff\xff\xff\xff",
        b"\x81\xa1a\xc1",
        b"\x81\xa1z\xc1",
        b"\x81\xa1z\xd4\x01\x00",
        b"\x81\xa1a\xa1\xff",
        b"\x81\xa1z\xa1\xff",
        b"\x81\xa1\xff\x01",
        b"\x81\xa1z\x81\x90\x01",
        b"\x81\xa1z" + b"\x91" * 100 + b"\x01",
        b"\x81\xa1a" + b"\x81\xa1b" * 40 + b"\x01",
        b"\x81\xa1z" + b"\x91" * 100_000 + b"\x01",
        b"\x82\xa3a.b\x01\xa1a\x81\xa1b\x02",
        b"\x81\xa3a.b\x81\xa1c\x07",
        b"\x81\xa1a\x81\xa3b.c\x07",
    ],
    ids=lambda message: message[:12].hex(),
)
def test_unusual_messages_are_read_as_msgspec_decodes_them(message: bytes) -> None:
    check([message])
    check([encode({"a": 1}), message, encode({"a": {"b": "x"}})])


def test_what_the_kernel_reads_itself_is_what_is_usual() -> None:
    event = {"a": -1.5, "b": "text", "n": {"m": [1, 2], "k": True}, "z": {"deep": [{"x": None}, b"raw"]}, "é": -70_000}
    data = np.frombuffer(encode(event), np.uint8)
    tree = name_tree(NAMES)
    found = json_lines.Found(
        np.empty(1, np.uint8), np.zeros((len(NAMES), 1), np.uint8), np.empty((len(NAMES), 1), np.int64),
        np.zeros((len(NAMES), 1), np.int32),
    )  # fmt: skip
    kernels.read_maps(
        data, np.array([0]), np.array([len(data)]), 0, 1, tree.arrays, found, np.zeros(tree.nodes, np.int64)
    )
    assert found.lines.tolist() == [json_lines.EVENT]
    assert found.kinds[:, 0].tolist() == [
        json_lines.DOUBLE, json_lines.STRING, json_lines.MISSING, json_lines.MISSING, json_lines.INTEGER,
        json_lines.SLICE, json_lines.MISSING,
    ]  # fmt: skip


def test_an_index_matches_messages_as_it_matches_events() -> None:
    index = covey.Index()
    index.add_many((f"s{at}", f"price < {at} AND sym IN ('a', 'b{at % 5}') OR n.m = {at % 7}") for at in range(200))
    index.add("there", "is_present(gone)")
    chance = random.Random(1)
    given = [
        {"price": chance.choice([chance.random() * 200, chance.randrange(200)]), "sym": f"b{chance.randrange(6)}",
         "n": {"m": chance.randrange(9)}, **({"gone": None} if chance.random() < 0.1 else {})}
        for _ in range(3_000)
    ]  # fmt: skip
    messages = [encode(event) for event in given]
    wanted = index.match_batch(given).to_pylist()
    for threads in (1, 2):
        assert index.match_messagepack(messages, threads=threads).to_pylist() == wanted
    with pytest.raises(EventError, match="line 2: a MessagePack int, not a map"):
        index.match_messagepack([messages[0], b"\x01"])
    bad: list[BadLine] = []
    assert index.match_messagepack([messages[0], b"\x01", b""], bad=bad).to_pylist() == wanted[:1]
    assert [line.line for line in bad] == [2, 3]
    assert index.match_messagepack([]).to_pylist() == []


FILTERS = (
    "a > 3", "a = 'x' AND b < 2", "b IN ('x', 'y')", "a.b = 1", "a IS NULL", "NOT (a >= 0)", "b = 'é' OR a = 1.5",
    "`0` = 1", "a LIKE '%x%'", "a + 1 > 4", "m < 5 AND n IS NOT NULL",
)  # fmt: skip


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from(FILTERS[:8]) | st.sampled_from(FILTERS), min_size=1, max_size=12),
    st.lists(st.dictionaries(keys | st.sampled_from(["\0000", "\0001", "\0009"]), values, max_size=5), max_size=6),
    st.sets(st.integers(0, 11), max_size=3),
)
def test_a_few_maps_meet_what_their_events_meet(texts: list[str], given: list[dict[str, Any]], gone: set[int]) -> None:
    index = covey.Index()
    index.add_many((number, text) for number, text in enumerate(texts))
    for number in gone:
        if number < len(texts):
            index.remove(number)
    index.compact()
    messages = [encode(event) for event in given]
    try:
        events = [parse_messagepack(message) for message in messages]
        wanted = [index.match(event) for event in events]
    except EventError:
        return
    assert index.match_messagepack(messages).to_pylist() == wanted
    assert [index.match_messagepack([message]).to_pylist() for message in messages] == [[one] for one in wanted]


def test_a_few_maps_may_match_more_than_there_is_room_for() -> None:
    index = covey.Index()
    index.add_many((number, f"a > {number % 3}") for number in range(3_000))
    index.compact()
    messages = [encode({"a": 9}), encode({"a": 0}), encode({"a": 1})]
    assert list(map(len, index.match_messagepack(messages).to_pylist())) == [3_000, 0, 1_000]
    assert list(map(len, index.match_messagepack(messages[1:]).to_pylist())) == [0, 1_000]
