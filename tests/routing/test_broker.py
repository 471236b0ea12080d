from __future__ import annotations

import msgspec
import pytest

from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Number, Space
from covey.routing import AdaptiveFiltering, AddPeer, BrokerLimits, RemovePeer, Timing
from covey.routing.config import STRATEGIES, MergingOptions, PruningOptions, SubsumptionOptions
from covey.routing.inspection import status
from covey.routing.messages import (
    Acknowledge,
    Advertise,
    Credit,
    Deliver,
    Delta,
    Entry,
    Events,
    Expired,
    Filtering,
    FromPeer,
    Gap,
    Hello,
    PeerDown,
    PeerUp,
    Renew,
    Stream,
    Tick,
    Unadvertise,
    Welcome,
)
from covey.simulation.uniform_chances import UniformChances
from tests.routing.harness import Net

LINE = [("a", "b"), ("b", "c")]
SQUARE = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]


def network(strategy: str, links: list[tuple[str, str]] = LINE, **options: object) -> Net:
    space = SubsumptionOptions(Space([Number("p")]))
    merging = MergingOptions(policy=MergingPolicy(at_arrivals=1))
    return Net(links, strategy=strategy, subsumption=space, merging=merging, **options)


def events_between(net: Net, one: str, other: str) -> int:
    return sum(
        len(message.envelopes) if isinstance(message, Events) else len(message.items)
        for sender, receiver, message in net.passed
        if (sender, receiver) == (one, other) and isinstance(message, Events | Stream)
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("links", [LINE, SQUARE])
def test_an_event_reaches_who_asked_for_it_once_and_nobody_else(strategy: str, links: list[tuple[str, str]]) -> None:
    net = network(strategy, links)
    net.join("a", "ann")
    net.join("c", "cat")
    net.join("c", "dog")
    assert net.subscribe("a", "ann", "s", "p < 5")
    assert net.subscribe("a", "ann", "t", "p < 7")
    assert net.subscribe("c", "dog", "s", "p > 100")
    assert net.publish("c", "cat", {"p": 3}, {"p": 6}, {"p": 50})
    assert net.delivered("ann") == [{"p": 3}, {"p": 6}]
    assert net.delivered("dog") == []


@pytest.mark.parametrize(
    ("strategy", "held"),
    [
        ("flooding", []),
        ("simple", ["p < 5", "p < 5", "p < 9", "p >= 9 AND p < 20"]),
        ("identity", ["p < 5", "p < 9", "p >= 9 AND p < 20"]),
        ("covering", ["p < 9", "p >= 9 AND p < 20"]),
        ("merging", ["p < 20"]),
    ],
)
def test_what_neighbours_get_to_know_is_as_the_strategy_says(strategy: str, held: list[str]) -> None:
    net = network(strategy)
    net.join("a", "ann")
    net.join("b", "bob")
    for at, text in enumerate(["p < 5", "p < 9", "p >= 9 AND p < 20"]):
        net.subscribe("a", "ann", str(at), text)
    net.subscribe("b", "bob", "s", "p < 5")
    assert net.held("c", "b") == held


def test_a_subscription_that_others_hold_together_is_not_told() -> None:
    net = network("subsumption")
    net.join("a", "ann")
    net.subscribe("a", "ann", "1", "p BETWEEN 0 AND 10")
    net.subscribe("a", "ann", "2", "p BETWEEN 10 AND 20")
    net.subscribe("a", "ann", "3", "p BETWEEN 5 AND 15")
    assert len(net.held("b", "a")) == 2
    net.unsubscribe("a", "ann", "1")
    assert len(net.held("b", "a")) == 2


@pytest.mark.parametrize("strategy", ["covering", "merging", "subsumption"])
def test_a_covered_subscription_comes_back_when_the_other_goes(strategy: str) -> None:
    net = network(strategy)
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "wide", "p < 100")
    net.subscribe("a", "ann", "narrow", "p < 5")
    assert net.held("c", "b") == ["p < 100"]
    assert net.unsubscribe("a", "ann", "wide")
    assert net.held("c", "b") == ["p < 5"]
    net.publish("c", "cat", {"p": 3}, {"p": 50})
    assert net.delivered("ann") == [{"p": 3}]


def test_events_that_nobody_wants_stay_where_they_are_but_with_flooding() -> None:
    for strategy, crossed in (("covering", 0), ("flooding", 1)):
        net = network(strategy)
        net.join("c", "cat")
        net.publish("c", "cat", {"p": 3})
        assert events_between(net, "c", "b") == crossed


def test_a_merger_is_never_told_to_the_neighbour_that_its_parts_came_from() -> None:
    net = network("merging")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5")
    net.subscribe("c", "cat", "s", "p BETWEEN 5 AND 9")
    assert net.held("a", "b") == ["p BETWEEN 5 AND 9"]
    assert net.held("c", "b") == ["p < 5"]


def test_a_confirmation_waits_for_the_last_broker() -> None:
    net = network("simple")
    net.join("a", "ann")
    net.cut.add(frozenset(("b", "c")))
    assert not net.subscribe("a", "ann", "s", "p < 5")
    net.cut.clear()
    net.wait(1.0)
    assert net.confirmed("ann", 1)


def test_a_confirmation_waits_for_a_failed_broker_no_longer_than_t2() -> None:
    net = network("simple", timing=Timing(retry=0.5, failed=3.0))
    net.join("a", "ann")
    net.disconnect("b", "c")
    assert not net.subscribe("a", "ann", "s", "p < 5")
    net.wait(2.0)
    assert not net.confirmed("ann", 1)
    net.wait(2.0)
    assert net.confirmed("ann", 1)


def test_a_durable_event_passed_by_in_a_cut_is_recalled_when_it_heals() -> None:
    net = network("covering", timing=Timing(retry=0.5, failed=2.0))
    net.join("a", "ann")
    net.join("c", "cat")
    net.disconnect("a", "b")
    net.wait(3.0)
    assert net.subscribe("a", "ann", "s", "p < 5", durable=True)
    assert net.publish("c", "cat", {"p": 1}, durable=True)
    assert net.publish("c", "cat", {"p": 2})
    net.connect("a", "b")
    assert net.delivered("ann") == [{"p": 1}]
    assert [answer.late for answer in net.heard["ann"] if isinstance(answer, Deliver)] == [True]


def test_a_durable_event_waits_for_a_neighbour_that_is_away() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5", durable=True)
    net.disconnect("a", "b")
    net.publish("c", "cat", {"p": 1}, {"p": 9}, durable=True)
    assert len(net.brokers["b"].links["a"].outbox) == 1
    net.restart("b")
    assert net.delivered("ann") == [{"p": 1}]


def test_a_restarted_broker_knows_what_it_confirmed() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "keep", "p < 5", durable=True)
    net.subscribe("a", "ann", "drop", "p > 100")
    net.restart("a")
    net.publish("c", "cat", {"p": 1}, {"p": 101}, durable=True)
    net.join("a", "ann")
    welcome = [answer for answer in net.heard["ann"] if isinstance(answer, Welcome)][-1]
    assert welcome.subscriptions == ["keep"]
    assert net.delivered("ann") == [{"p": 1}]
    assert net.held("b", "a") == ["p < 5"]


def test_a_session_that_finds_equal_tables_sends_no_entries() -> None:
    net = network("simple")
    net.join("a", "ann")
    for at in range(50):
        net.subscribe("a", "ann", str(at), f"p = {at}", durable=True)
    net.passed.clear()
    net.disconnect("a", "b")
    net.connect("a", "b")
    assert [entry for _, _, m in net.passed if isinstance(m, Delta) for entry in m.added] == []
    net.disconnect("a", "b")
    net.subscribe("a", "ann", "new", "p = 1000", durable=True)
    net.passed.clear()
    net.connect("a", "b")
    told = [entry for sender, _, m in net.passed if isinstance(m, Delta) and sender == "a" for entry in m.added]
    assert 1 <= len(told) <= 10
    assert len(net.held("b", "a")) == 51


def test_in_a_cycle_events_go_another_way_when_a_link_fails() -> None:
    net = network("covering", SQUARE, timing=Timing(retry=0.5, failed=2.0))
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5")
    trees = {status(broker).tree for broker in net.brokers.values()}
    assert len(trees) == 1
    assert len(trees.pop()) == 3
    net.disconnect("a", "b")
    net.wait(4.0)
    net.publish("c", "cat", {"p": 1})
    assert net.delivered("ann") == [{"p": 1}]
    assert ("a", "b") not in status(net.brokers["c"]).tree


def test_subscriptions_go_only_where_an_advertisement_overlaps() -> None:
    net = network("covering", advertisements=True)
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5")
    assert net.held("b", "a") == []
    net.say("c", "cat", Advertise(100, "far", "p > 100"))
    assert net.held("b", "a") == []
    net.say("c", "cat", Advertise(101, "near", "p < 1"))
    assert net.confirmed("cat", 101)
    assert net.held("c", "b") == ["p < 5"]
    assert net.publish("c", "cat", {"p": 0})
    assert net.delivered("ann") == [{"p": 0}]
    assert not net.publish("c", "cat", {"p": 4})
    assert "matches no advertisement" in net.refusals("cat")[-1]


def test_advertisements_are_covered_and_merged_perfectly_only() -> None:
    net = network("covering", advertisements=True)
    net.join("a", "ann")
    for at in range(20):
        net.say("a", "ann", Advertise(at, f"w{at}", f"p BETWEEN {at} AND {at + 1}"))
    assert "p BETWEEN 0 AND 16" in net.held("c", "b", 1)
    assert len(net.held("c", "b", 1)) < 8
    for at in range(20):
        net.say("a", "ann", Advertise(100 + at, f"x{at}", f"p = {10 * at + 100}"))
    assert not any(one.matches({"p": 105}) for one in net.brokers["c"].links["b"].inward[1].holding.entries.values())


def test_advertisements_that_a_merger_leaves_are_merged_again() -> None:
    net = network("covering", advertisements=True)
    net.join("a", "ann")
    for at in range(20):
        net.say("a", "ann", Advertise(at, f"w{at}", f"p BETWEEN {at} AND {at + 1}"))
    net.say("a", "ann", Advertise(100, "wide", "p BETWEEN 8.5 AND 30"))
    net.wait(1.0)
    assert net.held("c", "b", 1) == ["p BETWEEN 0 AND 30"]
    net.say("a", "ann", Unadvertise(101, "w3"))
    net.wait(1.0)
    assert net.held("c", "b", 1) == ["p BETWEEN 0 AND 3 OR p BETWEEN 4 AND 30"]


def test_a_lease_ends_in_time_everywhere_unless_it_is_renewed() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.subscribe("a", "ann", "s", "p < 5", lease=10.0)
    net.wait(8.0)
    net.say("a", "ann", Renew(50, ["s"]))
    net.wait(8.0)
    assert net.held("c", "b") == ["p < 5"]
    net.wait(3.0)
    assert net.held("c", "b") == []
    assert Expired("s") in net.heard["ann"]
    net.say("a", "ann", Renew(51, ["s"]))
    assert "no subscription" in net.refusals("ann")[-1]


def test_subscriptions_and_their_ends_are_events_where_configured() -> None:
    net = network("covering", meta_events=True, advertisements=True)
    net.join("a", "ann")
    net.join("c", "cat")
    assert net.subscribe("a", "ann", "watch", "`covey.meta` IN ('subscribed', 'unsubscribed') AND client = 'cat'")
    net.subscribe("c", "cat", "s", "p < 5")
    net.unsubscribe("c", "cat", "s")
    assert [event["covey.meta"] for event in net.delivered("ann")] == ["subscribed", "unsubscribed"]
    assert net.delivered("ann")[0]["filter"] == "p < 5"


def test_links_come_and_go_while_brokers_run_and_that_survives_a_restart() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.subscribe("a", "ann", "s", "p < 5", durable=True)
    for one, other in (("a", "c"), ("c", "a")):
        net.handle(one, AddPeer(other))
    net.links.append(("a", "c"))
    net.connect("a", "c")
    for one, other in (("a", "b"), ("b", "a")):
        net.handle(one, RemovePeer(other))
    net.run()
    assert net.held("b", "c") == ["p < 5"]
    net.join("b", "bob")
    net.publish("b", "bob", {"p": 1})
    assert net.delivered("ann") == [{"p": 1}]
    net.start("a")
    assert sorted(net.brokers["a"].links) == ["c"]


def test_a_stranger_is_not_talked_to() -> None:
    net = network("covering")
    net.handle("a", PeerUp("x"))
    assert "x" not in net.brokers["a"].links


def test_what_a_neighbour_asked_for_is_forgotten_after_a_long_absence() -> None:
    net = network("covering", timing=Timing(retry=0.5, failed=2.0, forget=20.0))
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5", durable=True)
    net.disconnect("a", "b")
    net.publish("c", "cat", {"p": 1}, durable=True)
    net.wait(10.0)
    assert net.held("b", "a") == ["p < 5"]
    net.wait(20.0)
    assert net.held("b", "a") == []
    assert len(net.brokers["b"].links["a"].outbox) == 0


def test_an_outbox_beyond_its_limit_keeps_the_newest() -> None:
    net = network("covering", limits=BrokerLimits(outbox=20))
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.disconnect("a", "b")
    for number in range(40):
        net.publish("c", "cat", {"p": number}, durable=True)
    net.connect("a", "b")
    got = [event["p"] for event in net.delivered("ann")]
    assert got == sorted(got)
    assert 18 <= len(got) <= 20
    assert got[-1] == 39


def test_gaps_are_told_to_slow_clients_and_the_slowest_are_closed() -> None:
    net = network("covering", limits=BrokerLimits(credit=2, buffer=3, gaps=4))
    net.join("a", "ann")
    net.join("a", "cat")
    net.subscribe("a", "ann", "s", "p >= 0")
    net.publish("a", "cat", *({"p": number} for number in range(8)))
    assert len(net.delivered("ann")) == 2
    assert [answer.deliveries for answer in net.heard["ann"] if isinstance(answer, Gap)] == [3]
    assert net.closed == []
    net.say("a", "ann", Credit(2))
    assert len(net.delivered("ann")) == 4
    net.publish("a", "cat", *({"p": number} for number in range(8)))
    assert [closing.client for closing in net.closed] == ["ann"]


def test_a_broker_that_lost_its_disk_learns_everything_again() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5", durable=True)
    net.publish("c", "cat", {"p": 1}, durable=True)
    net.rows["b"].clear()
    net.now += 1.0
    net.restart("b")
    assert net.held("c", "b") == ["p < 5"]
    net.publish("c", "cat", {"p": 2}, durable=True)
    assert net.delivered("ann") == [{"p": 1}, {"p": 2}]


def test_a_publisher_whose_broker_lost_its_disk_is_not_taken_for_a_copy_of_itself() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5", durable=True)
    net.publish("c", "cat", {"p": 1}, durable=True)
    net.rows["c"].clear()
    net.now += 1.0
    net.restart("c")
    net.join("c", "cat")
    net.publish("c", "cat", {"p": 2}, durable=True)
    assert net.delivered("ann") == [{"p": 1}, {"p": 2}]


def test_a_sender_stops_filtering_where_most_match_and_starts_when_asked() -> None:
    net = network("covering", adaptive=AdaptiveFiltering(stop_above=0.8, ask_above=0.5, sample=10))
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p >= 0")
    net.publish("c", "cat", *({"p": 1} for _ in range(10)))
    assert [view.filtering for view in status(net.brokers["c"]).links] == [False]
    net.publish("c", "cat", {"p": -1})
    assert events_between(net, "c", "b") == 11
    assert net.brokers["c"].table.match({"p": 1}) == {}, "what gets all events needn't be matched"
    net.publish("c", "cat", *({"p": -1} for _ in range(10)))
    asked = [(near, far) for near, far, message in net.passed if isinstance(message, Filtering)]
    assert asked == [("a", "b")], "b can't tell before it filters itself"
    net.publish("c", "cat", *({"p": -1} for _ in range(10)))
    asked = [(near, far) for near, far, message in net.passed if isinstance(message, Filtering)]
    assert asked == [("a", "b"), ("b", "c")]
    assert list(net.brokers["c"].table.match({"p": 1})) == ["p:b"]
    assert [view.filtering for view in status(net.brokers["c"]).links] == [True]
    net.passed.clear()
    net.publish("c", "cat", {"p": -1})
    assert events_between(net, "c", "b") == 0
    assert net.delivered("ann") == [{"p": 1}] * 10


def test_pruned_tables_let_more_through_between_brokers_and_nothing_to_clients() -> None:
    crossed = []
    for pruning in (None, PruningOptions(share=1.0)):
        net = network("covering", pruning=pruning, chances=UniformChances())
        net.join("a", "ann")
        net.join("c", "cat")
        net.subscribe("a", "ann", "s", "p < 10 AND k = 'a'")
        net.publish("c", "cat", *({"p": p, "k": k} for p in range(20) for k in "ab"))
        assert len(net.delivered("ann")) == 10
        assert net.held("b", "a") == net.held("c", "b") != []
        crossed.append(events_between(net, "c", "b"))
        net.unsubscribe("a", "ann", "s")
        assert net.held("c", "b") == []
    assert crossed[0] == 10 < crossed[1]


def test_an_imperfect_merger_is_no_worse_than_its_threshold_allows_and_clients_do_not_notice() -> None:
    options = MergingOptions(imt=0.9, policy=MergingPolicy(at_arrivals=1))
    net = Net(LINE, strategy="merging", merging=options, chances=UniformChances())
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 3")
    net.subscribe("a", "ann", "t", "p = 9")
    assert len(net.held("c", "b")) == 1
    net.publish("c", "cat", *({"p": p} for p in range(12)))
    assert [event["p"] for event in net.delivered("ann")] == [0, 1, 2, 9]
    net.unsubscribe("a", "ann", "t")
    assert net.held("c", "b") == ["p < 3"]


def test_events_keep_their_order_from_one_publisher() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.disconnect("a", "b")
    for number in range(30):
        net.publish("c", "cat", {"p": number}, durable=True)
    net.connect("a", "b")
    assert [event["p"] for event in net.delivered("ann")] == list(range(30))


def test_a_row_is_kept_for_nothing_that_is_over() -> None:
    net = network("covering", timing=Timing(remember=10.0))
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.publish("c", "cat", *({"p": number} for number in range(30)), durable=True)
    net.say("a", "ann", Acknowledge(30))
    net.unsubscribe("a", "ann", "s")
    net.wait(12.0)
    kept = {space for rows in net.rows.values() for space, _ in rows}
    assert kept == {"broker", "link", "topology", "client"}


def test_advertisements_are_confirmed_where_nobody_routes_by_them() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.say("a", "ann", Advertise(7, "x", "p < 5"))
    assert net.confirmed("ann", 7)
    assert net.held("b", "a", 1) == []


def test_what_was_kept_of_a_neighbour_goes_when_it_is_taken_out_of_the_configuration() -> None:
    net = network("covering")
    net.join("a", "ann")
    net.join("c", "cat")
    net.subscribe("a", "ann", "s", "p < 5", durable=True)
    net.disconnect("a", "b")
    net.publish("c", "cat", {"p": 1}, durable=True)
    net.links.remove(("a", "b"))
    net.start("b")
    assert not any(key.startswith("a") for space, key in net.rows["b"] if space in ("link", "outbox", "entry"))


def test_what_was_received_and_not_passed_on_when_a_neighbour_failed_is_recalled() -> None:
    net = network("simple", timing=Timing(retry=0.5, failed=2.0))
    net.join("a", "ann")
    net.join("c", "cat")
    net.cut.add(frozenset(("b", "c")))
    assert not net.subscribe("a", "ann", "s", "p < 5", durable=True)
    assert net.held("b", "a") == ["p < 5"]
    net.disconnect("a", "b")
    for _ in range(12):
        net.now += 0.25
        net.handle("a", Tick())
        net.run()
    assert net.confirmed("ann", 1)
    assert net.publish("c", "cat", {"p": 1}, durable=True)
    net.restart("b")
    net.wait(2.0)
    assert net.delivered("ann") == [{"p": 1}]


def test_an_event_between_a_recall_and_its_entry_can_not_pass() -> None:
    net = network("covering", [("a", "b"), ("b", "c"), ("c", "d")], timing=Timing(retry=0.5, failed=2.0))
    net.join("a", "ann")
    net.join("d", "dot")
    net.disconnect("a", "b")
    net.wait(3.0)
    assert net.subscribe("a", "ann", "s", "p < 5", durable=True)
    net.cut.add(frozenset(("b", "c")))
    net.connect("a", "b")
    assert net.publish("d", "dot", {"p": 1}, durable=True)
    net.cut.clear()
    net.wait(2.0)
    assert net.delivered("ann") == [{"p": 1}]


def test_a_table_of_many_entries_comes_in_parts_of_few_whatever_their_size() -> None:
    net = network("covering", [("a", "b")], limits=BrokerLimits(part_entries=3))
    net.join("a", "ann")
    net.disconnect("a", "b")
    for number in range(20):
        net.subscribe("a", "ann", f"s{number}", f"p = {number}")
    net.passed.clear()
    net.connect("a", "b")
    told = [message for sender, _, message in net.passed if sender == "a" and isinstance(message, Delta)]
    assert [len(one.added) for one in told] == [3, 3, 3, 3, 3, 3, 2]
    assert len(net.held("b", "a")) == 20


def test_what_came_in_a_part_before_a_session_broke_is_recalled_with_the_rest() -> None:
    """b has forgotten a, and hears of its entries in two sessions; of events that passed before, it sends all."""
    net = network("covering", [("a", "b")], limits=BrokerLimits(part_entries=1))
    net.join("a", "ann")
    net.join("b", "bob")
    for number in range(4):
        assert net.subscribe("a", "ann", f"s{number}", f"p = {number}", durable=True)
    net.disconnect("a", "b")
    net.handle("b", RemovePeer("a"))
    net.publish("b", "bob", *({"p": number} for number in range(4)), durable=True)
    net.handle("b", AddPeer("a"))
    net.cut.clear()
    net.handle("b", PeerUp("a", 7))
    net.handle("a", PeerUp("b", 7))
    parts = 0
    while parts < 2:
        name, input = net._waiting.popleft()
        parts += name == "b" and isinstance(input.message, Delta)  # type: ignore[union-attr]
        net.handle(name, msgspec.structs.replace(input, session=7))
    net._waiting.clear()
    assert 0 < len(net.held("b", "a")) < 4
    for one, other in (("a", "b"), ("b", "a")):
        net.handle(one, PeerDown(other, 7))
    net._waiting.clear()
    net.connect("a", "b")
    assert sorted(event["p"] for event in net.delivered("ann")) == [0, 1, 2, 3]


def test_a_large_table_is_told_in_parts_and_used_when_it_is_whole() -> None:
    net = network("simple", [("a", "b")], limits=BrokerLimits(delta_bytes=200))
    net.join("a", "ann")
    net.join("b", "bob")
    net.disconnect("a", "b")
    for number in range(20):
        net.subscribe("a", "ann", f"s{number}", f"p = {number}")
    net.passed.clear()
    net.connect("a", "b")
    told = [message for sender, _, message in net.passed if sender == "a" and isinstance(message, Delta)]
    assert len(told) > 5
    assert [one.more for one in told] == [True] * (len(told) - 1) + [False]
    assert max(sum(len(entry.key) + len(entry.filter) for entry in one.added) for one in told) <= 200
    assert len(net.held("b", "a")) == 20
    net.publish("b", "bob", {"p": 0}, {"p": 19}, {"p": 20})
    assert net.delivered("ann") == [{"p": 0}, {"p": 19}]
    assert events_between(net, "b", "a") == 2


def test_until_the_last_part_has_come_a_neighbour_gets_every_event_and_a_broken_session_starts_anew() -> None:
    net = network("simple", [("a", "b")], limits=BrokerLimits(delta_bytes=40))
    net.join("a", "ann")
    net.disconnect("a", "b")
    for number in range(20):
        net.subscribe("a", "ann", f"s{number}", f"p = {number}")
    broker = net.brokers["b"]
    link = broker.links["a"]
    broker.handle(PeerUp("a", 99), net.now)
    for message in (
        Hello("a", [[], []], 0, 0, True),
        Delta(0, 1, True, [], [], [Entry("k1", "p = 1")], [], more=True),
    ):
        broker.handle(FromPeer("a", message, 99), net.now)
    assert not link.synced
    assert list(link.inward[0].holding.entries) == ["k1"]
    broker.handle(PeerDown("a", 99), net.now)
    net.connect("a", "b")
    assert link.synced
    assert len(net.held("b", "a")) == 20


@pytest.mark.parametrize("restarted", [False, True])
def test_a_broker_that_has_forgotten_a_neighbour_sends_it_what_it_missed_unasked(
    restarted: bool,
) -> None:
    """The neighbour may not know that it was forgotten: its own removal of the link was lost in a crash."""
    net = Net([("a", "b")], strategy="covering")
    net.join("a", "ann")
    net.join("b", "bob")
    assert net.subscribe("a", "ann", "s", "p < 12", durable=True)
    net.disconnect("a", "b")
    net.handle("b", RemovePeer("a"))
    net.publish("b", "bob", {"p": 1}, {"p": 20}, durable=True)
    net.handle("b", AddPeer("a"))
    if restarted:
        net.start("b")
    net.connect("a", "b")
    assert net.delivered("ann") == [{"p": 1}]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("strategy", ["flooding", "covering"])
def test_a_neighbour_that_remembers_has_nothing_of_what_one_that_forgot_it_numbers_anew(
    strategy: str, restarted: bool
) -> None:
    """a has had one event of b's stream. To b, which has forgotten a, that must not be the one that is first now."""
    net = Net([("a", "b")], strategy=strategy)
    net.join("a", "ann")
    net.join("b", "bob")
    assert net.subscribe("a", "ann", "s", "p < 12", durable=True)
    net.publish("b", "bob", {"p": 1}, durable=True)
    net.disconnect("a", "b")
    net.handle("b", RemovePeer("a"))
    net.publish("b", "bob", {"p": 2}, durable=True)
    net.handle("b", AddPeer("a"))
    if restarted:
        net.start("b")
    net.connect("a", "b")
    assert net.delivered("ann") == [{"p": 1}, {"p": 2}]


def test_what_a_neighbour_is_told_for_the_first_time_in_an_unbroken_link_is_not_late() -> None:
    net = Net([("a", "b")], strategy="covering")
    net.join("a", "ann")
    net.join("b", "bob")
    net.publish("b", "bob", {"p": 1}, durable=True)
    assert net.subscribe("a", "ann", "s", "p < 12", durable=True)
    assert net.delivered("ann") == []


def test_advertisements_of_a_forgotten_neighbour_bring_late_events_back_from_there() -> None:
    """b forgets a, so c's subscriptions go from a; what is published there meanwhile comes when b is told again."""
    net = Net([("a", "b"), ("b", "c")], strategy="covering", advertisements=True)
    net.join("a", "ann")
    net.join("c", "cyd")
    net.say("a", "ann", Advertise(900, "all", "p >= 0", True))
    assert net.subscribe("c", "cyd", "s", "p < 12", durable=True)
    net.disconnect("a", "b")
    net.handle("b", RemovePeer("a"))
    net.run()
    net.publish("a", "ann", {"p": 1}, durable=True)
    net.handle("b", AddPeer("a"))
    net.connect("a", "b")
    net.wait(3.0)
    assert net.delivered("cyd") == [{"p": 1}]
