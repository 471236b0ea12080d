from __future__ import annotations

from covey.network.event_streams import Inbox
from covey.routing.messages import Deliver, Gap


def delivery(number: int, text: str = "") -> Deliver:
    return Deliver(number, ["events"], {"text": text}, "p", 0, True, f"a/{number}")


def test_a_stream_that_takes_nothing_is_closed_and_keeps_nothing() -> None:
    inbox = Inbox(1_000, 0, as_cloudevents=False)
    inbox.send([delivery(1, "x" * 500)])
    assert inbox.closed is None
    inbox.send([delivery(2, "x" * 500)])
    assert inbox.closed is not None
    inbox.send([delivery(3)])
    assert inbox.take() == []


def test_what_is_taken_makes_room() -> None:
    inbox = Inbox(1_000, 0, as_cloudevents=False)
    for number in range(1, 20):
        inbox.send([delivery(number, "x" * 500)])
        assert [part.number for part in inbox.take()] == [number]
    assert inbox.closed is None


def test_what_a_listener_has_seen_is_taken_but_not_written_again() -> None:
    inbox = Inbox(10_000, seen=2, as_cloudevents=False)
    inbox.send([delivery(1), delivery(2), Gap(7), delivery(3), delivery(0)])
    parts = inbox.take()
    assert [part.number for part in parts] == [1, 2, None, 3, 0]
    assert [bool(part.text) for part in parts] == [False, False, True, True, True]
    assert parts[2].text == b'event: gap\ndata: {"deliveries":7}\n\n'
