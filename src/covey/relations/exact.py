"""Covering, equivalence and overlap of arbitrary filters, decided.

`f` covers `g` where every event that matches `g` matches `f`: where "g and not f" can't be met. "Missing" is something
that an attribute can be, so under `sql` `x < 5 OR x >= 5` doesn't cover `y = 1`.

Two conjunctions with a value set for each attribute are compared set by set (`conjunctions.py`). Everything else
becomes a formula over cells (`spaces.py`, `formula_building.py`) that a bounded search tries to meet (`formulas.py`).

The answers are exact for comparisons, sets, IS NULL, array_contains, LIKE, startswith, endswith, contains, substring_of
and most regular expressions, on the values that events can have. Where an answer can't be found (a regular expression
that isn't understood, a search beyond `RelationLimits`) it is unknown: `covers` and `equivalent` then say no and
`overlaps` says yes, which is safe for routing: at worst too much is forwarded. `relate` tells unknown from no.

A schema narrows what attributes can be: their types, whole numbers for `int`, no "missing" for mandatory ones (those
that an event type alone makes mandatory aside). Filters are taken as they are; `Schema.check` widens types to subtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from covey.events.schema import Schema
from covey.filters.algebra import Filter, use_relations
from covey.filters.semantics import Defaults, Semantics, check_semantics
from covey.filters.values import Value
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.formula_building import FormulaBuilder
from covey.relations.formulas import Cases, Formulas, Node, TooMuchWork
from covey.relations.spaces import Space

Event: TypeAlias = dict[str, Value]
Answer: TypeAlias = tuple[bool | None, Event | None]
"""Yes with an event that shows it, no, or unknown (None)."""


@dataclass(frozen=True, slots=True)
class RelationLimits:
    """What one question may cost before its answer is unknown."""

    steps: int = 300_000
    """Nodes of formulas that are looked at: about a second."""

    text_steps: int = 300_000
    """Characters that automata read to find how the tests on one attribute's texts go together: about a second."""


DEFAULT_RELATION_LIMITS = RelationLimits()


class Question:
    """What two filters can do together, over common cells."""

    def __init__(
        self,
        f: Filter,
        g: Filter,
        semantics: Semantics = "sql",
        defaults: Defaults | None = None,
        schema: Schema | None = None,
        limits: RelationLimits = DEFAULT_RELATION_LIMITS,
    ) -> None:
        self._f, self._g = f, g
        self._semantics = check_semantics(semantics)
        self._steps = limits.steps
        self._space = Space((f, g), semantics, defaults_for(semantics, defaults, schema), schema, limits.text_steps)

        self._certain = _Table(self._space, self._space.certain, self._semantics)
        exact = self._space.possible == self._space.certain
        self._possible = self._certain if exact else _Table(self._space, self._space.possible, self._semantics)

    def only_f(self) -> Answer:
        """Whether an event matches f but not g, and one that should."""
        return self._can_be_met(lambda table: table.meeting(self._f, self._g, met=(True, False)))

    def only_g(self) -> Answer:
        """Whether an event matches g but not f, and one that should."""
        return self._can_be_met(lambda table: table.meeting(self._f, self._g, met=(False, True)))

    def both(self) -> Answer:
        """Whether an event matches both, and one that should."""
        return self._can_be_met(lambda table: table.meeting(self._f, self._g, met=(True, True)))

    def _can_be_met(self, wanted: Callable[[_Table], Node]) -> Answer:
        """What can't be met with all possible cells can't be met; what can be with the certain ones, can be."""
        try:
            found = self._certain.solve(wanted, self._steps)
            if found is not None:
                return True, self._space.event(found)
            if self._space.complete and self._possible.solve(wanted, self._steps) is None:
                return False, None
        except TooMuchWork:
            pass
        return None, None


class _Table:
    """Formulas over one choice of cells."""

    def __init__(self, space: Space, cells: list[int], semantics: Semantics) -> None:
        self._formulas = Formulas(cells)
        self._build = FormulaBuilder(space, self._formulas, semantics)

    def meeting(self, f: Filter, g: Filter, *, met: tuple[bool, bool]) -> Node:
        """Where the filters match as wanted."""
        pairs = zip((f, g), met, strict=True)
        return self._formulas.all_of(
            [self._build.matches(one) if wanted else self._build.misses(one) for one, wanted in pairs]
        )

    def solve(self, wanted: Callable[[_Table], Node], steps: int) -> Cases | None:
        self._formulas.steps = steps
        return self._formulas.solve(wanted(self))


def defaults_for(semantics: Semantics, defaults: Defaults | None, schema: Schema | None) -> Defaults:
    """The defaults that count: none but under `default`, where the schema has them if they aren't given."""
    if semantics != "default":
        return {}
    if defaults is None and schema is not None:
        return schema.defaults
    return defaults or {}


def _conjunctions(
    f: Filter, g: Filter, semantics: Semantics, defaults: Defaults, schema: Schema | None
) -> tuple[Conjunction, Conjunction] | None:
    """Both filters as conjunctions, where both are: the common case, decided set by set."""
    one = conjunction_of(f, semantics, defaults, schema)
    other = None if one is None else conjunction_of(g, semantics, defaults, schema)
    return None if one is None or other is None else (one, other)


def covers(
    f: Filter,
    g: Filter,
    *,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    limits: RelationLimits = DEFAULT_RELATION_LIMITS,
) -> bool:
    """Whether every event that matches `g` certainly matches `f`."""
    if f == g:
        return True
    known = defaults_for(check_semantics(semantics), defaults, schema)
    pair = _conjunctions(f, g, semantics, known, schema)
    if pair is not None:
        return pair[0].covers(pair[1])
    return Question(f, g, semantics, known, schema, limits).only_g()[0] is False


def equivalent(
    f: Filter,
    g: Filter,
    *,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    limits: RelationLimits = DEFAULT_RELATION_LIMITS,
) -> bool:
    """Whether certainly the same events match both."""
    if f == g:
        return True
    known = defaults_for(check_semantics(semantics), defaults, schema)
    pair = _conjunctions(f, g, semantics, known, schema)
    if pair is not None:
        return pair[0].equivalent(pair[1])
    question = Question(f, g, semantics, known, schema, limits)
    return question.only_f()[0] is False and question.only_g()[0] is False


def overlaps(
    f: Filter,
    g: Filter,
    *,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    limits: RelationLimits = DEFAULT_RELATION_LIMITS,
) -> bool:
    """Whether some event matches both, or it isn't known that none does."""
    known = defaults_for(check_semantics(semantics), defaults, schema)
    pair = _conjunctions(f, g, semantics, known, schema)
    if pair is not None:
        return pair[0].overlaps(pair[1])
    return Question(f, g, semantics, known, schema, limits).both()[0] is not False


class _Exact:
    """These functions, as filters call them."""

    covers = staticmethod(covers)
    equivalent = staticmethod(equivalent)
    overlaps = staticmethod(overlaps)


use_relations(_Exact())
