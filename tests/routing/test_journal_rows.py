"""What durable events take in the journal, and journals that say it in rows of before."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from covey.routing import Broker, BrokerConfig, BrokerLimits, ClientUp, FromClient, Timing
from covey.routing.journal import Outputs, Put, replay
from covey.routing.kept_events import KeptRow, WindowRow, read_event
from covey.routing.messages import Acknowledge, AddPeer, Publication, Publish, Subscribe, Tick

Rows = dict[tuple[str, str], bytes]
CONFIG = BrokerConfig("a", timing=Timing(remember=100.0))


class Kept:
    """A broker, and what its journal holds."""

    def __init__(self, rows: Rows | None = None, config: BrokerConfig = CONFIG) -> None:
        self.rows: Rows = dict(rows or {})
        puts = [Put(space, key, value) for (space, key), value in self.rows.items()]
        self.broker, outputs = Broker.restore(config, puts, 1.0)
        replay(self.rows, outputs.records)
        self.records = 0

    def handle(self, input: Any, now: float = 2.0) -> Outputs:
        outputs = self.broker.handle(input, now)
        self.records += len(outputs.records)
        replay(self.rows, outputs.records)
        return outputs

    def publish(self, *prices: int) -> None:
        events = [Publication({"p": price}, True) for price in prices]
        self.handle(FromClient("bob", Publish(9, events), 2))

    def counts(self) -> Counter[str]:
        return Counter(space for space, _ in self.rows)


def with_clients(rows: Rows | None = None, config: BrokerConfig = CONFIG) -> Kept:
    found = Kept(rows, config)
    found.handle(ClientUp("ann", session=1))
    found.handle(ClientUp("bob", session=2))
    found.handle(FromClient("ann", Subscribe(1, "s", "p < 10", durable=True), 1))
    return found


def as_before(rows: Rows) -> Rows:
    """The same rows as brokers of before wrote them: a place in the window was a row of its own."""
    found = dict(rows)
    for (space, key), value in rows.items():
        row = read_event(value) if space == "event" else None
        if isinstance(row, KeptRow):
            found["event", key] = msgspec.msgpack.encode(row.envelope)
            found["window", key] = msgspec.msgpack.encode(WindowRow(row.at, row.place, row.reached))
    return found


@pytest.mark.parametrize("is_old", [False, True])
def test_a_window_comes_back_from_rows_of_now_and_of_before(is_old: bool) -> None:
    made = with_clients()
    made.publish(1, 20, 3)
    assert made.counts()["window"] == 0
    again = Kept(as_before(made.rows) if is_old else made.rows)
    assert [one.attributes["p"] for one in again.broker.events.unreached("b")] == [1, 20, 3]
    again.handle(Tick(), 50.0)
    assert len(list(again.broker.events.unreached("b"))) == 3
    again.handle(Tick(), 200.0)
    assert list(again.broker.events.unreached("b")) == []
    # What waits for ann outlives the window, and isn't in it after another restart.
    third = Kept(again.rows)
    assert [one.attributes["p"] for one in (third.broker.events[key] for key in ("a/1000000", "a/1000002"))] == [1, 3]
    assert list(third.broker.events.unreached("b")) == []
    assert third.counts()["event"] == 2


def test_an_event_that_nobody_refers_to_any_more_leaves_no_row() -> None:
    made = with_clients(config=BrokerConfig("a", limits=BrokerLimits(events_kept=2), timing=Timing(remember=100.0)))
    made.publish(*range(6))
    assert made.counts()["event"] == 6
    made.handle(FromClient("ann", Acknowledge(6), 1))
    assert made.counts()["event"] == 2
    made.handle(Tick(), 200.0)
    assert (made.counts()["event"], made.counts()["window"]) == (0, 0)


def test_what_a_neighbour_has_is_written_beside_the_event() -> None:
    made = with_clients()
    made.publish(1)
    made.handle(AddPeer("b"))
    key = next(key for space, key in made.rows if space == "event")
    made.broker.events.reach(key, "b")
    made.broker.events.write()
    replay(made.rows, made.broker._context.turn.out.records)
    assert made.counts()["window"] == 1
    again = Kept(made.rows)
    assert list(again.broker.events.unreached("b")) == []
    assert len(list(again.broker.events.unreached("c"))) == 1
