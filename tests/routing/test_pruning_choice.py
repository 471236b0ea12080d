"""`dimension = "auto"`: what a broker prunes by follows what it was measured to use, by inputs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from covey.history import EventSample
from covey.language import parse
from covey.relations.pruning import Load
from covey.routing import BrokerConfig, PruningOptions
from covey.routing.config import ConfigError
from covey.routing.inspection import status
from covey.routing.messages import Measured
from covey.routing.pruning_choice import SHARES, PruningChoice
from covey.simulation.traffic import Network, line

IDLE, MEMORY, LINKS, WORK = Load(0.1, 0.1, 0.1), Load(0.95, 0.2, 0.2), Load(0.2, 0.95, 0.2), Load(0.2, 0.2, 0.95)


def test_the_choice_follows_the_load() -> None:
    choice = PruningChoice(PruningOptions("auto"))
    chosen = []
    for load in (IDLE, MEMORY, LINKS, WORK):
        choice.measure(load)
        chosen.append(choice.dimension)
    assert chosen == ["network", "memory", "network", "throughput"]


def test_the_share_with_the_least_cost_is_found_and_kept() -> None:
    choice = PruningChoice(PruningOptions("auto"))
    for _ in range(40):
        # Memory is scarce; what a share of prunings saves of it comes back as soon as links fill up.
        share = choice.share
        choice.measure(Load(0.9 - 0.4 * share + max(0.0, share - 0.5), 0.1, 0.1))
    assert choice.settled
    assert choice.dimension == "memory"
    assert choice.share == pytest.approx(0.5, abs=1 / SHARES)


def followed(choice: PruningChoice, load: Callable[[float], Load], measurements: int) -> list[tuple[str, float]]:
    """What is in force after each measurement of a load that depends on the share of prunings by memory."""
    seen = []
    for _ in range(measurements):
        choice.measure(load(choice.share if choice.dimension == "memory" else 0.0))
        seen.append((choice.dimension, choice.share))
    return seen


def test_what_prunings_have_made_enough_of_is_no_reason_to_undo_them() -> None:
    choice = PruningChoice(PruningOptions("auto"))
    seen = followed(choice, lambda share: Load(1.0 - 0.9 * share + max(0.0, 2 * share - 1), 0.2, 0.2), 60)
    assert choice.settled
    assert len(set(seen[-30:])) == 1, "nothing is tried once the best is found"
    assert choice.dimension == "memory"
    assert choice.share == pytest.approx(0.5, abs=1 / SHARES)
    followed(choice, lambda _: IDLE, 20)
    assert choice.dimension == "network", "nothing is scarce any more, even without prunings"


def test_what_prunings_themselves_make_scarce_is_no_reason_to_prune_by_that() -> None:
    choice = PruningChoice(PruningOptions("auto"))
    seen = followed(choice, lambda share: Load(1.0 - 0.3 * share, 0.3 + 2 * share, 0.2), 80)
    assert choice.settled
    assert len(set(seen[-30:])) == 1
    assert choice.dimension == "memory"
    assert 0.2 <= choice.share <= 0.4, "where memory and links are as scarce as each other"


def test_what_is_configured_stays_whatever_is_measured() -> None:
    choice = PruningChoice(PruningOptions("memory", 0.25))
    assert not choice.measure(WORK)
    assert (choice.dimension, choice.share, choice.settled) == ("memory", 0.25, True)


def test_a_measurement_that_says_nothing_does_no_harm() -> None:
    choice = PruningChoice(PruningOptions("auto"))
    choice.measure(Load(-1.0, 1e300, 0.0))
    assert choice.dimension == "network"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dimension": "cheap"}, "use one of network, memory, throughput, or auto"),
        ({"memory_bytes": 0}, "give numbers above 0"),
        ({"measure_every": 0.0}, "give numbers above 0"),
    ],
)
def test_options_that_say_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        PruningOptions(**options)


FILTERS = [
    f"category = 'c{at % 4}' AND price < {100 + at} AND (author = 'a{at}' OR title = 't{at}')" for at in range(40)
]
EVENTS = [
    {"category": f"c{at % 4}", "price": 7 * at % 160, "author": f"a{at % 50}", "title": f"t{at % 30}"}
    for at in range(120)
]


def network() -> Network:
    made = Network(line(2), strategy="simple", check=False, pruning=PruningOptions("auto"), chances=EventSample(EVENTS))
    for number in (1, 2):
        made.join(f"c{number}", f"b{number}")
    made.load("c2", [(str(at), text) for at, text in enumerate(FILTERS)])
    return made


def test_a_brokers_tables_follow_and_nothing_is_lost() -> None:
    made = network()
    broker = made.brokers["b1"]
    whole = [parse(text) for text in FILTERS]
    seen = []
    tables = []
    for load in (MEMORY, LINKS, WORK):
        for _ in range(3):
            broker.handle(Measured(load.memory, load.bandwidth, load.processing), 1.0, steps=10**9)
        found = status(broker).pruning
        assert found is not None
        seen.append((found.dimension, found.auto, found.memory))
        for event in EVENTS:
            matched = broker.table.match(event)
            assert "p:b2" in matched or not any(one.matches(event) for one in whole)
        tables.append(dict(broker.table.entries("p:b2")))
    assert seen == [("memory", True, 0.95), ("network", True, 0.2), ("throughput", True, 0.2)]
    assert all(len(table) == len(whole) for table in tables)
    assert tables[0] != tables[1] != tables[2]


def test_a_broker_that_prunes_nothing_has_nothing_to_show() -> None:
    made = Network(line(2), strategy="simple", check=False)
    broker = made.brokers["b1"]
    broker.handle(Measured(1.0, 1.0, 1.0, 5_000.0), 1.0)
    assert status(broker).pruning is None


def test_auto_needs_a_profile_as_every_pruning_does() -> None:
    with pytest.raises(ConfigError, match="pruning needs to know how likely"):
        BrokerConfig("a", pruning=PruningOptions("auto"))
