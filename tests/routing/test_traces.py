"""A publisher's trace goes with its events, whatever way they take."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.routing.messages import (
    ClientAnswer,
    ClientMessage,
    Deliver,
    Envelope,
    Pressure,
    Publication,
    Publish,
    Refused,
)
from covey.routing.traces import is_trace
from tests.routing.harness import Net

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def traces(net: Net, client: str = "ann") -> list[tuple[int, str]]:
    return [(one.attributes["p"], one.trace) for one in net.heard[client] if isinstance(one, Deliver)]


def line() -> Net:
    net = Net([("a", "b"), ("b", "c")])
    net.join("a", "pub")
    net.join("c", "ann")
    return net


def published(*values: int, durable: bool = False) -> list[Publication]:
    return [Publication({"p": value}, durable) for value in values]


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=4), st.sampled_from(["", TRACE, OTHER])), max_size=5),
    st.booleans(),
)
def test_each_event_comes_with_the_trace_of_its_publication(asked: list[tuple[list[int], str]], durable: bool) -> None:
    net = line()
    net.subscribe("c", "ann", "s", "p >= 3", durable=durable)
    for at, (values, trace) in enumerate(asked):
        net.say("a", "pub", Publish(100 + at, published(*values, durable=durable), trace))
    assert traces(net) == [(value, trace) for values, trace in asked for value in values if value >= 3]


def test_a_trace_is_kept_with_durable_events_over_a_restart() -> None:
    net = line()
    net.subscribe("c", "ann", "s", "p >= 0", durable=True)
    net.part("c", "ann")
    net.say("a", "pub", Publish(100, published(1, durable=True), TRACE))
    net.restart("c")
    net.join("c", "ann")
    assert traces(net) == [(1, TRACE)]


def test_publications_that_were_held_back_have_their_traces() -> None:
    net = line()
    net.subscribe("c", "ann", "s", "p >= 0")
    net.handle("a", Pressure("a full disk"))
    net.say("a", "pub", Publish(100, published(1), TRACE))
    net.handle("a", Pressure(""))
    net.run()
    assert traces(net) == [(1, TRACE)]


@pytest.mark.parametrize(
    "text",
    [
        "", "00", TRACE[:-1], TRACE + "0", TRACE.upper(), "ff" + TRACE[2:], TRACE.replace("-", "_"), TRACE + "\n",
        f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
    ],
)  # fmt: skip
def test_what_is_no_traceparent_is_refused(text: str) -> None:
    assert is_trace(TRACE)
    assert not is_trace(text)
    net = line()
    net.subscribe("c", "ann", "s", "p >= 0")
    net.say("a", "pub", Publish(100, published(1), text))
    refused = [one.reason for one in net.heard["pub"] if isinstance(one, Refused)]
    assert bool(refused) == bool(text)
    assert all("is not a traceparent" in reason and "\n" not in reason for reason in refused)
    assert traces(net) == ([] if text else [(1, "")])


def test_who_knows_nothing_of_traces_and_who_does_understand_each_other() -> None:
    """Both ways: messages without the last field are read, and one more field is passed by."""
    for message, kind in (
        (Publish(1, published(1), TRACE), ClientMessage),
        (Deliver(3, ["s"], {"p": 1}, "ann", 4, True, "a/7", trace=TRACE), ClientAnswer),
        (Envelope("a", 7, "ann", 1, True, 60, {"p": 1}, trace=TRACE), Envelope),
    ):
        parts = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
        assert parts[-1] == TRACE
        before = msgspec.msgpack.decode(msgspec.msgpack.encode(parts[:-1]), type=kind)
        assert before == msgspec.structs.replace(message, trace="")
        later = msgspec.msgpack.decode(msgspec.msgpack.encode([*parts, "later"]), type=kind)
        assert later == message
