"""Filters as brokers see them: texts that come again and again, under one semantics.

A text is parsed once and its normal form is made once; both are kept while there is room. The *key* of a filter is a
digest of its normal form: conjunctions that mean the same have the same key, whatever their text, and so do other
filters that are written the same. Equivalent filters that aren't conjunctions may get two keys, which costs a table
entry and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from covey.errors import CoveyError
from covey.events.meaning import PLAIN, Meaning
from covey.filters.algebra import Filter
from covey.filters.semantics import Semantics, attribute_value
from covey.language import check_dialect, in_sql, parse
from covey.limits import BROKER_FILTER_LIMITS, Limits
from covey.matching import Index, Statistics
from covey.relations.conjunctions import Conjunction, conjunction_of, covers_under, overlap_under
from covey.relations.covering.bounds import Bounds, bounds_of
from covey.relations.exact import (
    DEFAULT_RELATION_LIMITS,
    RelationLimits,
    decide_covers,
    decide_covers_or_show,
    decide_overlaps,
)
from covey.relations.plain_forms import plain_conjunction
from covey.relations.steps import Budget
from covey.routing.meta_events import META_FILTER
from covey.routing.own_events import also_of_brokers, asked_of_brokers
from covey.routing.spent_degrees import without_spent

if TYPE_CHECKING:
    from covey.routing.config import BrokerConfig

ROOM = 20_000
"""Filters, normal forms and answers kept; when a memory is full it starts anew."""
ROOM_CHARACTERS = 1 << 20
"""Characters of texts whose filters are kept: a filter takes some twelve times its text, whoever had sent it, and
whether or not it was taken. When they are full, all memories start anew."""

CONJUNCTION_STEPS = 2
"""Steps that comparing two conjunctions counts as."""

Kept = TypeVar("Kept")


class Memory(Generic[Kept]):
    """Answers by the filters that they are about. Filters are known by their identity, which looking up the same ones
    again and again needs: the hash of a large one takes longer than many an answer."""

    def __init__(self) -> None:
        self._answers: dict[tuple[int, ...], tuple[tuple[Filter, ...], Kept]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def of(self, answer: Callable[[], Kept], *filters: Filter) -> Kept:
        """The answer that is remembered, or else the one that is given, from now on."""
        key = tuple(map(id, filters))
        known = self._answers.get(key)
        if known is None:
            if len(self._answers) >= ROOM:
                self._answers.clear()
            # The filters are kept too, so that no other gets their identity.
            known = self._answers[key] = (filters, answer())
        return known[1]

    def clear(self) -> None:
        """Forget everything."""
        self._answers.clear()


class KnownFilters:
    """Parses, normalises and compares filters, and remembers."""

    def __init__(
        self,
        meaning: Meaning = PLAIN,
        limits: Limits = BROKER_FILTER_LIMITS,
        pair: RelationLimits = DEFAULT_RELATION_LIMITS,
    ) -> None:
        self.meaning = meaning
        self.statistics: Statistics | None = None
        """What is known of events: an index that is made later chooses its orders by it."""
        self.pair = pair
        """What the question about two filters may take; the same on all brokers of a network."""
        self.budget = Budget(sys.maxsize)
        self.bandwidth = 0.0
        """Bytes a second that go to neighbours, as was last measured: merging may wait for them."""
        """What work on relations may take in this turn."""
        self.normal_at_once = sys.maxsize
        """Entries of one change whose normal forms are made at once; those of a larger one are made later."""
        self._schema = meaning.schema
        """What clients' events and filters are held to; what is true of brokers' own events too is in the meaning."""
        self._limits = limits
        self._parsed: dict[str, Filter] = {}
        self._written: dict[int, tuple[Filter, str]] = {}
        """Texts that filters were read from, by their identities; a filter that is held here keeps its own."""
        self._characters = 0
        self._normal: Memory[tuple[str, Filter]] = Memory()
        self._by_key: dict[str, Filter] = {}
        """Normal forms that neighbours sent, by their keys."""
        self._texts: dict[str, str] = {}
        """Texts of normal forms, by their keys."""
        self._conjunctions: Memory[Conjunction | None] = Memory()
        self._bounds: Memory[Bounds] = Memory()
        self._covering: Memory[bool] = Memory()
        self._overlapping: Memory[bool] = Memory()

    @classmethod
    def under(cls, config: BrokerConfig) -> KnownFilters:
        """Filters as a broker of this configuration reads them."""
        meaning = Meaning(config.semantics, config.defaults, config.schema)
        if config.schema is not None:
            meaning = Meaning(config.semantics, meaning.defaults, also_of_brokers(config.schema))
        known = cls(meaning, config.limits.filters, RelationLimits(config.limits.pair_steps))
        known._schema = config.schema
        return known

    def parse(self, text: str) -> Filter:
        """The filter of a text; raises FilterError where it isn't one, or breaks the schema."""
        try:
            return self._parsed[text]
        except KeyError:
            condition = self._read(text)
        self._characters += len(text)
        if self._characters > ROOM_CHARACTERS or len(self._parsed) >= ROOM:
            self._start_anew(len(text))
        self._parsed[text] = condition
        self._written[id(condition)] = (condition, text)
        return condition

    def written(self, condition: Filter) -> str | Filter:
        """A filter as the index reads it most quickly: the text that it was read from, where that says the same."""
        known = self._written.get(id(condition))
        return condition if known is None or self.meaning.schema is not None else known[1]

    def _start_anew(self, characters: int) -> None:
        """Forget everything: what one memory has forgotten another must not hold."""
        for memory in (self._parsed, self._written, self._by_key, self._texts):
            memory.clear()
        for answers in (self._normal, self._conjunctions, self._bounds, self._covering, self._overlapping):
            answers.clear()
        self._characters = characters

    def sql(self, text: str, dialect: str) -> str:
        """The SQL of a text of another dialect, within the limits; raises FilterError where it isn't one."""
        check_dialect(dialect)
        return text if dialect == "sql" else str(in_sql(text, dialect, self._limits))

    def _read(self, text: str) -> Filter:
        condition = parse(text, limits=self._limits)
        if 2 * len(text) > self._limits.diagram_nodes or "IS" in text.upper():
            # No other text can need more nodes than it has characters. An index must never refuse what a broker took.
            self.index().check(condition)
        return condition if self._schema is None else self._schema.check(condition)

    def parse_entry(self, key: str, text: str) -> Filter:
        """The filter of a neighbour's entry. Where the key is that of the text, it is a normal form already."""
        condition = self.parse(text)
        key, _ = without_spent(key)
        if key not in self._by_key and digest(text) == key:
            self._by_key[key] = condition
            self._texts[key] = text
        return condition

    def normal(self, condition: Filter, key: str = "") -> tuple[str, Filter]:
        """The key of a filter, and its normal form; `key` is what a neighbour knows it by."""
        if key and self._by_key.get(key) is condition:
            return key, condition
        return self._normal.of(lambda: self._normalised(condition), condition)

    def _normalised(self, condition: Filter) -> tuple[str, Filter]:
        meaning = self.meaning
        plain = plain_conjunction(condition) if meaning.schema is None and not meaning.defaults else None
        if plain is None:
            conjunction = self.conjunction(condition)
            plain = (
                condition if conjunction is None else conjunction.to_filter(meaning.semantics, schema=meaning.schema)
            )
        text = str(plain)
        key = digest(text)
        self._texts[key] = text
        return key, plain

    def text(self, key: str, condition: Filter) -> str:
        """The text of a normal form with this key, or of any filter that another part calls so."""
        known = self._texts.get(key)
        return str(condition) if known is None else known

    def conjunction(self, condition: Filter) -> Conjunction | None:
        """The filter as value sets by attribute, if it is a conjunction."""
        return self._conjunctions.of(lambda: conjunction_of(condition, self.meaning), condition)

    def index(self) -> Index:
        """An empty index that means the same on events that are `completed`. They come decoded, without a schema."""
        semantics: Semantics = "simple" if self.meaning.semantics == "default" else self.meaning.semantics
        return Index(semantics=semantics, limits=self._limits, statistics=self.statistics)

    def completed(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """The event with the defaults of what it doesn't define."""
        defaults = self.meaning.defaults
        if not defaults:
            return event
        missing = {name: value for name, value in defaults.items() if attribute_value(event, name) is None}
        return {**event, **missing} if missing else event

    def matches(self, condition: Filter, attributes: Mapping[str, Any]) -> bool:
        """Whether an event meets a filter."""
        return self.meaning.matches(condition, attributes)

    def allow(self, permission: str | None, attributes: Mapping[str, Any]) -> bool:
        """Whether a permission has an event; None has all, and what can't be read has none."""
        if permission is None:
            return True
        try:
            return self.matches(self.parse(permission), attributes)
        except CoveyError:
            return False

    def covers(self, f: Filter, g: Filter, budget: Budget | None = None) -> bool:
        """Whether whatever matches g certainly matches f; raises LaterError where a budget is used up before."""
        one, other = self.conjunction(f), self.conjunction(g)
        if one is not None and other is not None:
            if budget is not None:
                budget.spend(CONJUNCTION_STEPS)
            return covers_under(self.meaning, one, other)
        return self._covering.of(lambda: self._decided_covers(f, g, budget), f, g)

    def _decided_covers(self, f: Filter, g: Filter, budget: Budget | None) -> bool:
        # As a covering table does, so that a pair has one answer whatever decides it.
        if self._bounded(f).certainly_cover(self._bounded(g)):
            return True
        return decide_covers(f, g, self.meaning, self.pair, budget)

    def _bounded(self, condition: Filter) -> Bounds:
        return self._bounds.of(lambda: bounds_of(condition, self.meaning), condition)

    def is_allowed(self, allowed: Filter, asked: Filter, steps: int) -> bool | None:
        """Whether a filter asks for no more than is allowed; None where that can't be found out in so many steps."""
        answer, _ = decide_covers_or_show(allowed, asked, self.meaning, RelationLimits(steps))
        return answer

    def overlaps(self, f: Filter, g: Filter, budget: Budget | None = None) -> bool:
        """Whether something may match both; raises LaterError where a budget is used up before."""
        one, other = self.conjunction(f), self.conjunction(g)
        if one is not None and other is not None:
            return overlap_under(self.meaning, one, other)
        return self._overlapping.of(lambda: self._decided_overlaps(f, g, budget), f, g)

    def may_meet(self, condition: Filter, advertised: Filter, budget: Budget | None = None) -> bool:
        """Whether an advertised event may match a filter. Where brokers advertise their own events it is known what
        these have, and that they have nothing else."""
        meta = self.parse(META_FILTER)
        if advertised != meta:
            return self.overlaps(condition, advertised, budget)
        return self._overlapping.of(lambda: self._meets_meta(condition, meta, budget), condition, meta)

    def _meets_meta(self, condition: Filter, meta: Filter, budget: Budget | None) -> bool:
        advertised = asked_of_brokers(condition, meta, self.meaning.defaults or ())
        one, other = self.conjunction(condition), conjunction_of(advertised, self.meaning)
        if one is not None and other is not None:
            return overlap_under(self.meaning, one, other)
        return self._decided_overlaps(condition, advertised, budget)

    def _decided_overlaps(self, f: Filter, g: Filter, budget: Budget | None) -> bool:
        return decide_overlaps(f, g, self.meaning, self.pair, budget)


def digest(text: str) -> str:
    """A short name for a text that no other text has."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
