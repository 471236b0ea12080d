"""Loads: many subscriptions, what stands for them, and profiles, into brokers that run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from covey.filters import Filter, Semantics, matches
from covey.history import Profile
from covey.history.files import to_bytes
from covey.language import parse
from covey.routing import AddPeer, Broker, BrokerConfig, BrokerLimits, MergingOptions, PruningOptions, Put
from covey.routing.loading import LoadError, LoadView, TableEntry, prepare, prepare_profile
from covey.routing.messages import Confirmed, Delta, OperatorMessage, Unload
from covey.simulation.fixpoint import WORLD
from covey.simulation.scenarios import random_filter
from covey.simulation.uniform_chances import EVENTS, UniformChances
from tests.routing.harness import Net

LINE = [("a", "b"), ("b", "c")]


class LoadingNet(Net):
    """Brokers with an operator at `a`."""

    def ask(self, message: OperatorMessage) -> bool:
        self.join("a", "operator")
        self._requests += 1
        self.say("a", "operator", msgspec.structs.replace(message, request=self._requests))
        return Confirmed(self._requests) in self.heard["operator"]

    def load(self, filters: dict[str, str], *entries: TableEntry, name: str = "night", client: str = "ann") -> bool:
        return self.ask(prepare(self.brokers["a"].config, name, client, filters.items(), entries))

    def load_profile(self, events: list[dict[str, Any]]) -> bool:
        file = to_bytes(Profile.of(events, attributes=["k", "p", "x"]))
        return self.ask(prepare_profile(self.brokers["a"].config, "events", file))

    def view(self, name: str = "night") -> LoadView:
        return next(view for view in self.brokers["a"].loads() if view.name == name)

    def sent(self) -> list[Delta]:
        """What `a` has told `b` since this was last asked."""
        deltas = [one for sender, peer, one in self.passed if (sender, peer) == ("a", "b") and isinstance(one, Delta)]
        self.passed.clear()
        return deltas


def test_loaded_subscriptions_are_the_clients_wherever_events_come_from() -> None:
    net = LoadingNet(LINE)
    net.join("a", "ann")
    net.join("c", "bob")
    assert net.load({"low": "x < 3", "high": "x > 7"})
    net.publish("c", "bob", *({"x": x} for x in range(10)))
    assert [event["x"] for event in net.delivered("ann")] == [0, 1, 2, 8, 9]
    assert net.view() == LoadView("night", "ann", 1, net.now, 2, 0, 2, 2, 0)


def test_a_client_that_is_away_finds_them_and_what_came_meanwhile() -> None:
    net = LoadingNet(LINE)
    net.join("c", "bob")
    net.load({"low": "x < 3"})
    net.publish("c", "bob", {"x": 1}, {"x": 5}, durable=True)
    net.restart("a")
    net.join("a", "ann")
    assert net.heard["ann"][0].subscriptions == ["low"]  # type: ignore[union-attr]
    assert net.delivered("ann") == [{"x": 1}]


def test_a_new_version_changes_what_differs_and_nothing_else() -> None:
    net = LoadingNet(LINE, strategy="simple")
    net.load({"a": "x = 1", "b": "x = 2", "c": "x = 3"})
    net.sent()
    before = dict(net.rows["a"])
    assert net.load({"a": "x = 1", "b": "x = 20", "d": "x = 4"})
    (delta,) = net.sent()
    assert sorted(entry.filter for entry in delta.added) == ["x = 20", "x = 4"]
    assert len(delta.removed) == 2
    assert net.held("c", "b") == ["x = 1", "x = 20", "x = 4"]
    changed = {key for key in before.keys() | net.rows["a"].keys() if before.get(key) != net.rows["a"].get(key)}
    assert len([key for space, key in changed if space == "subscription"]) == 3
    assert (net.view().version, net.view().made, net.view().ended) == (2, 2, 1)
    assert net.load({"a": "x = 1", "b": "x = 20", "d": "x = 4"})
    assert net.sent() == []


def test_what_the_client_asked_for_itself_stays() -> None:
    net = LoadingNet(LINE)
    net.join("a", "ann")
    net.subscribe("a", "ann", "own", "x = 1", durable=True)
    net.load({"low": "x < 1"})
    net.load({"low": "x < 0"})
    assert net.ask(Unload(0, "night"))
    assert net.held("b", "a") == ["x = 1"]
    assert net.brokers["a"].loads() == []
    assert not net.ask(Unload(0, "night"))
    assert net.refusals("operator") == ["there is no load 'night'"]


def test_a_load_that_takes_an_id_of_another_changes_nothing() -> None:
    net = LoadingNet(LINE)
    net.join("a", "ann")
    net.subscribe("a", "ann", "own", "x = 1", durable=True)
    net.load({"low": "x < 1"})
    rows = dict(net.rows["a"])
    assert not net.load({"new": "x = 5", "own": "x = 2"}, name="day")
    assert not net.load({"new": "x = 5", "low": "x = 2"}, name="day")
    assert net.refusals("operator") == [
        "the client 'ann' has a subscription 'own' from the client itself; use other ids",
        "the client 'ann' has a subscription 'low' from the load 'night'; use other ids",
    ]
    assert net.rows["a"] == rows


def test_a_load_can_move_to_another_client() -> None:
    net = LoadingNet(LINE)
    net.join("a", "ann")
    net.join("a", "bob")
    net.load({"low": "x < 1"}, client="ann")
    net.load({"low": "x < 1"}, client="bob")
    net.publish("a", "bob", {"x": 0})
    assert net.delivered("ann") == []
    assert net.delivered("bob") == [{"x": 0}]


def test_neighbours_hear_the_entries_of_a_compacted_table() -> None:
    net = LoadingNet(LINE, strategy="simple")
    net.join("a", "ann")
    net.join("c", "bob")
    filters = {f"s{at}": f"x = {at}" for at in range(10)}
    assert net.load(filters, TableEntry("low", "x BETWEEN 0 AND 8", tuple(f"s{at}" for at in range(9))))
    assert net.held("c", "b") == ["x = 9", "x BETWEEN 0 AND 8"]
    assert (net.view().told, net.view().entries) == (2, 1)
    net.publish("c", "bob", *({"x": x / 2} for x in range(30)))
    assert [event["x"] for event in net.delivered("ann")] == list(range(10))


def test_an_entry_counts_only_for_what_it_certainly_covers() -> None:
    net = LoadingNet(LINE, strategy="simple")
    entry = TableEntry("wrong", "x < 5", ("low", "high", "nobody"))
    net.load({"low": "x < 3", "high": "x > 3"}, entry)
    assert net.held("b", "a") == ["x < 5", "x > 3"]
    net.load({"high": "x > 3"}, entry)
    assert net.held("b", "a") == ["x > 3"]


def test_an_entry_goes_with_the_last_subscription_that_it_stands_for() -> None:
    net = LoadingNet(LINE, strategy="simple")
    net.join("a", "ann")
    net.load({"one": "x = 1", "two": "x = 2"}, TableEntry("both", "x < 5", ("one", "two")))
    net.unsubscribe("a", "ann", "one")
    assert net.held("b", "a") == ["x < 5"]
    net.subscribe("a", "ann", "two", "x = 2", durable=True)
    assert net.held("b", "a") == ["x = 2"]
    net.restart("a")
    assert net.held("c", "b") == ["x = 2"]


@pytest.mark.parametrize("strategy", ["simple", "covering", "merging"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_table_says_clients_get_what_they_asked_for(seed: int, strategy: str) -> None:
    rng = random.Random(seed)
    net = LoadingNet(LINE, strategy=strategy)
    net.join("c", "bob")
    net.join("a", "ann")
    for _ in range(4):
        filters = {f"s{at}": random_filter(rng) for at in rng.sample(range(20), rng.randrange(1, 15))}
        entries = [
            TableEntry(f"e{at}", random_filter(rng) if rng.random() < 0.7 else "TRUE", tuple(rng.sample([*filters], 1)))
            for at in range(rng.randrange(6))
        ]
        assert net.load(filters, *entries)
        for id in rng.sample(sorted(filters), rng.randrange(len(filters))):
            if rng.random() < 0.5:
                net.unsubscribe("a", "ann", id)
                del filters[id]
        if rng.random() < 0.5:
            net.restart("a")
            net.join("a", "ann")
        conditions = [parse(text) for text in filters.values()]
        net.heard["ann"].clear()
        net.publish("c", "bob", *WORLD)
        assert net.delivered("ann") == [event for event in WORLD if any(one.matches(event) for one in conditions)]
        held, fresh = net.held("b", "a"), LoadingNet(LINE, strategy="simple")
        fresh.load(filters)
        assert (held == []) == (fresh.held("b", "a") == [])


def test_a_broker_that_dies_has_the_old_load_or_the_new_one() -> None:
    """The rows of a load are one commit; on both sides of it a broker starts with one version as a whole."""
    net = LoadingNet([])
    net.load(
        {f"s{at}": f"x = {at}" for at in range(50)}, TableEntry("e", "x < 100", tuple(f"s{at}" for at in range(9)))
    )
    old = dict(net.rows["a"])
    net.load({f"s{at}": f"x = {at + 100}" for at in range(25, 75)})
    for rows, low, high, version in ((old, 0, 50, 1), (net.rows["a"], 125, 175, 2)):
        again, _ = Broker.restore(
            BrokerConfig("a"), [Put(space, key, value) for (space, key), value in rows.items()], 2_000.0
        )
        assert again.loads()[0].version == version
        wanted = {x for x in range(300) if again.table.match({"x": x})}
        assert wanted == set(range(low, high))


def test_bad_loads_say_what_is_wrong_and_where() -> None:
    config = BrokerConfig("a", limits=BrokerLimits(loaded_subscriptions=2))
    for filters, entries, problem in (
        ([("a", "x >")], [], "load 'n': subscription 'a': "),
        ([("a", "x > 1"), ("a", "x > 2")], [], "two subscriptions have the id 'a'"),
        ([("", "x > 1")], [], "subscription 1 has no id"),
        ([(str(at), "x > 1") for at in range(3)], [], "more than 2 subscriptions; loaded_subscriptions is the limit"),
        ([], [TableEntry("e", "x <", ())], "load 'n': entry 'e': "),
        ([], [TableEntry("e", "x < 1", ()), TableEntry("e", "x < 1", ())], "two entries 'e'"),
        ([], [TableEntry(str(at), "x > 1", ()) for at in range(3)], "more than 2 entries"),
    ):
        with pytest.raises(LoadError) as error:
            prepare(config, "n", "ann", filters, entries)
        assert problem in str(error.value)
    with pytest.raises(LoadError, match="this profile has seen no events"):
        prepare_profile(config, "p", to_bytes(Profile.of()))
    with pytest.raises(LoadError, match="profile_bytes is 3"):
        prepare_profile(BrokerConfig("a", limits=BrokerLimits(profile_bytes=3)), "p", b"abcd")


def test_there_are_only_so_many_loads() -> None:
    net = LoadingNet([], limits=BrokerLimits(loads=1))
    assert net.load({"low": "x < 1"}, name="one")
    assert not net.load({"low": "x < 1"}, name="two")
    assert net.load({"low": "x < 2"}, name="one")
    assert net.refusals("operator") == ["there are 1 loads already (loads); drop some of them first"]


def test_a_load_is_one_event_about_subscriptions() -> None:
    net = LoadingNet(LINE, meta_events=True)
    net.join("a", "eve")
    net.subscribe("a", "eve", "meta", "`covey.meta` IN ('loaded', 'unloaded')")
    net.load({"low": "x < 1", "high": "x > 1"})
    net.ask(Unload(0, "night"))
    assert [(event["covey.meta"], event["client"], event["id"]) for event in net.delivered("eve")] == [
        ("loaded", "ann", "night"),
        ("unloaded", "ann", "night"),
    ]


def test_a_profile_decides_which_mergers_are_good_enough() -> None:
    """A merger of both filters also lets (5.5, 4.5) pass, which costs nothing where no event is like that."""
    net = LoadingNet(LINE, strategy="merging", merging=MergingOptions(imt=0.01), chances=_Even())
    net.join("a", "ann")
    net.subscribe("a", "ann", "low", "x < 5 AND p < 5", durable=True)
    net.subscribe("a", "ann", "wide", "x < 6 AND p < 4", durable=True)

    def lets_pass() -> bool:
        net.wait(61)
        return any(parse(text).matches({"x": 5.5, "p": 4.5}) for text in net.held("b", "a"))

    assert not lets_pass()
    assert net.load_profile([{"x": at % 5, "p": at % 4} for at in range(400)])
    assert lets_pass()
    net.restart("a")
    assert lets_pass()
    assert net.load_profile(EVEN)
    assert not lets_pass()


def test_a_profile_decides_which_parts_of_filters_are_pruned() -> None:
    net = LoadingNet(LINE, strategy="simple", pruning=PruningOptions("network", 0.5), chances=UniformChances())
    net.join("b", "ann")
    for at in range(4):
        net.subscribe("b", "ann", f"s{at}", f"k = 'a' AND p < {at + 20}")
    table = net.brokers["a"].table
    # Nearly every event has p < 20, so that is what is left out.
    assert {str(one) for one in table.entries("p:b").values()} >= {"k = 'a'"}
    assert net.load_profile([{"k": "a", "p": 3 * at} for at in range(100)])
    # Every event has k = 'a' now.
    pruned = {str(one) for one in table.entries("p:b").values()}
    assert "k = 'a'" not in pruned
    assert any(text.startswith("p < ") for text in pruned)
    net.restart("a")
    assert "k = 'a'" not in {str(one) for one in net.brokers["a"].table.entries("p:b").values()}
    assert net.brokers["b"].profile is None


def loaded() -> LoadingNet:
    """A load with an entry that stands for two subscriptions, a profile, and a neighbour that came later."""
    net = LoadingNet(LINE)
    net.join("a", "ann")
    net.join("c", "bob")
    assert net.load({"low": "x < 3", "lower": "x < 2", "high": "x > 7"}, TableEntry("e", "x < 4", ("low", "lower")))
    assert net.load_profile(EVENTS)
    net.handle("a", AddPeer("d"))
    return net


def garbled(net: LoadingNet, space: str, key: str) -> tuple[Broker, Broker]:
    """What starts where a row of `a` can't be read, and what starts after it."""
    net.rows["a"][space, key] = b"\xc1"
    net.start("a")
    first = net.brokers["a"]
    net.restart("a")
    return first, net.brokers["a"]


@pytest.mark.parametrize("space", ["load", "standing", "profile", "profile_part", "broker"])
def test_a_load_or_profile_whose_row_is_garbled_costs_no_subscription_and_no_start(space: str) -> None:
    names = [key for found, key in loaded().rows["a"] if found == space]
    assert names
    for name in names:
        net = loaded()
        first, second = garbled(net, space, name)
        assert f"{space}/{name}" in first.damaged
        assert second.damaged == ()
        net.join("a", "ann")
        net.publish("c", "bob", *({"x": x} for x in range(10)))
        assert [event["x"] for event in net.delivered("ann")] == [0, 1, 2, 8, 9]
        assert (second.profile is None) == space.startswith("profile")
        assert {*second.links} == ({"b"} if name == "peers" else {"b", "d"})


def test_a_load_whose_row_was_garbled_can_be_replaced_and_dropped() -> None:
    net = loaded()
    garbled(net, "load", "night")
    assert (net.view().client, net.view().subscriptions) == ("ann", 3)
    assert net.load({"low": "x < 1"})
    assert net.view().subscriptions == 1
    assert net.ask(Unload(0, "night"))
    assert net.brokers["a"].loads() == []
    ann = net.brokers["a"].clients.get("ann")
    assert ann is None or not ann.claims.subscriptions


def test_a_part_of_a_profile_that_is_missing_or_another_costs_the_whole_of_it() -> None:
    for value in (None, b"\xc4\x03abc"):
        net = loaded()
        part = next(place for place in net.rows["a"] if place[0] == "profile_part")
        del net.rows["a"][part]
        if value is not None:
            net.rows["a"][part] = value
        net.start("a")
        broker = net.brokers["a"]
        assert broker.profile is None
        assert "profile/row" in broker.damaged
        assert not [place for place in net.rows["a"] if place[0].startswith("profile")]


def test_the_index_is_built_anew_by_the_profile_and_finds_the_same() -> None:
    rng = random.Random(1)
    net = LoadingNet([])
    net.load({f"s{at}": random_filter(rng) for at in range(200)})
    before = [net.brokers["a"].table.match(event) for event in WORLD]
    assert net.load_profile(EVENTS)
    assert [net.brokers["a"].table.match(event) for event in WORLD] == [
        {hop: sorted(keys, key=keys.index) for hop, keys in found.items()} for found in before
    ]


EVEN = [{"x": x / 2, "p": p / 2} for x in range(20) for p in range(20)]


class _Even:
    """Events with x and p even over [0, 10)."""

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        counts = [sum(matches(one, event, semantics=semantics) for event in EVEN) for one in filters]
        return np.array(counts) / len(EVEN)
