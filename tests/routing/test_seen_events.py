"""A neighbour that forges ids of events spoils none but those that it carries itself."""

from __future__ import annotations

import msgspec
import pytest

from covey.routing import undo
from covey.routing.messages import Envelope, Events, FromPeer
from covey.routing.seen_events import SeenEvents
from covey.simulation.defects import PlantedError, Trap
from tests.routing.harness import Net


def event(number: int = 1, origin: str = "b", x: int = 1, **changes: object) -> Envelope:
    return msgspec.structs.replace(Envelope(origin, number, "ann", 7, True, 9, {"x": x}), **changes)


def test_a_copy_is_known_wherever_it_comes_from_and_however_far_it_went() -> None:
    seen = SeenEvents(100)
    assert seen.see(event(), "b") == (event(), True)
    for copy in (event(), event(hops=3), event(recalled=True)):
        assert not seen.see(copy, "c")[1]


def test_another_event_under_a_known_id_is_no_copy_and_is_known_itself_from_then_on() -> None:
    seen = SeenEvents(100)
    assert seen.see(event(x=666), "liar")[1]
    true, is_new = seen.see(event(x=1), "b")
    assert is_new
    assert true.key != event().key
    assert true.key.startswith("b/1~")
    assert seen.see(event(x=1), "c") == (true, False)
    assert not seen.see(event(x=666), "b")[1]
    for changed in (event(publisher="bob"), event(publisher_number=8), event(durable=False)):
        assert seen.see(changed, "b")[1]


def test_a_variant_that_travelled_says_nothing() -> None:
    seen = SeenEvents(100)
    assert seen.see(event(variant="~00"), "b") == (event(), True)


def test_what_entered_here_is_a_copy_whatever_it_says_and_takes_no_memory() -> None:
    net = Net([("a", "b")])
    net.join("a", "ann")
    net.subscribe("a", "ann", "all", "x > 0")
    net.publish("a", "ann", {"x": 1})
    number = net.brokers["a"].next_number - 1
    assert not net.brokers["a"].events.seen._by_source
    for forged in (event(number, "a", x=666), event(number + 1_000, "a")):
        net.handle("a", FromPeer("b", Events([forged])))
        net.run()
    assert net.delivered("ann") == [{"x": 1}]


def test_a_neighbour_that_makes_up_ids_cant_have_those_of_others_forgotten() -> None:
    seen = SeenEvents(10)
    seen.see(event(5), "b")
    for number in range(1_000, 1_100):
        seen.see(event(number), "liar")
    assert not seen.see(event(5), "c")[1]
    assert seen.see(event(1_000), "liar")[1]


def test_what_a_neighbour_brought_that_is_gone_is_still_known() -> None:
    seen = SeenEvents(10)
    seen.see(event(5), "b")
    seen.forget("b")
    seen.forget("never there")
    assert not seen.see(event(5), "c")[1]


@pytest.mark.parametrize("after", range(12))
def test_whatever_raises_in_the_middle_what_was_seen_is_what_it_was(after: int) -> None:
    """As a turn's log of steps may raise at any of them, a step must stand there before what it takes back."""
    seen = SeenEvents(4)
    for number in range(1, 5):
        seen.see(event(number), "b")
        seen.see(event(number, "c"), "c")
    before = {source: dict(keys) for source, keys in seen._by_source.items()}
    undo.begin(Trap(after))
    try:
        seen.forget("b")
        seen.see(event(8, "d"), "d")
        seen.see(event(9, "d"), "d")
        seen.see(event(9, "c"), "c")
    except PlantedError:
        pass
    undo.roll_back()
    undo.end()
    assert {source: dict(keys) for source, keys in seen._by_source.items()} == before
