"""A shared diagram at rest: flat, restricted if wanted, ready to be evaluated.

Matching has two steps (Li, Hou and Jacobsen, section 3.3): the predicate index gives each variable its truth, then
one pass over the nodes gives each root its value. EvalBDD serves `sql`, `simple` and `default`; MVEvalBDD serves
`strict`; the sweep serves all of them for many events at once.

Under `strict` a root's value is only half the answer. The semantics is syntactic: an event must define every
attribute that the filter names. A reduced diagram may have lost a test that doesn't matter, a restricted one more of
them (`price < 1000 OR price > 500` restricts to true), and then MVEvalBDD sees no star although the attribute is
missing. So each subscription keeps the set of attributes that its filter names, equal sets are kept once, and a
match needs a true root and an adequate event. Where the event is adequate no star arises in the subscription's part
of the diagram, so that the root's value is the two-valued truth. Since an inadequate event never gets through,
restriction may take every attribute as defined.

A snapshot takes single additions and removals (Campailla et al. leave that to a new diagram; here matching goes on).
`add` puts the subscription into the diagram, restricts its root alone, and appends what is new of it to the nodes; a
removed root is false from then on. That costs as much as the subscription is large, not as the snapshot is:
restriction went query by query before, too. Once as much was appended as was there, or half of all roots are gone, the
nodes are sorted anew (`node_store.py`). What others do to the diagram a snapshot doesn't see, and it refuses to work
from then on. It keeps the nodes' values in one buffer, so that two threads need two snapshots, of two diagrams if these
change.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.adequacy import AttributeSets
from covey.diagrams.attribute_tests import TRUE, Truths
from covey.diagrams.flat import FlatDiagram, walk_alone
from covey.diagrams.node_store import NodeStore
from covey.diagrams.restriction import restrict
from covey.diagrams.shared import SharedDiagram
from covey.diagrams.words import pack, unpack
from covey.diagrams.worlds import ANY, Domain
from covey.errors import CoveyError, UnknownIdError
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Lookup, attribute_value
from covey.kernels.diagrams import cache_groups, eval_bdd, mv_eval_bdd, sweep_groups

CACHE_BYTES = 1 << 20
"""What the rows of one group may take in a sweep: most of a second-level cache."""

_FEW_GONE = 64
"""Removed roots that aren't worth tidying up for."""


_NO_LEVELS: Final = np.empty(0, dtype=np.int64)


class Place(Enum):
    """What stands in `Snapshot.ids` where no subscription is any more."""

    EMPTY = "empty"


EMPTY: Final = Place.EMPTY


class Snapshot:
    """The roots of a shared diagram, to be matched against events."""

    def __init__(
        self, diagram: SharedDiagram, *, restricted: bool = True, domains: Mapping[str, Domain] | None = None
    ) -> None:
        """All subscriptions of a diagram as they are now.

        `diagram`: where they are, and where `add` and `remove` change them.
        `restricted`: leave out tests whose truth follows from others (`restriction.py`); the answers are the same.
        `domains`: what is known of attributes beforehand. Events must keep to it, and restriction profits.
        """
        self.ids: list[Hashable] = list(diagram)
        """Subscriptions by their places; `EMPTY` where one was removed."""
        self.semantics = diagram.semantics
        self._diagram = diagram
        self._version = diagram.version
        self._restricted = restricted
        self._domains = dict(domains or {})
        self._places = {identifier: at for at, identifier in enumerate(self.ids)}
        named = [diagram[identifier].attributes for identifier in self.ids]
        self._sets = AttributeSets(named)
        flat = diagram.flatten()
        if restricted:
            flat = restrict(flat, diagram.index.test, self._known(frozenset[str]().union(*named)))
        self._store = NodeStore(flat)
        self._value = np.zeros(self._store.nodes, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._places

    @property
    def flat(self) -> FlatDiagram:
        """Nodes and roots as arrays. After changes they aren't sorted by level, and some may be dead, until `tidy`."""
        return self._store.flat(self._diagram.levels())

    def add(self, identifier: Hashable, condition: Filter) -> None:
        """Insert a subscription, into the diagram too; on any error nothing changes.

        `identifier`: what it is known by; one that is there already is an error.
        `condition`: its filter.
        """
        self._check_version()
        self._diagram.add(identifier, condition)
        self._version = self._diagram.version
        entry = self._diagram[identifier]
        part, variables = walk_alone(entry.root)
        if self._restricted:
            part = restrict(part, lambda at: self._diagram.index.test(variables[at]), self._known(entry.attributes))
        self._places[identifier] = len(self.ids)
        self.ids.append(identifier)
        self._store.add(part, variables)
        self._sets.add(entry.attributes)
        if self._store.is_untidy():
            self.tidy()
        elif self._store.nodes > len(self._value):
            self._value = np.zeros(2 * self._store.nodes, dtype=np.uint8)

    def remove(self, identifier: Hashable) -> None:
        """Remove a subscription, from the diagram too.

        `identifier`: one that is there; any other is an error.
        """
        self._check_version()
        if identifier not in self._places:
            raise UnknownIdError(f"no subscription has the id {identifier!r}")
        self._diagram.remove(identifier)
        self._version = self._diagram.version
        place = self._places.pop(identifier)
        self._store.remove(place)
        self.ids[place] = EMPTY
        if len(self.ids) > 2 * len(self._places) + _FEW_GONE:
            self.tidy()

    def replace(self, identifier: Hashable, condition: Filter) -> None:
        """Give a subscription another filter; it goes to the end of `ids`. If that is an error, the old one stays.

        `identifier`: one that is there; any other is an error.
        `condition`: the filter from now on.
        """
        self._check_version()
        before = self._diagram[identifier].filter
        self.remove(identifier)
        try:
            self.add(identifier, condition)
        except (CoveyError, TypeError):
            self.add(identifier, before)
            raise

    def tidy(self) -> None:
        """Sort the nodes by level, and drop those that only removed subscriptions had, and their places."""
        self._check_version()
        kept = np.array(list(self._places.values()), dtype=np.intp)
        self._store.tidy(kept, self._diagram.levels())
        self.ids = list(self._places)
        self._places = {identifier: at for at, identifier in enumerate(self.ids)}
        self._sets = AttributeSets([self._diagram[identifier].attributes for identifier in self.ids])
        self._value = np.zeros(self._store.nodes, dtype=np.uint8)

    def match(self, event: Mapping[str, Any], *, defaults: Defaults | None = None) -> list[Hashable]:
        """The ids of the subscriptions that the event meets, in the order in which they came.

        `event`: attributes by name; nested ones by dotted names.
        `defaults`: values of attributes that an event lacks, under the semantics `default`.
        """
        return [self.ids[number] for number in self.matching(event, defaults=defaults).tolist()]

    def matching(self, event: Mapping[str, Any], *, defaults: Defaults | None = None) -> NDArray[np.intp]:
        """The places in `ids` of the subscriptions that the event meets, ascending.

        Under `strict` only roots whose attributes the event defines are read, so that a sparse event costs less.

        `event`, `defaults`: as in `match`.
        """
        self._pass(self.truths(event, defaults=defaults))
        roots = self._store.roots
        if self.semantics != "strict":
            return np.flatnonzero(self._value[roots] == TRUE)
        adequate = self._sets.adequate(self._lookup(event, None))
        count = self._sets.count(adequate)
        if count == 0:
            return np.empty(0, dtype=np.intp)
        if 4 * count > len(self.ids):  # Most must be read: better all of them, in order.
            return np.flatnonzero((self._value[roots] == TRUE) & adequate[self._sets.of_root])
        candidates = self._sets.roots(adequate)
        return np.sort(candidates[self._value[roots[candidates]] == TRUE])

    def truths(self, event: Mapping[str, Any], *, defaults: Defaults | None = None) -> Truths:
        """The first step: each variable's truth, FALSE, TRUE or UNDEFINED.

        `event`, `defaults`: as in `match`.
        """
        self._check_version()
        lookup = self._lookup(event, defaults)
        return self._diagram.index.truth_assignment(lookup, three_valued=self.semantics == "sql")

    def evaluate(self, truths: Truths) -> Truths:
        """The second step: each root's value, by EvalBDD, or under `strict` by MVEvalBDD, where UNDEFINED is star.

        `truths`: one for each variable, as `truths` gives them.
        """
        self._pass(truths)
        return self._value[self._store.roots]

    def match_many(
        self, events: Sequence[Mapping[str, Any]], *, defaults: Defaults | None = None, cache_bytes: int = CACHE_BYTES
    ) -> list[list[Hashable]]:
        """For each event the ids of the subscriptions that it meets, 64 events at a time a word.

        `events`: each as in `match`.
        `defaults`: as in `match`.
        `cache_bytes`: as in `sweep`.
        """
        if not self.ids or not events:
            return [[] for _ in events]
        truths = np.stack([self.truths(event, defaults=defaults) for event in events])
        met = self.sweep(pack((truths == TRUE).T), cache_bytes=cache_bytes)
        if self.semantics == "strict":
            adequate = np.stack([self._sets.adequate(self._lookup(event, None)) for event in events])
            met &= pack(adequate.T)[self._sets.of_root]
        matrix = unpack(met, len(events))
        return [[self.ids[number] for number in np.flatnonzero(matrix[:, at])] for at in range(len(events))]

    def sweep(self, bits: NDArray[np.uint64], *, cache_bytes: int = CACHE_BYTES) -> NDArray[np.uint64]:
        """Each root's value for many events at once, a row a root, a bit an event.

        `bits`: which tests hold, a row a variable, a bit an event (`pack`).
        `cache_bytes`: what the rows of one group of roots may take.
        """
        flat = self._store.flat(_NO_LEVELS)
        words = bits.shape[1]
        # Neighbouring roots share most: those of one variable, and of these the ones with the same children.
        order = np.argsort(flat.roots, kind="stable").astype(np.uint32)
        groups = cache_groups(flat.variable, flat.low, flat.high, flat.roots, order, cache_bytes // (8 * words))
        rows = np.empty((int(np.diff(groups[0]).max()), words), dtype=np.uint64)
        result = np.empty((len(flat.roots), words), dtype=np.uint64)
        sweep_groups(*groups, np.ascontiguousarray(bits), rows, result)
        return result

    def _lookup(self, event: Mapping[str, Any], defaults: Defaults | None) -> Lookup:
        if self.semantics == "default" and defaults is not None:
            given = defaults
            return lambda name: given.get(name) if (found := attribute_value(event, name)) is None else found
        return lambda name: attribute_value(event, name)

    def _pass(self, truths: Truths) -> None:
        algorithm = mv_eval_bdd if self.semantics == "strict" else eval_bdd
        algorithm(*self._store.runs(), *self._store.children(), truths, self._value)

    def _check_version(self) -> None:
        if self._version != self._diagram.version:
            raise CoveyError("the diagram has changed since this snapshot; take a new one, or change it here")

    def _known(self, names: Iterable[str]) -> Mapping[str, Domain]:
        """What is known of attributes when roots that name these are restricted."""
        if self.semantics != "strict":
            return self._domains
        return {name: replace(self._domains.get(name, ANY), required=True) for name in names}
