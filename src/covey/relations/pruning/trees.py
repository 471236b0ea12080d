"""Subscription trees, and why a pruning only ever generalises (Bittner and Hinze, Sect. 2.2).

A filter becomes a tree of conjunctions (ALL) and disjunctions (ANY) over leaves by pushing every NOT down to the
predicates: NOT of AND is the OR of the NOTs, and the other way round. Both laws hold in two-valued logic and in SQL's
three-valued one. A leaf is a predicate, a negated predicate (a leaf of its own: under SQL's logic its chance isn't one
minus the predicate's), a constant, or an `IS` that can't be looked into. `f IS TRUE` is true where `f` is and
`f IS FALSE` where NOT `f` is, so where they aren't negated they can; `IS UNKNOWN` and negated `IS` aren't monotone in
what is true, so they stay whole.

In such a tree an event makes ALL true where it makes each child true, and ANY true where it makes one true; unknown
never becomes true on the way up. So "true" of the root is a monotone function of "true" of the leaves. A pruning
removes a child of a conjunction, which is to say that it replaces it by TRUE: the function can only become true for
more events. Replacing a child of a disjunction by TRUE makes the whole disjunction TRUE, which is the pruning of that
disjunction further up; removing it would specialise. Hence the children of conjunctions are all the prunings there
are. `strict` semantics also asks for every attribute that the filter names: a pruned filter names fewer. What isn't a
conjunction anywhere has no pruning, so the last predicate of a subscription is never removed; the root never is.

A conjunction left with one child becomes that child, and a disjunction that thereby stands in a disjunction becomes
part of it. However one goes about it, a conjunction of k children has k - 1 prunings in it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from covey.filters import And, Filter, Is, Not, Or
from covey.filters.algebra import all_of, any_of
from covey.kernels.pruning import ALL, ANY, LEAF
from covey.relations.pruning.leaves import LeafTable


class Flattening:
    """Collects filters as trees in preorder: the layout of `kernels`, with leaves numbered by a table."""

    def __init__(self, leaves: LeafTable) -> None:
        self.kind = array("b")
        self.size = array("i")
        self.leaf = array("i")
        self.lengths = array("q")
        self._leaves = leaves

    def add(self, condition: Filter) -> None:
        """Append one filter. Keeps its own stack, since filters built in Python can be deeper than Python's."""
        kind, size, leaf, number = self.kind, self.size, self.leaf, self._leaves.number
        first = len(kind)
        stack: list[tuple[Filter | int, bool, int]] = [(condition, False, LEAF)]
        while stack:
            node, negated, within = stack.pop()
            if isinstance(node, int):
                size[node] = len(kind) - node
            elif isinstance(node, (And, Or)):
                own = ALL if isinstance(node, And) is not negated else ANY
                if own != within:
                    stack.append((len(kind), False, own))
                    kind.append(own)
                    size.append(0)
                    leaf.append(-1)
                stack.extend([(part, negated, own) for part in reversed(node.parts)])
            elif isinstance(node, Not):
                stack.append((node.part, not negated, within))
            elif isinstance(node, Is) and not negated and node.truth is not None:
                stack.append((node.part, not node.truth, within))
            else:
                kind.append(LEAF)
                size.append(1)
                leaf.append(number(node, negated))
        self.lengths.append(len(kind) - first)


def rebuilt(kind: Sequence[int], size: Sequence[int], leaf: Sequence[int], leaves: Sequence[Filter]) -> Filter:
    """The filter of one tree."""
    built: list[Filter | None] = [None] * len(kind)
    for at in range(len(kind) - 1, -1, -1):
        if kind[at] == LEAF:
            built[at] = leaves[leaf[at]]
            continue
        parts: list[Filter] = []
        child = at + 1
        while child < at + size[at]:
            part = built[child]
            assert part is not None
            parts.append(part)
            child += size[child]
        built[at] = all_of(parts) if kind[at] == ALL else any_of(parts)
    root = built[0]
    assert root is not None
    return root
