"""From filters to formulas over cells: where a filter is true, and where it is false.

Under `sql` these are two questions: NOT swaps them, AND is false where one part is, and where neither holds the filter
is unknown. Under the two-valued semantics false is the complement of true. Under `strict` a filter matches only where
all attributes that it names are defined.
"""

from __future__ import annotations

from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.predicates import ArrayContains, ElementTest, Predicate
from covey.filters.semantics import Semantics
from covey.relations.formulas import ALWAYS, NEVER, Formulas, Node
from covey.relations.spaces import NO, YES, Space
from covey.relations.value_sets import DEFINED


class FormulaBuilder:
    """Turns filters into formulas of one table, under one semantics. Filters must outlive it."""

    def __init__(self, space: Space, formulas: Formulas, semantics: Semantics) -> None:
        self._space = space
        self._formulas = formulas
        self._semantics = semantics
        self._known: dict[tuple[int, bool], Node] = {}

    def matches(self, condition: Filter) -> Node:
        """Where events match the filter."""
        node = self._truth(condition, True)
        if self._semantics != "strict":
            return node
        defined = (self._literal(name, self._space.mask(name, DEFINED)) for name in condition.attributes())
        return self._formulas.all_of([node, *defined])

    def misses(self, condition: Filter) -> Node:
        """Where events don't match the filter."""
        return self._formulas.complement(self.matches(condition))

    def _literal(self, name: str, cells: int) -> Node:
        return self._formulas.literal(self._space.number(name), cells)

    def _truth(self, condition: Filter, wanted: bool) -> Node:
        """Where a filter is true, or is false. Kept, since IS UNKNOWN asks its part for both."""
        key = (id(condition), wanted)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._built(condition, wanted)
        return known

    def _built(self, condition: Filter, wanted: bool) -> Node:
        formulas = self._formulas
        match condition:
            case And(parts) | Or(parts):
                inner = [self._truth(part, wanted) for part in parts]
                return formulas.all_of(inner) if isinstance(condition, And) is wanted else formulas.any_of(inner)
            case Not(part):
                return self._truth(part, not wanted)
            case Constant(value):
                truth = value if self._semantics == "sql" else bool(value)
                return ALWAYS if truth is wanted else NEVER
            case Is(part, asked):
                node = self._is(part, asked)
                return node if wanted else formulas.complement(node)
            case Predicate():
                return self._predicate(condition, wanted)
        raise TypeError(f"{type(condition).__name__} is not a filter")

    def _is(self, part: Filter, asked: bool | None) -> Node:
        if asked is not None:
            return self._truth(part, asked)
        if self._semantics != "sql":
            return NEVER
        known = self._formulas.any_of([self._truth(part, True), self._truth(part, False)])
        return self._formulas.complement(known)

    def _predicate(self, predicate: Predicate, wanted: bool) -> Node:
        if not wanted and self._semantics != "sql":
            return self._formulas.complement(self._truth(predicate, True))
        masks = self._space.masks(predicate)
        if masks is not None:
            return self._literal(predicate.attribute, masks[0] if wanted else masks[1])
        if isinstance(predicate, ElementTest):
            return self._formulas.literal(self._space.element_test(predicate), YES if wanted else NO)
        assert isinstance(predicate, ArrayContains)
        return self._array_contains(predicate, wanted)

    def _array_contains(self, predicate: ArrayContains, wanted: bool) -> Node:
        """False only of a list that has neither the constant nor a NULL, which might be it."""
        lists, element, null = self._space.elements(predicate)
        is_list = self._literal(predicate.attribute, lists)
        if wanted:
            return self._formulas.all_of([is_list, self._formulas.literal(element, YES)])
        absent = (self._formulas.literal(one, NO) for one in (element, null))
        return self._formulas.all_of([is_list, *absent])
