"""A large load is made in pieces between which others get on, and is there as a whole or not at all after a crash."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from covey.routing import Broker, BrokerLimits, load_parts, loads
from covey.routing.config import BrokerConfig
from covey.routing.journal import Put
from covey.routing.loading import prepare
from covey.routing.messages import Unload, Work
from tests.routing.harness import Net

BEFORE = {f"s{at}": f"x = {at}" for at in range(30)}
AFTER = {f"s{at}": f"x = {at}" if at % 3 else f"x = -{at}" for at in range(10, 45)}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_parts, "PART", 8)
    monkeypatch.setattr(loads, "PART", 8)
    monkeypatch.setattr(loads, "TOGETHER", 6)


def network() -> Net:
    net = Net([("a", "b")], strategy="simple", limits=BrokerLimits(request_entries=5))
    net.join("a", "operator")
    return net


def load(net: Net, subscriptions: dict[str, str], request: int, name: str = "bulk") -> None:
    prepared = prepare(BrokerConfig("a"), name, "ann", subscriptions.items())
    net.say("a", "operator", loads.Load(request, name, "ann", prepared.subscriptions))


def pieces(net: Net) -> Iterator[None]:
    """Let the broker get on by one piece after the other."""
    while net.brokers["a"].behind:
        yield
        net.handle("a", Work(1))
        net.run()


def claimed(broker: Broker) -> dict[str, str]:
    ann = broker.clients.get("ann")
    return {} if ann is None else {id: claim.text for id, claim in ann.claims.subscriptions.items()}


def test_it_is_confirmed_when_all_of_it_is_made() -> None:
    net = network()
    load(net, BEFORE, 1)
    count = sum(1 for _ in pieces(net) if not net.confirmed("operator", 1))
    assert count >= 10
    assert net.confirmed("operator", 1)
    assert claimed(net.brokers["a"]) == BEFORE
    assert net.held("b", "a") == sorted(BEFORE.values())
    view = net.brokers["a"].loads()[0]
    assert (view.version, view.made, view.ended, view.subscriptions) == (1, 30, 0, 30)


def test_a_crash_at_any_moment_leaves_the_one_before_or_all_of_it() -> None:
    net = network()
    load(net, BEFORE, 1)
    for _ in pieces(net):
        pass
    load(net, AFTER, 2)
    found: list[dict[str, str]] = []
    for _ in pieces(net):
        rows = [Put(space, key, value) for (space, key), value in net.rows["a"].items()]
        broker, outputs = Broker.restore(net.config("a"), rows, net.now)
        found.append(claimed(broker))
        assert len(broker.table) == len(found[-1])
        assert broker.loads()[0].version == (2 if found[-1] == AFTER else 1)
        # What that start writes is the same to the next one, which has nothing more to do.
        kept = {(row.space, row.key): row for row in rows}
        for record in outputs.records:
            kept.pop((record.space, record.key), None)
            if isinstance(record, Put):
                kept[record.space, record.key] = record
        assert not [space for space, _ in kept if space in (load_parts.LOADING, load_parts.PARTS)]
        again, _ = Broker.restore(net.config("a"), kept.values(), net.now)
        assert claimed(again) == found[-1]
    assert found == sorted(found, key=lambda one: one == AFTER)
    assert (found[0], found[-1]) == (BEFORE, AFTER)
    assert claimed(net.brokers["a"]) == AFTER
    assert net.held("b", "a") == sorted(AFTER.values())
    assert not [space for space, _ in net.rows["a"] if space.startswith("loading")]
    view = net.brokers["a"].loads()[0]
    changed = [id for id, text in AFTER.items() if BEFORE.get(id) != text]
    assert (view.version, view.made, view.ended) == (2, len(changed), 10)


def test_events_go_on_meanwhile_and_what_the_client_asks_for_itself_stays() -> None:
    net = network()
    net.join("a", "ann")
    load(net, BEFORE, 1)
    for number, _ in enumerate(pieces(net)):
        if number == 0:
            assert net.subscribe("a", "ann", "s29", "y = 1")
        net.publish("b", "bob", {"y": 1}) if number else net.join("b", "bob")
    assert claimed(net.brokers["a"]) == BEFORE | {"s29": "y = 1"}
    assert len(net.delivered("ann")) == number
    assert net.held("b", "a") == sorted((BEFORE | {"s29": "y = 1"}).values())


def test_who_loads_or_unloads_next_finds_it_done() -> None:
    net = network()
    load(net, BEFORE, 1)
    load(net, {"s44": "z = 1"}, 2, "other")
    assert claimed(net.brokers["a"]) == BEFORE | {"s44": "z = 1"}
    assert net.confirmed("operator", 1)
    load(net, AFTER, 3)
    assert "the load 'other'" in net.refusals("operator")[0]
    load(net, {id: text for id, text in AFTER.items() if id != "s44"}, 4)
    net.say("a", "operator", Unload(5, "bulk"))
    assert claimed(net.brokers["a"]) == {"s44": "z = 1"}
    assert net.brokers["a"].behind == 0


def test_a_damaged_part_costs_what_was_in_it_and_nothing_else() -> None:
    net = network()
    load(net, BEFORE, 1)
    for _ in pieces(net):
        pass
    load(net, AFTER, 2)
    while not any(space == load_parts.LOADING for space, _ in net.rows["a"]):
        net.handle("a", Work(1))
    parts = sorted(key for space, key in net.rows["a"] if space == load_parts.PARTS)
    net.rows["a"][load_parts.PARTS, parts[1]] = b"\xc1"
    net.start("a")
    assert len(net.brokers["a"].damaged) == 1
    lost = list(AFTER)[8:16]
    assert claimed(net.brokers["a"]) == BEFORE | {id: text for id, text in AFTER.items() if id not in lost}
