"""Filters as brokers see them: texts that come again and again, under one semantics.

A text is parsed once and its normal form is made once; both are kept while there is room. The *key* of a filter is a
digest of its normal form: conjunctions that mean the same have the same key, whatever their text, and so do other
filters that are written the same. Equivalent filters that aren't conjunctions may get two keys, which costs a table
entry and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Semantics, attribute_value, matches
from covey.language import parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import Index, Statistics
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.exact import covers, defaults_for, overlaps

ROOM = 200_000
"""Filters, normal forms and answers kept; when a memory is full it starts anew."""

Kept = TypeVar("Kept")


class KnownFilters:
    """Parses, normalises and compares filters, and remembers."""

    def __init__(
        self,
        semantics: Semantics = "sql",
        defaults: Defaults | None = None,
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.semantics = semantics
        self.defaults = defaults_for(semantics, defaults, schema)
        self.schema = schema
        self.statistics: Statistics | None = None
        """What is known of events: an index that is made later chooses its orders by it."""
        self._limits = limits
        self._parsed: dict[str, Filter] = {}
        self._normal: dict[Filter, tuple[str, Filter]] = {}
        self._conjunctions: dict[Filter, Conjunction | None] = {}
        self._covering: dict[tuple[Filter, Filter], bool] = {}
        self._overlapping: dict[tuple[Filter, Filter], bool] = {}

    def parse(self, text: str) -> Filter:
        """The filter of a text; raises FilterError where it isn't one, or breaks the schema."""
        return _remembered(self._parsed, text, self._read)

    def _read(self, text: str) -> Filter:
        condition = parse(text, limits=self._limits)
        if 2 * len(text) > self._limits.diagram_nodes or "IS" in text.upper():
            # No other text can need more nodes than it has characters. An index must never refuse what a broker took.
            self.index().check(condition)
        return condition if self.schema is None else self.schema.check(condition)

    def normal(self, condition: Filter) -> tuple[str, Filter]:
        """The key of a filter, and its normal form."""
        return _remembered(self._normal, condition, self._normalised)

    def _normalised(self, condition: Filter) -> tuple[str, Filter]:
        conjunction = self.conjunction(condition)
        plain = conjunction.to_filter(self.semantics, schema=self.schema) if conjunction is not None else condition
        return digest(str(plain)), plain

    def conjunction(self, condition: Filter) -> Conjunction | None:
        """The filter as value sets by attribute, if it is a conjunction."""
        return _remembered(
            self._conjunctions,
            condition,
            lambda given: conjunction_of(given, self.semantics, self.defaults, self.schema),
        )

    def index(self) -> Index:
        """An empty index that means the same on events that are `completed`. They come decoded, without a schema."""
        semantics: Semantics = "simple" if self.semantics == "default" else self.semantics
        return Index(semantics=semantics, limits=self._limits, statistics=self.statistics)

    def completed(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """The event with the defaults of what it doesn't define."""
        if not self.defaults:
            return event
        missing = {name: value for name, value in self.defaults.items() if attribute_value(event, name) is None}
        return {**event, **missing} if missing else event

    def matches(self, condition: Filter, attributes: Mapping[str, Any]) -> bool:
        """Whether an event meets a filter."""
        return matches(condition, attributes, semantics=self.semantics, defaults=self.defaults)

    def covers(self, f: Filter, g: Filter) -> bool:
        """Whether whatever matches g certainly matches f."""
        one, other = self.conjunction(f), self.conjunction(g)
        if one is not None and other is not None:
            return one.covers(other)
        return _remembered(self._covering, (f, g), self._decided_covers)

    def _decided_covers(self, pair: tuple[Filter, Filter]) -> bool:
        return covers(*pair, semantics=self.semantics, defaults=self.defaults, schema=self.schema)

    def overlaps(self, f: Filter, g: Filter) -> bool:
        """Whether something may match both."""
        one, other = self.conjunction(f), self.conjunction(g)
        if one is not None and other is not None:
            return one.overlaps(other)
        return _remembered(self._overlapping, (f, g), self._decided_overlaps)

    def _decided_overlaps(self, pair: tuple[Filter, Filter]) -> bool:
        return overlaps(*pair, semantics=self.semantics, defaults=self.defaults, schema=self.schema)


def digest(text: str) -> str:
    """A short name for a text that no other text has."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


Question = TypeVar("Question")


def _remembered(memory: dict[Question, Kept], question: Question, answer: Callable[[Question], Kept]) -> Kept:
    try:
        return memory[question]
    except KeyError:
        if len(memory) >= ROOM:
            memory.clear()
        found = memory[question] = answer(question)
        return found
