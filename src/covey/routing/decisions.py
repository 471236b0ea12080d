"""Whether an event goes over a link, and why (rule 1 of `broker.py`).

Written once: the router sends by it, and `covey trace` and the console show it.
"""

from __future__ import annotations

from enum import Enum

from covey.routing.links import Link


class Decision(Enum):
    """Whether an event goes, and why."""

    CAME_FROM_THERE = (False, "the event came from there")
    NOT_IN_TREE = (False, "the link isn't in the spanning tree")
    FLOODED = (True, "flooding sends everything everywhere")
    NOT_KNOWN_YET = (True, "its tables aren't known yet, so it gets everything")
    NOT_THERE = (False, "it isn't there")
    MATCHED = (True, "entries match")
    NOT_FILTERED = (True, "filtering is off, since most events match there")
    NOT_MATCHED = (False, "none of its entries matches")

    def __init__(self, goes: bool, reason: str) -> None:
        self.goes = goes
        self.reason = reason

    def explained(self, link: Link) -> str:
        """The reason in a sentence for people."""
        waits = self.goes and not link.up
        return f"{self.reason}; it isn't there, so durable events wait for it" if waits else self.reason


def decide(link: Link, source: str | None, matched: bool) -> Decision:
    """Whether an event goes over a link: where it came from (None for here), and whether the neighbour's entries match
    it, decide. Changes nothing."""
    if link.peer == source:
        return Decision.CAME_FROM_THERE
    if not link.in_tree:
        return Decision.NOT_IN_TREE
    if link.floods:
        return Decision.FLOODED
    if not link.filtered:
        return Decision.NOT_KNOWN_YET if link.up else Decision.NOT_THERE
    if matched:
        return Decision.MATCHED
    return Decision.NOT_MATCHED if link.traffic.filtering else Decision.NOT_FILTERED
