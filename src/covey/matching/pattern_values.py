"""Patterns and the values that they are asked of: the distinct texts and lists of a batch, or those of one event.

The distinct values of all attributes with patterns are numbered in one line; each attribute's stretch begins with the
number that stands for "neither text nor list". Of texts it is found out at once which literals occur in them; what that
leaves open is verified when a kernel asks for it (`verifying`), once for each pattern and text of a batch.
Patterns that no text alone tells (tests of lists), and those that all events would ask for, are evaluated beforehand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.events import Columns, Piece
from covey.filters import Predicate
from covey.filters.predicates import TextTest
from covey.filters.values import Scalar
from covey.kernels import on_demand
from covey.kernels.opcodes import DENSE
from covey.matching.one_event import EncodedEvent
from covey.matching.patterns import AttributePatterns
from covey.matching.text_index import TextIndex
from covey.matching.verifying import Verifier, verifier

if TYPE_CHECKING:
    from covey.kernels.matching import Patterns

_matching = on_demand("matching")

_NOTHING_KNOWN = 16


@dataclass
class PatternBatch:
    """The values of a batch, and what is known of patterns for them. Threads share it: what one of them verified is
    known to the others when they ask."""

    numbers: dict[tuple[int, int], NDArray[np.int32]]
    """(attribute, piece) -> number of each row's value."""
    neither: NDArray[np.int32]
    """[slot]: the number of what is neither text nor list."""
    missing: NDArray[np.int32]
    """[slot]: the number where an event lacks the attribute; another only where it has a default."""
    arrays: Patterns
    firsts: list[int]
    texts: list[pa.Array]
    """Texts by number: those of texts[i] begin at firsts[i]."""
    verified: dict[int, bool] = field(default_factory=dict)

    def text(self, number: int) -> str:
        """The text with this number."""
        place = bisect_right(self.firsts, number) - 1
        found: str = self.texts[place][number - self.firsts[place]].as_py()
        return found


class PatternValues:
    """The patterns of a segment, ready to be asked."""

    def __init__(
        self,
        names: list[str],
        patterns: Sequence[Predicate],
        index: TextIndex,
        defaults: Mapping[int, Scalar],
    ) -> None:
        self._names, self._patterns, self.index, self._defaults = names, patterns, index, defaults
        self._verifiers: dict[int, Verifier] = {}
        self._attributes: list[int] = index.attribute.tolist()
        self._dense: dict[int, tuple[NDArray[np.int64], AttributePatterns]] = {}
        dense = np.flatnonzero(index.mode == DENSE)
        slots = index.slot[dense]
        for slot in np.unique(slots).tolist():
            own = dense[slots == slot]
            self._dense[slot] = own, AttributePatterns([patterns[number] for number in own.tolist()])
        self.slots = len(self._attributes)
        self.ignores_case = [index.ignores_case(slot) for slot in range(self.slots)]

    @property
    def has_dense(self) -> bool:
        """Whether some patterns are evaluated beforehand."""
        return bool(self._dense)

    # A batch

    def prepare(self, columns: Columns) -> PatternBatch:
        """Number the values of a batch, and find the literals that occur in them."""
        return self._prepared(columns.pieces) if self.slots else self._nothing

    @cached_property
    def _nothing(self) -> PatternBatch:
        """Of every batch, where no attribute has patterns."""
        return self._prepared({})

    def _prepared(self, pieces: Mapping[str, tuple[Piece, ...]]) -> PatternBatch:
        numbers: dict[tuple[int, int], NDArray[np.int32]] = {}
        neither, missing = np.zeros(self.slots, np.int32), np.zeros(self.slots, np.int32)
        counts: list[NDArray[np.int64]] = []
        hits: list[NDArray[np.int32]] = []
        is_text: list[NDArray[np.uint8]] = []
        truths: list[tuple[NDArray[np.int64], NDArray[np.uint8], int]] = []
        firsts: list[int] = []
        texts: list[pa.Array] = []
        used = 0

        def add_texts(slot: int, words: pa.Array, wanted: list[Any]) -> int:
            """Give texts the next numbers; gives the first."""
            nonlocal used
            first = used
            offsets, found = self.index.find(slot, words)
            counts.append(np.diff(offsets))
            hits.append(found)
            is_text.append(np.ones(len(words), np.uint8))
            firsts.append(first)
            texts.append(words)
            if slot in self._dense:
                wanted.extend(words.to_pylist())
            used += len(words)
            return first

        def add_others(size: int) -> None:
            nonlocal used
            counts.append(np.zeros(size, np.int64))
            is_text.append(np.zeros(size, np.uint8))
            used += size

        for slot, attribute in enumerate(self._attributes):
            neither[slot] = missing[slot] = used
            add_others(1)
            wanted: list[Any] = []
            for place, piece in enumerate(pieces.get(self._names[attribute], ())):
                if piece.type == "string":
                    assert piece.dictionary is not None
                    numbers[attribute, place] = piece.values + np.int32(add_texts(slot, piece.dictionary, wanted))
                elif piece.type == "list" and slot in self._dense:
                    before = len(wanted)
                    numbers[attribute, place] = _number_lists(piece, wanted, used - before)
                    add_others(len(wanted) - before)
            default = self._defaults.get(attribute)
            if isinstance(default, str):
                missing[slot] = add_texts(slot, pa.array([default], pa.large_string()), wanted)
            if slot in self._dense:
                own, patterns = self._dense[slot]
                truths.append((own, patterns.truth(wanted), int(neither[slot])))
        start, truth = self._dense_truth(truths, used)
        hit_start = np.zeros(used + 1, np.int64)
        np.cumsum(np.concatenate(counts) if counts else [], out=hit_start[1:])
        arrays = _matching.Patterns(
            start, truth,
            np.concatenate(is_text) if is_text else np.zeros(0, np.uint8),
            hit_start,
            np.concatenate(hits) if hits else np.zeros(0, np.int32),
            no_knowledge(),
        )  # fmt: skip
        return PatternBatch(numbers, neither, missing, arrays, firsts, texts)

    def _dense_truth(
        self, truths: list[tuple[NDArray[np.int64], NDArray[np.uint8], int]], used: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Where each dense pattern's truth starts, counted from number 0. Kernels ask for number 0 of events behind the
        last, so some room is left before the first."""
        start = np.zeros(len(self._patterns) if truths else 0, dtype=np.int64)
        blocks = [np.zeros(used + 1, np.uint8)]
        size = used + 1
        for own, truth, first in truths:
            start[own] = size + np.arange(len(own)) * truth.shape[1] - first
            blocks.append(truth.reshape(-1))
            size += truth.size
        return start, np.concatenate(blocks) if truths else blocks[0]

    def verify(self, batch: PatternBatch, what: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The truth of each pattern << 32 | number."""
        found = np.empty(len(what), dtype=np.uint8)
        known = batch.verified
        for place, key in enumerate(what.tolist()):
            truth = known.get(key)
            if truth is None:
                truth = known[key] = self._holds(key >> 32, batch.text(key & 0xFFFFFFFF))
            found[place] = truth
        return found

    def _holds(self, pattern: int, text: str) -> bool:
        holds = self._verifiers.get(pattern)
        if holds is None:
            test = self._patterns[pattern]
            assert isinstance(test, TextTest)
            holds = self._verifiers[pattern] = verifier(test)
        return holds(text)

    # One event

    def encode_event(self, one: EncodedEvent) -> None:
        """Evaluate what is evaluated beforehand for the values of one event."""
        truths: list[NDArray[np.uint8]] = []
        used = 0
        for slot, (own, patterns) in self._dense.items():
            asked = one.values.get(slot)
            truth = patterns.truth([] if asked is None else [asked])
            one.pattern_start[own] = used + np.arange(len(own)) * truth.shape[1] - 2 * slot
            used += truth.size
            truths.append(truth.reshape(-1))
        one.take_truth(np.concatenate(truths))

    def verify_event(self, one: EncodedEvent) -> None:
        """Find out what one event asks for."""
        asked = one.requested()
        truths = np.array([self._holds(pattern, text) for _, pattern, text in asked], dtype=np.uint8)
        one.know(knowledge(one.known, np.array([key for key, _, _ in asked], dtype=np.int64), truths))


def knowledge(known: NDArray[np.int64], what: NDArray[np.int64], truths: NDArray[np.uint8]) -> NDArray[np.int64]:
    """What is known, with more of it."""
    kept = known[known >= 0]
    size = len(known)
    while size < 2 * (len(kept) + len(what)):
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    _matching.remember(table, kept >> 1, (kept & 1).astype(np.uint8))
    _matching.remember(table, what, truths)
    return table


def no_knowledge() -> NDArray[np.int64]:
    """A table of what was verified, without anything."""
    return np.full(_NOTHING_KNOWN, -1, dtype=np.int64)


def _number_lists(piece: Piece, values: list[Any], base: int) -> NDArray[np.int32]:
    """Number the distinct lists of a piece after the values there are, and add them to these."""
    known: dict[Any, int] = {}
    numbers = np.empty(len(piece.values), dtype=np.int32)
    for position, value in enumerate(piece.values.tolist()):
        key = tuple(map(repr, value))
        number = known.get(key)
        if number is None:
            number = known[key] = base + len(values)
            values.append(value)
        numbers[position] = number
    return numbers
