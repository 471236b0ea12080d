"""A simulated disk: what a broker says waits for what it writes, in order, whatever crashes; nothing waits for ever."""

from __future__ import annotations

import random
from math import inf
from typing import Any

import pytest

from covey.routing.config import BrokerConfig
from covey.routing.journal import Outputs, Put
from covey.routing.messages import ClientAnswer, Confirmed, Input, Tick, ToClient
from covey.simulation.world import Clock, Node


class Script:
    """In the place of a broker: answers each input with the next of what it was given to say."""

    wake_at = inf
    behind = 0

    def __init__(self, turns: list[Outputs]) -> None:
        self._turns = turns

    def handle(self, input: Input, now: float, steps: int | None = None) -> Outputs:
        return self._turns.pop(0)


class Ear:
    """Hears what a node says, and looks at its disk each time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.heard: list[tuple[float, int]] = []
        self.unwritten: list[int] = []
        """What was said before what it had to wait for was written."""
        self.waits_for: dict[int, int] = {}
        self.crashes = 0

    def hear(self, client: str, message: ClientAnswer, session: int) -> None:
        assert isinstance(message, Confirmed)
        self.heard.append((self._node.clock.now, message.request))
        last = self.waits_for.get(message.request)
        if last is not None and ("row", str(last)) not in self._node.rows:
            self.unwritten.append(message.request)

    def closed(self, client: str, session: int) -> None: ...

    def took(self, input: Input) -> None: ...

    def crashed(self, broker: str) -> None:
        self.crashes += 1

    def failed(self, failure: str) -> None: ...


def says(number: int, *, rows: int | None) -> Outputs:
    """A turn that says a number, and writes a row first unless `rows` is None."""
    records = [] if rows is None else [Put("row", str(rows), b"")]
    return Outputs(list(records), [ToClient("ann", Confirmed(number))])


def made(seed: int, turns: list[Outputs]) -> tuple[Clock, Node, Ear]:
    clock = Clock(seed)
    script: Any = Script(turns)
    node = Node(clock, BrokerConfig("a"), lambda *_: (script, Outputs()))
    ear = Ear(node)
    node.listener = ear
    node.start()
    return clock, node, ear


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_waits_for_all_that_was_written_before_it_and_comes_in_order(seed: int) -> None:
    rng = random.Random(seed)
    turns, waits_for, last = list[Outputs](), dict[int, int](), 0
    for number in range(1, 41):
        writes = rng.random() < 0.5
        last = number if writes else last
        turns.append(says(number, rows=number if writes else None))
        if last:
            waits_for[number] = last
    clock, node, ear = made(seed, turns)
    ear.waits_for = waits_for
    for _ in range(40):
        clock.later(rng.choice([0.0, 0.001, 0.2]) * rng.random(), node.take, Tick())
        clock.run_until(clock.now + rng.choice([0.0, 0.003, 0.05]))
    clock.run_until(clock.now + 60.0)
    assert [number for _, number in ear.heard] == list(range(1, 41))
    assert ear.unwritten == []


def test_what_writes_nothing_is_said_at_once_where_nothing_waits() -> None:
    clock, node, ear = made(1, [says(1, rows=None), says(2, rows=2), says(3, rows=None)])
    node.take(Tick())
    assert [number for _, number in ear.heard] == [1]
    node.take(Tick())
    node.take(Tick())
    assert [number for _, number in ear.heard] == [1]
    clock.run_until(5.0)
    assert [number for _, number in ear.heard] == [1, 2, 3]


@pytest.mark.parametrize("seed", range(60))
def test_a_crash_loses_what_was_not_said_and_never_what_was(seed: int) -> None:
    rng = random.Random(seed)
    turns = [says(number, rows=number) for number in range(1, 21)]
    clock, node, ear = made(seed, turns)
    for _ in range(10):
        node.take(Tick())
        clock.run_until(clock.now + rng.choice([0.0, 0.002, 0.02]))
    if rng.random() < 0.5:
        node.crash_in_a_write(0.5)
    else:
        node.crash_for(0.5)
    node.take(Tick())
    clock.run_until(clock.now + 5.0)
    assert ear.crashes == 1
    assert node.up
    said = [number for _, number in ear.heard]
    written = sorted(int(key) for _, key in node.rows)
    assert said == list(range(1, len(said) + 1))
    assert written == list(range(1, len(written) + 1)), "a row was written before one that came earlier"
    assert len(written) >= len(said)
    while turns:
        node.take(Tick())
    clock.run_until(clock.now + 60.0)
    assert ear.heard[-1][1] == 20, "what comes after a crash is said"


@pytest.mark.parametrize("seed", range(10))
def test_what_is_being_written_in_a_crash_is_there_as_a_whole_or_not_at_all(seed: int) -> None:
    both = Outputs([Put("row", "1", b""), Put("row", "2", b"")], [ToClient("ann", Confirmed(1))])
    clock, node, ear = made(seed, [both])
    node.crash_in_a_write(0.5)
    node.take(Tick())
    clock.run_until(5.0)
    assert ear.heard == []
    assert len(node.rows) in (0, 2)
