"""A scenario: a network, what clients do and when, and what fails. Plain data, so that it can be printed and shrunk."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from covey.routing.config import STRATEGIES, Strategy

KINDS = "abcd"
WATCHED = ("`covey.meta` IS NOT NULL", "`covey.meta` = 'subscribed'", "client IS NOT NULL AND k IS NULL")
"""What asks for brokers' own events, and no others."""
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
    heavy: bool = False
    """Events have weight, windows in bytes are small, and connections are cut where more is on the way."""
    meta: bool = False
    """Brokers tell of subscriptions that come and go, and some clients watch."""
    typed: bool = False
    """There is a schema, by which some kinds of events are of another kind too."""
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
        random.Random(f"heavy {seed}").random() < 0.4,
        random.Random(f"meta {seed}").random() < 0.2,
        random.Random(f"typed {seed}").random() < 0.2,
    )
    actions = _work(rng, scenario)
    actions += _watching(random.Random(f"watching {seed}"), scenario)
    actions += _reloads(random.Random(f"rights {seed}"), scenario)
    if faults:
        actions += _faults(rng, scenario)
        actions += _marks(random.Random(f"marks {seed}"), scenario)
        actions += _defects(random.Random(f"defects {seed}"), scenario)
        actions += _lies(random.Random(f"lies {seed}"), scenario)
        actions += _reroutings(random.Random(f"reroutings {seed}"), scenario)
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


def _watching(rng: random.Random, scenario: Scenario) -> list[Action]:
    """Clients that ask for brokers' own events."""
    if not scenario.meta:
        return []
    return [
        Action(rng.uniform(1.0, FAULTS), "subscribe", client, "w", rng.choice(WATCHED), rng.random() < 0.5)
        for client, _ in rng.sample(scenario.clients, rng.randint(1, 2))
    ]


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


def principal_of(client: str) -> str:
    """Whose client it is; every two belong together."""
    return f"p{int(client.removeprefix('c')) // 2}"


def _reloads(rng: random.Random, scenario: Scenario) -> list[Action]:
    """What principals may do, at first and after files were read again: `text` is what they may subscribe to, `what`
    what they may publish, both empty for everything."""
    if rng.random() < 0.75:
        return []
    principals = sorted({principal_of(client) for client, _ in scenario.clients})
    return [
        Action(rng.choice([0.0, rng.uniform(0.5, FAULTS)]), "allow", principal, _permission(rng, 0.7), _permission(rng))
        for principal in principals
        for _ in range(rng.randint(0, 3))
    ]


def _permission(rng: random.Random, everything: float = 0.25) -> str:
    if rng.random() < everything:
        return ""
    low = rng.randrange(4, 16)
    some = " OR ".join(f"k = '{kind}'" for kind in rng.sample(KINDS, rng.randint(1, 3)))
    return rng.choice([f"p < {low}", f"p >= {low}", some, f"p < {low} OR k = 'a'", random_filter(rng), "FALSE"])


def _marks(rng: random.Random, scenario: Scenario) -> list[Action]:
    """Brokers that are above a memory or disk mark for a while."""
    if rng.random() < 0.6:
        return []
    return [
        Action(
            rng.uniform(0.5, FAULTS - 0.5), "press", rng.choice(scenario.brokers), seconds=rng.choice([0.3, 1.0, 3.0])
        )
        for _ in range(rng.randint(1, 3))
    ]


def _reroutings(rng: random.Random, scenario: Scenario) -> list[Action]:
    """Brokers that are told to route by another strategy, or with other options. One that floods can't change."""
    if scenario.strategy == "flooding" or rng.random() < 0.6:
        return []
    strategies = [strategy for strategy in STRATEGIES if strategy != "flooding"]
    return [
        Action(
            rng.uniform(0.5, FAULTS - 0.2), "reroute", rng.choice(scenario.brokers), rng.choice(strategies),
            rng.choice(["", "", "pruned"]), rng.random() < 0.5, rng.choice([0.0, 0.3]),
        )
        for _ in range(rng.randint(1, 4))
    ]  # fmt: skip


def _lies(rng: random.Random, scenario: Scenario) -> list[Action]:
    """A broker that makes up events under ids that others are about to use."""
    if len(scenario.brokers) < 2 or rng.random() < 0.5:
        return []
    liar = rng.choice(scenario.brokers)
    others = [broker for broker in scenario.brokers if broker != liar]
    return [
        Action(rng.uniform(0.5, FAULTS - 0.5), "lie", liar, rng.choice(others), random_event(rng))
        for _ in range(rng.randint(1, 4))
    ]


def _defects(rng: random.Random, scenario: Scenario) -> list[Action]:
    """Brokers in which something raises in the middle of a turn, after so many changes of their state."""
    if rng.random() < 0.4:
        return []
    return [
        Action(rng.uniform(0.1, FAULTS - 0.5), "defect", rng.choice(scenario.brokers), str(rng.choice(STEPS)))
        for _ in range(rng.randint(1, 5))
    ]


STEPS = (0, 1, 2, 3, 5, 8, 12, 17, 23, 30, 40, 60, 90)
"""Changes of state in one turn: a publication that nobody wants takes two, a neighbour's first delta a hundred."""
