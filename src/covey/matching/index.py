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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import (
    CoveyError,
    DuplicateIdError,
    EventError,
    IndexFileError,
    LimitError,
    OnError,
    UnknownIdError,
    skips,
)
from covey.events import Schema, columns, is_flat, row
from covey.events.byte_batches import ByteBatch
from covey.events.columns import Batch, Source
from covey.events.json_lines import BadLine, parse_json
from covey.events.messagepack_batches import MessagePackMaps
from covey.events.schema import AnySchema, as_schema
from covey.events.tables import AnyTable, as_batch, as_event, without_nan
from covey.events.term_columns import with_terms
from covey.file_names import is_index
from covey.filters import Filter, Is, Semantics, Term, matches
from covey.filters.fitting import UNTYPED
from covey.filters.semantics import Decoded, check_semantics
from covey.filters.terms import is_path
from covey.filters.values import Scalar
from covey.kernels import kernels_loaded
from covey.language import check_dialect, in_sql, parse
from covey.language.bounds import over_limit
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching.ids import Id, key_of, kind_of_ids
from covey.matching.learned import LEARNED, Past, arranged
from covey.matching.lowering import Lowering
from covey.matching.matches import Ids, Matches, Part
from covey.matching.only_spark import check_only_spark, names_of
from covey.matching.options import BuildOptions
from covey.matching.progress import STEP, Progress, Told, watched
from covey.matching.reports import AddManyError, AddReport, IndexStats
from covey.matching.state import Prepared, Sealed, State, Waiting, removed_since
from covey.matching.threads import background, match_segment, preparing, spread_over, workers_for

# What takes long to import, and a handful of subscriptions and events can do without, is imported where it is used.
if TYPE_CHECKING:
    from covey.matching.against import Finding
    from covey.matching.bulk import BadSubscription, Subscriptions
    from covey.matching.explain import Explanation
    from covey.matching.lowering import Flat
    from covey.matching.segment import Segment
    from covey.matching.statistics import Statistics

ORDERS = ("selectivity", "attribute", "frequency", "random")
_HEAD = 64
"""Subscriptions that wait in the head, matched one by one, until they become a segment; fewer where they are large."""
_HANDFUL = 32
"""So many subscriptions are added, and so many events matched with so many of them, without waiting for kernels."""
_FEW_MAPS = 256
"""Events in MessagePack that are matched one after the other, where that may be: what columns cost before the first of
them is spared."""
_TIER = 4
_BACKGROUND = 250
"""Merges of more subscriptions than this run in the background: whoever adds or removes one waits for no more."""
_READ_AGAIN = 100
"""The same where their texts have to be read again."""


class Index:
    """Subscriptions by id, and which of them an event meets. Safe to use from several threads.

    `semantics` says what a test on a missing attribute means: "sql" (unknown, as in SQL), "simple" (false, so that
    its negation is true), "strict" (the filter doesn't match at all) or "default" (the schema's default is tested).
    `schema` checks filters when they are added and events when they are matched, and has types, defaults and subtypes:
    a `Schema`, a mapping of types by attribute, its JSON, or the path of a file with that.
    `limits` bounds what one filter may be; beyond them, adding it is a LimitError.
    `order` is that of the tests in a filter: "selectivity" (the rarest first), or for comparison "attribute",
    "frequency" or "random". With a profile also "learned": attributes in the order that past subscriptions teach.
    `statistics` tells from sampled events how rare values are; without, the profile's events do, or else the constants
    of the filters themselves.
    `profile` is what past events and subscriptions were like (`covey.Profile`).
    `dialect` is what texts of filters are written in unless `add`, `replace` or `add_many` say otherwise; an index
    keeps them as SQL.
    `nan_is_missing` reads a NaN in an event as a missing value, as pandas means it; without, NaN is a number above all
    others, as in Spark. Of pandas' own objects it is read as missing in any case.
    """

    def __init__(
        self,
        *,
        semantics: Semantics = "sql",
        schema: AnySchema | None = None,
        limits: Limits = DEFAULT_LIMITS,
        order: str = "selectivity",
        statistics: Statistics | None = None,
        profile: Past | None = None,
        dialect: str = "sql",
        nan_is_missing: bool = False,
    ) -> None:
        check_dialect(dialect)
        if order not in (*ORDERS, LEARNED):
            raise CoveyError(f"order {order!r} is not known; use one of {', '.join((*ORDERS, LEARNED))}")
        if order == LEARNED and profile is None:
            raise CoveyError("the order 'learned' needs past subscriptions to learn from; give a profile= of them")
        if statistics is None and profile is not None and profile.events is not None:
            statistics = profile.statistics()
        self._semantics = check_semantics(semantics)
        self._schema = as_schema(schema)
        self._limits = limits
        self._order = order
        self._attributes = tuple(profile.attribute_order()) if order == LEARNED and profile is not None else ()
        self._statistics = statistics
        self.dialect = dialect
        """What texts are written in that are added from now on."""
        self.nan_is_missing = nan_is_missing
        """Whether a NaN in an event counts as a missing value from now on."""
        self._state = State()
        self._lock = threading.RLock()
        self._merging: Future[None] | None = None
        self._integers = False

    # Changing

    def add(self, id: Id, filter: str | Filter, *, dialect: str | None = None) -> None:
        """Add a subscription. An `id` is text or an integer; those of one index are of one kind. One that is there
        already, or a `filter` (text, or built with `attr`) that can't be used, is an error. `dialect` is what the text
        is written in, by itself the index's."""
        waiting = self._prepared(id, self._read(filter, dialect))
        with self._lock:
            key = key_of(id, self._kind)
            if self._has(key):
                raise DuplicateIdError(f"subscription {id!r} is in the index already; replace() changes it")
            self._check_terms(waiting.tested())
            self._integers = kind_of_ids([id]) is True
            self._place(replace(self._state, head={**self._state.head, key: waiting}))

    def replace(self, id: Id, filter: str | Filter, *, dialect: str | None = None) -> None:
        """Give the subscription with this `id` another `filter`, written in `dialect`: readers see the old one or the
        new one."""
        waiting = self._prepared(id, self._read(filter, dialect))
        with self._lock:
            self._check_terms(waiting.tested())
            state = self._without([id])
            self._place(replace(state, head={**state.head, self._known(id): waiting}))

    def remove(self, id: Id) -> None:
        """Remove the subscription with this `id`; an UnknownIdError where there is none."""
        with self._lock:
            self._place(self._without([id]))

    def remove_many(self, ids: Iterable[Id]) -> None:
        """Remove the subscriptions with these `ids`, as one change; an UnknownIdError where one isn't there."""
        with self._lock:
            self._place(self._without(list(ids)))

    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str = "id",
        filter: str = "filter",
        on_error: OnError = "raise",
        dialect: str | None = None,
        progress: Progress = None,
    ) -> AddReport:
        """Add `subscriptions` in bulk, as one change: pairs of id and filter, a mapping of filters by id, mappings or a
        table (of Arrow, pandas, polars, DuckDB) with columns `id` and `filter`, another index, or a path: of JSON
        lines, CSV, Parquet, a saved index, or a directory with a rule a file. Bad rows are all found: with `on_error`
        "raise" they are an AddManyError and nothing is added, with "skip" the good rows are added and the report lists
        the bad ones; of rows with one id the first counts. `dialect` is what texts are written in, by itself the
        index's. `progress` is as in `match_batch`, told when all are read, when they are parsed and when they are
        added."""
        from covey.matching.bulk import given_rows

        skip = skips(on_error)
        if isinstance(subscriptions, (str, os.PathLike)) and is_index(os.fspath(subscriptions)):
            subscriptions = Index.open(subscriptions, limits=self._limits)
        given = given_rows(subscriptions, id, filter)
        kind = kind_of_ids([id for id, _ in given]) if self._kind is None else self._kind
        rows = self._keyed(given, kind)
        with watched(progress, len(rows), "subscriptions") as told:
            report = self._add_rows(rows, dialect, skip, kind, told)
            if told is not None:
                told(len(rows), len(rows))
        if rows is given:
            return report
        return AddReport(report.added, [replace(bad, id=given[bad.row][0]) for bad in report.errors])

    def _keyed(self, given: list[tuple[Id, Any]], kind: bool | None) -> list[tuple[str, Any]]:
        """The rows with ids as text; in the place of a filter stands what is wrong with an id of another kind."""
        if not kind and all(type(id) is str for id, _ in given):
            return given
        rows: list[tuple[str, Any]] = []
        for id, condition in given:
            try:
                if id is None and isinstance(condition, CoveyError):  # a row that couldn't be read at all
                    raise condition
                rows.append((key_of(id, kind), condition))
            except CoveyError as error:
                rows.append((str(id) if kind_of_ids([id]) is not None else id, error))
        return rows

    def _add_rows(
        self, given: list[tuple[str, Any]], dialect: str | None, skip: bool, kind: bool | None, told: Told | None
    ) -> AddReport:
        from covey.matching.bulk import BadSubscription, translated

        rows = translated(given, dialect or self.dialect, self._limits, self._schema)
        if len(rows) <= _HANDFUL and not kernels_loaded():
            return self._add_few(rows, skip, kind)
        if told is not None:
            told(len(rows) // 3, len(rows))
        parsed = (lambda: None) if told is None else partial(told, 2 * len(rows) // 3, len(rows))
        segment, errors = self._compiled(rows, parsed)
        with self._lock:
            if self._kind is not None and self._kind is not kind:
                raise CoveyError("ids of the other kind were added meanwhile; give all as text or all as integers")
            if segment is not None:
                duplicates = [key for key in segment.ids.to_pylist() if self._has(key)] if len(self) else []
                if duplicates:
                    again = set(duplicates)
                    errors += [
                        BadSubscription(number, id, DuplicateIdError(f"subscription {id!r} is in the index already"))
                        for number, (id, _) in enumerate(rows)
                        if id in again
                    ]
                    kept = [one for one in rows if one[0] not in again]
                    segment, more = self._compiled(kept) if skip else (None, [])
                    errors += [bad for bad in more if bad.id not in {known.id for known in errors}]
            errors.sort(key=lambda bad: bad.row)
            if errors and not skip:
                raise AddManyError(errors)
            if segment is not None and len(segment):
                self._add_segment(segment, integers=kind is True)
            return AddReport(0 if segment is None else len(segment), errors)

    def prepare(self, rows: Sequence[tuple[str, str | Filter]], read: Sequence[Filter] | None = None) -> Prepared:
        """Compile subscriptions, given as `rows` of ids and filters, for `add_prepared`: changes nothing, so any thread
        may do it. `read` are the filters of texts, where they are known. An AddManyError where some are bad."""
        segment, errors = self._compiled(list(rows), read=read)
        if errors:
            raise AddManyError(errors)
        if segment is not None:
            segment.make_ready()
        return Prepared(segment)

    def prepare_later(self, rows: Sequence[tuple[str, str | Filter]], read: Sequence[Filter]) -> Future[Prepared]:
        """As `prepare` with its `rows` and what was `read` of them, on a thread of its own."""
        return preparing().submit(self.prepare, rows, read)

    def add_prepared(self, prepared: Prepared) -> None:
        """Add what this index `prepared`, as one change; a DuplicateIdError where an id is in the index."""
        segment = prepared.segment
        if segment is None:
            return
        with self._lock:
            if self._kind:
                raise CoveyError("what was prepared has ids that are text, and those of the index are integers")
            for key in segment.id_list if len(self) else ():
                if self._has(key):
                    raise DuplicateIdError(f"subscription {key!r} is in the index already")
            self._add_segment(segment, integers=False)

    def _add_segment(self, segment: Segment, *, integers: bool) -> None:
        self._check_terms(segment.names)
        self._seal_head()
        self._integers = integers
        self._place(replace(self._state, sealed=(*self._state.sealed, Sealed.fresh(segment))))

    def _add_few(self, rows: Sequence[tuple[str, str | Filter]], skip: bool, kind: bool | None) -> AddReport:
        """As `add_many`, into the head, where nothing is compiled."""
        from covey.matching.bulk import bad_ids, listed

        errors = dict(bad_ids(rows))
        with self._lock:
            waiting: dict[str, Waiting] = {}
            for number, (id, given) in enumerate(rows):
                if number in errors:
                    continue
                try:
                    if self._has(id):
                        raise DuplicateIdError(f"subscription {id!r} is in the index already")
                    waiting[id] = Waiting(given if isinstance(given, str) else str(given), self._checked(given))
                except CoveyError as error:
                    errors[number] = error
            if errors and not skip:
                raise AddManyError(listed(rows, errors))
            self._check_terms(name for one in waiting.values() for name in one.tested())
            if waiting:
                self._integers = kind is True
            self._place(replace(self._state, head={**self._state.head, **waiting}))
            return AddReport(len(waiting), listed(rows, errors))

    def _check_terms(self, names: Iterable[str]) -> None:
        """LimitError where these would make too many distinct terms."""
        fresh = {name for name in names if not is_path(name)}
        if fresh:
            distinct = len(fresh.union(term.name for term in self._state.terms))
            if distinct > self._limits.terms:
                raise over_limit(f"the index would have {distinct:,} distinct terms", "terms", self._limits)

    def _compiled(
        self, rows: list[tuple[str, str | Filter]], parsed: Callable[[], object] = lambda: None,
        read: Sequence[Filter] | None = None,
    ) -> tuple[Segment | None, list[BadSubscription]]:  # fmt: skip
        from covey.matching.bulk import compile_rows

        return compile_rows(rows, self._options, parsed, read)

    def _prepared(self, id: Id, given: str | Filter) -> Waiting:
        """A subscription that is known to compile."""
        key_of(id, self._kind)
        try:
            condition = self._checked(given)
        except LimitError as error:
            raise LimitError(f"subscription {id!r}: {error}") from None
        return Waiting(given if isinstance(given, str) else str(given), condition)

    def _read(self, given: str | Filter, dialect: str | None) -> str | Filter:
        """A filter that isn't written in SQL, read; others as they are."""
        written = self.dialect if dialect is None else dialect
        check_dialect(written)
        if not isinstance(given, str) or written == "sql":
            return given
        condition = in_sql(given, written, self._limits)
        return condition if self._schema is None or written not in UNTYPED else self._schema.fit(condition)

    def check(self, filter: str | Filter, *, dialect: str | None = None) -> Filter:
        """The `filter`, written in `dialect`, as it would be added; raises what `add` would raise."""
        return self._checked(self._read(filter, dialect))

    def _checked(self, given: str | Filter) -> Filter:
        condition = as_filter(given, self._limits)
        if self._schema is not None:
            condition = self._schema.check(condition)
        Lowering(self._limits).add(condition)
        if any(isinstance(node, Is) for node in _nodes(condition)):
            # IS UNKNOWN may double its part: only compiling tells how large the diagram gets.
            self._segment([("checked", Waiting("", condition))])
        return condition

    def _without(self, ids: Sequence[Id]) -> State:
        """The state without these subscriptions."""
        state = self._state
        head = dict(state.head)
        gone: dict[int, list[int]] = {}
        for id in ids:
            key = self._known(id)
            if head.pop(key, None) is not None:
                continue
            for place, sealed in enumerate(state.sealed):
                ordinal = sealed.find(key)
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
        if len(state.head) >= _HEAD or state.weight >= 4 * _HEAD:
            self._seal_head()
        self._merge_due()

    def _seal_head(self) -> None:
        state = self._state
        if state.head:
            self._state = State((*state.sealed, Sealed.fresh(self._segment(list(state.head.items())))))

    def _segment(self, waiting: Sequence[tuple[str, Waiting]]) -> Segment:
        from covey.matching.segment import segment_of

        lowering = Lowering(self._limits)
        for _, one in waiting:
            lowering.add(one.condition)
        return segment_of(
            arranged(lowering.finish(), self._attributes),
            pa.array([id for id, _ in waiting], pa.large_string()),
            pa.array([one.text for _, one in waiting], pa.large_string()),
            self._options,
        )

    def _merge_due(self) -> None:
        while True:
            due = self._due()
            if due is None or (self._merging is not None and not self._merging.done()):
                return
            known = all(sealed.segment.flat is not None for sealed in due)
            if sum(sealed.live for sealed in due) > (_BACKGROUND if known else _READ_AGAIN):
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
        rows: list[tuple[str, str | Filter]] = [row for part in parts for row in part.rows()]
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
        from covey.matching.joining import joined
        from covey.matching.segment import segment_of

        alive = [pa.array(rows) for _, rows in flats]
        return segment_of(
            arranged(joined(flats), self._attributes),
            pa.concat_arrays([part.segment.ids.take(rows) for part, rows in zip(parts, alive, strict=True)]),
            pa.concat_arrays([part.segment.texts.take(rows) for part, rows in zip(parts, alive, strict=True)]),
            self._options,
        )

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
                fresh = Sealed.fresh(merged)
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
        merged = self._merged(parts)
        if merged is not None:
            merged.make_ready()
        self._put(parts, merged)
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
        return kind_of_ids([id]) is self._integers and self._has(str(id))

    def _has(self, key: str) -> bool:
        state = self._state
        return key in state.head or any(sealed.find(key) is not None for sealed in state.sealed)

    @property
    def _kind(self) -> bool | None:
        """Whether ids are integers; None where there are none yet."""
        return self._integers if len(self) else None

    def _known(self, id: Id) -> str:
        """The key of an id that may be there; one of another kind isn't."""
        if kind_of_ids([id]) is not self._integers:
            raise UnknownIdError(f"subscription {id!r} is not in the index")
        return str(id)

    @property
    def integer_ids(self) -> bool:
        """Whether ids are integers rather than text."""
        return self._integers

    def __repr__(self) -> str:
        return f"<covey.Index: {len(self):,} subscriptions, semantics {self._semantics}>"

    def _repr_html_(self) -> str:
        """For notebooks: how large it is, and its first subscriptions."""
        shown = islice(self.rows(), 10)
        rows = "".join(f"<tr><td>{escape(str(id))}</td><td><code>{escape(text)}</code></td></tr>" for id, text in shown)
        return f"<div>{escape(repr(self))}<table><tr><th>id</th><th>filter</th></tr>{rows}</table></div>"

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
        """Every attribute that some subscription names, those inside terms too."""
        return self._state.attributes

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every term that some subscription tests and that isn't an attribute itself."""
        return self._state.terms

    @property
    def tested(self) -> tuple[str, ...]:
        """The names of all that is tested: attributes, and terms by theirs. These columns are all that matching looks
        at, where a batch brings the terms' columns itself."""
        return self._state.names

    @property
    def _options(self) -> BuildOptions:
        return BuildOptions(
            self._semantics,
            self._schema,
            self._defaults,
            self._limits,
            "attribute" if self._order == LEARNED else self._order,
            self._statistics,
            attributes=self._attributes,
        )

    @property
    def _defaults(self) -> Mapping[str, Scalar]:
        return self._schema.defaults if self._schema is not None else {}

    def ids(self) -> Iterator[Id]:
        """All ids, in the order in which they were added."""
        return (id for id, _ in self.rows())

    def rows(self) -> Iterator[tuple[Id, str]]:
        """(id, text) of all subscriptions, in the order in which they were added, as `add_many` takes them."""
        state, integers = self._state, self._integers
        for sealed in state.sealed:
            yield from ((int(id), text) for id, text in sealed.rows()) if integers else sealed.rows()
        for id, waiting in state.head.items():
            yield int(id) if integers else id, waiting.text

    def text(self, id: Id) -> str:
        """The filter of the subscription with this `id`, as it was given."""
        state, key = self._state, self._known(id)
        if key in state.head:
            return state.head[key].text
        for sealed in state.sealed:
            ordinal = sealed.find(key)
            if ordinal is not None:
                found: str = sealed.segment.texts[ordinal].as_py()
                return found
        raise UnknownIdError(f"subscription {id!r} is not in the index")

    def filter(self, id: Id) -> Filter:
        """The filter of the subscription with this `id`."""
        return parse(self.text(id), limits=self._limits)

    def match(self, event: Mapping[str, Any]) -> list[Any]:
        """The ids of the subscriptions that `event` meets, in the order in which they were added. `event` is a mapping
        of attributes, or a row of a table: of pandas, of Spark, a named tuple."""
        state = self._state
        if type(event) is not dict or self.nan_is_missing:
            event = self._taken(event)
        if self._schema is not None:
            event = Decoded(self._schema.decode(event), event)
        if (plain := state.plain) is not None:
            # As below; what is asked for at every event costs as much as matching it.
            found: list[Any] = []
            for one in plain:
                one.segment.match_event(event, one.deleted, self._integers, found)
            return found
        if state.only_spark:
            check_only_spark(state.only_spark, event)
        sealed, head = state.sealed, state.head
        if head and (state.compiled.head is not None or state.compiled.is_worth_it(state.weight)):
            sealed, head = (*sealed, self._compiled_head(state)), {}
        found = []
        if sealed:
            values = event
            if (state.nested or state.terms) and not (
                type(event) is dict and is_flat(event) and state.term_names.isdisjoint(event)
            ):
                values = row(event, state.attributes)  # dotted names may stand for nested records
            if state.terms:
                values = with_terms(values, state.terms, self._options.defaults_in_force, event)
            for one in sealed:
                one.segment.match_event(values, one.deleted, self._integers, found)
        for id, waiting in head.items():
            if matches(waiting.condition, event, semantics=self._semantics, defaults=self._defaults):
                found.append(int(id) if self._integers else id)
        return found

    def _taken(self, given: Any) -> Mapping[str, Any]:
        """An event as a mapping, without what counts as missing."""
        event, missing = as_event(given)
        return without_nan(event) if missing or self.nan_is_missing else event

    def _compiled_head(self, state: State) -> Sealed:
        """The head as a segment of its own, made once for each state that needs it."""
        if state.compiled.head is None:
            state.compiled.head = Sealed.fresh(self._segment(list(state.head.items())))
        return state.compiled.head

    def match_batch(self, events: AnyTable, *, threads: int | None = None, progress: Progress = None) -> Matches:
        """Match many events at once.

        `events` is a table, one row an event, or a list or iterator of mappings. A table is whatever has Arrow's C
        interface (Arrow, pandas, polars, DuckDB's relations, readers of record batches), or an Arrow dataset.
        `threads` is how many share the work, by default one a core; kernels run without the GIL. `progress` is True for
        a bar, or a function that is called with how many events are done and how many there are; by itself a notebook
        has a bar where many are matched.
        """
        state = self._state
        batch, missing = as_batch(events)
        missing = missing or self.nan_is_missing
        if state.only_spark:
            check_only_spark(state.only_spark, names_of(batch))
        if not state.sealed and isinstance(batch, Sequence) and len(batch) * len(state.head) <= _HANDFUL * _HANDFUL:
            few = None if kernels_loaded() or missing else self._match_few(batch, state)
            if few is not None:
                return few
        with watched(progress, 0 if isinstance(batch, ByteBatch) else len(batch)) as told:
            if told is None or isinstance(batch, ByteBatch):
                return self._match_columns(batch, state, threads, nan_is_missing=missing)
            return self._match_stepwise(batch, state, threads, missing, told)

    def _match_stepwise(
        self, batch: Batch, state: State, threads: int | None, nan_is_missing: bool, told: Told
    ) -> Matches:
        """The same a part of the events at a time, with a word after each."""
        parts: list[Part] = []
        segments: list[Segment] = []
        total = len(batch)
        for first in range(0, max(total, 1), STEP):
            some = batch[first : first + STEP] if isinstance(batch, Sequence) else batch.slice(first, STEP)
            _, segments, found = self._parts_of(some, state, threads, nan_is_missing)
            parts += [replace(part, first=part.first + first) for part in found]
            told(min(first + STEP, total), total)
        return Matches(total, segments, parts, integers=self._integers)

    def _match_maps(self, maps: MessagePackMaps, state: State) -> Matches | None:
        """A few events in MessagePack without columns; None where an event, or what is asked of it, needs these."""
        if self._schema is not None or state.only_spark or state.head:
            return None
        parts: list[Part] = []
        for number, one in enumerate(state.sealed):
            found = one.segment.match_maps(maps, one.deleted)
            if found is None:
                return None
            parts.append(Part(number, 0, *found))
        segments = [one.segment for one in state.sealed]
        return Matches(maps.line_count, segments, parts, integers=self._integers)

    def _match_columns(
        self, events: Source, state: State, threads: int | None, *, nan_is_missing: bool | None = None
    ) -> Matches:
        missing = self.nan_is_missing if nan_is_missing is None else nan_is_missing
        if isinstance(events, MessagePackMaps) and events.line_count <= _FEW_MAPS and not missing:
            found = self._match_maps(events, state)
            if found is not None:
                return found
        length, segments, parts = self._parts_of(events, state, threads, missing)
        return Matches(length, segments, parts, integers=self._integers)

    def _parts_of(
        self, events: Source, state: State, threads: int | None, nan_is_missing: bool
    ) -> tuple[int, list[Segment], list[Part]]:
        """How many events there are, and what they meet of each segment."""
        sealed = state.sealed
        if state.head:
            sealed = (*sealed, self._compiled_head(state))
        if_asked = {term.name for term in state.terms}.difference(*(one.segment.asked_of_all for one in sealed))
        batch = columns(
            events, state.names, self._schema, self._options.defaults_in_force, if_asked=if_asked,
            nan_is_missing=nan_is_missing,
        )  # fmt: skip
        if self._schema is not None:
            self._check_mandatory(events, self._schema)
        parts: list[Part] = []
        workers = workers_for(threads)
        for number, one in enumerate(sealed):
            parts += match_segment(number, one, batch, workers)
        return batch.length, [one.segment for one in sealed], parts

    def match_json(self, data: bytes | str) -> list[Any]:
        """The same as `match` for one event, whose JSON text is `data`."""
        found = self._match_bytes(data) if type(data) is bytes else None
        if found is not None:
            return found
        event = parse_json(data)
        if event is None:
            raise EventError("an event is a JSON object, and this is blank")
        return self.match(event)

    def _match_bytes(self, data: bytes) -> list[Any] | None:
        """One event without a Python object for it; None where it, or what is asked of it, needs one."""
        state = self._state
        sealed = state.sealed
        if self._schema is not None or state.only_spark or self.nan_is_missing:
            return None
        if state.head:
            if state.compiled.head is None:
                return None
            sealed = (*sealed, state.compiled.head)
        found: list[Any] = []
        for one in sealed:
            if not one.segment.match_json(data, one.deleted, self._integers, found):
                return None
        return found if sealed else None

    def match_json_lines(
        self, buffer: bytes | bytearray | memoryview, *, bad: list[BadLine] | None = None, threads: int | None = None
    ) -> Matches:
        """The same as `match_batch` for events as lines of JSON, UTF-8, in one `buffer`, read without a Python object
        for each.

        Blank lines are skipped. A line that isn't an event raises an EventError with its number, or is added to `bad`
        where that is given; events are counted without it. `threads` is how many share the work, by default one a core.
        """
        from covey.events.json_batches import JsonLines

        lines = JsonLines(buffer, bad=bad, spread=spread_over(workers_for(threads)))
        if self._state.only_spark:
            check_only_spark(self._state.only_spark, ())
        return self._match_columns(lines, self._state, threads)

    def match_messagepack(
        self, messages: Sequence[bytes], *, bad: list[BadLine] | None = None, threads: int | None = None
    ) -> Matches:
        """The same as `match_batch` for events as MessagePack maps, each of `messages` one, read without a Python
        object for each.

        One that isn't an event raises an EventError with its number, counted from 1 as lines are, or is added to `bad`
        where that is given; events are counted without it. `threads` is how many share the work, by default one a core.
        """
        from covey.events.messagepack_batches import MessagePackMaps

        maps = MessagePackMaps.of_messages(messages, bad=bad, spread=spread_over(workers_for(threads)))
        return self._match_columns(maps, self._state, threads)

    def _match_few(self, events: Sequence[Mapping[str, Any]], state: State) -> Matches | None:
        """A handful of events by the interpreter; None where one can't be read: the long way says why."""
        found: list[int] = []
        offsets = [0]
        try:
            for given in events:
                event = given if self._schema is None else Decoded(self._schema.decode(given), given)
                for ordinal, waiting in enumerate(state.head.values()):
                    if matches(waiting.condition, event, semantics=self._semantics, defaults=self._defaults):
                        found.append(ordinal)
                offsets.append(len(found))
        except (CoveyError, TypeError, ValueError, AttributeError):
            return None
        part = Part(0, 0, np.array(offsets, dtype=np.int64), np.array(found, dtype=np.int32))
        return Matches(len(events), [Ids(list(state.head))], [part], integers=self._integers)

    def _check_mandatory(self, events: Source, schema: Schema) -> None:
        for number, missing in schema.missing_mandatory(events):
            raise EventError(f"event {number}: attribute {missing!r} is mandatory and missing")

    def explain(self, id: Id, event: Mapping[str, Any]) -> Explanation:
        """Why `event` meets the subscription with this `id` or not: each predicate's truth, with the event's values."""
        from covey.matching.explain import explain

        condition = self.filter(id)
        event = self._taken(event)
        if self._schema is not None:
            condition, event = self._schema.check(condition), Decoded(self._schema.decode(event), event)
        return explain(condition, event, subscription=id, semantics=self._semantics, defaults=self._defaults)

    def check_against(self, events: AnyTable) -> list[Finding]:
        """The subscriptions that can't fire on `events`, whatever `match_batch` takes: they name an attribute that no
        event has, compare one with a constant of another kind than its values, or contradict themselves."""
        from covey.matching.against import Seen, findings

        batch, missing = as_batch(events)
        seen = Seen(self.tested, self._schema, nan_is_missing=missing or self.nan_is_missing)
        seen.look(batch)
        return findings([(id, self.filter(id)) for id in self.ids()], seen, self._semantics)

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

    def compact(self, *, wait: bool = True) -> None:
        """Make the index one segment, without what was removed; worth it before many matches or a `save`. Without
        `wait` that is left to the background where it takes long."""
        if not wait and self._compacts_in_background():
            return
        self.wait()
        with self._lock:
            self._seal_head()
            parts = self._state.sealed
            if len(parts) > 1 or any(part.gone for part in parts):
                self._put(parts, self._merged(parts))

    def _compacts_in_background(self) -> bool:
        with self._lock:
            parts = self._state.sealed
            if sum(sealed.live for sealed in parts) <= _BACKGROUND:
                return False
            if self._merging is None or self._merging.done():
                self._merging = background().submit(self._merge_in_background, parts)
            return True

    def parts(self) -> tuple[Sealed, ...]:
        """The immutable segments that the index is made of now, each with what is deleted of it; what is new becomes a
        segment first. For those who keep versions of an index, as `covey.spark` does; segments may change."""
        with self._lock:
            self._seal_head()
            return self._state.sealed

    @classmethod
    def of_parts(cls, parts: Iterable[Sealed], *, semantics: Semantics = "sql", schema: Schema | None = None) -> Index:
        """An index of segments, the `parts` of another one with these `semantics` and this `schema`; what is in them
        isn't copied."""
        index = cls(semantics=semantics, schema=schema)
        index._state = State(tuple(parts))
        return index

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to the file at `path`; a crash leaves the old file or the new one."""
        from covey.matching.storage import index_header, write_index

        parts = self.parts()
        schema = self._schema.to_json() if self._schema is not None else None
        header = index_header(self._semantics, order=self._order, schema=schema, attributes=self._attributes) | (
            {"ids": "integer"} if self._integers else {}
        )
        write_index(path, header, [(sealed.segment, sealed.deleted) for sealed in parts])

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True, limits: Limits = DEFAULT_LIMITS) -> Index:
        """Map the saved index at `path`. It can be matched and changed; changes stay in memory until `save`.

        With `verify` every byte is checked against its checksum; without, opening takes milliseconds at any size.
        `limits` are those of filters that are added from now on."""
        from covey.matching.storage import read_index

        header, segments = read_index(path, verify=verify, limits=limits)
        try:
            schema = Schema.from_json(header["schema"]) if header["schema"] is not None else None
            learned = header["order"] == LEARNED
            order = "attribute" if learned else header["order"]
            index = cls(semantics=header["semantics"], schema=schema, limits=limits, order=order)
            if learned:
                index._order, index._attributes = LEARNED, tuple(header.get("attributes", ()))
        except KeyError as error:
            raise IndexFileError(f"{path}: the manifest lacks {error}; build the index again") from None
        index._integers = header.get("ids") == "integer"
        defaults = dict(index._defaults) if index._semantics == "default" else {}
        index._state = State(
            tuple(Sealed.marked(replace(segment, defaults=defaults), deleted) for segment, deleted in segments)
        )
        return index


def as_filter(given: object, limits: Limits) -> Filter:
    """A filter from text or as it is."""
    if isinstance(given, Filter):
        return given
    if isinstance(given, str):
        return parse(given, limits=limits)
    if isinstance(given, CoveyError):
        raise given
    from covey.matching.bulk import no_filter

    raise no_filter(given)


def _nodes(condition: Filter) -> Iterator[Filter]:
    stack = [condition]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children())
