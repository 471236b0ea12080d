"""Covering, equivalence and overlap of arbitrary filters, decided.

`f` covers `g` where every event that matches `g` matches `f`: where "g and not f" can't be met. "Missing" is something
that an attribute can be, so under `sql` `x < 5 OR x >= 5` doesn't cover `y = 1`.

Two conjunctions with a value set for each attribute are compared set by set (`conjunctions.py`). Everything else
becomes a formula over cells (`spaces.py`, `formula_building.py`) that a bounded search tries to meet (`formulas.py`).

The answers are exact for comparisons, sets, IS NULL, array_contains, LIKE, startswith, endswith, contains, substring_of
and most regular expressions, on the values that events can have. Where an answer can't be found (a regular expression
that isn't understood, a search beyond `RelationLimits`) it is unknown: `covers` and `equivalent` then say no and
`overlaps` says yes, which is safe for routing: at worst too much is forwarded. `relate` tells unknown from no.

A schema says how filters are read, tests on the event's type with its subtypes, and narrows what attributes can be:
their types, whole numbers for `int`, no "missing" for mandatory ones, nor for those that the event's type makes so.

`covers`, `equivalent` and `overlaps` read the filters first; `decide_covers` and `decide_overlaps` take filters that
were read, for tables that ask about them again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from covey.events.meaning import PLAIN, Meaning
from covey.events.schema import Schema
from covey.filters.algebra import Filter, number_of_leaves, use_relations
from covey.filters.semantics import Defaults, Semantics
from covey.filters.values import Value
from covey.relations.conjunctions import Conjunction, conjunction_of, covers_under, overlap_under
from covey.relations.formula_building import FormulaBuilder
from covey.relations.formulas import Cases, Formulas, Node
from covey.relations.spaces import Space
from covey.relations.steps import Budget, Steps, TooMuchWork

Event: TypeAlias = dict[str, Value | None]
Answer: TypeAlias = tuple[bool | None, Event | None]
"""Yes with an event that shows it, no, or unknown (None)."""


@dataclass(frozen=True, slots=True)
class RelationLimits:
    """What one question may cost before its answer is unknown."""

    steps: int = 300_000
    """Nodes of formulas that are looked at and characters that automata read, of all attributes together: about a
    second. At most half of them go into finding out how tests on texts go together."""


DEFAULT_RELATION_LIMITS = RelationLimits()

SMALLEST = 100
"""Steps that the smallest question counts as: cells must be cut before anything is looked for."""
LEAF = 2
"""Steps that each test counts as besides."""


class Question:
    """What two filters, which were read, can do together, over common cells."""

    def __init__(
        self, f: Filter, g: Filter, meaning: Meaning = PLAIN, limits: RelationLimits = DEFAULT_RELATION_LIMITS
    ) -> None:
        self._f, self._g = f, g
        begun = SMALLEST + LEAF * (number_of_leaves(f) + number_of_leaves(g))
        texts = Steps(limits.steps // 2)
        self._space = Space((f, g), meaning, texts)
        self._steps = limits.steps - (limits.steps // 2 - texts.left) - begun + SMALLEST
        self.spent = limits.steps - self._steps + SMALLEST
        """Steps that this has taken so far."""
        self._certain = _Table(self._space, self._space.certain, meaning.semantics)
        exact = self._space.possible == self._space.certain
        self._possible = self._certain if exact else _Table(self._space, self._space.possible, meaning.semantics)

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
        steps = Steps(self._steps)
        try:
            found = self._certain.solve(wanted, steps)
            if found is not None:
                return True, self._space.event(found)
            if self._space.complete and self._possible.solve(wanted, steps) is None:
                return False, None
        except TooMuchWork:
            pass
        finally:
            self.spent += self._steps - max(steps.left, 0)
        return None, None


class _Table:
    """Formulas over one choice of cells."""

    def __init__(self, space: Space, cells: list[int], semantics: Semantics) -> None:
        self._formulas = Formulas(cells)
        self._build = FormulaBuilder(space, self._formulas, semantics)
        literal, any_of = self._formulas.literal, self._formulas.any_of
        self._allowed = [
            any_of([literal(*other_type), literal(*defined)]) for other_type, defined in space.requirements()
        ]

    def meeting(self, f: Filter, g: Filter, *, met: tuple[bool, bool]) -> Node:
        """Where the filters match as wanted, among the events that the schema allows."""
        pairs = zip((f, g), met, strict=True)
        wanted = [self._build.matches(one) if wanted else self._build.misses(one) for one, wanted in pairs]
        return self._formulas.all_of([*wanted, *self._allowed])

    def solve(self, wanted: Callable[[_Table], Node], steps: Steps) -> Cases | None:
        self._formulas.steps = steps
        return self._formulas.solve(wanted(self))


def conjunctions_of(f: Filter, g: Filter, meaning: Meaning) -> tuple[Conjunction, Conjunction] | None:
    """Both filters as conjunctions, where both are: the common case, decided set by set."""
    one = conjunction_of(f, meaning)
    other = None if one is None else conjunction_of(g, meaning)
    return None if one is None or other is None else (one, other)


def decide_covers(
    f: Filter, g: Filter, meaning: Meaning = PLAIN, limits: RelationLimits = DEFAULT_RELATION_LIMITS,
    budget: Budget | None = None,
) -> bool:  # fmt: skip
    """As `covers`, of filters that were read; raises LaterError where a budget is used up before."""
    return decide_covers_or_show(f, g, meaning, limits, budget)[0] is True


def decide_covers_or_show(
    f: Filter, g: Filter, meaning: Meaning = PLAIN, limits: RelationLimits = DEFAULT_RELATION_LIMITS,
    budget: Budget | None = None,
) -> tuple[bool | None, Event | None]:  # fmt: skip
    """As `decide_covers`, but None where it is unknown; where a search says no, with an event that should match `g` but
    not `f`."""
    if f == g:
        return True, None
    pair = conjunctions_of(f, g, meaning)
    if pair is not None:
        return covers_under(meaning, *pair), None
    if budget is not None:
        budget.ask()
    question = Question(f, g, meaning, limits)
    found, event = question.only_g()
    if budget is not None:
        budget.spend(question.spent)
    return None if found is None else not found, event


def decide_overlaps(
    f: Filter, g: Filter, meaning: Meaning = PLAIN, limits: RelationLimits = DEFAULT_RELATION_LIMITS,
    budget: Budget | None = None,
) -> bool:  # fmt: skip
    """As `overlaps`, of filters that were read; raises LaterError where a budget is used up before."""
    pair = conjunctions_of(f, g, meaning)
    if pair is not None:
        return overlap_under(meaning, *pair)
    if budget is not None:
        budget.ask()
    question = Question(f, g, meaning, limits)
    found, _ = question.both()
    if budget is not None:
        budget.spend(question.spent)
    return found is not False


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
    meaning = Meaning(semantics, defaults, schema)
    return decide_covers(meaning.read(f), meaning.read(g), meaning, limits)


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
    meaning = Meaning(semantics, defaults, schema)
    f, g = meaning.read(f), meaning.read(g)
    if f == g:
        return True
    pair = conjunctions_of(f, g, meaning)
    if pair is not None:
        return pair[0].equivalent(pair[1])
    question = Question(f, g, meaning, limits)
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
    meaning = Meaning(semantics, defaults, schema)
    return decide_overlaps(meaning.read(f), meaning.read(g), meaning, limits)


class _Exact:
    """These functions, as filters call them."""

    covers = staticmethod(covers)
    equivalent = staticmethod(equivalent)
    overlaps = staticmethod(overlaps)


use_relations(_Exact())
