"""What goes before the rows that are being committed, and what waits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.routing.journal import Outputs, Put
from covey.routing.messages import (
    Confirmed,
    Deliver,
    Deliveries,
    DeltaAck,
    Envelope,
    Events,
    FromClient,
    FromPeer,
    Hello,
    Output,
    Publication,
    Publications,
    Publish,
    ToClient,
    ToPeer,
)
from covey.routing.overtaking import NUMBERS, UnderWay

PLAIN = FromPeer("b", Events([]))
EVENT = Envelope("b", 1, "ann", 0, False, 8, {})


def delivery(client: str, number: int = 0) -> Deliveries:
    return Deliveries(client, [Deliver(number, ["s"], {}, "ann", 0, False, "b/1")])


def publications(**facts: Any) -> Publications:
    return Publications.of([FromClient("ann", Publish(1, [Publication({"x": 1}, **facts)]))])


def test_plain_events_go_to_clients_and_neighbours_at_once_and_all_else_waits() -> None:
    under_way = UnderWay()
    under_way.hold([Put("entry", "k", b"")], [ToPeer("b", DeltaAck(0, 1, 1))])
    sends: list[Output] = [ToPeer("b", DeltaAck(0, 2, 2)), ToPeer("b", Events([EVENT])), delivery("ann")]
    assert under_way.divide(PLAIN, Outputs([], sends)) == (sends[1:], sends[:1])


def test_a_client_hears_all_in_order() -> None:
    under_way = UnderWay()
    waiting = under_way.hold([Put("subscription", "k", b"")], [ToClient("ann", Confirmed(1))])
    sends: list[Output] = [delivery("ann"), delivery("bob")]
    assert under_way.divide(PLAIN, Outputs([], sends)) == (sends[1:], sends[:1])
    under_way.release(waiting)
    assert under_way.divide(PLAIN, Outputs([], sends)) == (sends, [])
    numbered: list[Output] = [delivery("ann", 3), delivery("ann")]
    assert under_way.divide(PLAIN, Outputs([], numbered)) == ([], numbered)


def test_events_do_not_go_before_a_hello() -> None:
    under_way = UnderWay()
    waiting = under_way.hold([Put("link", "b", b"")], [ToPeer("b", Hello("a", [], 0, 0, False))])
    sends: list[Output] = [ToPeer("b", Events([EVENT]))]
    assert under_way.divide(PLAIN, Outputs([], sends)) == ([], sends)
    under_way.release(waiting)
    assert under_way.divide(PLAIN, Outputs([], sends)) == (sends, [])


def test_nothing_goes_before_the_row_that_reserves_its_number() -> None:
    under_way = UnderWay()
    under_way.hold([Put(*NUMBERS, b"")], [])
    assert under_way.divide(PLAIN, Outputs([], [delivery("ann")])) == ([], [delivery("ann")])


@pytest.mark.parametrize(
    ("input", "passes"),
    [(publications(), True), (publications(durable=True, number=1), False), (publications(id="mine"), False)],
)  # fmt: skip
def test_a_publication_that_leaves_a_row_is_confirmed_behind_all_rows_before_it_even_where_it_is_a_copy(
    input: Publications, passes: bool
) -> None:
    sends: list[Output] = [ToClient("ann", Confirmed(1))]
    assert UnderWay().divide(input, Outputs([], sends)) == ((sends, []) if passes else ([], sends))
    assert UnderWay().divide(input, Outputs([Put("event", "k", b"")], sends)) == ([], sends)


OUTPUTS = st.sampled_from([
    ToClient("ann", Confirmed(1)), delivery("ann"), delivery("ann", 3), delivery("bob"), ToPeer("b", Events([])),
    ToPeer("b", DeltaAck(0, 1, 1)), ToPeer("b", Hello("a", [], 0, 0, False)),
])  # fmt: skip


@given(st.lists(st.lists(OUTPUTS, max_size=4), max_size=6))
def test_who_waits_is_forgotten_when_all_has_gone(turns: list[list[Output]]) -> None:
    under_way = UnderWay()
    flights = []
    for sends in turns:
        at_once, later = under_way.divide(PLAIN, Outputs([], sends))
        assert sorted(map(repr, at_once + later)) == sorted(map(repr, sends))
        flights.append(under_way.hold([Put("entry", "k", b"")], later))
    for waiting in flights:
        under_way.release(waiting)
    plain: list[Output] = [delivery("ann"), ToPeer("b", Events([]))]
    assert under_way.divide(PLAIN, Outputs([], plain)) == (plain, [])
