"""Many subscriptions in one shared diagram: one variable a test, one root a subscription, equal parts stored once.

Campailla et al.'s query BDD (section 6), and Li, Hou and Jacobsen's MBDs (section 3): an MBD is a set of roots that
share nodes, and where all diagrams live in one table, figure 4's search for an MBD to insert into is the table's own
hash lookup. `mbds` of `sharing.py` reads the MBDs off the result.

The diagrams are oxidd's, reduced and ordered, without complement edges, so that a node is a row of an array later.
Tests are numbered by the predicate index; the diagram's variable has the same number. A subscription uses each of
its tests once, and releases them when it is removed; a released number is taken by the next new test, which is safe
because no root that could reach it is left. Dead nodes stay in
the library's table until it is full; then they are collected, and the step is tried again.

New variables enter at the bottom of the order. `add_many` sorts its new tests first (`order.py`), `reorder` sorts
all of them; the paper finds that the order matters little, and that adapting it with each subscription doesn't pay.

What a root means depends on the semantics (`lowering.py`). Under `strict` it is only half the answer; the other half
is the set of attributes that the filter names, kept here.

Not safe for several threads at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from oxidd.bdd import BDDFunction, BDDManager
from oxidd.util import DDMemoryError

from covey.diagrams.flat import FlatDiagram, flatten, walk
from covey.diagrams.lowering import Lowering, Test
from covey.diagrams.order import History, OrderName, arrange, asked_in_turn
from covey.diagrams.predicate_index import PredicateIndex
from covey.diagrams.trial import Trial, may_be_large
from covey.errors import CoveyError, DuplicateIdError, LimitError, UnknownIdError
from covey.filters.algebra import Filter
from covey.filters.semantics import Semantics, check_semantics
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
    ) -> None:
        """`variable_for_inequality`: see `Lowering`; for counting as the paper does."""
        self.semantics = check_semantics(semantics)
        self.index = index if index is not None else PredicateIndex()
        self.version = 0
        self._limits = limits
        self._variable_for_inequality = variable_for_inequality
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
        """Insert a subscription; on any error nothing changes."""
        if identifier in self._subscriptions:
            raise DuplicateIdError(f"a subscription with the id {identifier!r} is there already; remove it first")
        self._used = {}
        try:
            root = self._build(identifier, condition)
            self._check(identifier, root)
        except (CoveyError, TypeError):
            for variable in self._used.values():
                self.index.release(variable)
            raise
        self._subscriptions[identifier] = Subscription(
            condition, root, tuple(self._used.values()), condition.attributes()
        )
        self.version += 1

    def add_many(
        self,
        subscriptions: Iterable[tuple[Hashable, Filter]],
        *,
        order: OrderName = "attribute",
        history: History | None = None,
        seed: int = 0,
    ) -> None:
        """Insert subscriptions, with new variables in the named order (`order.py`) learned from `history`, or from
        the subscriptions themselves."""
        listed = list(subscriptions)
        known = history or self._history(condition for _, condition in listed)
        new = [test for test in known.tests if test not in self.index]
        taken = [self._take(test) for test in arrange(new, order, known, seed=seed)]
        try:
            for identifier, condition in listed:
                self.add(identifier, condition)
        finally:
            for variable in taken:
                self.index.release(variable)

    def remove(self, identifier: Hashable) -> None:
        """Remove a subscription; tests that nobody else uses are released."""
        gone = self[identifier]
        del self._subscriptions[identifier]
        for variable in gone.variables:
            self.index.release(variable)
        self.version += 1

    def reorder(self, order: OrderName, *, history: History | None = None, seed: int = 0) -> None:
        """Sort all variables by the named order. Costs many level swaps in a large diagram."""
        known = history or self._history(entry.filter for entry in self._subscriptions.values())
        tests = arrange([test for _, test in sorted(self.index, key=lambda pair: pair[0])], order, known, seed=seed)
        variables = [self.index.find(test) for test in tests]
        self._manager.set_var_order([variable for variable in variables if variable is not None])
        self.version += 1

    def node_count(self) -> int:
        """Inner nodes that some root reaches."""
        return self.flatten().node_count

    def flatten(self, identifier: Hashable | None = None) -> FlatDiagram:
        """The diagram as arrays, one root a subscription in the order of ids; or that of one subscription alone."""
        if identifier is not None:
            return walk(self[identifier].root)
        return flatten(self._manager, [entry.root for entry in self._subscriptions.values()])

    def _build(self, identifier: Hashable, condition: Filter) -> BDDFunction:
        if may_be_large(condition) and not self._fits_alone(condition):
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

    def _fits_alone(self, condition: Filter) -> bool:
        flags = {"variable_for_inequality": self._variable_for_inequality}
        for test in asked_in_turn(condition, self.semantics, **flags):
            self._variable(test)
        order = sorted(self._used, key=lambda test: self._manager.var_to_level(self._used[test]))
        return self._trial.fits(condition, order, self.semantics, **flags)

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
