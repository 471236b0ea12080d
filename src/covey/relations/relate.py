"""How two filters relate, with events that show it.

Four relations say all there is: whether f covers g, g covers f, both (equivalent), and whether they overlap. Each that
doesn't hold has a counterexample, an event that matches g but not f, or f but not g, and overlap has an event that
matches both. The events come from the search that decided the relation (`exact.py`) and are held against the
interpreter before they are given out; one that failed there would make the relation unknown instead of wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from html import escape

from covey.events.meaning import Meaning
from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Semantics, Supposed
from covey.language import parse
from covey.relations.exact import DEFAULT_RELATION_LIMITS, Answer, Event, Question, RelationLimits


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

    @property
    def supposed(self) -> bool:
        """Whether the events give values of terms as if these were attributes of their own, so that no event may be
        like that: `a + b` is 5 there, whatever `a` and `b` are."""
        return any(isinstance(event, Supposed) for event in (self.only_f, self.only_g, self.both))

    def _repr_html_(self) -> str:
        """For notebooks: the relation in words, and the events that show it."""
        shown = (("only A", self.only_f), ("only B", self.only_g), ("both", self.both))
        rows = "".join(
            f"<tr><td>{name}</td><td><code>{escape(str(dict(event)))}</code></td></tr>"
            for name, event in shown
            if event is not None
        )
        return f"<div>{escape(self.sentence())}<table>{rows}</table></div>"

    def __str__(self) -> str:
        """For people: the relation in words, and the events that show it."""
        shown = (("matches A, not B", self.only_f), ("matches B, not A", self.only_g), ("matches both", self.both))
        found = [(what, event) for what, event in shown if event is not None]
        lines = [f"  {what}: {json.dumps(event, ensure_ascii=False, default=_plain)}" for what, event in found]
        return "\n".join([self.sentence(), *lines])

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
        if self.supposed:
            return f"{f} and {g} overlap, as far as terms are taken as attributes of their own."
        return f"{f} and {g} overlap: some events match both, some only one of them."


def relate(
    f: Filter | str,
    g: Filter | str,
    *,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    schema: Schema | None = None,
    limits: RelationLimits = DEFAULT_RELATION_LIMITS,
) -> Relation:
    """How two filters (or texts of filters) relate, and events that show it."""
    meaning = Meaning(semantics, defaults, schema)
    left_filter, right_filter = (meaning.read(parse(one) if isinstance(one, str) else one) for one in (f, g))
    question = Question(left_filter, right_filter, meaning, limits)

    def checked(answer: Answer, in_f: bool, in_g: bool) -> Answer:
        event = answer[1]
        if event is None:
            return answer
        if (meaning.matches(left_filter, event), meaning.matches(right_filter, event)) != (in_f, in_g):
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


def _plain(value: object) -> str:
    """What JSON has no value for: a time."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
