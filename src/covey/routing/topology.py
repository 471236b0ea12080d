"""The spanning tree that all brokers compute alike from the same link states.

Each broker tells all others which links it is configured with and which of them work (`LinkState`); a higher number
replaces a lower one. The tree is the minimum spanning tree of *all* links, where a link that works is cheaper than one
that doesn't and names decide between equals (Kruskal). So

- links that work are used wherever they connect, and two brokers with the same link states have the same tree;
- a link that doesn't work is in the tree exactly where no path of working links goes around it. Its ends keep what
  they know of each other and what they have for each other until it is back: a cut network is still one tree;
- in an acyclic network the tree is the network and never changes, whatever fails.

A link works where both ends say so. It exists where both ends list it; as long as one end hasn't told its link state,
the other end's word counts. Costs O(links · log links) for each change of a link state, and changes are rare.
Mühl, Fiege and Buchmann (section 2.1) suggest a tree for each source; one tree for all keeps tables by neighbour
instead of by source, and the settling of tables (`settling.py`) needs that.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from covey.routing.messages import LinkState
from covey.routing.ranges import BROKERS
from covey.routing.undo import Remembered


class Topology(Remembered):
    """The link states that one broker knows, and its neighbours in the tree."""

    def __init__(self, broker: str) -> None:
        self.broker = broker
        self._states: dict[str, LinkState] = {}
        self._digest = 0

    @property
    def digest(self) -> int:
        """Equal exactly where two brokers know the same link states."""
        return self._digest

    @property
    def states(self) -> list[LinkState]:
        """All link states."""
        return list(self._states.values())

    def known(self, broker: str) -> LinkState | None:
        """A broker's link state."""
        return self._states.get(broker)

    def learn(self, state: LinkState) -> bool:
        """Take a link state in; False where it isn't news."""
        known = self._states.get(state.origin)
        if known is not None and known.number >= state.number:
            return False
        if known is None and len(self._states) >= BROKERS:
            return False
        self._states[state.origin] = state
        self._digest ^= _hash(state) ^ (0 if known is None else _hash(known))
        return True

    def links(self) -> dict[tuple[str, str], bool]:
        """All links, the smaller name first, and whether they work."""
        said: dict[tuple[str, str], list[bool]] = {}
        for state in self._states.values():
            for peer, up in state.links:
                pair = (state.origin, peer) if state.origin < peer else (peer, state.origin)
                said.setdefault(pair, []).append(up)
        return {
            pair: len(ends) == 2 and all(ends)
            for pair, ends in said.items()
            if len(ends) == 2 or not (pair[0] in self._states and pair[1] in self._states)
        }

    def tree(self) -> list[tuple[str, str]]:
        """The links of the spanning tree (a forest where the network isn't connected)."""
        return spanning_tree((not up, *pair) for pair, up in self.links().items())

    def tree_neighbours(self) -> frozenset[str]:
        """This broker's neighbours in the tree."""
        mine = (pair for pair in self.tree() if self.broker in pair)
        return frozenset(b if a == self.broker else a for a, b in mine)


def spanning_tree(weighted: Iterable[tuple[bool, str, str]]) -> list[tuple[str, str]]:
    """The minimum spanning forest by (weight, names)."""
    leader: dict[str, str] = {}

    def find(node: str) -> str:
        root = node
        while leader.setdefault(root, root) != root:
            root = leader[root]
        while leader[node] != root:
            leader[node], node = root, leader[node]
        return root

    chosen: list[tuple[str, str]] = []
    for _, a, b in sorted(weighted):
        one, other = find(a), find(b)
        if one != other:
            leader[one] = other
            chosen.append((a, b))
    return chosen


def _hash(state: LinkState) -> int:
    text = repr((state.origin, state.number, [tuple(link) for link in state.links]))
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "big")
