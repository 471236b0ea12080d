"""Five real brokers in a line and in a ring, on loopback and in network namespaces, while they are killed and cut off.

Publishers number their durable events; durable subscribers at several brokers ask for some of them. In the end what
`covey.routing.broker` promises must hold: each durable subscriber has every matching event that was published after its
subscription was confirmed, nobody has one that doesn't match, and what isn't marked late came in its publisher's order
where the network is acyclic.

`COVEY_OVERLAY_SEED` chooses other faults. A seed gives the same faults again, but processes are never twice the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

from covey.history import Profile
from tests.network.certificates import needs_openssl
from tests.network.overlay import Overlay, Settings, line, overlay, ring
from tests.network.overlay_client import KINDS, Fact, Publisher, Subscriber
from tests.network.overlay_grounds import Ground, Loopback, Namespaces, needs_namespaces

SEED = int(os.environ.get("COVEY_OVERLAY_SEED", "1"))
HANGS = 400.0
"""Seconds after which a test is given up."""
ARRIVAL = 60.0
"""Seconds in which what must arrive has to, once everything is healed."""
FAULT_EVERY = 1.1
KILLS = 3
SETTINGS: dict[str, Any] = {
    # Failures are noticed soon, so that trees change and tables lapse while things are broken.
    "timing": {"retry": 0.2, "failed": 1.5},
    "limits": {"handshake_seconds": 3.0},
}
ADAPTIVE = {"sample": 20, "stop_above": 0.6, "patience": 1}
SPACE = {"p": {"kind": "number"}, "k": {"values": list(KINDS)}}

Event = dict[str, Any]


def price(low: float = -inf, high: float = inf) -> Callable[[Event], bool]:
    return lambda event: "p" in event and low <= event["p"] < high


WISHES: dict[str, tuple[Subscriber, Callable[[Event], bool]]] = {
    one.name: (one, matches)
    for one, matches in (
        (Subscriber("half", "b1", "p < 50"), price(high=50)),
        (Subscriber("covered", "b2", "p < 20"), price(high=20)),
        (Subscriber("rest", "b3", "p >= 40"), price(low=40)),
        (Subscriber("some", "b3", "k = 'a' AND p >= 30"), lambda e: e["k"] == "a" and price(low=30)(e)),
        (
            Subscriber("goer", "b4", "k IN ('a', 'b') OR p > 90", away_after=2.0),
            lambda e: e["k"] in "ab" or price(low=91)(e),
        ),
        (Subscriber("middle", "b5", "p BETWEEN 10 AND 60"), price(10, 61)),
        (
            Subscriber("newcomer", "b5", "k = 'b' AND p < 70", joins_after=4.0),
            lambda e: e["k"] == "b" and price(high=70)(e),
        ),
        (Subscriber("passer-by", "b1", "k = 'c'", durable=False), lambda e: e["k"] == "c"),
    )
}
PUBLISHERS = [Publisher("left", "b1"), Publisher("inner", "b3"), Publisher("right", "b5")]


@dataclass(repr=False)
class Record:
    """What clients have said."""

    published: dict[str, list[tuple[float, Event]]] = field(default_factory=lambda: defaultdict(list))
    """By publisher: when it was published, and what; all of it confirmed."""
    confirmed: dict[str, float] = field(default_factory=dict)
    """By subscriber: when its subscription was confirmed for the first time."""
    got: dict[str, list[tuple[Event, Fact]]] = field(default_factory=lambda: defaultdict(list))

    def __repr__(self) -> str:
        facts = [fact for got in self.got.values() for _, fact in got]
        events = sum(map(len, self.published.values()))
        return f"{events} events, {len(facts)} deliveries, {sum(fact.late for fact in facts)} of them late"

    def take(self, fact: Fact) -> None:
        match fact.kind:
            case "confirmed":
                self.published[fact.client] += [(fact.at, event) for event in fact.events]
            case "subscribed":
                self.confirmed.setdefault(fact.client, fact.at)
            case "got":
                self.got[fact.client].append((fact.events[0], fact))

    def missing(self, name: str) -> list[Event]:
        """Events that a durable subscriber should have."""
        matches = WISHES[name][1]
        here = {_id(event) for event, _ in self.got[name]}
        since = self.confirmed.get(name, inf)
        return [
            event
            for events in self.published.values()
            for at, event in events
            if at > since and matches(event) and _id(event) not in here
        ]

    def is_complete(self) -> bool:
        return not any(self.missing(name) for name, (one, _) in WISHES.items() if one.durable)

    def check(self, *, ordered: bool) -> None:
        for name, (one, matches) in WISHES.items():
            got = self.got[name]
            assert [event for event, _ in got if not matches(event)] == [], name
            known = {_id(event): event for events in self.published.values() for _, event in events}
            assert all(known.get(_id(event)) == event for event, _ in got), name
            if one.durable:
                assert self.missing(name) == [], name
                self._check_numbers(name)
                if ordered:
                    self._check_order(name)

    def _check_numbers(self, name: str) -> None:
        """What comes again has the number that it had."""
        numbers: dict[tuple[str, int], int] = {}
        for event, fact in self.got[name]:
            assert numbers.setdefault(_id(event), fact.number) == fact.number, (name, event)

    def _check_order(self, name: str) -> None:
        highest: dict[str, int] = defaultdict(int)
        seen: set[tuple[str, int]] = set()
        for event, fact in self.got[name]:
            if _id(event) in seen or fact.late:
                continue
            seen.add(_id(event))
            assert event["n"] > highest[event["by"]], (name, event, highest)
            highest[event["by"]] = event["n"]


def _id(event: Event) -> tuple[str, int]:
    return event["by"], event["n"]


def faults(rng: random.Random, net: Overlay) -> list[partial[Any]]:
    """Some of each kind, in any order: a test of ten seconds can't wait for chance."""
    names, links = net.ground.names, net.ground.links

    def seconds() -> float:
        return rng.uniform(0.3, 2.5)

    chosen = [
        partial(net.kill, rng.choice(names[1:-1]), seconds()),
        partial(net.kill, rng.choice([names[0], names[-1]]), seconds()),
        partial(net.kill, rng.choice(names), 0.0),
        partial(net.cut, rng.choice(links), seconds(), silent=False),
        partial(net.cut, rng.choice(links), seconds(), silent=True),
        partial(net.isolate, rng.choice(names[1:-1]), seconds(), silent=False),
        partial(net.isolate, rng.choice(names), seconds(), silent=True),
    ]
    rng.shuffle(chosen)
    return chosen


async def endure(net: Overlay, seed: int, *, ordered: bool) -> None:
    """Let clients work while things fail, heal everything, and check what they have."""
    rng = random.Random(f"faults {seed}")
    record = Record()
    started = time.monotonic()

    async def fail(after: float, fault: partial[Any]) -> None:
        await asyncio.sleep(after)
        said = f"{fault.func.__name__} {fault.args} {fault.keywords}"
        print(f"{time.monotonic() - started:5.1f} {said}")
        await fault()
        print(f"{time.monotonic() - started:5.1f} {said} is over")

    await net.settle(idle=False)
    specs = [*PUBLISHERS, *(one for one, _ in WISHES.values())]
    async with net.clients(seed, specs, record.take) as clients:
        clients.tell("publish")
        async with asyncio.TaskGroup() as group:
            for at, fault in enumerate(faults(rng, net)):
                group.create_task(fail(rng.uniform(0.5, 1.3) + at * FAULT_EVERY, fault))
        print(f"{time.monotonic() - started:5.1f} all is healed")
        before = {name: len(record.got[name]) for name in WISHES}
        await within(ARRIVAL, lambda: all(len(record.got[name]) > count for name, count in before.items()))
        assert [name for name, count in before.items() if len(record.got[name]) == count] == [], (
            "nothing comes any more"
        )
        clients.tell("stop")
        async with asyncio.timeout(ARRIVAL):
            await clients.until("stopped")
            await net.settle(idle=True)
        print(f"{time.monotonic() - started:5.1f} all is settled")
        await within(ARRIVAL, record.is_complete)
        print(f"{time.monotonic() - started:5.1f} {record}")
        record.check(ordered=ordered)
        for broker in net.brokers.values():
            broker.check()
    assert sum(broker.lives for broker in net.brokers.values()) == len(net.brokers) + KILLS


async def within(seconds: float, condition: Callable[[], bool]) -> None:
    """Wait until something holds, or not longer."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.1)


def run(ground: Ground, directory: Path, settings: Settings, *, seed: int, both_open: bool, ordered: bool) -> None:
    async def work() -> None:
        async with overlay(ground, directory, {**SETTINGS, **settings}, both_open=both_open) as net:
            await endure(net, seed, ordered=ordered)

    asyncio.run(asyncio.wait_for(work(), HANGS))


def profile(directory: Path) -> str:
    """What pruning estimates by: events as the publishers make them."""
    events = [{"k": kind, "p": number} for kind in KINDS for number in range(0, 100, 5)]
    Profile.of(events, attributes=["k", "p"]).save(directory / "profile")
    return str(directory / "profile")


@pytest.mark.long
def test_a_line_on_loopback_with_covering_and_adaptive_filtering(tmp_path: Path) -> None:
    settings = {"strategy": "covering", "adaptive": ADAPTIVE}
    run(Loopback(*line(5)), tmp_path, settings, seed=SEED, both_open=False, ordered=True)


@pytest.mark.long
def test_a_ring_on_loopback_with_subsumption_pruning_and_adaptive_filtering(tmp_path: Path) -> None:
    settings = {
        "strategy": "subsumption", "profile": profile(tmp_path), "subsumption": {"space": SPACE},
        "pruning": {"share": 0.5}, "adaptive": ADAPTIVE,
    }  # fmt: skip
    run(Loopback(*ring(5)), tmp_path, settings, seed=SEED + 1, both_open=True, ordered=False)


@pytest.mark.long
@needs_openssl
def test_a_line_in_namespaces_with_merging_and_pruning(tmp_path: Path) -> None:
    needs_namespaces()
    settings = {
        "strategy": "merging", "profile": profile(tmp_path), "merging": {"imt": 0.3, "at_arrivals": 2},
        "pruning": {"share": 0.5},
    }  # fmt: skip
    run(Namespaces(*line(5), tmp_path), tmp_path, settings, seed=SEED + 2, both_open=True, ordered=True)


@needs_openssl
def test_a_ring_in_namespaces_with_covering_and_advertisements(tmp_path: Path) -> None:
    needs_namespaces()
    settings = {"strategy": "covering", "advertisements": True}
    run(Namespaces(*ring(5), tmp_path), tmp_path, settings, seed=SEED + 3, both_open=False, ordered=False)
