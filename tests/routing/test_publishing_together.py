"""Publications that are taken together go where they would have gone one by one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import covey.routing.routing_table as tables
from covey.filters.values import normalise
from covey.routing import (
    Broker,
    BrokerConfig,
    ClientUp,
    FromClient,
    Permissions,
    entry_columns,
    entry_index,
    packed_events,
)
from covey.routing.client import RunRow
from covey.routing.journal import Outputs, replay
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import (
    Confirmed,
    Deliveries,
    Publication,
    Publish,
    Subscribe,
    ToClient,
)
from covey.routing.packed_events import read_publications
from covey.routing.plain_events import wrong_event
from covey.routing.routing_table import RoutingTable
from tests import strategies
from tests.routing.harness import Net, hops_by_event

CLIENTS = ("ann", "bob", "eve")
SESSIONS = {client: number for number, client in enumerate(CLIENTS, 1)}
FILTERS = st.sampled_from(["p > 3", "p < 7", "q = 'x'", "p = 5 AND q = 'y'", "TRUE", "q IS NULL"])
EVENTS = st.fixed_dictionaries({}, optional={"p": st.integers(0, 9), "q": st.sampled_from("xyz")})
PUBLICATIONS = st.tuples(
    st.sampled_from(CLIENTS), st.lists(st.tuples(EVENTS, st.booleans(), st.integers(0, 6)), max_size=12)
)


def broker_with(subscriptions: list[tuple[str, str, bool]]) -> tuple[Broker, dict[tuple[str, str], bytes]]:
    broker, outputs = Broker.restore(BrokerConfig("a"), [], 1.0)
    rows: dict[tuple[str, str], bytes] = {}
    replay(rows, outputs.records)
    for client in CLIENTS:
        # Eve may publish little, so that some publications are refused.
        may = Permissions(publish="p < 9") if client == "eve" else Permissions()
        replay(rows, broker.handle(ClientUp(client, may, SESSIONS[client]), 1.0).records)
    for number, (client, text, durable) in enumerate(subscriptions):
        message = Subscribe(number, f"s{number}", text, durable)
        replay(rows, broker.handle(FromClient(client, message, SESSIONS[client]), 1.0).records)
    return broker, rows


def heard(outputs: Outputs) -> dict[tuple[str, type], list[Any]]:
    """What each client hears, by kind of answer: answers and deliveries may change places between them."""
    found: dict[tuple[str, type], list[Any]] = {}
    for send in outputs.sends:
        assert isinstance(send, ToClient | Deliveries)
        for message in send.messages if isinstance(send, Deliveries) else [send.message]:
            found.setdefault((send.client, type(message)), []).append(message)
    return found


@given(
    st.lists(st.tuples(st.sampled_from(CLIENTS), FILTERS, st.booleans()), max_size=12),
    st.lists(PUBLICATIONS, min_size=1, max_size=6),
    st.sampled_from([2, 64]),
)
def test_together_is_as_one_by_one(
    subscriptions: list[tuple[str, str, bool]], published: list[tuple[str, list[Any]]], few: int
) -> None:
    inputs = [
        FromClient(client, Publish(100 + at, [Publication(*one) for one in events]), SESSIONS[client])
        for at, (client, events) in enumerate(published)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "FEW", few)
        patch.setattr(tables, "BATCH", few // 2)
        patch.setattr(packed_events, "PACKED_FROM", few // 2)
        patch.setattr(entry_columns, "PAIRS_OF_A_HOP", few // 2)
        (one, one_rows), (other, other_rows) = broker_with(subscriptions), broker_with(subscriptions)
        third, third_rows = broker_with(subscriptions)
        singly = Outputs()
        for input in inputs:
            outputs = one.handle(input, 2.0)
            singly.records += outputs.records
            singly.sends += outputs.sends
        together = other.publish(inputs, 2.0)
        index = third.table._index
        if index is not None:
            index._take_all()  # what waits is interpreted, an event at a time
        undecoded = third.publish([as_bytes(input) for input in inputs], 2.0)
    assert heard(together) == heard(undecoded) == heard(singly)
    assert hits(other) == hits(third) == hits(one)
    replay(one_rows, singly.records)
    replay(other_rows, together.records)
    replay(third_rows, undecoded.records)
    assert expanded(one_rows) == expanded(other_rows) == expanded(third_rows)


def hits(broker: Broker) -> dict[tuple[str, str], int]:
    """What all subscriptions have counted."""
    broker.count_hits()
    return {(client.id, id): one.hits for client in broker.clients for id, one in client.claims.subscriptions.items()}


def as_bytes(input: FromClient) -> FromClient:
    """A publication as it comes from a socket."""
    assert isinstance(input.message, Publish)
    (events,) = read_publications([msgspec.msgpack.encode(input.message.events)]) or [None]
    assert events is not None
    return structs.replace(input, message=structs.replace(input.message, events=events))


def expanded(rows: dict[tuple[str, str], bytes]) -> dict[Any, Any]:
    """Rows, with those that hold what one turn queued divided into deliveries."""
    found: dict[Any, Any] = {place: value for place, value in rows.items() if place[0] != "run"}
    for (space, _), value in rows.items():
        if space == "run":
            run = msgspec.msgpack.decode(value, type=RunRow)
            found |= {(run.client, number): rest for number, *rest in run.deliveries}
    return found


def test_a_publication_of_a_session_that_is_over_is_left_out() -> None:
    broker, _ = broker_with([("bob", "TRUE", False)])
    message = Publish(1, [Publication({"p": 1})])
    outputs = broker.publish([FromClient("ann", message, 77), FromClient("bob", message, SESSIONS["bob"])], 2.0)
    assert {client for client, _ in heard(outputs)} == {"bob"}
    assert heard(outputs)["bob", Confirmed] == [Confirmed(1)]


VALUES = st.one_of(
    strategies.values(), st.none(), st.integers(-(2**70), 2**70), st.binary(max_size=3), st.lists(st.lists(st.none())),
    st.dictionaries(st.text(max_size=2), st.one_of(st.integers(), st.binary(max_size=1)), max_size=2),
    st.lists(st.dictionaries(st.text(max_size=2), st.one_of(st.lists(st.binary(max_size=1), max_size=1), st.none()))),
)  # fmt: skip


def refusal(event: dict[str, Any]) -> bool:
    """The rule, spelled out: every leaf has a kind, and the whole can be packed."""

    def leaves(value: Any) -> list[Any]:
        if isinstance(value, list):
            return [leaf for one in value for leaf in leaves(one)] + [value]
        return [leaf for one in value.values() for leaf in leaves(one)] if isinstance(value, dict) else [value]

    try:
        for leaf in leaves(event):
            normalise(leaf)
        msgspec.msgpack.encode(event)
    except (TypeError, ValueError, OverflowError):
        return True
    return False


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=5))
def test_the_first_event_that_cannot_travel_is_named(events: list[dict[str, Any]]) -> None:
    wrong = wrong_event(events)
    expected = next((at for at, event in enumerate(events, 1) if refusal(event)), None)
    assert (None if wrong is None else wrong[0]) == expected


def test_what_no_test_of_elements_could_read_does_not_pass_the_door() -> None:
    assert wrong_event([{"l": [{"k": 1}]}, {"l": [{"k": b"x"}]}]) == (2, "a bytes is not a value that filters compare")
    nested: list[Any] = []
    for _ in range(40):
        nested = [nested]
    assert wrong_event([{"l": [{"k": nested}]}]) == (1, "lists are nested more than 32 deep")


@given(st.lists(EVENTS, max_size=20), st.lists(st.tuples(st.sampled_from("xyz"), FILTERS), max_size=10))
def test_events_matched_together_go_to_the_same_hops(
    events: list[dict[str, Any]], entries: list[tuple[str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "FEW", 4)
        patch.setattr(tables, "BATCH", 8)
        known = KnownFilters()
        table = RoutingTable(known)
        for number, (hop, text) in enumerate(entries):
            table.add(hop, str(number), known.parse(text))
        found = hops_by_event(table.match_many(events), len(events))
        assert found == [table.match(event) for event in events]


def test_entries_that_wait_for_the_index_can_go_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FEW", 4)
    monkeypatch.setattr(entry_index, "WAITING", 16)
    known = KnownFilters()
    table = RoutingTable(known)
    for number in range(40):
        table.add("x", str(number), known.parse(f"p = {number % 10}"))
    for number in range(0, 40, 2):
        table.remove("x", str(number))
    table.rebuild()
    table.add("x", "late", known.parse("p = 3"))
    assert table.match({"p": 3}) == {"x": ["3", "13", "23", "33", "late"]}
    assert table.match({"p": 2}) == {}


def test_a_filter_whose_diagram_would_be_too_large_is_refused_and_stops_nobody() -> None:
    """A table with many entries is an index, and an index has a limit that a filter's text doesn't show."""
    condition = "a = 1 OR b = 2"
    for number in range(30):
        condition = f"((({condition}) AND d{number} < 3) IS UNKNOWN)"
    net = Net([])
    net.join("a", "ann")
    net.handle("a", FromClient("ann", Subscribe(1, "large", condition)))
    assert "diagram_nodes" in str(net.heard["ann"][-1])
    for number in range(tables.FEW + 2):
        net.subscribe("a", "ann", f"s{number}", f"p = {number}")
    net.publish("a", "ann", {"p": 3})
    assert net.delivered("ann") == [{"p": 3}]
