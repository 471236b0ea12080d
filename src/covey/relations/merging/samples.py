"""Degrees of many candidate mergers at once, counted on a sample of events.

Each event has a code for each attribute (`constraints.py`), each constraint a row of bits, one for an event; a merger
is an AND of such rows and the union of its parts an OR of ANDs, 64 events a word.

A sample of n events says little of what matches one event in n, and many subscriptions are as rare as that. A merger
with fewer than `ENOUGH` events of the sample is therefore judged by the constraints in which its parts differ alone:
what all of them ask for is left out, which changes nothing where it is independent of the rest (traffic is multiplied
by its chance then). A merger that is too rare even so has no degree that could be known: it counts as 1. Its
traffic is known to be small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters.algebra import Filter, any_of
from covey.filters.semantics import attribute_value, matches
from covey.history.chances import Chances, EventSample
from covey.kernels.merging import count_candidates, events_in_sets
from covey.matching import Index
from covey.relations.merging.constraints import Constraints, Row
from covey.relations.merging.covering import rows_as_arrays
from covey.relations.merging.degrees import Degrees, imperfect_degrees
from covey.relations.merging.plain import plain, plain_semantics
from covey.relations.merging.uniform import SAMPLE_EVENTS, Uniform

ENOUGH: Final = 32
"""Events of the sample that a merger must match for its degree to be counted."""

_UNSEEN: Final = 3
"""What none of n events has shown is rarer than 3 / n, with a chance of 95%."""

_MOST_DRAWN: Final = 64
"""Times the sample's size that are drawn to find as many events that advertisements allow."""

Candidate = tuple[Row, Sequence[Row]]
"""A merger and its parts."""


class SampledDegrees:
    """Counts candidates on a fixed sample of events."""

    def __init__(self, events: Sequence[dict[str, Any]], constraints: Constraints) -> None:
        self._constraints = constraints
        self._count = len(events)
        self._codes = _coded(events, constraints)
        words = -(-len(events) // 64)
        self._bits = np.zeros((0, words), np.uint64)
        self._known = 0
        self._allowed = np.zeros(words, np.uint64)
        for event in range(len(events)):
            self._allowed[event >> 6] |= np.uint64(1) << np.uint64(event & 63)

    def degrees(self, candidates: Sequence[Candidate]) -> Degrees:
        """The degrees of candidates; 1 where too few events match."""
        if not self._count:
            unknown = np.ones(len(candidates))
            return Degrees(unknown, unknown, unknown)
        self._place_events()
        numbers: dict[Row, int] = {}
        part = [numbers.setdefault(row, len(numbers)) for _, parts in candidates for row in parts]
        row_first, row_sets = rows_as_arrays(list(numbers))
        merger_first, merger_sets = rows_as_arrays([merger for merger, _ in candidates])
        part_first = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(parts) for _, parts in candidates])))
        found = count_candidates(
            merger_first, merger_sets, part_first, np.array(part, np.int64), row_first, row_sets, self._bits,
            self._allowed, ENOUGH,
        )  # fmt: skip
        of_merger, in_vain = found[:, 0], (found[:, 0] - found[:, 1]).astype(np.float64)
        common = np.maximum(found[:, 2], 1) / self._count
        degree = np.where(of_merger >= ENOUGH, in_vain / np.maximum(of_merger, 1), 1.0)
        unseen = np.where(of_merger >= ENOUGH, 0, _UNSEEN)
        chance = np.maximum(of_merger, unseen) / self._count * common
        return Degrees(degree, (in_vain + unseen) / self._count * common, chance)

    def _place_events(self) -> None:
        """Bits of the constraints that came since the last time."""
        count = len(self._constraints.values)
        if count == self._known:
            return
        if count > len(self._bits):
            more = np.zeros((max(count, 2 * len(self._bits)), self._bits.shape[1]), np.uint64)
            more[: self._known] = self._bits[: self._known]
            self._bits = more
        set_first, piece = self._constraints.pieces()
        attribute_of = np.array(self._constraints.attribute_of, np.int64)
        events_in_sets(self._codes, attribute_of, self._known, set_first, piece, self._bits)
        self._known = count


class AskedDegrees:
    """Asks `chances` for the filters of all candidates of a round at once."""

    def __init__(self, chances: Chances, advertisements: Sequence[Filter], constraints: Constraints) -> None:
        self._chances = chances
        self._advertisements = advertisements
        self._constraints = constraints

    def degrees(self, candidates: Sequence[Candidate]) -> Degrees:
        """The degrees of candidates."""
        meaning = self._constraints.meaning
        asked = [(self._filter(merger), [self._filter(part) for part in parts]) for merger, parts in candidates]
        return imperfect_degrees(asked, self._chances, advertisements=self._advertisements, meaning=meaning)

    def _filter(self, row: Row) -> Filter:
        return self._constraints.shape(row).to_filter(self._constraints.meaning)


def with_spent(
    source: SampledDegrees | AskedDegrees, candidates: Sequence[Candidate], spent: Mapping[Row, float]
) -> Degrees:
    """The degrees of candidates whose parts may be imperfect mergers themselves, with what these have `spent`.

    Of a part with degree s, at most s * P(part) is in vain; what a merger and all of its parts let through in vain is
    their sum at most, whatever overlaps.
    """
    found = source.degrees(candidates)
    places = [(at, row) for at, (_, parts) in enumerate(candidates) for row in parts if spent.get(row)]
    if not places:
        return found
    of_part = 1.0 - source.degrees([(candidates[at][0], [row]) for at, row in places]).degree
    more = np.zeros(len(candidates))
    np.add.at(more, [at for at, _ in places], np.array([spent[row] for _, row in places]) * of_part)
    return Degrees(np.minimum(found.degree + more, 1.0), found.traffic + more * found.chance, found.chance)


def degrees_by(
    chances: Chances, advertisements: Sequence[Filter], constraints: Constraints
) -> SampledDegrees | AskedDegrees:
    """How a table's degrees are found: on a sample where there are events, by asking otherwise."""
    if isinstance(chances, (EventSample, Uniform)):
        return SampledDegrees(_sample(chances, advertisements, constraints), constraints)
    return AskedDegrees(chances, advertisements, constraints)


def _sample(
    chances: EventSample | Uniform, advertisements: Sequence[Filter], constraints: Constraints
) -> list[dict[str, Any]]:
    meaning = constraints.meaning
    allowed = any_of(plain(advertisement, meaning) for advertisement in advertisements)

    def is_allowed(event: dict[str, Any]) -> bool:
        return not advertisements or matches(allowed, event, semantics=plain_semantics(meaning))

    if isinstance(chances, EventSample):
        found = [event for event in _events(chances) if is_allowed(event)]
        step = max(1, len(found) // SAMPLE_EVENTS)
        return found[::step][:SAMPLE_EVENTS]
    kept: list[dict[str, Any]] = []
    for stream in range(_MOST_DRAWN):
        kept.extend(event for event in chances.events(SAMPLE_EVENTS, stream) if is_allowed(event))
        if len(kept) >= SAMPLE_EVENTS:
            break
    return kept[:SAMPLE_EVENTS]


def _events(sample: EventSample) -> list[dict[str, Any]]:
    if isinstance(sample.events, (pa.Table, pa.RecordBatch)):
        rows: list[dict[str, Any]] = sample.events.to_pylist()
        return rows
    return [dict(event) for event in sample.events]


def _coded(events: Sequence[dict[str, Any]], constraints: Constraints) -> NDArray[np.int32]:
    """The code of each event for each attribute; of an opaque test, whether it holds."""
    codes = np.zeros((len(constraints.attributes), len(events)), np.int32)
    opaque: list[int] = []
    for at, attribute in enumerate(constraints.attributes):
        if isinstance(attribute, str):
            codes[at] = [constraints.code(at, attribute_value(event, attribute)) for event in events]
        else:
            opaque.append(at)
    if opaque and events:
        for at in opaque:
            codes[at] = constraints.code(at, False)
        for event, holding in enumerate(_holding(events, opaque, constraints)):
            for at in holding:
                codes[at, event] = constraints.code(at, True)
    return codes


def _holding(events: Sequence[dict[str, Any]], opaque: Sequence[int], constraints: Constraints) -> list[list[int]]:
    """For each event the opaque tests that hold."""
    meaning = constraints.meaning
    index = Index(semantics=plain_semantics(meaning))
    tests = ((at, constraints.attributes[at]) for at in opaque)
    index.add_many((str(at), plain(test, meaning)) for at, test in tests if isinstance(test, Filter))
    return [[int(id) for id in ids] for ids in index.match_batch(events).to_pylist()]
