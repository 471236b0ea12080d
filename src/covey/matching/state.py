"""The state of an index: immutable, replaced as a whole by every change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.events.term_columns import attributes_of
from covey.filters import Filter, Predicate, Term
from covey.filters.algebra import leaves, number_of_leaves
from covey.filters.terms import SPARK_ONLY, is_path, term_of

if TYPE_CHECKING:
    from covey.matching.segment import Segment

_INTERPRETED = 500
"""Interpretations of small subscriptions that cost about as much as compiling a head."""
_SMALL = 8
"""Tests that a small subscription has at most."""


@dataclass(frozen=True)
class Prepared:
    """Subscriptions that are compiled and not added yet."""

    segment: Segment | None
    """None for none."""


@dataclass(frozen=True)
class Sealed:
    """A segment and which of its subscriptions are gone."""

    segment: Segment
    deleted: NDArray[np.uint8]
    gone: int = 0

    @classmethod
    def fresh(cls, segment: Segment) -> Sealed:
        """A segment of which nothing is gone."""
        return cls(segment, segment.none_deleted)

    @classmethod
    def marked(cls, segment: Segment, deleted: NDArray[np.uint8]) -> Sealed:
        """A segment with a bitmap of what is gone, as a file has it."""
        return cls(segment, deleted, int(np.unpackbits(deleted, bitorder="little")[: len(segment)].sum()))

    @property
    def live(self) -> int:
        """How many subscriptions are there still."""
        return len(self.segment) - self.gone

    def find(self, subscription: str) -> int | None:
        """The ordinal of a subscription that is there still."""
        ordinal = self.segment.ordinals.get(subscription)
        if ordinal is None or self.deleted[ordinal >> 3] >> (ordinal & 7) & 1:
            return None
        return ordinal

    def without(self, ordinals: Sequence[int]) -> Sealed:
        """The same segment with these gone too."""
        deleted = self.deleted.copy()
        for ordinal in ordinals:
            deleted[ordinal >> 3] |= 1 << (ordinal & 7)
        return Sealed(self.segment, deleted, self.gone + len(ordinals))

    def alive(self) -> NDArray[np.int64]:
        """The ordinals that are there still."""
        bits = np.unpackbits(self.deleted, bitorder="little")[: len(self.segment)]
        return np.flatnonzero(bits == 0)

    def ids(self) -> list[str]:
        """The ids that are there still, in their order."""
        ids: list[str] = self.segment.ids.take(pa.array(self.alive())).to_pylist()
        return ids

    def rows(self) -> Iterator[tuple[str, str]]:
        """(id, text) of what is there still, in their order."""
        texts: list[str] = self.segment.texts.take(pa.array(self.alive())).to_pylist()
        return zip(self.ids(), texts, strict=True)


@dataclass(frozen=True)
class Waiting:
    """A subscription in the head."""

    text: str
    condition: Filter

    @cached_property
    def weight(self) -> int:
        """As how many small subscriptions it counts where it is interpreted."""
        return 1 + number_of_leaves(self.condition) // (_SMALL + 1)

    def tested(self) -> set[str]:
        """The names of what it tests."""
        return {leaf.attribute for leaf in leaves(self.condition) if isinstance(leaf, Predicate)}


@dataclass
class CompiledHead:
    """The head of one state as a segment, once so many were interpreted for single events that compiling it would have
    cost no more. Threads that race here only do some of that twice."""

    head: Sealed | None = None
    interpreted: int = 0

    def is_worth_it(self, waiting: int) -> bool:
        """Count one more event that the head is interpreted for; whether to compile it instead."""
        self.interpreted += waiting
        return self.interpreted > _INTERPRETED


@dataclass(frozen=True)
class State:
    """Everything that an answer depends on."""

    sealed: tuple[Sealed, ...] = ()
    head: Mapping[str, Waiting] = field(default_factory=dict)
    compiled: CompiledHead = field(default_factory=CompiledHead, init=False, compare=False, repr=False)

    @cached_property
    def weight(self) -> int:
        """As how many small subscriptions the head counts."""
        return sum(waiting.weight for waiting in self.head.values())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All that some segment or waiting subscription tests, by name: attributes, and other terms; and the attributes
        that strict semantics asks for besides."""
        found = dict.fromkeys(name for sealed in self.sealed for name in sealed.segment.names)
        for waiting in self.head.values():
            found.update(dict.fromkeys(waiting.condition.attributes()))
            found.update(dict.fromkeys(waiting.tested()))
        return tuple(found)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """All attributes that they name, those inside terms too."""
        return tuple(attributes_of(self.names))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All that is tested and isn't an attribute itself."""
        return tuple(term_of(name) for name in self.names if not is_path(name))

    @cached_property
    def term_names(self) -> frozenset[str]:
        """Their names: no attribute is taken for one of them."""
        return frozenset(term.name for term in self.terms)

    @cached_property
    def only_spark(self) -> tuple[str, ...]:
        """All that only Spark computes: events must bring it."""
        return tuple(name for name in self.names if name.startswith(SPARK_ONLY))

    @cached_property
    def plain(self) -> tuple[Sealed, ...] | None:
        """All segments, where an event's own attributes are all that is asked for and nothing waits to be compiled."""
        return None if self.head or self.terms or self.nested or self.only_spark else self.sealed

    @cached_property
    def nested(self) -> bool:
        """Whether some attribute may lie inside a record."""
        return any("." in name for name in self.attributes)


def removed_since(before: Sealed, now: Sealed) -> list[str]:
    """The ids that have gone from a segment in the meantime."""
    gone = np.setdiff1d(before.alive(), now.alive())
    removed: list[str] = before.segment.ids.take(pa.array(gone)).to_pylist()
    return removed
