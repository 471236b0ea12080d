"""Which brokers and links are shown as working, from what was told and when."""

from __future__ import annotations

from covey.console.overlay import FRESH_SECONDS, overlay
from covey.network.survey_messages import Figures, LinkFigures
from covey.network.surveys import Heard

NOW = 100.0
LINE = {("a", "b"): True, ("b", "c"): True}


def told(*links: tuple[str, bool], age: float = 0.0) -> Heard:
    ends = [LinkFigures(peer, up, True, False, True, 0, 0, 0, 0, 0) for peer, up in links]
    return Heard(Figures("covering", 1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ends), NOW - age)


def states(heard: dict[str, Heard], links: dict[tuple[str, str], bool] | None = None) -> dict[str, str]:
    found = overlay("a", links or LINE, [], heard, NOW)
    return {broker.name: broker.state for broker in found.brokers}


def test_everyone_who_has_told_lately_is_up() -> None:
    heard = {"a": told(("b", True)), "b": told(("a", True), ("c", True)), "c": told(("b", True))}
    assert states(heard) == {"a": "up", "b": "up", "c": "up"}


def test_who_is_linked_and_has_not_told_is_asked() -> None:
    assert states({"a": told(("b", True))}) == {"a": "up", "b": "asked", "c": "asked"}


def test_a_neighbour_whose_link_is_closed_is_down_at_once_though_link_states_say_up() -> None:
    heard = {"a": told(("b", False)), "b": told(("a", True), ("c", True)), "c": told(("b", True))}
    assert states(heard) == {"a": "up", "b": "down", "c": "cut off"}


def test_a_broker_further_away_is_down_where_its_neighbour_says_so() -> None:
    heard = {"a": told(("b", True)), "b": told(("a", True), ("c", False))}
    assert states(heard) == {"a": "up", "b": "up", "c": "down"}


def test_what_was_told_too_long_ago_says_nothing() -> None:
    old = told(("a", False), ("c", True), age=FRESH_SECONDS + 1)
    assert states({"a": told(("b", True)), "b": old})["b"] == "asked"


def test_a_ring_goes_around_a_broken_link() -> None:
    ring = {("a", "b"): True, ("b", "c"): True, ("a", "c"): True}
    heard = {"a": told(("b", False), ("c", True)), "b": told(("c", True)), "c": told(("a", True), ("b", True))}
    found = overlay("a", ring, [("a", "c"), ("b", "c")], heard, NOW)
    assert {(broker.name, broker.state, broker.hops) for broker in found.brokers} == {
        ("a", "up", 0), ("b", "up", 2), ("c", "up", 1),
    }  # fmt: skip
    assert {(link.a, link.b): (link.up, link.in_tree) for link in found.links} == {
        ("a", "b"): (False, False), ("a", "c"): (True, True), ("b", "c"): (True, True),
    }  # fmt: skip


def test_the_nearest_come_first() -> None:
    links = {("a", "z"): True, ("b", "z"): True}
    heard = {"a": told(("z", True)), "z": told(("a", True), ("b", True)), "b": told(("z", True))}
    assert list(states(heard, links)) == ["a", "z", "b"]
