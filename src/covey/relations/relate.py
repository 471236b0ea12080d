"""How two filters relate, with events that show it.

Four relations say all there is: whether f covers g, g covers f, both (equivalent), and whether they overlap. Each that
doesn't hold has a counterexample, an event that matches g but not f, or f but not g, and overlap has an event that
matches both. The events come from the search that decided the relation (`exact.py`) and are held against the
interpreter before they are given out; one that failed there would make the relation unknown instead of wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Semantics, matches
from covey.relations.exact import DEFAULT_RELATION_LIMITS, Answer, Event, Question, RelationLimits, defaults_for


@dataclass(frozen=True, slots=True)
class Relation:
    """How a filter f relates to a filter g. None is unknown."""

    covers: bool | None
    """Every event that matches g matches f."""
    covered: bool | None
    """Every event that matches f matches g."""
    equivalent: bool | None
    """The same events match both."""
    overlaps: bool | None
    """Some event matches both."""
    only_f: Event | None = None
    """An event that matches f but not g."""
    only_g: Event | None = None
    """An event that matches g but not f."""
    both: Event | None = None
    """An event that matches both."""

    def sentence(self, f: str = "A", g: str = "B") -> str:
        """The relation in words."""
        if self.equivalent:
            also = "" if self.overlaps is not False else "; no event matches either"
            return f"{f} and {g} are equivalent: they match the same events{also}."
        if self.covers:
            nothing = " (which no event matches)" if self.overlaps is False else ""
            return f"{f} covers {g}{nothing}: every event that matches {g} matches {f}."
        if self.covered:
            nothing = " (which no event matches)" if self.overlaps is False else ""
            return f"{g} covers {f}{nothing}: every event that matches {f} matches {g}."
        if self.overlaps is False:
            return f"{f} and {g} are disjoint: no event matches both."
        if self.covers is None or self.covered is None or self.overlaps is None:
            return f"How {f} and {g} relate could not be decided."
        return f"{f} and {g} overlap: some events match both, some only one of them."


def relate(
    f: Filter,
    g: Filter,
    *,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    limits: RelationLimits = DEFAULT_RELATION_LIMITS,
) -> Relation:
    """How two filters relate, and events that show it."""
    known = defaults_for(semantics, defaults, schema)
    question = Question(f, g, semantics, known, schema, limits)

    def holds(condition: Filter, event: Event) -> bool:
        return matches(condition, event, semantics=semantics, defaults=known)

    def checked(answer: Answer, in_f: bool, in_g: bool) -> Answer:
        event = answer[1]
        if event is not None and (holds(f, event), holds(g, event)) != (in_f, in_g):
            return None, None
        return answer

    left, only_f = checked(question.only_f(), True, False)
    right, only_g = checked(question.only_g(), False, True)
    overlap, both = checked(question.both(), True, True)
    covers, covered = _negated(right), _negated(left)
    same = False if covers is False or covered is False else None if covers is None or covered is None else True
    return Relation(covers, covered, same, overlap, only_f, only_g, both)


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer
