from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.network.client_protocol import PUBLISH_EVENTS, AcknowledgementWindow, Answer, ClientProtocol, pack
from covey.network.errors import NetworkError
from covey.routing.messages import (
    Acknowledge,
    ClientMessage,
    Credit,
    Deliver,
    Publish,
    Subscribe,
    Unsubscribe,
    Welcome,
)

decoder = msgspec.msgpack.Decoder(list[ClientMessage])


def said(protocol: ClientProtocol) -> list[Any]:
    """What the client sends, taken out of it."""
    messages = [message for frame in pack(protocol.outgoing, 1 << 20) for message in decoder.decode(frame)]
    protocol.outgoing = []
    return messages


def welcome(*subscriptions: str, published: int = 0, credit: int = 8) -> Welcome:
    return Welcome("a", list(subscriptions), [], published, credit)


def connected(**options: Any) -> ClientProtocol:
    protocol = ClientProtocol(named=True, **options)
    protocol.welcome(welcome())
    return protocol


def delivery(number: int) -> Deliver:
    return Deliver(number, ["s"], {}, "p", 0, True, f"a/{number}")


@given(st.permutations(range(1, 12)))
def test_what_is_acknowledged_is_finished_with_all_before_it(order: list[int]) -> None:
    window = AcknowledgementWindow()
    for number in range(1, 12):
        assert window.came(number)
    finished: set[int] = set()
    for number in order:
        finished.add(number)
        news = window.finish(number)
        expected = next((one - 1 for one in range(1, 13) if one not in finished), 0)
        assert window.acknowledged == expected
        assert news in (None, expected)
    assert window.acknowledged == 11
    assert len(window) == 0


def test_a_delivery_that_comes_again_is_not_handed_out_again() -> None:
    protocol = connected()
    protocol.subscribe("s", "x = 1", durable=True, lease=None)
    assert protocol.delivered(delivery(1))
    assert protocol.delivered(delivery(2))
    protocol.finish(1)
    protocol.lost()
    protocol.welcome(welcome("s"))
    said(protocol)
    assert not protocol.delivered(delivery(1))
    assert not protocol.delivered(delivery(2))
    assert protocol.delivered(delivery(3))
    assert said(protocol) == [Acknowledge(1), Credit(2)]
    protocol.finish(2)
    protocol.finish(3)
    assert [message for message in said(protocol) if isinstance(message, Acknowledge)] == [
        Acknowledge(2),
        Acknowledge(3),
    ]


def test_numbers_start_anew_with_a_broker_that_has_forgotten_the_client() -> None:
    protocol = connected()
    protocol.subscribe("s", "x = 1", durable=True, lease=None)
    assert protocol.delivered(delivery(1))
    protocol.finish(1)
    protocol.lost()
    protocol.welcome(welcome())
    assert protocol.delivered(delivery(1))


def test_subscriptions_are_made_again_in_each_session_until_they_are_ended() -> None:
    protocol = connected()
    first = protocol.subscribe("s", "x = 1", durable=False, lease=None)
    protocol.answered(first, None)
    second = protocol.subscribe("t", "x = 2", durable=False, lease=None)
    protocol.answered(second, None)
    protocol.answered(protocol.end("t", advertisement=False), None)
    protocol.lost()
    protocol.welcome(welcome())
    (again,) = said(protocol)
    assert again == Subscribe(again.request, "s", "x = 1")
    assert protocol.answered(again.request, None) is None
    assert protocol.ended == []


def test_a_subscription_that_a_new_session_refuses_has_ended() -> None:
    protocol = connected()
    protocol.answered(protocol.subscribe("s", "x = 1", durable=False, lease=None), None)
    protocol.lost()
    protocol.welcome(welcome())
    assert protocol.answered(said(protocol)[0].request, "not any more") is None
    assert (protocol.ended, protocol.claims) == ([("s", "not any more")], {})


def test_a_subscription_that_was_refused_is_not_made_again() -> None:
    protocol = connected()
    request = protocol.subscribe("s", "x <", durable=False, lease=None)
    assert protocol.answered(request, "no filter") == Answer(request, "no filter")
    protocol.lost()
    protocol.welcome(welcome())
    assert said(protocol) == []


def test_durable_publications_are_numbered_and_those_that_the_broker_has_are_not_sent_again() -> None:
    protocol = connected()
    first, second = protocol.publish([{"x": 1}], durable=True) + protocol.publish([{"x": 2}, {"x": 3}], durable=True)
    assert [[one.number for one in message.events] for message in said(protocol)] == [[1], [2, 3]]
    assert protocol.lost() == []
    assert protocol.welcome(welcome(published=1)) == [Answer(first)]
    assert [message.request for message in said(protocol)] == [second]


def test_numbers_go_on_where_a_former_run_of_the_client_ended() -> None:
    protocol = ClientProtocol(named=True)
    protocol.welcome(welcome(published=41))
    protocol.publish([{}], durable=True)
    assert said(protocol)[0].events[0].number == 42


@pytest.mark.parametrize(("named", "durable"), [(True, False), (False, True)])
def test_publications_that_could_come_twice_fail_with_the_connection(named: bool, durable: bool) -> None:
    protocol = ClientProtocol(named=named)
    protocol.welcome(welcome())
    requests = protocol.publish([{"x": 1}], durable=durable)
    assert protocol.lost() == requests
    protocol.welcome(welcome())
    assert said(protocol) == []


def test_an_unsubscription_that_was_done_before_the_connection_broke_counts_as_done() -> None:
    protocol = connected()
    request = protocol.end("s", advertisement=False)
    protocol.lost()
    protocol.welcome(welcome())
    assert said(protocol) == [Unsubscribe(request, "s")]
    assert protocol.answered(request, "there is no subscription 's'") == Answer(request)


def test_credit_is_granted_in_parts_and_only_for_the_present_session() -> None:
    protocol = connected()
    for _ in range(5):
        protocol.taken(protocol.epoch)
    assert said(protocol) == [Credit(2), Credit(2)]
    former = protocol.epoch
    protocol.lost()
    protocol.welcome(welcome())
    for _ in range(5):
        protocol.taken(former)
    assert said(protocol) == []


def test_many_events_are_sent_as_several_messages_in_order() -> None:
    protocol = connected()
    events = [{"x": number} for number in range(2 * PUBLISH_EVENTS + 1)]
    assert len(protocol.publish(events, durable=False)) == 3
    assert [one.attributes for message in said(protocol) for one in message.events] == events


def test_events_are_divided_until_each_message_fits_and_one_that_cannot_is_refused() -> None:
    protocol = connected(most_bytes=1_000)
    protocol.publish([{"x": "y" * 300}] * 10, durable=False)
    frames = pack(protocol.outgoing, 1_000)
    assert max(map(len, frames)) <= 1_000
    assert sum(len(message.events) for frame in frames for message in decoder.decode(frame) if isinstance(message, Publish)) == 10  # fmt: skip  # noqa: E501
    with pytest.raises(NetworkError, match="too large"):
        protocol.publish([{"x": "y" * 1_000}], durable=False)


def test_an_event_that_cannot_travel_is_refused_at_home() -> None:
    with pytest.raises(NetworkError, match="can't travel"):
        connected().publish([{"x": object()}], durable=False)
