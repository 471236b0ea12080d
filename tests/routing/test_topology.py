from __future__ import annotations

import random
from itertools import combinations

import pytest

from covey.routing.messages import LinkState
from covey.routing.topology import Topology, spanning_tree


def connected(nodes: set[str], links: list[tuple[str, str]]) -> bool:
    reached, frontier = {min(nodes)}, [min(nodes)]
    while frontier:
        node = frontier.pop()
        for pair in links:
            if node in pair:
                other = pair[0] if pair[1] == node else pair[1]
                if other not in reached:
                    reached.add(other)
                    frontier.append(other)
    return reached == nodes


def states(links: dict[tuple[str, str], bool], number: int = 1) -> list[LinkState]:
    names = sorted({name for link in links for name in link})
    return [
        LinkState(name, number, sorted((b if a == name else a, up) for (a, b), up in links.items() if name in (a, b)))
        for name in names
    ]


@pytest.mark.parametrize("seed", range(30))
def test_the_tree_spans_and_uses_a_broken_link_only_where_no_way_leads_around(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"n{at}" for at in range(rng.randint(2, 7))]
    links = {pair: rng.random() < 0.6 for pair in combinations(names, 2) if rng.random() < 0.7}
    links.update(
        {(names[at], names[at + 1]): links.get((names[at], names[at + 1]), False) for at in range(len(names) - 1)}
    )
    topology = Topology(names[0])
    for state in states(links):
        topology.learn(state)
    tree = topology.tree()
    assert len(tree) == len(names) - 1
    assert connected(set(names), tree)
    for broken in tree:
        if not links[broken]:
            working = [link for link, up in links.items() if up]
            reached = {broken[0]}
            while True:
                more = {n for link in working for n in link if set(link) & reached} - reached
                if not more:
                    break
                reached |= more
            assert broken[1] not in reached


@pytest.mark.parametrize("seed", range(10))
def test_all_brokers_compute_one_tree_whatever_the_order_of_news(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"n{at}" for at in range(6)]
    news = states({pair: rng.random() < 0.8 for pair in combinations(names, 2) if rng.random() < 0.6})
    found = []
    for name in names:
        topology = Topology(name)
        for state in rng.sample(news, len(news)):
            topology.learn(state)
        found.append((topology.digest, sorted(topology.tree())))
    assert all(one == found[0] for one in found)


def test_an_acyclic_network_is_its_own_tree_whatever_fails() -> None:
    links = [("a", "b"), ("b", "c"), ("b", "d")]
    for down in range(8):
        topology = Topology("b")
        for state in states({link: not down >> at & 1 for at, link in enumerate(links)}):
            topology.learn(state)
        assert sorted(topology.tree()) == links
        assert topology.tree_neighbours() == {"a", "c", "d"}


def test_only_a_higher_number_is_news() -> None:
    topology = Topology("a")
    assert topology.learn(LinkState("a", 2, [("b", True)]))
    assert not topology.learn(LinkState("a", 2, [("c", True)]))
    assert not topology.learn(LinkState("a", 1, []))
    before = topology.digest
    assert topology.learn(LinkState("a", 3, []))
    assert topology.digest != before


def test_a_link_that_one_end_does_not_list_is_no_link() -> None:
    topology = Topology("a")
    topology.learn(LinkState("a", 1, [("b", True)]))
    assert topology.links() == {("a", "b"): False}
    topology.learn(LinkState("b", 1, []))
    assert topology.links() == {}


def test_names_decide_between_equal_links() -> None:
    assert spanning_tree([(False, "b", "c"), (False, "a", "c"), (False, "a", "b")]) == [("a", "b"), ("a", "c")]
