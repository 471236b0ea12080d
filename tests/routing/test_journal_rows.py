"""What durable events take in the journal, and journals that say it in rows of before."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.routing import Broker, BrokerConfig, BrokerLimits, ClientUp, FromClient, Timing, queues
from covey.routing.client import QueueRow, RunRow, queue_key
from covey.routing.journal import Outputs, Put, replay
from covey.routing.kept_events import KeptRow, WindowRow, read_event
from covey.routing.messages import Acknowledge, AddPeer, Publication, Publish, Subscribe, Tick, Unsubscribe

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

    def queue(self) -> list[tuple[int, int, list[str]]]:
        """Numbers, prices and subscriptions of what waits for ann."""
        ann = self.broker.clients.get("ann")
        rows = [] if ann is None else ann.queue
        return [(row.number, self.broker.events[row.event].attributes["p"], row.subscriptions) for row in rows]

    def counts(self) -> Counter[str]:
        return Counter(space for space, _ in self.rows)


def with_clients(rows: Rows | None = None, config: BrokerConfig = CONFIG) -> Kept:
    found = Kept(rows, config)
    found.handle(ClientUp("ann", session=1))
    found.handle(ClientUp("bob", session=2))
    found.handle(FromClient("ann", Subscribe(1, "s", "p < 10", durable=True), 1))
    return found


def as_before(rows: Rows) -> Rows:
    """The same rows as brokers of before wrote them: a place in the window was a row of its own, and so was each
    delivery."""
    found = {place: value for place, value in rows.items() if place[0] != "run"}
    for (space, _), value in rows.items():
        if space == "run":
            run = msgspec.msgpack.decode(value, type=RunRow)
            for number, event, ids in run.deliveries:
                row = QueueRow(run.client, number, event, ids)
                found["queue", queue_key(run.client, number)] = msgspec.msgpack.encode(row)
    for (space, key), value in rows.items():
        kept = read_event(value) if space == "event" else None
        if isinstance(kept, KeptRow):
            found["event", key] = msgspec.msgpack.encode(kept.envelope)
            found["window", key] = msgspec.msgpack.encode(WindowRow(kept.at, kept.place, kept.reached))
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


def test_what_a_queue_gets_in_one_turn_is_one_row_that_goes_with_the_last_of_it() -> None:
    made = with_clients()
    made.publish(1, 2, 3)
    made.publish(4, 5)
    assert made.counts()["run"] == 2
    made.records = 0
    made.handle(FromClient("ann", Acknowledge(2), 1))
    assert made.records == 1, "only how far it is acknowledged is written"
    assert Kept(made.rows).queue() == made.queue() == [(3, 3, ["s"]), (4, 4, ["s"]), (5, 5, ["s"])]
    made.handle(FromClient("ann", Acknowledge(3), 1))
    assert made.counts()["run"] == 1
    made.handle(FromClient("ann", Acknowledge(5), 1))
    assert made.counts()["run"] == 0
    assert Kept(made.rows).queue() == []


def test_deliveries_with_rows_of_before_come_back_and_get_rows_of_now() -> None:
    made = with_clients()
    made.publish(1, 2, 3)
    old = as_before(made.rows)
    assert any(space == "queue" for space, _ in old)
    again = Kept(old)
    assert again.queue() == made.queue()
    assert (again.counts()["queue"], again.counts()["run"]) == (0, 1)
    assert Kept(again.rows).queue() == made.queue()


def test_a_lost_event_costs_its_delivery_and_not_those_of_the_same_turn() -> None:
    made = with_clients()
    made.publish(1, 2, 3)
    lost = sorted(key for space, key in made.rows if space == "event")[0]
    again = Kept({**made.rows, ("event", lost): b"?"})
    assert [price for _, price, _ in again.queue()] == [2, 3]
    assert len(again.broker.damaged) == 2
    third = Kept(again.rows)
    assert (third.queue(), third.broker.damaged) == (again.queue(), ())
    third.handle(ClientUp("ann", session=1), 3.0)
    third.handle(FromClient("ann", Acknowledge(3), 1), 3.0)
    assert third.counts()["run"] == 0


STEPS = st.lists(
    st.one_of(
        st.lists(st.integers(0, 9), max_size=4),
        st.integers(0, 30).map(Acknowledge),
        st.sampled_from(["low", "high"]),
        st.none(),
    ),
    max_size=15,
)


@given(STEPS, st.sampled_from([2, 1_000]), st.sampled_from([5, 1_000]))
def test_a_queue_is_the_same_after_every_restart(steps: list[Any], run: int, queue: int) -> None:
    config = BrokerConfig("a", limits=BrokerLimits(queue=queue, events_kept=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "RUN", run)
        made = with_clients(config=config)
        texts = {"low": "p < 5", "high": "p > 3"}
        has = set[str]()
        made.handle(FromClient("ann", Unsubscribe(2, "s"), 1))
        for step in steps:
            if isinstance(step, list):
                made.publish(*step)
            elif isinstance(step, Acknowledge):
                made.handle(FromClient("ann", step, 1))
            elif step in has:
                has.remove(step)
                made.handle(FromClient("ann", Unsubscribe(3, step), 1))
            elif step is not None:
                has.add(step)
                made.handle(FromClient("ann", Subscribe(4, step, texts[step], durable=True), 1))
            again = Kept(made.rows, config)
            assert again.queue() == made.queue()
            assert again.broker.damaged == ()
            if step is None:
                made = again
                made.handle(ClientUp("ann", session=1))
                made.handle(ClientUp("bob", session=2))
        for name in sorted(has):
            made.handle(FromClient("ann", Unsubscribe(5, name), 1))
        made.handle(FromClient("ann", Acknowledge(1_000), 1))
        made.handle(Tick(), 1e9)
        assert made.queue() == []
        assert (made.counts()["run"], made.counts()["event"], made.counts()["window"]) == (0, 0, 0)
