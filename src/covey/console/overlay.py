"""The whole overlay as one broker sees it: which brokers and links there are, and which of them work.

Link states (`covey.routing.topology`) say which brokers and links exist, and stay when one dies; they hear of a failure
after some seconds only, since tables must not flap. So figures that are fresh go before them: a link works where no end
that has told lately says otherwise. A broker that no working link leads to is *down* where a broker that can be reached
is its neighbour, and *cut off* behind such a one: nothing is known of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from covey.network.survey_messages import Figures, LinkFigures
from covey.network.surveys import Heard

FRESH_SECONDS: Final = 4.0
"""What was told longer ago says nothing about now."""

State: TypeAlias = Literal["up", "asked", "down", "cut off"]
Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One broker."""

    name: str
    state: State
    hops: int | None
    """Links between it and the broker that is asked; None where none lead there."""
    age: float | None
    """Seconds since it told its figures."""
    figures: Figures | None


@dataclass(frozen=True, slots=True)
class LinkView:
    """One link, the smaller name first."""

    a: str
    b: str
    up: bool
    in_tree: bool
    at_a: LinkFigures | None
    at_b: LinkFigures | None


@dataclass(frozen=True, slots=True)
class Overlay:
    """All brokers, the nearest first, and all links."""

    brokers: list[BrokerView]
    links: list[LinkView]


def overlay(
    own: str, links: Mapping[Pair, bool], tree: Iterable[Pair], heard: Mapping[str, Heard], now: float
) -> Overlay:
    """What is known at `now`, the monotonic time."""
    fresh = {name: one.figures for name, one in heard.items() if now - one.at <= FRESH_SECONDS}
    ends = {
        pair: tuple(
            next((link for link in fresh[name].links if link.peer == other), None) if name in fresh else None
            for name, other in (pair, pair[::-1])
        )
        for pair in links
    }
    works = {
        pair: all(end.open for end in told if end is not None) if any(told) else links[pair]
        for pair, told in ends.items()
    }
    distances = _distances(own, [pair for pair, up in works.items() if up])
    known = {own, *(name for pair in links for name in pair)}
    beside = {name for pair in links for name in pair if any(one in distances for one in pair)}

    def broker(name: str) -> BrokerView:
        told = heard.get(name)
        state: State = "up" if name in fresh else "asked"
        if name not in distances:
            state = "down" if name in beside else "cut off"
        age = None if told is None else max(0.0, now - told.at)
        return BrokerView(name, state, distances.get(name), age, None if told is None else told.figures)

    in_tree = set(tree)
    return Overlay(
        [broker(name) for name in sorted(known, key=lambda name: (distances.get(name, len(known)), name))],
        [LinkView(*pair, works[pair], pair in in_tree, *ends[pair]) for pair in sorted(links)],
    )


def _distances(start: str, links: Iterable[Pair]) -> dict[str, int]:
    neighbours: dict[str, list[str]] = {}
    for a, b in links:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    found, waiting = {start: 0}, deque([start])
    while waiting:
        name = waiting.popleft()
        for other in neighbours.get(name, ()):
            if other not in found:
                found[other] = found[name] + 1
                waiting.append(other)
    return found
