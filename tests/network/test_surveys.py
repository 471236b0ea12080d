"""Questions to all brokers: answered once, passed on, and bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from covey.network import connect, surveys
from covey.network.engine import Engine
from covey.network.storage import MemoryJournal
from covey.network.survey_messages import Ask, Figures, Told
from covey.network.surveys import Surveys
from covey.routing.config import BrokerConfig
from tests.network.running import broker, in_loop, linked, until


class Wire:
    """Neighbours that only listen."""

    def __init__(self, *peers: str) -> None:
        self.peers = list(peers)
        self.sent: list[tuple[str, Ask | Told]] = []

    def send(self, peer: str, message: Ask | Told) -> None:
        self.sent.append((peer, message))

    def take(self) -> list[tuple[str, Ask | Told]]:
        taken, self.sent = self.sent, []
        return taken


@asynccontextmanager
async def surveyor(*peers: str) -> AsyncIterator[tuple[Surveys, Wire]]:
    engine = Engine(BrokerConfig("b", peers), MemoryJournal())
    wire = Wire(*peers)
    try:
        yield Surveys(engine, lambda: wire.peers, wire.send), wire
    finally:
        await engine.stop()


@in_loop
async def test_a_question_is_answered_once_and_passed_on_to_all_others() -> None:
    async with surveyor("a", "c", "d") as (found, wire):
        found.hear("a", Ask("a", 7, 3))
        (to, answer), *further = wire.take()
        assert isinstance(answer, Told)
        assert (to, answer.asker, answer.number, answer.origin) == ("a", "a", 7, "b")
        assert further == [("c", Ask("a", 7, 2)), ("d", Ask("a", 7, 2))]
        # Around a ring it comes again.
        found.hear("c", Ask("a", 7, 1))
        assert wire.take() == []


@in_loop
async def test_a_question_ends_after_its_hops() -> None:
    async with surveyor("a", "c") as (found, wire):
        found.hear("a", Ask("a", 1, 0))
        assert [type(message) for _, message in wire.take()] == [Told]


@in_loop
async def test_an_answer_goes_back_the_way_of_its_question_and_nowhere_without_one() -> None:
    async with surveyor("a", "c") as (found, wire):
        answer = Told("a", 1, "c", found.own_figures())
        found.hear("c", answer)
        assert wire.take() == []
        found.hear("a", Ask("a", 1, 5))
        wire.take()
        found.hear("c", answer)
        assert wire.take() == [("a", answer)]


@in_loop
async def test_a_neighbour_that_asks_without_end_is_not_heard() -> None:
    async with surveyor("a", "c") as (found, wire):
        for number in range(3 * int(surveys.ASKS_A_SECOND)):
            found.hear("a", Ask("a", number, 5))
        answers = [message for _, message in wire.take() if isinstance(message, Told)]
        assert len(answers) < 2 * surveys.ASKS_A_SECOND


@in_loop
async def test_an_event_with_too_many_levels_is_not_followed() -> None:
    async with surveyor("a", "c") as (found, wire):
        event: dict[str, object] = {"x": 1}
        for _ in range(40):
            event = {"x": event}
        found.hear("a", Ask("a", 1, 5, event))
        assert wire.take() == []


@in_loop
async def test_nothing_is_asked_until_somebody_looks_and_then_not_for_each_look() -> None:
    async with surveyor("a") as (found, wire):
        assert wire.take() == []
        for _ in range(5):
            found.figures()
        assert len(wire.take()) == 1


@in_loop
async def test_a_broker_that_does_not_answer_is_named() -> None:
    async with broker("a", {"b": ""}) as a, broker("b", {"a": a.url}) as b:
        await until(lambda: linked(a, b))
        async with connect(b.url) as bob:
            await bob.subscribe("x > 0")
            links = a._links
            assert links is not None
            b._links.surveys.hear = lambda peer, message: None  # type: ignore[method-assign,union-attr]
            told, silent = await links.surveys.follow({"x": 1})
            assert (set(told), silent) == ({"a"}, {"b"})


@in_loop
async def test_figures_of_a_ring_come_from_everyone() -> None:
    async with (
        broker("a", {"b": "", "c": ""}) as a,
        broker("b", {"a": a.url, "c": ""}) as b,
        broker("c", {"a": a.url, "b": b.url}) as c,
    ):
        await until(lambda: all(link.open for one in (a, b, c) for link in one.engine.broker.links.values()))
        links = a._links
        assert links is not None
        await until(lambda: set(links.surveys.figures()) == {"a", "b", "c"})
        found: Figures = links.surveys.figures()["c"].figures
        assert {link.peer for link in found.links} == {"a", "b"}
