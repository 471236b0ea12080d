"""The broker's place in the spanning tree: links that join and leave (rules 2, 3 and 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.journal import read
from covey.routing.links import Link
from covey.routing.messages import LinkState, LinkStates
from covey.routing.phases import Signal
from covey.routing.recalls import Recalls
from covey.routing.router import Router
from covey.routing.topology import Topology
from covey.routing.undo import Remembered

AHEAD_SECONDS = 86_400
"""How much the clocks of two brokers may differ."""


class Tree(Remembered):
    """Follows the topology.

    Owns the topology, and says which links are in the tree. May touch the exports and recalls of links that join or
    leave, through `Exporter` and `Recalls`, and lets the router send on what a link leaves behind.
    """

    def __init__(
        self, context: Context, links: Mapping[str, Link], router: Router, exporter: Exporter, recalls: Recalls
    ) -> None:
        self.topology = Topology(context.config.broker)
        self._context = context
        self._links = links
        self._router = router
        self._exporter = exporter
        self._recalls = recalls

    def announce(self) -> None:
        """Tell all brokers about this one's links."""
        broker = self._context.config.broker
        known = self.topology.known(broker)
        links = [(link.peer, not link.failed) for link in self._links.values()]
        state = LinkState(broker, 1 if known is None else known.number + 1, sorted(links))
        if known is None or [tuple(link) for link in known.links] != state.links:
            self._learn([state], None)

    def hear(self, link: Link, message: LinkStates) -> None:
        """Link states from a neighbour."""
        broker = self._context.config.broker
        mine = self.topology.known(broker)
        # Whom another account is about must be able to outnumber it, so numbers end where clocks are in a day.
        most = int((self._context.turn.now + AHEAD_SECONDS) * 1_000_000)
        states = [state for state in message.states if state.number <= most]
        others = [state for state in states if state.origin != broker]
        for state in states:
            if state.origin == broker and mine is not None and _is_forgotten(state, mine):
                others.append(LinkState(mine.origin, state.number + 1, mine.links))
        self._learn(others, link.peer)

    def _learn(self, states: Iterable[LinkState], source: str | None) -> None:
        news = [state for state in states if self.topology.learn(state)]
        if not news:
            return
        for state in news:
            self._context.turn.out.put("topology", state.origin, state)
        for link in self._links.values():
            if link.up and link.peer != source:
                link.send(LinkStates(news))
        self._retree()

    def _retree(self) -> None:
        neighbours = self.topology.tree_neighbours()
        for link in list(self._links.values()):
            if link.in_tree and link.peer not in neighbours:
                self.leave(link)
        for link in list(self._links.values()):
            if not link.in_tree and link.peer in neighbours:
                link.take(Signal.JOINED)
                self._fill(link)
                self._recalls.recall_held(link)

    def restore(self, states: Mapping[str, bytes]) -> None:
        """Take link states back from their rows. Links that were in the tree still are, and nothing is recalled."""
        for value in states.values():
            self.topology.learn(read(value, LinkState))
        before = self.topology.tree_neighbours()
        for link in self._links.values():
            if link.peer in before:
                link.take(Signal.RESUMED)
                self._fill(link)
        self.announce()

    def _fill(self, link: Link) -> None:
        """A link that joined is exported to (rule 2), and what was told over it counts from now on."""
        now = self._context.turn.now
        for outward in link.outward:
            outward.export.change(self._exporter.entries_for(outward.table, link), (), now)
        for inward in link.inward:
            self._exporter.use(link, inward.table, dict(inward.holding.entries), ())

    def leave(self, link: Link) -> None:
        """A link leaves the tree (rule 3)."""
        link.take(Signal.LEFT)
        for inward in link.inward:
            self._exporter.use(link, inward.table, {}, list(inward.holding.entries))
        for outward in link.outward:
            outward.export.clear(self._context.turn.now)
            outward.recalls.clear()
            outward.waits.release()
        if link.failed:
            self._router.reroute(link)


def _is_forgotten(state: LinkState, mine: LinkState) -> bool:
    """Whether others have an account of this broker from a former life that it has forgotten: it is outnumbered."""
    return state.number > mine.number or (state.number == mine.number and state.links != mine.links)
