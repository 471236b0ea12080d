"""Whose input is next."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from covey.network.fair_inputs import SHARE_SECONDS, FairInputs
from covey.network.sessions import Session
from covey.routing.messages import (
    ClientDown,
    Credit,
    Events,
    FromClient,
    FromPeer,
    PeerDown,
    Permissions,
    Ping,
    Publication,
    Publish,
    Tick,
)


def session(name: str, owner: str = "", *, peer: bool = False) -> Session:
    return Session(name, 1, None, None if peer else Permissions(), owner)  # type: ignore[arg-type]


def say(inputs: FairInputs, who: Session, number: int) -> None:
    message: Any = Ping(0, []) if who.is_peer else Credit(number)
    inputs.put(who, (FromPeer if who.is_peer else FromClient)(who.name, message, 1))


def order(inputs: FairInputs, costs: dict[str, float]) -> list[str]:
    """Who is served, one after the other."""
    served = []
    while inputs:
        who, _ = inputs.take()
        assert who is not None
        inputs.charge(who, costs[who.name])
        served.append(who.name)
    return served


def test_clients_take_turns_by_what_they_cost() -> None:
    inputs, dear, cheap = FairInputs(), session("dear"), session("cheap")
    for number in range(60):
        say(inputs, dear, number)
        say(inputs, cheap, number)
    served = order(inputs, {"dear": 10 * SHARE_SECONDS, "cheap": SHARE_SECONDS / 4})
    assert served[:60].count("dear") <= 3
    assert len(served) == 120


def test_who_had_nothing_waiting_comes_before_those_who_have() -> None:
    inputs, busy = FairInputs(), [session(f"busy{number}") for number in range(50)]
    for who in busy:
        for number in range(10):
            say(inputs, who, number)
    for _ in range(100):
        who, _ = inputs.take()
        inputs.charge(who, SHARE_SECONDS)
    say(inputs, session("quiet"), 1)
    assert "quiet" in [inputs.take()[0].name for _ in range(3)]  # type: ignore[union-attr]


def test_sessions_that_open_without_end_do_not_starve_others() -> None:
    inputs, old = FairInputs(), session("old")
    for number in range(200):
        say(inputs, old, number)
    who, _ = inputs.take()
    inputs.charge(who, SHARE_SECONDS)
    served = 0
    for number in range(100):
        say(inputs, session(f"new{number}"), 1)
        who, _ = inputs.take()
        inputs.charge(who, SHARE_SECONDS)
        served += who is old
    assert served > 20


def test_sessions_of_one_principal_share_one_turn() -> None:
    inputs = FairInputs()
    for number in range(10):
        many = session(f"many{number}", "mallory")
        for at in range(10):
            say(inputs, many, at)
    bob = session("bob", "bob")
    for number in range(10):
        say(inputs, bob, number)
    names = [f"many{number}" for number in range(10)]
    served = order(inputs, dict.fromkeys([*names, "bob"], SHARE_SECONDS))
    assert served[:21].count("bob") >= 9


def test_a_link_gets_more_than_a_client() -> None:
    inputs, link, client = FairInputs(), session("b", peer=True), session("ann")
    for number in range(100):
        say(inputs, link, number)
        say(inputs, client, number)
    served = order(inputs, {"b": SHARE_SECONDS, "ann": SHARE_SECONDS})
    assert served[:90].count("b") >= 75


def test_time_comes_first() -> None:
    inputs = FairInputs()
    say(inputs, session("ann"), 1)
    inputs.put(None, Tick())
    assert inputs.take() == (None, Tick())


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.floats(0, 0.01)), max_size=60), st.integers(1, 9))
def test_nothing_is_lost_and_each_session_keeps_its_order(said: list[tuple[str, bool, float]], most: int) -> None:
    inputs, sessions = FairInputs(), {name: session(name) for name in "abcd"}
    for number, (name, publishes, _) in enumerate(said):
        message = Publish(number, [Publication({}, durable=number % 3 == 0)]) if publishes else Credit(number)
        inputs.put(sessions[name], FromClient(name, message, 1))
    taken: dict[str, list[int]] = {name: [] for name in "abcd"}

    def note(input: Any) -> None:
        message = input.message
        taken[input.client].append(message.request if isinstance(message, Publish) else message.deliveries)

    costs = iter([cost for _, _, cost in said])
    while inputs:
        who, input = inputs.take()
        note(input)
        if isinstance(input, FromClient) and isinstance(input.message, Publish):
            for _, other in inputs.take_publications(who, input.message, most, lambda _, publish: len(publish.events)):
                assert isinstance(other.message, Publish)
                assert other.message.events[0].durable == input.message.events[0].durable
                note(other)
        inputs.charge(who, next(costs))
    assert taken == {name: [at for at, (who, _, _) in enumerate(said) if who == name] for name in "abcd"}


def test_who_is_there_does_not_wait_for_a_thousand_who_have_gone() -> None:
    inputs, ann = FairInputs(), session("ann")
    for number in range(1_000):
        inputs.put(session(f"gone {number}"), ClientDown(f"gone {number}", number))
    say(inputs, ann, 1)
    places = [who for who, _ in (inputs.take() for _ in range(len(inputs)))]
    assert places.index(ann) <= 1


def test_a_neighbours_plain_events_pass_by_what_it_tells_of_tables_and_nothing_comes_after_its_end() -> None:
    inputs, link = FairInputs(), session("b", peer=True)
    for number in range(3):
        inputs.put(link, FromPeer("b", Ping(number, []), 1))
    who, _ = inputs.take()
    inputs.charge(who, 100 * SHARE_SECONDS)
    inputs.put(link, FromPeer("b", Events([], 1), 1), passes=True)
    inputs.put(link, FromPeer("b", Events([], 2), 1), passes=True)
    assert inputs.of(link) == len(inputs) == 4
    assert inputs.take()[1] == FromPeer("b", Events([], 1), 1)
    inputs.put_last(link, PeerDown("b", 1))
    rest = [inputs.take()[1] for _ in range(len(inputs))]
    assert rest == [
        FromPeer("b", Ping(1, []), 1), FromPeer("b", Ping(2, []), 1), FromPeer("b", Events([], 2), 1), PeerDown("b", 1)
    ]  # fmt: skip


def test_what_plain_events_of_a_neighbour_cost_is_not_paid_for_by_what_it_tells_of_tables() -> None:
    inputs, link, other = FairInputs(), session("b", peer=True), session("ann")
    for number in range(4):
        say(inputs, other, number)
        say(inputs, link, number)
        inputs.put(link, FromPeer("b", Events([], number), 1), passes=True)
    served = []
    while inputs:
        who, input = inputs.take()
        dear = isinstance(input, FromPeer) and isinstance(input.message, Events)
        inputs.charge(who, SHARE_SECONDS * (100 if dear else 1))
        served.append("events" if dear else who.name)  # type: ignore[union-attr]
    assert served[-3:] == ["events"] * 3
