"""Many subscriptions in one shared diagram: one variable a test, one root a subscription, equal parts stored once.

Campailla et al.'s query BDD (section 6), and Li, Hou and Jacobsen's MBDs (section 3): an MBD is a set of roots that
share nodes, and where all diagrams live in one table, figure 4's search for an MBD to insert into is the table's own
hash lookup. `mbds` of `sharing.py` reads the MBDs off the result.

The diagrams are oxidd's, reduced and ordered, without complement edges, so that a node is a row of an array later.
Tests are numbered by the predicate index; the diagram's variable has the same number. A subscription uses each of
its tests once, and releases them when it is removed; a released number is taken by the next new test, which is safe
because no root that could reach it is left. Dead nodes stay in
the library's table until it is full; then they are collected, and the step is tried again.

A new test goes among those of its attribute (`order.py`), so that subscriptions which differ in one test share all
that is below it, also where they come one by one. A new attribute goes to the bottom, as filters are written, or to the
place that a history gives it. Moving a variable there swaps levels: microseconds in a small diagram, 1 to 15 ms among
20,000 variables and 200,000 nodes. A filter that is too large in this order, but not with its new tests at the bottom,
has them there. `add_many` sorts its new tests first, `reorder` sorts all; the paper finds that the order matters
little, and that adapting it with each subscription doesn't pay.

What a root means depends on the semantics (`filters/two_valued.py`). Under `strict` it is only half the answer; the
other half is the set of attributes that the filter names, kept here.

Not safe for several threads at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from covey.diagrams.flat import FlatDiagram, Levels, flatten, walk
from covey.diagrams.library import BDDFunction, BDDManager, DDMemoryError
from covey.diagrams.order import OrderName, among, arrange
from covey.diagrams.predicate_index import PredicateIndex
from covey.diagrams.trial import Trial, may_be_large
from covey.errors import CoveyError, DuplicateIdError, LimitError, UnknownIdError
from covey.filters.algebra import Filter
from covey.filters.semantics import Semantics, check_semantics
from covey.filters.two_valued import Lowering, Test, attribute_of
from covey.history.asked import History, asked_in_turn, learned_attributes
from covey.limits import DEFAULT_LIMITS, Limits

NODE_CAPACITY = 1 << 24
"""Nodes that one shared diagram may have. Only what is used takes memory."""

_CACHE_ENTRIES = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Subscription:
    """A filter in the shared diagram."""

    filter: Filter
    root: BDDFunction
    variables: tuple[int, ...]
    attributes: frozenset[str]


class SharedDiagram:
    """Subscriptions by id, as roots of one diagram."""

    def __init__(
        self,
        semantics: Semantics = "sql",
        *,
        index: PredicateIndex | None = None,
        node_capacity: int = NODE_CAPACITY,
        limits: Limits = DEFAULT_LIMITS,
        variable_for_inequality: bool = False,
        beside: bool = True,
        history: History | None = None,
    ) -> None:
        """An empty diagram.

        `semantics`: what a filter means where an event lacks an attribute: `sql`, `simple`, `strict` or `default`.
        `index`: the predicate index to number tests by; one of its own where none is given. Diagrams may share one.
        `node_capacity`: nodes that the library's table may hold, dead ones included.
        `limits`: `Limits.diagram_nodes` bounds the diagram of each subscription.
        `variable_for_inequality`: see `Lowering`; for counting as the first paper does.
        `beside`: put new tests among those of their attribute; without, all go to the bottom, and no level is swapped.
        `history`: what past subscriptions asked for; an attribute that is new here takes the place learned from it.
        """
        self.semantics = check_semantics(semantics)
        self.index = index if index is not None else PredicateIndex()
        self.version = 0
        self._limits = limits
        self._variable_for_inequality = variable_for_inequality
        self._beside = beside
        learned = learned_attributes(history.attributes, history) if history is not None else []
        self._place = {name: at for at, name in enumerate(learned)}
        self._manager = BDDManager(node_capacity, _CACHE_ENTRIES, 1)
        self._subscriptions: dict[Hashable, Subscription] = {}
        self._used: dict[Test, int] = {}
        self._trial = Trial(limits)
        self._lowering = Lowering(
            self.semantics,
            self._variable,
            self._manager.true(),
            self._manager.false(),
            variable_for_inequality=variable_for_inequality,
        )

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._subscriptions

    def __iter__(self) -> Iterator[Hashable]:
        """Ids, in the order in which they came."""
        return iter(self._subscriptions)

    def __getitem__(self, identifier: Hashable) -> Subscription:
        found = self._subscriptions.get(identifier)
        if found is None:
            raise UnknownIdError(f"no subscription has the id {identifier!r}")
        return found

    def add(self, identifier: Hashable, condition: Filter) -> None:
        """Insert a subscription; on any error nothing changes.

        `identifier`: what it is known by; one that is there already is an error.
        `condition`: its filter.
        """
        self._insert(identifier, condition, beside=self._beside)

    def add_many(
        self,
        subscriptions: Iterable[tuple[Hashable, Filter]],
        *,
        order: OrderName = "attribute",
        history: History | None = None,
        seed: int = 0,
    ) -> None:
        """Insert subscriptions one after the other; those before one that is an error stay.

        `subscriptions`: ids and filters.
        `order`: how new variables are sorted, one of `ORDERS` (`order.py`). By `attribute` and `learned`, tests of an
            attribute that the diagram has go beside its tests; all others go to the bottom.
        `history`: what `frequency` and `learned` go by; the subscriptions themselves where none is given.
        `seed`: for `random`.
        """
        listed = list(subscriptions)
        known = history or self._history(condition for _, condition in listed)
        new = arrange([test for test in known.tests if test not in self.index], order, known, seed=seed)
        moving = self._with_a_place(new) if self._beside and order in ("attribute", "learned") else []
        taken = [self._take(test) for test in new]
        try:
            self._move(moving)
            for identifier, condition in listed:
                self._insert(identifier, condition, beside=False)
        finally:
            for variable in taken:
                self.index.release(variable)

    def levels(self) -> Levels:
        """The place of each variable in the order, 0 on top."""
        return np.array([self._manager.var_to_level(at) for at in range(self._manager.num_vars())], dtype=np.int64)

    def _insert(self, identifier: Hashable, condition: Filter, *, beside: bool) -> None:
        if identifier in self._subscriptions:
            raise DuplicateIdError(f"a subscription with the id {identifier!r} is there already; remove it first")
        self._used = {}
        try:
            root = self._build(identifier, condition, beside)
            self._check(identifier, root)
        except (CoveyError, TypeError):
            for variable in self._used.values():
                self.index.release(variable)
            raise
        self._subscriptions[identifier] = Subscription(
            condition, root, tuple(self._used.values()), condition.attributes()
        )
        self.version += 1

    def remove(self, identifier: Hashable) -> None:
        """Remove the subscription of this `identifier`; tests that nobody else uses are released."""
        gone = self[identifier]
        del self._subscriptions[identifier]
        for variable in gone.variables:
            self.index.release(variable)
        self.version += 1

    def reorder(self, order: OrderName, *, history: History | None = None, seed: int = 0) -> None:
        """Sort all variables. Costs many level swaps in a large diagram.

        `order`: one of `ORDERS`.
        `history`: what `frequency` and `learned` go by; the subscriptions that are here where none is given.
        `seed`: for `random`.
        """
        known = history or self._history(entry.filter for entry in self._subscriptions.values())
        self._set_order(
            arrange([test for _, test in sorted(self.index, key=lambda pair: pair[0])], order, known, seed=seed)
        )
        self.version += 1

    def node_count(self) -> int:
        """Inner nodes that some root reaches."""
        return self.flatten().node_count

    def flatten(self, identifier: Hashable | None = None) -> FlatDiagram:
        """The diagram as arrays, one root a subscription in the order of ids; or that of one `identifier` alone."""
        if identifier is not None:
            return walk(self[identifier].root)
        return flatten(self._manager, [entry.root for entry in self._subscriptions.values()])

    def _build(self, identifier: Hashable, condition: Filter, beside: bool) -> BDDFunction:
        if not self._prepare(condition, beside):
            raise LimitError(
                f"subscription {identifier!r}: its diagram would have far more nodes than the limit of "
                f"{self._limits.diagram_nodes} (Limits.diagram_nodes); split the filter"
            )
        try:
            return self._lowering.holds(condition)
        except DDMemoryError:
            self._manager.gc()
        try:
            return self._lowering.holds(condition)
        except DDMemoryError:
            raise LimitError(
                f"subscription {identifier!r}: the shared diagram is full; give it a larger node_capacity"
            ) from None

    def _prepare(self, condition: Filter, beside: bool) -> bool:
        """Take the variables of a filter, new ones at their place; false if its diagram wouldn't fit in any."""
        large = may_be_large(condition)
        if not large and not beside:
            return True
        asked = asked_in_turn(condition, self.semantics, variable_for_inequality=self._variable_for_inequality)
        moving = self._with_a_place([test for test in asked if test not in self.index]) if beside else []
        for test in asked:
            self._variable(test)
        standing = self._standing() if large and moving else []
        self._move(moving)
        if not large or self._fits_alone(condition):
            return True
        if not moving:
            return False
        self._set_order(standing)
        return self._fits_alone(condition)

    def _fits_alone(self, condition: Filter) -> bool:
        order = sorted(self._used, key=lambda test: self._manager.var_to_level(self._used[test]))
        return self._trial.fits(condition, order, self.semantics, variable_for_inequality=self._variable_for_inequality)

    def _with_a_place(self, new: list[Test]) -> list[Test]:
        """Of new tests, those whose attribute has tests here already, or a learned place."""
        return [test for test in new if self.index.asks(name := attribute_of(test)) or name in self._place]

    def _move(self, moving: list[Test]) -> None:
        """Put tests that no diagram asks yet where they belong."""
        if moving:
            new = set(moving)
            self._set_order(among([test for test in self._standing() if test not in new], moving, self._place))

    def _standing(self) -> list[Test]:
        """All tests in use, from top to bottom."""
        level = self._manager.var_to_level
        return [test for _, test in sorted(self.index, key=lambda pair: level(pair[0]))]

    def _set_order(self, tests: Iterable[Test]) -> None:
        variables = [self.index.find(test) for test in tests]
        self._manager.set_var_order([variable for variable in variables if variable is not None])

    def _history(self, filters: Iterable[Filter]) -> History:
        return History.of(filters, self.semantics, variable_for_inequality=self._variable_for_inequality)

    def _variable(self, test: Test) -> BDDFunction:
        variable = self._used.get(test)
        if variable is None:
            variable = self._used[test] = self._take(test)
        return self._manager.var(variable)

    def _take(self, test: Test) -> int:
        variable = self.index.variable(test)
        missing = self.index.size - self._manager.num_vars()
        if missing > 0:
            self._manager.add_vars(missing)
        return variable

    def _check(self, identifier: Hashable, root: BDDFunction) -> None:
        nodes = root.node_count()
        if nodes > self._limits.diagram_nodes:
            raise LimitError(
                f"subscription {identifier!r}: its diagram has {nodes} nodes, more than the limit of "
                f"{self._limits.diagram_nodes} (Limits.diagram_nodes); split the filter"
            )
