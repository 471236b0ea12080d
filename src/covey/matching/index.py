"""The index: subscriptions in, events matched, both at once.

An index is a few immutable segments, a bitmap of deletions for each, and a small head of subscriptions that were
added since. All of that is one immutable `State`; a change makes a new one under the writers' lock and puts it in
place by a single assignment. A reader takes the state once, so it never sees half a change, never waits, and every
answer is that of some moment during the call.

When the head is full it becomes a segment; a segment is merged with the one before it as long as that isn't at least
four times larger, so there are few segments and each subscription is compiled again only a logarithmic number of
times. Large merges run in the background.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import (
    CoveyError,
    DuplicateIdError,
    EventError,
    FilterError,
    IndexFileError,
    LimitError,
    UnknownIdError,
)
from covey.events import Batch, Schema, columns, row
from covey.filters import Filter, Is, Semantics, matches
from covey.filters.semantics import check_semantics
from covey.filters.values import Scalar
from covey.language import parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching.bulk import BadSubscription, check_id, compile_rows
from covey.matching.explain import Explanation, explain
from covey.matching.joining import joined
from covey.matching.lowering import Flat, Lowering
from covey.matching.matches import Matches, Part
from covey.matching.reports import AddManyError, AddReport, IndexStats
from covey.matching.running import background, match_segment, workers_for
from covey.matching.segment import Segment, build_segment, segment_of
from covey.matching.state import Sealed, State, Waiting, removed_since
from covey.matching.statistics import Statistics
from covey.matching.storage import read_index, write_index

ORDERS = ("selectivity", "attribute", "frequency", "random")
_HEAD = 64
"""Subscriptions that wait in the head, matched one by one, until they become a segment."""
_TIER = 4
_BACKGROUND = 10_000
"""Merges of more subscriptions than this run in the background."""


class Index:
    """Subscriptions by id, and which of them an event meets. Safe to use from several threads."""

    def __init__(
        self,
        *,
        semantics: Semantics = "sql",
        schema: Schema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        order: str = "selectivity",
        statistics: Statistics | None = None,
    ) -> None:
        if order not in ORDERS:
            raise CoveyError(f"order {order!r} is not known; use one of {', '.join(ORDERS)}")
        self._semantics = check_semantics(semantics)
        self._schema = schema
        self._limits = limits
        self._order = order
        self._statistics = statistics
        self._state = State()
        self._lock = threading.RLock()
        self._merging: Future[None] | None = None

    # Changing

    def add(self, id: str, filter: str | Filter) -> None:
        """Add a subscription. An id that is there already, or a filter that can't be used, is an error."""
        waiting = self._prepared(id, filter)
        with self._lock:
            if id in self:
                raise DuplicateIdError(f"subscription {id!r} is in the index already; replace() changes it")
            self._place(replace(self._state, head={**self._state.head, id: waiting}))

    def replace(self, id: str, filter: str | Filter) -> None:
        """Give a subscription another filter: readers see the old one or the new one."""
        waiting = self._prepared(id, filter)
        with self._lock:
            state = self._without([id])
            self._place(replace(state, head={**state.head, id: waiting}))

    def remove(self, id: str) -> None:
        """Remove a subscription."""
        with self._lock:
            self._place(self._without([id]))

    def add_many(
        self,
        subscriptions: Iterable[tuple[str, str | Filter]],
        *,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> AddReport:
        """Add subscriptions in bulk, as one change. Bad rows are all found: with "raise" they are an AddManyError and
        nothing is added, with "collect" the good rows are added and the report lists the bad ones."""
        if on_error not in ("raise", "collect"):
            raise CoveyError(f"on_error {on_error!r} is not known; use raise or collect")
        rows = list(subscriptions)
        segment, errors = self._compiled(rows)
        with self._lock:
            if segment is not None:
                duplicates = [i for i in segment.ids.to_pylist() if i in self] if len(self) else []
                if duplicates:
                    again = set(duplicates)
                    errors += [
                        BadSubscription(number, id, DuplicateIdError(f"subscription {id!r} is in the index already"))
                        for number, (id, _) in enumerate(rows)
                        if id in again
                    ]
                    kept = [one for one in rows if one[0] not in again]
                    segment, more = self._compiled(kept) if on_error == "collect" else (None, [])
                    errors += [bad for bad in more if bad.id not in {known.id for known in errors}]
            errors.sort(key=lambda bad: bad.row)
            if errors and on_error == "raise":
                raise AddManyError(errors)
            if segment is not None and len(segment):
                self._seal_head()
                sealed = Sealed(segment, np.zeros(len(segment) // 8 + 1, dtype=np.uint8))
                self._place(replace(self._state, sealed=(*self._state.sealed, sealed)))
            return AddReport(0 if segment is None else len(segment), errors)

    def _compiled(self, rows: list[tuple[str, str | Filter]]) -> tuple[Segment | None, list[BadSubscription]]:
        return compile_rows(
            rows, semantics=self._semantics, schema=self._schema, defaults=self._defaults, limits=self._limits,
            order=self._order, statistics=self._statistics,
        )  # fmt: skip

    def _prepared(self, id: str, given: str | Filter) -> Waiting:
        """A subscription that is known to compile."""
        check_id(id)
        try:
            condition = self.check(given)
        except LimitError as error:
            raise LimitError(f"subscription {id!r}: {error}") from None
        return Waiting(given if isinstance(given, str) else str(given), condition)

    def check(self, filter: str | Filter) -> Filter:
        """The filter as it would be added; raises what `add` would raise."""
        condition = as_filter(filter, self._limits)
        if self._schema is not None:
            condition = self._schema.check(condition)
        Lowering(self._limits).add(condition)
        if any(isinstance(node, Is) for node in _nodes(condition)):
            # IS UNKNOWN may double its part: only compiling tells how large the diagram gets.
            self._segment([("checked", Waiting("", condition))])
        return condition

    def _without(self, ids: Sequence[str]) -> State:
        """The state without these subscriptions."""
        state = self._state
        head = dict(state.head)
        gone: dict[int, list[int]] = {}
        for id in ids:
            if head.pop(id, None) is not None:
                continue
            for place, sealed in enumerate(state.sealed):
                ordinal = sealed.find(id)
                if ordinal is not None:
                    gone.setdefault(place, []).append(ordinal)
                    break
            else:
                raise UnknownIdError(f"subscription {id!r} is not in the index")
        changed = tuple(
            sealed.without(gone[place]) if place in gone else sealed for place, sealed in enumerate(state.sealed)
        )
        return State(changed, head)

    def _place(self, state: State) -> None:
        """Make a state the current one, and merge what is due."""
        self._state = state
        if len(state.head) >= _HEAD:
            self._seal_head()
        self._merge_due()

    def _seal_head(self) -> None:
        state = self._state
        if state.head:
            segment = self._segment(list(state.head.items()))
            sealed = Sealed(segment, np.zeros(len(segment) // 8 + 1, dtype=np.uint8))
            self._state = State((*state.sealed, sealed))

    def _segment(self, waiting: Sequence[tuple[str, Waiting]]) -> Segment:
        return build_segment(
            [id for id, _ in waiting], [one.condition for _, one in waiting], [one.text for _, one in waiting],
            semantics=self._semantics, defaults=self._defaults, limits=self._limits, order=self._order,
            statistics=self._statistics,
        )  # fmt: skip

    def _merge_due(self) -> None:
        while True:
            due = self._due()
            if due is None or (self._merging is not None and not self._merging.done()):
                return
            if sum(sealed.live for sealed in due) > _BACKGROUND:
                self._merging = background().submit(self._merge_in_background, due)
                return
            self._put(due, self._merged(due))

    def _due(self) -> tuple[Sealed, ...] | None:
        """Neighbouring segments that should be one: the first run where a segment isn't four times the next."""
        sealed = self._state.sealed
        for place in range(len(sealed) - 1):
            if sealed[place].live < _TIER * sealed[place + 1].live:
                return sealed[place : place + 2]
        for one in sealed:
            if 2 * one.gone > len(one.segment):
                return (one,)
        return None

    def _merged(self, parts: Sequence[Sealed]) -> Segment | None:
        flats = [(part.segment.flat, part.alive()) for part in parts]
        known = [(flat, alive) for flat, alive in flats if flat is not None]
        if len(known) == len(parts) and any(len(alive) for _, alive in known):
            return self._joined(known, parts)
        rows: list[tuple[str, str | Filter]] = []
        for part in parts:
            alive = pa.array(part.alive())
            rows.extend(
                zip(part.segment.ids.take(alive).to_pylist(), part.segment.texts.take(alive).to_pylist(), strict=True)
            )
        if not rows:
            return None
        segment, errors = self._compiled(rows)
        if errors:
            raise CoveyError(
                f"a subscription that was accepted no longer compiles: {errors[0].id!r}: {errors[0].error}"
            )
        return segment

    def _joined(self, flats: Sequence[tuple[Flat, NDArray[np.int64]]], parts: Sequence[Sealed]) -> Segment:
        """A segment of small ones."""
        alive = [pa.array(rows) for _, rows in flats]
        return segment_of(
            joined(flats),
            pa.concat_arrays([part.segment.ids.take(rows) for part, rows in zip(parts, alive, strict=True)]),
            pa.concat_arrays([part.segment.texts.take(rows) for part, rows in zip(parts, alive, strict=True)]),
            semantics=self._semantics, defaults=self._defaults, limits=self._limits, order=self._order,
            statistics=self._statistics,
        )  # fmt: skip

    def _put(self, parts: Sequence[Sealed], merged: Segment | None) -> None:
        """Put a merged segment in the place of its parts, with what was removed from them in the meantime."""
        with self._lock:
            state = self._state
            places = [
                place
                for place, sealed in enumerate(state.sealed)
                if any(sealed.segment is part.segment for part in parts)
            ]
            if len(places) != len(parts):
                return  # something else has merged them
            replacement: tuple[Sealed, ...] = ()
            if merged is not None:
                fresh = Sealed(merged, np.zeros(len(merged) // 8 + 1, dtype=np.uint8))
                removed = [
                    merged.ordinals[id]
                    for place, part in zip(places, parts, strict=True)
                    if state.sealed[place].gone != part.gone
                    for id in removed_since(part, state.sealed[place])
                ]
                replacement = (fresh.without(removed) if removed else fresh,)
            before, after = state.sealed[: places[0]], state.sealed[places[-1] + 1 :]
            self._state = replace(state, sealed=(*before, *replacement, *after))

    def _merge_in_background(self, parts: tuple[Sealed, ...]) -> None:
        self._put(parts, self._merged(parts))
        with self._lock:
            self._merging = None
            self._merge_due()

    def wait(self) -> None:
        """Wait until no merge is running in the background."""
        while True:
            with self._lock:
                running = self._merging
            if running is None:
                return
            running.result()

    # Asking

    def __len__(self) -> int:
        state = self._state
        return len(state.head) + sum(sealed.live for sealed in state.sealed)

    def __contains__(self, id: object) -> bool:
        state = self._state
        return isinstance(id, str) and (id in state.head or any(sealed.find(id) is not None for sealed in state.sealed))

    def __repr__(self) -> str:
        return f"<covey.Index: {len(self):,} subscriptions, semantics {self._semantics}>"

    @property
    def semantics(self) -> Semantics:
        """What a filter means here."""
        return self._semantics

    @property
    def schema(self) -> Schema | None:
        """The events' schema, if one was given."""
        return self._schema

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that some subscription names."""
        return self._state.names

    @property
    def _defaults(self) -> Mapping[str, Scalar]:
        return self._schema.defaults if self._schema is not None else {}

    def ids(self) -> Iterator[str]:
        """All ids, in the order in which they were added."""
        state = self._state
        for sealed in state.sealed:
            yield from sealed.segment.ids.take(pa.array(sealed.alive())).to_pylist()
        yield from state.head

    def text(self, id: str) -> str:
        """A subscription's filter as it was given."""
        state = self._state
        if id in state.head:
            return state.head[id].text
        for sealed in state.sealed:
            ordinal = sealed.find(id)
            if ordinal is not None:
                found: str = sealed.segment.texts[ordinal].as_py()
                return found
        raise UnknownIdError(f"subscription {id!r} is not in the index")

    def filter(self, id: str) -> Filter:
        """A subscription's filter."""
        return parse(self.text(id), limits=self._limits)

    def match(self, event: Mapping[str, Any]) -> list[str]:
        """The ids of the subscriptions that an event meets, in the order in which they were added."""
        state = self._state
        if self._schema is not None:
            event = self._schema.decode(event)
        elif not isinstance(event, Mapping):
            raise EventError(f"an event is a mapping of attributes, not {type(event).__name__}")
        sealed, head = state.sealed, state.head
        if head and (state.compiled.head is not None or state.compiled.is_worth_it(len(head))):
            sealed, head = (*sealed, self._compiled_head(state)), {}
        found: list[str] = []
        if sealed:
            # Plain events go as they are; dotted names may stand for nested records.
            values = row(event, state.names) if state.nested else event
            for one in sealed:
                ids = one.segment.id_list
                found += [ids[ordinal] for ordinal in one.segment.match_event(values, one.deleted)]
        for id, waiting in head.items():
            if matches(waiting.condition, event, semantics=self._semantics, defaults=self._defaults):
                found.append(id)
        return found

    def _compiled_head(self, state: State) -> Sealed:
        """The head as a segment of its own, made once for each state that needs it."""
        if state.compiled.head is None:
            segment = self._segment(list(state.head.items()))
            state.compiled.head = Sealed(segment, segment.none_deleted)
        return state.compiled.head

    def match_batch(self, events: Batch, *, threads: int | None = None) -> Matches:
        """Match an Arrow table, a record batch or a list of mappings; `threads` is by default one a core."""
        state = self._state
        sealed = state.sealed
        if state.head:
            sealed = (*sealed, self._compiled_head(state))
        if isinstance(events, Iterator):
            events = list(events)
        batch = columns(events, state.names, self._schema)
        if self._schema is not None:
            self._check_mandatory(events, self._schema)
        parts: list[Part] = []
        workers = workers_for(threads)
        for number, one in enumerate(sealed):
            parts += match_segment(number, one, batch, workers)
        return Matches(batch.length, [one.segment for one in sealed], parts)

    def _check_mandatory(self, events: Batch, schema: Schema) -> None:
        for number, missing in schema.missing_mandatory(events):
            raise EventError(f"event {number}: attribute {missing!r} is mandatory and missing")

    def explain(self, id: str, event: Mapping[str, Any]) -> Explanation:
        """Why an event meets a subscription or not: each predicate's truth, with the event's values."""
        condition = self.filter(id)
        if self._schema is not None:
            condition, event = self._schema.check(condition), self._schema.decode(event)
        return explain(condition, event, subscription=id, semantics=self._semantics, defaults=self._defaults)

    def stats(self) -> IndexStats:
        """Sizes and layout."""
        state = self._state
        segments = [sealed.segment for sealed in state.sealed]
        return IndexStats(
            subscriptions=len(self),
            segments=len(segments),
            waiting=len(state.head),
            deleted=sum(sealed.gone for sealed in state.sealed),
            attributes=len(state.names),
            predicates=sum(segment.predicates for segment in segments),
            tables=sum(segment.tables.count for segment in segments),
            partitions=sum(len(segment.tables.partition_entry) - 1 for segment in segments),
            entries=sum(len(segment.tables.entry_low) for segment in segments),
            swept=sum(segment.tables.swept for segment in segments),
            nodes=sum(len(segment.tables.nodes) for segment in segments),
            bytes=sum(segment.nbytes for segment in segments),
            semantics=self._semantics,
        )

    def compact(self) -> None:
        """Make the index one segment, without what was removed; worth it before many matches or a `save`."""
        self.wait()
        with self._lock:
            self._seal_head()
            parts = self._state.sealed
            if len(parts) > 1 or any(part.gone for part in parts):
                self._put(parts, self._merged(parts))

    def parts(self) -> tuple[Sealed, ...]:
        """The immutable segments that the index is made of now, each with what is deleted of it. What is new becomes a
        segment first."""
        with self._lock:
            self._seal_head()
            return self._state.sealed

    @classmethod
    def of_parts(cls, parts: Iterable[Sealed], *, semantics: Semantics = "sql") -> Index:
        """An index of segments that another one was made of; what is in them isn't copied."""
        index = cls(semantics=semantics)
        index._state = State(tuple(parts))
        return index

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file; a crash leaves the old file or the new one."""
        parts = self.parts()
        header = {
            "version": 1,
            "semantics": self._semantics,
            "order": self._order,
            "schema": self._schema.to_json() if self._schema is not None else None,
        }
        write_index(path, header, [(sealed.segment, sealed.deleted) for sealed in parts])

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True, limits: Limits = DEFAULT_LIMITS) -> Index:
        """Map a saved index. It can be matched and changed; changes stay in memory until `save`.

        With `verify` every byte is checked against its checksum; without, opening takes milliseconds at any size."""
        header, segments = read_index(path, verify=verify)
        try:
            schema = Schema.from_json(header["schema"]) if header["schema"] is not None else None
            index = cls(semantics=header["semantics"], schema=schema, limits=limits, order=header["order"])
        except KeyError as error:
            raise IndexFileError(f"{path}: the manifest lacks {error}; build the index again") from None
        defaults = dict(index._defaults) if index._semantics == "default" else {}
        index._state = State(
            tuple(
                Sealed(
                    replace(segment, defaults=defaults),
                    deleted,
                    int(np.unpackbits(deleted, bitorder="little")[: len(segment)].sum()),
                )
                for segment, deleted in segments
            )
        )
        return index


def as_filter(given: object, limits: Limits) -> Filter:
    """A filter from text or as it is."""
    if isinstance(given, Filter):
        return given
    if isinstance(given, str):
        return parse(given, limits=limits)
    raise FilterError(f"a filter is text or a covey filter, not {type(given).__name__}")


def _nodes(condition: Filter) -> Iterator[Filter]:
    stack = [condition]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children())
