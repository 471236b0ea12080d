"""A scenario: a network, what clients do and when, and what fails. Plain data, so that it can be printed and shrunk."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from covey.routing.config import STRATEGIES, Strategy

KINDS = "abcd"
FAULTS = 8.0
"""Simulated seconds in which clients work and things fail; after that everything is healed."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that happens at a time. `kind` says what: the methods of `runs.Stage` of that name do it."""

    at: float
    kind: str
    who: str
    what: str = ""
    text: str = ""
    durable: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a run depends on."""

    seed: int
    brokers: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    clients: tuple[tuple[str, str], ...]
    """Clients and their brokers."""
    strategy: Strategy = "covering"
    advertisements: bool = False
    imt: float = 0.0
    pruning: bool = False
    adaptive: bool = False
    lossy: bool = False
    """Links lose, double and reorder messages within a session while things fail."""
    actions: tuple[Action, ...] = ()

    @property
    def is_acyclic(self) -> bool:
        """Whether the links are a tree."""
        return len(self.links) == len(self.brokers) - 1

    def with_actions(self, actions: Sequence[Action]) -> Scenario:
        """The same with other actions."""
        return replace(self, actions=tuple(actions))


def random_scenario(
    seed: int,
    *,
    strategy: Strategy | None = None,
    brokers: int | None = None,
    cyclic: bool | None = None,
    faults: bool = True,
    advertisements: bool | None = None,
) -> Scenario:
    """A scenario of a seed. What isn't given is drawn."""
    rng = random.Random(f"scenario {seed}")
    chosen = strategy or STRATEGIES[seed % len(STRATEGIES)]
    size = brokers or rng.choice([1, 2, 3, 3, 4, 4, 5, 5, 6, 8, 10, 20])
    names = tuple(f"b{at:02d}" for at in range(size))
    links = _links(rng, names, rng.random() < 0.5 if cyclic is None else cyclic)
    people = tuple((f"c{at}", rng.choice(names)) for at in range(rng.randint(2, min(8, 2 + size))))
    advertised = rng.random() < 0.3 if advertisements is None else advertisements
    scenario = Scenario(
        seed,
        names,
        links,
        people,
        chosen,
        advertised and chosen != "flooding",
        rng.choice([0.0, 0.0, 0.3]) if chosen == "merging" else 0.0,
        rng.random() < 0.15,
        rng.random() < 0.3,
        faults and rng.random() < 0.25,
    )
    actions = _work(rng, scenario)
    if faults:
        actions += _faults(rng, scenario)
    return scenario.with_actions(sorted(actions, key=lambda action: action.at))


def _links(rng: random.Random, names: Sequence[str], cyclic: bool) -> tuple[tuple[str, str], ...]:
    links = {(names[rng.randrange(max(0, at - 3), at)], names[at]) for at in range(1, len(names))}
    if cyclic and len(names) > 2:
        for _ in range(rng.randint(1, max(1, len(names) // 3))):
            one, other = sorted(rng.sample(list(names), 2))
            links.add((one, other))
    return tuple(sorted(links))


def _work(rng: random.Random, scenario: Scenario) -> list[Action]:
    actions: list[Action] = []
    for at, (client, _) in enumerate(scenario.clients):
        start = rng.uniform(0.0, 1.0)
        actions.append(Action(start, "connect", client))
        if scenario.advertisements:
            for number in range(rng.randint(1, 2)):
                text = "TRUE" if rng.random() < 0.3 else random_filter(rng)
                actions.append(Action(start + 0.1, "advertise", client, f"a{number}", text, rng.random() < 0.7))
        for number in range(rng.randint(0 if at else 1, 4)):
            actions += _subscription(rng, client, f"s{number}", start)
        for _ in range(rng.randint(1, 6)):
            when = rng.uniform(start + 0.2, FAULTS)
            actions.append(Action(when, "publish", client, durable=rng.random() < 0.7, text=random_event(rng)))
        if rng.random() < 0.3:
            when = rng.uniform(1.0, FAULTS - 1)
            actions.append(Action(when, "disconnect", client, seconds=rng.uniform(0.2, 3.0)))
    return actions


def _subscription(rng: random.Random, client: str, id: str, start: float) -> list[Action]:
    when = rng.uniform(start, FAULTS * 0.8)
    durable = rng.random() < 0.6
    lease = rng.uniform(1.0, 4.0) if rng.random() < 0.1 else 0.0
    actions = [Action(when, "subscribe", client, id, random_filter(rng), durable, lease)]
    if not lease and rng.random() < 0.3:
        actions.append(Action(rng.uniform(when + 0.1, FAULTS), "unsubscribe", client, id))
    return actions


def random_filter(rng: random.Random) -> str:
    """A filter over `k` (a letter) and `p` (a number up to 20)."""
    kind, low = rng.choice(KINDS), rng.randrange(20)
    match rng.randrange(8):
        case 0:
            return f"k = '{kind}'"
        case 1:
            return f"p < {low}"
        case 2:
            return f"p >= {low}"
        case 3:
            return f"k = '{kind}' AND p BETWEEN {low} AND {low + rng.randrange(8)}"
        case 4:
            return f"k IN ('{kind}', '{rng.choice(KINDS)}') AND p > {low}"
        case 5:
            return f"p BETWEEN {low} AND {low + rng.randrange(10)}"
        case 6:
            return f"k = '{kind}' OR p = {low}"
        case _:
            return f"k != '{kind}' AND p <= {low}"


def random_event(rng: random.Random) -> str:
    """The attributes of an event, as `k` and `p`; either may be missing."""
    kind = rng.choice(KINDS) if rng.random() < 0.9 else ""
    return f"{kind}:{rng.randrange(22) if rng.random() < 0.95 else ''}"


def _faults(rng: random.Random, scenario: Scenario) -> list[Action]:
    actions: list[Action] = []
    for _ in range(rng.randint(1, 6)):
        when, seconds = rng.uniform(0.5, FAULTS - 0.5), rng.choice([0.2, 0.8, 2.0, 5.0])
        match rng.randrange(8):
            case 0 | 5 | 6:
                moment = rng.choice(["", "writing", "writing"])
                actions.append(Action(when, "crash", rng.choice(scenario.brokers), moment, seconds=seconds))
            case 1:
                actions.append(Action(when, "pause", rng.choice(scenario.brokers), seconds=seconds))
            case 2 if scenario.links:
                one, other = rng.choice(scenario.links)
                silent = rng.choice(["silent", "clean"])
                actions.append(Action(when, "cut", f"{one}-{other}", silent, seconds=seconds))
            case 3 if scenario.links:
                side = rng.sample(scenario.brokers, rng.randint(1, max(1, len(scenario.brokers) // 2)))
                actions.append(Action(when, "partition", ",".join(sorted(side)), "silent", seconds=seconds))
            case 4 if scenario.links:
                one, other = rng.choice(scenario.links)
                actions.append(Action(when, "reset", f"{one}-{other}"))
            case 7 if scenario.links:
                one, other = rng.choice(scenario.links)
                actions.append(Action(when, "unlink", f"{one}-{other}", seconds=seconds))
    return actions
