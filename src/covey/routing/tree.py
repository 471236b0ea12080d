"""The broker's place in the spanning tree: links that join and leave (rules 2, 3 and 5)."""

from __future__ import annotations

from collections.abc import Iterable

from covey.routing.links import Link
from covey.routing.messages import (
    LinkState,
    LinkStates,
)
from covey.routing.recalls import Recalls


class Tree(Recalls):
    """Follows the topology."""

    def _announce(self) -> None:
        """Tell all brokers about this one's links."""
        known = self.topology.known(self.config.broker)
        links = [(link.peer, not link.failed) for link in self.links.values()]
        state = LinkState(self.config.broker, 1 if known is None else known.number + 1, sorted(links))
        if known is None or [tuple(one) for one in known.links] != state.links:
            self._learn([state], None)

    def _learn(self, states: Iterable[LinkState], source: str | None) -> None:
        news = [state for state in states if self.topology.learn(state)]
        if not news:
            return
        for state in news:
            self._turn.out.put("topology", state.origin, state)
        for link in self.links.values():
            if link.up and link.peer != source:
                link.send(LinkStates(news))
        self._retree()

    def _link_states(self, link: Link, message: LinkStates) -> None:
        mine = self.topology.known(self.config.broker)
        others = [state for state in message.states if state.origin != self.config.broker]
        for state in message.states:
            if state.origin == self.config.broker and mine is not None and _is_forgotten(state, mine):
                others.append(LinkState(mine.origin, state.number + 1, mine.links))
        self._learn(others, link.peer)

    def _retree(self) -> None:
        neighbours = self.topology.tree_neighbours()
        for link in list(self.links.values()):
            if link.in_tree and link.peer not in neighbours:
                self._leave(link)
        for link in list(self.links.values()):
            if not link.in_tree and link.peer in neighbours:
                self._join(link)

    def _join(self, link: Link, *, recall: bool = True) -> None:
        """A link joins the tree (rule 2); what was told over it counts from now on."""
        link.in_tree = True
        if recall:
            link.lapse()
        now = self._turn.now
        for table, outward in enumerate(link.outward):
            outward.export.change(self._entries_for(table, link), (), now)
        for table, inward in enumerate(link.inward):
            self._use(link, table, dict(inward.holding.entries), ())
        if recall:
            self._recall_held(link)

    def _leave(self, link: Link) -> None:
        """A link leaves the tree (rule 3)."""
        link.in_tree = False
        for table, inward in enumerate(link.inward):
            self._use(link, table, {}, list(inward.holding.entries))
        for outward in link.outward:
            outward.export.clear(self._turn.now)
            outward.recalls.clear()
            outward.waits.release()
        if link.failed:
            self._reroute(link)

    def _reroute(self, link: Link) -> None:
        """A link that has failed and isn't in the tree keeps nothing (rule 5)."""
        items = link.outbox.clear()
        envelopes = [self.events[item.event] for item in items]
        self._lose(link, items)
        for envelope in envelopes:
            matched = self.table.match(envelope.attributes)
            for other in self.links.values():
                if other.in_tree and self._wants(other, other.hop in matched):
                    self._forward(other, envelope, recalled=True)


def _is_forgotten(state: LinkState, mine: LinkState) -> bool:
    """Whether others have an account of this broker from a former life that it has forgotten: it is outnumbered."""
    return state.number > mine.number or (state.number == mine.number and state.links != mine.links)
