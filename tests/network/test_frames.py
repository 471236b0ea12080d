from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.network.errors import FrameError
from covey.network.frames import (
    ANSWERS_PACKED,
    FRAME_BYTES,
    PEER_FRAMES,
    decode_answers,
    decode_client,
    decode_peer,
    frames,
)
from covey.network.limits import NetworkLimits
from covey.routing.messages import (
    ClientAnswer,
    Confirmed,
    Credit,
    Delta,
    Entry,
    Envelope,
    Events,
    Hello,
    PeerMessage,
    Ping,
    Publication,
    Publish,
    Stream,
    Subscribe,
    Welcome,
)

LIMITS = NetworkLimits()
pack = msgspec.msgpack.encode


def nested(depth: int, kind: str) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"x": value} if kind == "record" else [value]
    return value


def test_a_frame_is_an_array_of_messages_in_msgpack_or_json() -> None:
    messages = [Subscribe(1, "cheap", "price < 10"), Publish(2, [Publication({"price": 5})])]
    assert decode_client(pack(messages), LIMITS) == messages
    assert decode_client('[["Subscribe", 1, "cheap", "price < 10"], ["Publish", 2, [["Publication", {"price": 5}]]]]', LIMITS) == messages  # fmt: skip  # noqa: E501


VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5) | st.floats()
SAID = st.dictionaries(st.sampled_from(["a", "b.c", "covey", "é"]), VALUES | st.lists(VALUES, max_size=2), max_size=4)
MESSAGES = st.one_of(
    st.builds(
        lambda request, events, trace: Publish(request, [Publication(*one) for one in events], trace),
        st.integers(-1, 2**40),
        st.lists(st.tuples(SAID, st.booleans(), st.integers(-1, 2**62 + 1), st.sampled_from(["", "", "", "id"]))),
        st.sampled_from(["", "x" * 55, "x" * 56]),
    ),
    st.builds(Credit, st.integers(0, 9)),
    st.builds(lambda name: Subscribe(1, name, "p > 1"), st.sampled_from(["s", "s" * 2_000])),
)


@given(st.lists(MESSAGES, max_size=4), st.data())
def test_a_frame_says_the_same_where_its_events_stay_bytes(messages: list[Any], data: st.DataObject) -> None:
    written = pack(messages)
    at = data.draw(st.integers(0, len(written)))
    for frame in (written, written[:at], written[:at] + data.draw(st.binary(max_size=2)) + written[at + 1 :]):
        found: list[Any] = []
        for least in (0, len(frame) + 1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("covey.network.frames.PACKED_BYTES", least)
                try:
                    found.append(repr(decode_client(frame, LIMITS)))
                except FrameError as error:
                    found.append((str(error), error.code))
        assert found[0] == found[1]


@given(st.binary(max_size=60))
def test_bytes_that_are_no_frame_raise_a_frame_error_and_nothing_else(data: bytes) -> None:
    for decode in (decode_client, decode_peer, lambda data, _: decode_answers(data)):
        with suppress(FrameError):
            decode(data, LIMITS)


@given(st.data())
def test_a_frame_with_a_byte_changed_is_read_or_refused(data: st.DataObject) -> None:
    good = bytearray(pack([Publish(1, [Publication({"a": [1, {"b": "text"}], "c": 2.5})]), Subscribe(2, "s", "a = 1")]))
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FrameError):
        decode_client(bytes(good), LIMITS)


@pytest.mark.parametrize("kind", ["record", "list"])
def test_an_event_may_be_nested_up_to_the_limit_and_no_deeper(kind: str) -> None:
    limits = NetworkLimits(nesting=5)
    decode_client(pack([Publish(1, [Publication({"x": nested(4, kind)})])]), limits)
    with pytest.raises(FrameError, match="event 1: nested more deeply than 5 levels"):
        decode_client(pack([Publish(1, [Publication({"x": nested(5, kind)})])]), limits)


def test_the_lists_of_an_event_have_no_more_elements_than_the_limit() -> None:
    limits = NetworkLimits(elements=5)
    decode_client(pack([Publish(1, [Publication({"x": [1, 2, 3], "y": {"z": [4, 5]}})])]), limits)
    for event in ({"x": [1, 2, 3], "y": [4, 5, 6]}, {"x": [[1, 2], [3, 4]]}):
        with pytest.raises(FrameError, match="event 1: its lists have more than 5 elements, the limit elements"):
            decode_client(pack([Publish(1, [Publication(event)])]), limits)


@pytest.mark.parametrize("frame", [b"\x91" * 100_000, "[" * 100_000])
def test_a_frame_of_nothing_but_brackets_is_refused(frame: bytes | str) -> None:
    with pytest.raises(FrameError):
        decode_client(frame, LIMITS)


def test_deep_nesting_inside_an_event_is_refused_before_anyone_walks_it() -> None:
    deep = b"\x91\x93\xa7Publish\x01\x91\x92\xabPublication\x81\xa1x" + b"\x91" * 50_000 + b"\x01"
    with pytest.raises(FrameError):
        decode_client(deep, LIMITS)


def test_names_of_attributes_are_text_at_every_depth() -> None:
    with pytest.raises(FrameError, match="isn't text"):
        decode_client(pack([Publish(1, [Publication({"x": [{1: 2}]})])]), LIMITS)


def test_a_frame_has_no_more_messages_than_the_limit() -> None:
    message = Subscribe(1, "s", "x = 1")
    decode_client(pack([message] * 3), NetworkLimits(messages=3))
    with pytest.raises(FrameError, match="the limit messages is 3"):
        decode_client(pack([message] * 4), NetworkLimits(messages=3))


def test_a_subscriptions_name_has_a_limit() -> None:
    with pytest.raises(FrameError, match="name_length is 200"):
        decode_client(pack([Subscribe(1, "s" * 201, "x = 1")]), LIMITS)


def test_answers_travel_in_frames_that_give_them_back_in_order() -> None:
    answers: list[ClientAnswer] = [Confirmed(number) for number in range(1_300)]
    found = [answer for frame in frames(ANSWERS_PACKED, answers, 1 << 30) for answer in decode_answers(frame)]
    assert found == answers


def envelope(number: int) -> Envelope:
    return Envelope("a", number, "p", 0, True, 9, {"text": "x" * 100_000})


def test_a_large_stream_or_group_of_events_is_divided_and_says_the_same() -> None:
    messages: list[PeerMessage] = [Stream(7, 5, [envelope(at) for at in range(30)]), Events([envelope(at) for at in range(30, 60)])]  # fmt: skip  # noqa: E501
    written = list(frames(PEER_FRAMES, messages, FRAME_BYTES))
    assert len(written) > 2
    assert max(map(len, written)) <= FRAME_BYTES
    items: dict[int, Any] = {}
    events: list[Envelope] = []
    for frame in written:
        for message in decode_peer(frame, LIMITS)[0]:
            if isinstance(message, Stream):
                assert message.epoch == 7
                items.update(enumerate(message.items, message.first))
            else:
                assert isinstance(message, Events)
                events += message.envelopes
    assert items == {5 + at: envelope(at) for at in range(30)}
    assert events == [envelope(at) for at in range(30, 60)]


def test_a_table_that_is_larger_than_a_neighbour_takes_is_refused_by_the_sender() -> None:
    delta: PeerMessage = Delta(0, 1, True, False, [], [Entry(str(at), "x" * 100) for at in range(1_000)], [])
    with pytest.raises(FrameError, match="10,000 is the limit"):
        list(frames(PEER_FRAMES, [delta], 10_000))


def test_messages_that_only_a_later_version_knows_are_skipped_where_brokers_are_heard() -> None:
    ping, news = ["Ping", 7, []], ["Rumour", 1, {"x": [2]}]
    assert decode_peer(msgspec.msgpack.encode([ping, news, news, ping]), LIMITS) == ([Ping(7), Ping(7)], 2)
    assert decode_answers(msgspec.msgpack.encode([news, ["Confirmed", 3]])) == [Confirmed(3)]
    later = ["Confirmed", 3, "and more that a later version says"]
    assert decode_answers(msgspec.msgpack.encode([later])) == [Confirmed(3)]


@pytest.mark.parametrize("wrong", [["Ping", "seven"], ["Ping"], [7], [], "Ping", {"Ping": 7}])
def test_a_message_that_is_known_must_be_right_beside_one_that_is_not(wrong: Any) -> None:
    with pytest.raises(FrameError):
        decode_peer(msgspec.msgpack.encode([["Rumour"], wrong]), LIMITS)


def test_what_protocol_1_says_is_understood() -> None:
    hello = ["Hello", "b", [[], []], 0, 0, False]
    assert decode_peer(msgspec.msgpack.encode([hello]), LIMITS) == ([Hello("b", [[], []], 0, 0, False)], 0)
    assert Hello("b", [], 0, 0, False).version == 1
    assert decode_client(msgspec.msgpack.encode([["Credit", 3]]), LIMITS) == [Credit(3)]
    old = ["Welcome", "a", [], [], 0, 1000]
    assert decode_answers(msgspec.msgpack.encode([old])) == [Welcome("a", [], [], 0, 1000)]
