"""A link's states follow the tables, and everything in the tables happens."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import pytest

from covey.routing import Broker, BrokerConfig, FromPeer, PeerDown, PeerUp, Tick
from covey.routing.links import Link
from covey.routing.messages import Delta, Hello, LinkState, LinkStates, Ping, ToPeer
from covey.routing.phases import (
    JOINED,
    KNOWLEDGE,
    PHASES,
    Joined,
    Knowledge,
    Phase,
    Signal,
    Transitions,
    after,
)
from covey.simulation import random_scenario, run

RARE = (99, 58, 21, 20)
"""Seeds of scenarios with the rarest transitions; others follow if these don't do."""
MACHINES: tuple[Transitions, ...] = (PHASES, JOINED, KNOWLEDGE)


def steps(transitions: Transitions) -> Iterator[tuple[Enum, Signal]]:
    return ((state, signal) for state, known in transitions.items() for signal in known)


@pytest.mark.parametrize(("transitions", "states"), [(PHASES, Phase), (JOINED, Joined), (KNOWLEDGE, Knowledge)])
def test_every_state_is_in_its_table_and_is_reached(transitions: Transitions, states: type[Enum]) -> None:
    assert set(transitions) == set(states)
    reached = {next for state, known in transitions.items() for next in known.values() if next is not state}
    assert reached == set(states)


def test_every_signal_moves_some_machine() -> None:
    assert {signal for transitions in MACHINES for _, signal in steps(transitions)} == set(Signal)


def test_a_signal_that_a_state_does_not_know_is_a_defect() -> None:
    with pytest.raises(AssertionError, match="HELLO of a link that is CLOSED"):
        after(PHASES, Phase.CLOSED, Signal.HELLO)
    assert after(PHASES, Phase.CLOSED, Signal.JOINED) is Phase.CLOSED


def test_every_transition_of_the_tables_happens_in_simulated_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[tuple[Enum, Signal]] = set()
    take = Link.take

    def noted(self: Link, signal: Signal) -> None:
        taken.update((state, signal) for state in (self.phase, self.joined, self.knowledge))
        take(self, signal)

    monkeypatch.setattr(Link, "take", noted)
    left = {step for transitions in MACHINES for step in steps(transitions)}
    for seed in (*RARE, *range(200)):
        run(random_scenario(seed))
        if left <= taken:
            break
    assert left - taken == set()


def linked(now: float = 100.0) -> Broker:
    broker, _ = Broker.restore(BrokerConfig("b", ("a",)), [], now)
    broker.handle(PeerUp("a", 1), now)
    broker.handle(FromPeer("a", LinkStates([LinkState("a", 1, [("b", True)])]), 1), now)
    return broker


def test_a_link_goes_through_its_phases() -> None:
    broker = linked()
    link = broker.links["a"]
    phases = [link.phase]
    for input in (
        FromPeer("a", Hello("a", [[], []], 0, 0, False), 1),
        FromPeer("a", Hello("a", [[], []], 0, 0, True), 1),
        FromPeer("a", Delta(0, 1, True, [], [], [], []), 1),
        PeerDown("a", 1),
        PeerUp("a", 2),
        PeerDown("a", 2),
    ):
        broker.handle(input, 100.0)
        phases.append(link.phase)
    broker.handle(Tick(), 200.0)
    assert [*phases, link.phase] == [
        Phase.REOPENING, Phase.GREETED, Phase.ANSWERED, Phase.SYNCED, Phase.CLOSED, Phase.OPENING, Phase.CLOSED,
        Phase.FAILED,
    ]  # fmt: skip
    assert (link.joined, link.knowledge) == (Joined.BOTH, Knowledge.LAPSED)


def test_a_delta_shows_that_our_hello_was_heard_so_it_is_not_said_again() -> None:
    """A Hello with the answer may be lost; without this, Hello was said again every t1 while the session lasted."""
    broker = linked()
    broker.handle(FromPeer("a", Hello("a", [[], []], 0, 0, False), 1), 100.0)
    broker.handle(FromPeer("a", Delta(0, 1, True, [], [], [], []), 1), 100.0)
    said = 0
    for at in range(1, 20):
        broker.handle(FromPeer("a", Ping(0), 1), 100.0 + at / 4)
        outputs = broker.handle(Tick(), 100.0 + at / 4)
        said += sum(isinstance(send, ToPeer) and isinstance(send.message, Hello) for send in outputs.sends)
    assert said == 0


def test_a_hello_that_nobody_answers_is_said_again() -> None:
    broker = linked()
    said = 0
    for at in range(1, 9):
        outputs = broker.handle(Tick(), 100.0 + at / 4)
        said += sum(isinstance(send, ToPeer) and isinstance(send.message, Hello) for send in outputs.sends)
    assert said >= 3
