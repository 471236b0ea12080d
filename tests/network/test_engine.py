"""The engine against a scripted stand-in for the broker: what is committed before what is sent, and to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

import pytest

from covey.network import engine as engines
from covey.network import fair_inputs
from covey.network.engine import RESTARTS, Engine
from covey.network.errors import ConnectionLostError, NetworkError, RefusedError
from covey.network.frames import RESTARTING, TAKEN
from covey.network.limits import NetworkLimits
from covey.network.storage import Done, MemoryJournal
from covey.routing.config import BrokerConfig
from covey.routing.journal import Outputs, Put, Record
from covey.routing.messages import (
    Acknowledge,
    ClientUp,
    CloseClient,
    Confirmed,
    Credit,
    Deliver,
    Delta,
    Entry,
    FromClient,
    FromPeer,
    Input,
    Permissions,
    Publication,
    Publications,
    Publish,
    Refused,
    Renew,
    Subscribe,
    Subscriptions,
    Tick,
    ToClient,
    Unsubscribe,
    Work,
)
from tests.network.running import in_loop, until

CONFIG = BrokerConfig("a")


class Scripted:
    """Answers by rules: `Renew` is confirmed with a row, `Credit` without, `Unsubscribe` is refused."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.together: list[list[int]] = []
        self.wake_at = inf
        self.behind = 0
        self.steps_taken = 0
        self.pressure = ""
        self.steps: list[int | None] = []
        """What neighbours' messages were given to look at relations."""

    def handle(self, input: Input, now: float, steps: int | None = None) -> Outputs:
        outputs = Outputs()
        if isinstance(input, Publications):
            self.together.append([request.request for request in input.requests])
            answers = [(request.client, Confirmed(request.request), request.session) for request in input.requests]
            outputs.sends += [ToClient(*answer) for answer in answers]
            return outputs
        self.inputs.append(input)
        match input:
            case Work():
                self.behind -= 1
            case FromPeer():
                self.steps.append(steps)
            case FromClient(client, Renew(request), session):
                outputs.records.append(Put("space", str(request), b""))
                outputs.sends.append(ToClient(client, Confirmed(request), session))
            case FromClient(client, Credit(number), session):
                outputs.sends.append(ToClient(client, Confirmed(number), session))
            case FromClient(client, Unsubscribe(request, reason), session):
                outputs.sends.append(ToClient(client, Refused(request, reason), session))
            case FromClient(client, Acknowledge(), session):
                outputs.sends.append(CloseClient(client, "enough", session))
            case FromClient():
                raise AssertionError("a defect")
        return outputs


class SlowJournal:
    """Commits when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Sequence[Record], Done]] = []

    def rows(self) -> Iterator[Put]:
        return iter(())

    def submit(self, records: Sequence[Record], done: Done) -> None:
        self.waiting.append((records, done))

    def set_aside(self, input: Any, error: BaseException) -> None:
        pass

    def commit(self, error: Exception | None = None) -> None:
        self.waiting.pop(0)[1](error)

    def give_up(self) -> None:
        pass

    def close(self) -> None:
        pass


class Box:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.closed: tuple[str, int] | None = None

    def send(self, messages: list[Any]) -> None:
        self.messages += messages

    def close(self, reason: str, code: int) -> None:
        self.closed = (reason, code)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    stand_in = Scripted()

    class Restored:
        @staticmethod
        def restore(config: BrokerConfig, rows: Any, now: float) -> tuple[Scripted, Outputs]:
            return stand_in, Outputs()

    monkeypatch.setattr(engines, "Broker", Restored)
    return stand_in


async def turns() -> None:
    for _ in range(5 * (1 + engines.READING_ROUNDS)):
        await asyncio.sleep(0)


@in_loop
async def test_nothing_is_sent_before_its_rows_are_committed(scripted: Scripted) -> None:
    journal, box = SlowJournal(), Box()
    engine = Engine(CONFIG, journal)
    session = engine.open_client("ann", Permissions(), box)
    engine.say(session, Renew(1))
    await turns()
    assert box.messages == []
    journal.commit()
    assert box.messages == [Confirmed(1)]


@in_loop
async def test_messages_of_a_session_keep_their_order_though_only_some_wait_for_the_disk(scripted: Scripted) -> None:
    journal, box = SlowJournal(), Box()
    engine = Engine(CONFIG, journal)
    session = engine.open_client("ann", Permissions(), box)
    engine.say(session, Renew(1))
    await turns()
    engine.say(session, Credit(2))
    await turns()
    engine.say(session, Renew(3))
    await turns()
    assert box.messages == []
    journal.commit()
    assert box.messages == [Confirmed(1), Confirmed(2)]
    journal.commit()
    assert box.messages == [Confirmed(1), Confirmed(2), Confirmed(3)]


@in_loop
async def test_plain_events_do_not_wait_for_rows_that_are_being_committed_but_for_what_their_client_waits_for(
    scripted: Scripted,
) -> None:
    journal, boxes = SlowJournal(), [Box(), Box(), Box()]
    engine = Engine(CONFIG, journal)
    ann, bob, carl = (engine.open_client(name, Permissions(), box) for name, box in zip("abc", boxes, strict=True))
    engine.say(ann, Renew(1))
    engine.say(bob, Publish(2, [Publication({})]))  # in one turn with a row
    await turns()
    engine.say(bob, Publish(3, [Publication({})]))
    engine.say(carl, Publish(4, [Publication({}, durable=True)]))
    await turns()
    engine.say(carl, Publish(5, [Publication({})]))
    engine.say(ann, Publish(6, [Publication({})]))
    await turns()
    assert [box.messages for box in boxes] == [[], [Confirmed(2), Confirmed(3)], []]
    journal.commit()
    assert [box.messages for box in boxes[::2]] == [[Confirmed(1), Confirmed(6)], [Confirmed(4), Confirmed(5)]]
    engine.say(ann, Publish(7, [Publication({})]))
    await turns()
    assert boxes[0].messages[-1] == Confirmed(7)


@in_loop
async def test_inputs_that_wait_are_committed_together(scripted: Scripted) -> None:
    journal = SlowJournal()
    engine = Engine(CONFIG, journal)
    session = engine.open_client("ann", Permissions(), Box())
    for number in range(20):
        engine.say(session, Renew(number))
    await turns()
    assert [len(records) for records, _ in journal.waiting] == [20]


@in_loop
async def test_publications_that_are_next_in_their_queues_are_taken_together(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(CONFIG, MemoryJournal())
    ann, bob = (engine.open_client(name, Permissions(), Box()) for name in ("ann", "bob"))
    await turns()
    monkeypatch.setattr(engines, "EVENTS_SECONDS", 3600.0)
    events = [Publication({})] * (engines.TOGETHER // 2)
    engine.say(ann, Publish(1, []))
    engine.say(bob, Publish(2, []))
    engine.say(ann, Credit(1))
    for number in range(3, 6):
        engine.say(bob, Publish(number, events))
    engine.end(ann)
    engine.say(ann, Publish(6, []))
    engine.say(bob, Publish(7, []))
    for _ in range(3):
        await turns()
    assert [sorted(together) for together in scripted.together] == [[1, 2, 3, 4], [5, 7]]


@in_loop
async def test_a_client_that_says_little_is_not_held_up_by_one_that_says_much(scripted: Scripted) -> None:
    engine = Engine(CONFIG, MemoryJournal())
    loud, quiet = (engine.open_client(name, Permissions(), Box()) for name in ("loud", "quiet"))
    await turns()
    for number in range(5_000):
        engine.say(loud, Credit(number))
    engine.say(quiet, Credit(5_000))
    await until(lambda: engine.waiting[0] == 0)
    place = scripted.inputs.index(FromClient("quiet", Credit(5_000), quiet.number))
    assert place < 4_000, "the quiet client waited for all of the loud one's"


@in_loop
async def test_a_neighbours_bulk_is_told_on_before_anybody_looks_at_covering(scripted: Scripted) -> None:
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_peer("b", Box())
    for count in (1, engines.MANY_ENTRIES - 1, engines.MANY_ENTRIES):
        entries = [Entry(str(at), f"x = {at}") for at in range(count)]
        engine.hear(session, Delta(0, 1, joined=True, recalls=[], buckets=[], added=entries, removed=[]))
    long = [Entry("0", "x = 1 OR " * engines.MANY_CHARACTERS + "y = 1")]
    engine.hear(session, Delta(0, 1, joined=True, recalls=[], buckets=[], added=long, removed=[]))
    await until(lambda: len(scripted.steps) == 4)
    assert scripted.steps == [engines.FIRST_STEPS, engines.FIRST_STEPS, 0, 0]


@in_loop
async def test_work_that_was_put_off_is_done_when_there_is_time_and_not_only_then(scripted: Scripted) -> None:
    scripted.behind = 3
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), Box())
    await until(lambda: not scripted.behind)
    scripted.behind = 2

    def busy(number: int) -> None:
        if scripted.behind:
            engine.say(session, Credit(number))
            asyncio.get_running_loop().call_soon(busy, number + 1)

    busy(0)
    await until(lambda: not scripted.behind)


@in_loop
async def test_answers_are_sent_before_the_next_piece_of_work(scripted: Scripted) -> None:
    box, engine = Box(), Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), box)
    await until(lambda: bool(scripted.inputs))
    scripted.behind = 1
    done_before: list[bool] = []
    handle = scripted.handle

    def handled(input: Input, now: float, steps: int | None = None) -> Outputs:
        if isinstance(input, Work):
            done_before.append(Confirmed(1) in box.messages)
        return handle(input, now, steps)

    scripted.handle = handled  # type: ignore[method-assign]
    engine.say(session, Credit(1))
    await until(lambda: not scripted.behind)
    assert done_before == [True]


@in_loop
async def test_requests_have_fewer_steps_at_once_where_theirs_take_long_and_more_where_they_are_quick(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), Box())
    await until(lambda: len(scripted.inputs) == 1)
    steps = []
    for seconds, taken in ((60.0, 10_000), (60.0, 10), (60.0, 150), (60.0, 0), (0.0, 150), (0.0, 600), (0.0, 10_000)):
        monkeypatch.setattr(engines, "REQUEST_SECONDS", seconds)
        scripted.steps_taken = taken
        count = len(scripted.inputs)
        engine.say(session, Credit(1))
        await until(lambda count=count: len(scripted.inputs) > count)
        steps.append(engine._request_steps)
    first = engines.FIRST_STEPS
    # Doubled where all were needed; halved, at the least to LEAST_STEPS, where some were and it took long.
    assert steps == [2 * first, 2 * first, 2 * first, 2 * first, first, first // 2, first // 4]


@in_loop
async def test_work_waits_while_requests_go_on_putting_it_off_but_not_for_ever(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "WORK_EVERY_SECONDS", 60.0)
    monkeypatch.setattr(engines, "REST_SECONDS", 60.0)
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), Box())
    await until(lambda: len(scripted.inputs) == 1)
    scripted.behind = 1
    engine.say(session, Credit(1))
    await until(lambda: len(scripted.inputs) == 2)
    assert engine._is_busy()
    assert not any(isinstance(input, Work) for input in scripted.inputs)
    monkeypatch.setattr(engines, "LONGEST_REST", 0.0)
    assert not engine._is_busy()
    monkeypatch.setattr(engines, "LONGEST_REST", 60.0)
    monkeypatch.setattr(engines, "REST_SECONDS", 0.0)
    assert not engine._is_busy()


@in_loop
async def test_pieces_of_work_become_smaller_where_they_take_long(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "WORK_SECONDS", 0.0)
    scripted.behind = 3
    Engine(CONFIG, MemoryJournal())
    await until(lambda: not scripted.behind)
    steps = [input.steps for input in scripted.inputs if isinstance(input, Work)]
    assert steps == [engines.FIRST_STEPS, engines.LEAST_STEPS, engines.LEAST_STEPS]


@in_loop
async def test_many_messages_are_handed_out_in_parts_in_order_and_who_gets_little_first(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "DELIVER_SECONDS", 0.0)
    engine = Engine(CONFIG, MemoryJournal())
    boxes = [Box() for _ in range(5)]
    sessions = [engine.open_client(f"c{at}", Permissions(), box) for at, box in enumerate(boxes)]
    given: list[int] = []
    for at, box in enumerate(boxes):
        monkeypatch.setattr(box, "send", lambda messages, at=at, box=box: (given.append(at), Box.send(box, messages)))
    event = Deliver(0, ["s"], {}, "p", 0, False, "a/1", bytes=1_000)
    engine._deliver({session: [event] * (5 - at) for at, session in enumerate(sessions)})
    engine._deliver({session: [Confirmed(1)] for session in sessions})
    assert not given
    engine._deliver_more(60.0)
    assert given == [4, 3, 2, 1, 0]
    assert [box.messages for box in boxes] == [[event] * (5 - at) + [Confirmed(1)] for at in range(5)]


@in_loop
async def test_a_broker_that_stops_hands_out_what_it_has_committed(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "DELIVER_SECONDS", 0.0)
    box, engine = Box(), Engine(CONFIG, MemoryJournal())
    engine._deliver({engine.open_client("ann", Permissions(), box): [Confirmed(1)]})
    await engine.stop()
    assert box.messages == [Confirmed(1)]


@in_loop
async def test_a_session_without_anything_waiting_has_room_whatever_others_have(scripted: Scripted) -> None:
    engine = Engine(CONFIG, MemoryJournal(), NetworkLimits(waiting_inputs=3))
    loud, quiet = (engine.open_client(name, Permissions(), Box()) for name in ("loud", "quiet"))
    await turns()
    for number in range(3):
        engine.say(loud, Credit(number))
    with pytest.raises(StopIteration):
        engine.room(quiet).send(None)
    held = engine.room(loud)
    assert held.send(None) is not None
    held.close()


@in_loop
async def test_a_journal_that_fails_stops_the_broker_and_nothing_more_is_sent(scripted: Scripted) -> None:
    journal, box = SlowJournal(), Box()
    engine = Engine(CONFIG, journal)
    session = engine.open_client("ann", Permissions(), box)
    engine.say(session, Renew(1))
    await turns()
    journal.commit(OSError("disk full"))
    with pytest.raises(NetworkError, match="disk full"):
        await engine.stopped
    assert (box.messages, box.closed) == ([], ("the broker failed", 1011))


@in_loop
async def test_a_broker_that_raises_is_restored_after_the_commit_and_stopped_where_it_goes_on_so(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    journal = SlowJournal()
    engine = Engine(CONFIG, journal)
    for restart in range(1, RESTARTS + 1):
        box, other = Box(), Box()
        bystander = engine.open_client("bob", Permissions(), other)
        engine.say(bystander, Renew(1))
        await turns()
        session = engine.open_client("ann", Permissions(), box)
        engine.say(session, "no message")  # type: ignore[arg-type]
        await turns()
        # What was taken before is committed first, and its answer comes before the end.
        assert (engine.counts.restarts, other.messages, other.closed) == (restart, [], None)
        journal.commit()
        await turns()
        assert other.messages == [Confirmed(1)]
        assert other.closed == box.closed == ("the broker restarts; connect again", RESTARTING)
    session = engine.open_client("ann", Permissions(), Box())
    engine.say(session, "no message")  # type: ignore[arg-type]
    with pytest.raises(NetworkError, match="a defect"):
        await engine.stopped


@in_loop
async def test_a_second_session_of_a_client_ends_the_first_and_hears_nothing_of_it(scripted: Scripted) -> None:
    journal, first, second = SlowJournal(), Box(), Box()
    engine = Engine(CONFIG, journal)
    old = engine.open_client("ann", Permissions(), first)
    engine.say(old, Renew(1))
    await turns()
    new = engine.open_client("ann", Permissions(), second)
    engine.say(old, Credit(2))
    engine.say(new, Credit(3))
    await turns()
    journal.commit()
    assert first.closed == ("another session of 'ann' was opened", TAKEN)
    assert second.messages == [Confirmed(3)]
    assert [input.session for input in scripted.inputs if isinstance(input, ClientUp)] == [old.number, new.number]
    assert FromClient("ann", Credit(2), old.number) not in scripted.inputs


@in_loop
async def test_a_session_that_the_broker_closes_is_closed_after_what_was_sent_to_it(scripted: Scripted) -> None:
    box = Box()
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), box)
    engine.say(session, Credit(1))
    engine.say(session, Acknowledge(1))
    engine.say(session, Credit(2))
    await turns()
    assert (box.messages, box.closed) == ([Confirmed(1)], ("enough", 1008))


@in_loop
async def test_a_request_in_a_clients_name_is_answered_to_the_server_and_not_to_the_client(scripted: Scripted) -> None:
    box = Box()
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), box)
    await engine.ask(session, Renew)
    with pytest.raises(RefusedError, match="because"):
        await engine.ask(session, lambda number: Unsubscribe(number, "because"))
    assert box.messages == []


@in_loop
async def test_a_request_fails_with_the_session_that_it_was_made_in(scripted: Scripted) -> None:
    engine = Engine(CONFIG, SlowJournal())
    session = engine.open_client("ann", Permissions(), Box())
    asked = asyncio.create_task(engine.ask(session, Renew))
    await turns()
    engine.end(session)
    with pytest.raises(ConnectionLostError):
        await asked


@pytest.mark.parametrize("limits", [NetworkLimits(waiting_inputs=3), NetworkLimits(waiting_records=3)])
def test_readers_wait_while_too_much_waits_for_the_broker_or_the_disk(
    scripted: Scripted, limits: NetworkLimits
) -> None:
    @in_loop
    async def check() -> None:
        journal = SlowJournal()
        engine = Engine(CONFIG, journal, limits)
        session = engine.open_client("ann", Permissions(), Box())
        for number in range(3):
            engine.say(session, Renew(number))
        on_disk = limits.waiting_records == 3
        if on_disk:
            await until(lambda: sum(len(records) for records, _ in journal.waiting) == 3)
        waiting = asyncio.create_task(engine.room(session))
        if on_disk:
            await turns()
            assert not waiting.done()
            journal.commit()
        await asyncio.wait_for(waiting, 5)

    check()


@in_loop
async def test_the_broker_hears_of_time_when_it_asked_for_it(scripted: Scripted) -> None:
    clock: Callable[[], float] = lambda: 100.0  # noqa: E731
    engine = Engine(CONFIG, MemoryJournal(), clock=clock)
    session = engine.open_client("ann", Permissions(), Box())
    scripted.wake_at = 100.05
    engine.say(session, Credit(1))
    await until(lambda: any(isinstance(input, Tick) for input in scripted.inputs))


@in_loop
async def test_who_speaks_while_others_wait_is_heard_in_the_next_turn(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(fair_inputs, "SHARE_SECONDS", 1e-6)
    engine = Engine(CONFIG, MemoryJournal())
    loud, quiet = (engine.open_client(name, Permissions(), Box()) for name in ("loud", "quiet"))
    await until(lambda: quiet.open)
    loop, handle = asyncio.get_running_loop(), scripted.handle

    def handled(input: Input, now: float, steps: int | None = None) -> Outputs:
        if input == FromClient("loud", Credit(0), loud.number):
            # As a socket does: it is read in the next round, and its reader goes on in the one after.
            loop.call_soon(loop.call_soon, engine.say, quiet, Credit(99))
        return handle(input, now, steps)

    scripted.handle = handled  # type: ignore[method-assign]
    for number in range(10):
        engine.say(loud, Credit(number))
    await until(lambda: len(scripted.inputs) == 2 + 11)
    said = [input.message.deliveries for input in scripted.inputs if isinstance(input, FromClient)]  # type: ignore[union-attr]
    assert said.index(99) == 1


@in_loop
async def test_publications_are_delivered_before_anything_else_is_taken_up(scripted: Scripted) -> None:
    engine, box = Engine(CONFIG, MemoryJournal()), Box()
    ann, bob = engine.open_client("ann", Permissions(), box), engine.open_client("bob", Permissions(), Box())
    await until(lambda: bob.open)
    heard: list[int] = []
    handle = scripted.handle

    def handled(input: Input, now: float, steps: int | None = None) -> Outputs:
        heard.append(len(box.messages))
        return handle(input, now, steps)

    scripted.handle = handled  # type: ignore[method-assign]
    engine.say(ann, Publish(1, [Publication({})]))
    engine.say(bob, Credit(2))
    await until(lambda: len(heard) == 2)
    assert heard == [0, 1]


@in_loop
@pytest.mark.parametrize(("each", "together"), [(1.0, 8), (0.0, 64)])
async def test_as_many_subscriptions_are_taken_together_as_the_last_ones_allow(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, each: float, together: int
) -> None:
    engine = Engine(CONFIG, MemoryJournal())
    session = engine.open_client("ann", Permissions(), Box())
    await until(lambda: session.open)
    session.subscription_seconds = each
    monkeypatch.setattr(engines, "ALARM", 0.0)
    monkeypatch.setattr(engines, "FORGETTING", 0.0)
    for number in range(200):
        engine.say(session, Subscribe(number, str(number), "x = 1"))
    await until(lambda: engine.waiting[0] == 0)
    first = next(input for input in scripted.inputs if isinstance(input, Subscriptions))
    assert len(first.messages) == together
