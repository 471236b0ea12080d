"""The routing table: filters by hop, and which hops an event must go to.

A hop is a client or a neighbour; its entries are what it asked for. Up to a few dozen small entries the interpreter is
quickest; above, one index over the entries of all hops finds everything that an event matches in one call; new entries
come into it when there are many (`entry_index.py`). `Holding` is what a neighbour has told, whole and with digests, so
that two brokers can find out by a few numbers where they differ.

Neighbours' entries may be *pruned* for matching (Bittner and Hinze; P6): the table then matches by smaller filters that
let more through, while what is held, exported and taken back stays as it was told. Clients' entries never are, so no
client sees an event that it didn't ask for.

Entries of neighbours that get all events anyway (R5) can be *left out* of matching: they stay in the table, and out of
the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, TypeAlias, cast
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from covey.filters.algebra import Filter
from covey.history import Chances
from covey.matching.matches import Named
from covey.relations.pruning import Pruner
from covey.routing.batches import Wanted
from covey.routing.entry_columns import EntryColumns, Target
from covey.routing.entry_index import EntryIndex
from covey.routing.journal import Flaw
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import Entry
from covey.routing.packed_events import PackedEvents
from covey.routing.pruning_choice import PruningChoice
from covey.routing.undo import Remembered, is_written_down, repair
from covey.routing.waiting_entries import weight_of

Hops: TypeAlias = dict[str, list[str]]
"""The hops that an event must go to, each with its entries that match."""

Targets: TypeAlias = "dict[int, tuple[ReferenceType[Named], list[Target | None]]]"
"""Entries by a segment and its ordinals, None for those that weren't asked for yet."""

FEW: Final = 64
"""Small entries up to which the interpreter matches; half as many bring it back."""
BATCH: Final = 64
"""Events from which on they are matched together: what the index does once a batch takes as long as so many alone."""
BUCKETS: Final = 256
ENTRY_BYTES: Final = 100
"""What an entry takes beside its texts."""
PRUNING_STEPS: Final = 10
"""Steps that an entry counts as where prunings are chosen anew."""

PRUNED_AGAIN_AFTER: Final = 0.25
"""Which part of a pruned table may change before prunings are chosen anew; new entries stay whole until then."""


class RoutingTable:
    """The entries of all hops, for matching."""

    def __init__(self, known: KnownFilters, report: Callable[[Flaw], None] = lambda _: None) -> None:
        self._known = known
        self._report = report
        """Is told of entries that the index can't take."""
        self._hops: dict[str, dict[str, Filter]] = {}
        self._size = 0
        self._weight = 0
        """As many as all entries count for."""
        self._index: EntryIndex | None = None
        self._numbers: dict[tuple[str, str], str] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self._next = 0
        self._columns = EntryColumns(self._places)
        self._hits: dict[Target, int] = {}
        """Of entries in an index that is gone."""
        self._targets: Targets = {}
        """What numbers stand for in the segments that the last events were matched by."""
        self._before: dict[tuple[str, str], Filter | None] = {}
        """What entries were before this turn; None for those that weren't."""
        self._left_out: frozenset[str] = frozenset()
        """Hops whose entries aren't matched."""
        self._left_out_before: frozenset[str] = frozenset()
        """Those before this turn."""
        self._is_broken = False
        """Whether something raised within the index."""

    def __len__(self) -> int:
        return self._size

    @property
    def hops(self) -> Iterable[str]:
        """All hops that have entries."""
        return self._hops.keys()

    def entries(self, hop: str) -> Mapping[str, Filter]:
        """A hop's entries as they are matched."""
        return self._hops.get(hop, {})

    def add(self, hop: str, key: str, condition: Filter) -> None:
        """Add an entry, or change its filter."""
        self._note(hop, (key,))
        entries = self._hops.setdefault(hop, {})
        if key in entries:
            self.remove(hop, key)
            entries = self._hops.setdefault(hop, {})
        entries[key] = condition
        self._size += 1
        self._weight += weight_of(condition)
        if self._index is not None:
            self._file(hop, key, condition)
        elif self._weight > FEW:
            self._build()

    def change_many(self, hop: str, added: Mapping[str, Filter], removed: Iterable[str]) -> None:
        """Remove entries and add others, which replace those with the same key; the index takes them as one change."""
        self._remove_many(hop, dict.fromkeys((*removed, *added)))
        if len(added) <= FEW:
            for key, condition in added.items():
                self.add(hop, key, condition)
            return
        self._hops.setdefault(hop, {}).update(added)
        self._size += len(added)
        self._weight += sum(map(weight_of, added.values()))
        if self._index is not None:
            self._file_many((hop, key, condition) for key, condition in added.items())
        else:
            self._build()

    def leave_out(self, hops: frozenset[str]) -> None:
        """Match the entries of all hops but these, which get all events whatever they asked for."""
        if hops == self._left_out:
            return
        self._begin()
        before, self._left_out = self._left_out, hops
        index = self._index
        if index is None:
            return
        numbers = [self._forget_number(hop, key) for hop in hops - before for key in self._hops.get(hop, {})]
        if numbers:
            index.remove_many(numbers)
            index.compact()
        again = [(hop, key, own) for hop in before - hops for key, own in self._hops.get(hop, {}).items()]
        if again:
            self._file_many(again)

    def _forget_number(self, hop: str, key: str) -> str:
        number = self._numbers.pop((hop, key))
        del self._places[number]
        return number

    def rebuild(self) -> None:
        """Build the index anew: what is known of events has changed."""
        if self._index is not None:
            self._build()

    def _build(self) -> None:
        self._forget_index()
        self._index = EntryIndex(self._known, self._report, self._changing)
        self._file_many((hop, key, own) for hop, entries in self._hops.items() for key, own in entries.items())

    def _file_many(self, entries: Iterable[tuple[str, str, Filter]]) -> None:
        assert self._index is not None
        self._index.add_many(
            [(self._number(hop, key), condition) for hop, key, condition in entries if hop not in self._left_out]
        )

    def _file(self, hop: str, key: str, condition: Filter) -> None:
        assert self._index is not None
        if hop not in self._left_out:
            self._index.add(self._number(hop, key), condition)

    def _number(self, hop: str, key: str) -> str:
        """What the index knows an entry by."""
        self._next += 1
        number = str(self._next)
        self._numbers[hop, key] = number
        self._places[number] = (hop, key)
        return number

    def _forget_index(self) -> None:
        self._hits = self.take_hits()
        self._index, self._numbers, self._places, self._targets = None, {}, {}, {}
        self._columns = EntryColumns(self._places)

    def remove(self, hop: str, key: str) -> None:
        """Remove an entry; one that isn't there is no error."""
        self._remove_many(hop, (key,))

    def _remove_many(self, hop: str, keys: Iterable[str]) -> None:
        self._note(hop, keys)
        entries = self._hops.get(hop, {})
        numbers: list[str] = []
        for key in keys:
            condition = entries.pop(key, None)
            if condition is None:
                continue
            self._size -= 1
            self._weight -= weight_of(condition)
            if self._index is not None and hop not in self._left_out:
                numbers.append(self._forget_number(hop, key))
        if not entries:
            self._hops.pop(hop, None)
        if self._index is not None and self._weight < FEW // 2:
            self._forget_index()
        elif self._index is not None and numbers:
            self._index.remove_many(numbers)

    # Turns that end badly

    def _note(self, hop: str, keys: Iterable[str]) -> None:
        """These entries are about to change."""
        if is_written_down():
            self._begin()
            entries = self._hops.get(hop, {})
            for key in keys:
                self._before.setdefault((hop, key), entries.get(key))

    def _begin(self) -> None:
        """Something is about to change."""
        if repair(self, self._take_back):
            self._before = {}
            self._left_out_before = self._left_out

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """While the index changes nobody knows what it has, if something raises."""
        self._begin()
        self._is_broken = True
        yield
        self._is_broken = False

    def _take_back(self) -> None:
        """Entries become what they were before this turn, and with them the index."""
        before, self._before = self._before, {}
        for (hop, key), condition in before.items():
            entries = self._hops.setdefault(hop, {})
            entries.pop(key, None)
            if condition is not None:
                entries[key] = condition
            if not entries:
                del self._hops[hop]
        self._size = sum(map(len, self._hops.values()))
        self._weight = sum(weight_of(condition) for entries in self._hops.values() for condition in entries.values())
        is_other = self._left_out != self._left_out_before
        self._left_out = self._left_out_before
        if self._is_broken or is_other or (self._index is None) == (self._weight > FEW):
            self._is_broken = False
            self._forget_index()
            if self._weight > FEW:
                self._build()
        elif self._index is not None:
            for (hop, key), condition in before.items():
                number = self._numbers.pop((hop, key), None)
                if number is not None:
                    del self._places[number]
                    self._index.remove_many((number,))
                if condition is not None:
                    self._file(hop, key, condition)

    # Matching

    def match_many(self, events: Sequence[Mapping[str, Any]]) -> Mapping[str, Wanted]:
        """As `match`, for events in a row, by hop: the index takes them together."""
        if self._index is not None and len(events) >= BATCH:
            return self._matched_together(events)
        found: dict[str, Wanted] = {}
        for at, event in enumerate(events):
            for hop, matched in self.match(event).items():
                wanted = found.get(hop) or found.setdefault(hop, Wanted())
                wanted.places.append(at)
                wanted.keys.append(matched)
        return found

    def take_hits(self) -> dict[Target, int]:
        """How many events met entries, by hop and key: what was counted here since this was last asked."""
        hits, self._hits = self._hits, {}
        for target, count in self._columns.take_hits().items():
            hits[target] = hits.get(target, 0) + count
        return hits

    def _matched_together(self, events: Sequence[Mapping[str, Any]]) -> Mapping[str, Wanted]:
        assert self._index is not None
        if self._known.meaning.defaults:
            events = [self._known.completed(event) for event in events]
        matches, interpreted = self._index.match_many(events)
        by_segment = matches.by_segment()
        if not interpreted and isinstance(events, PackedEvents):
            wanted = self._columns.wanted(by_segment)
            if wanted is not None:
                for hop, one in wanted.items():
                    one.entries = len(self._hops[hop])
                return wanted
        before, self._targets = self._targets, {}
        places: list[NDArray[np.int64]] = []
        found: list[Target] = []
        for segment, some, ordinals in by_segment:
            found += self._found(before, segment, ordinals.tolist())
            places.append(some)
        if interpreted:
            found += [self._places[number] for _, number in interpreted]
            places.append(np.array([at for at, _ in interpreted], np.int64))
        if len(places) == 1:
            return _gathered(places[0].tolist(), found)
        joined = np.concatenate([np.empty(0, np.int64), *places])
        order = np.argsort(joined, kind="stable")
        return _gathered(joined[order].tolist(), [found[at] for at in order.tolist()])

    def _found(self, before: Targets, segment: Named, ordinals: list[int]) -> list[Target]:
        """The entries that a segment of the index has under some ordinals. They are looked up once for each: what a
        number stands for never changes."""
        known = self._targets.get(id(segment)) or before.get(id(segment))
        if known is None or known[0]() is not segment:
            known = ref(segment), [None] * len(segment.ids)
        self._targets[id(segment)] = known
        targets = known[1]
        found = [targets[ordinal] for ordinal in ordinals]
        if not all(found):
            numbers, entries = segment.id_list, self._places
            for at, ordinal in enumerate(ordinals):
                if found[at] is None:
                    found[at] = targets[ordinal] = entries[numbers[ordinal]]
        return cast("list[Target]", found)

    def match(self, attributes: Mapping[str, Any]) -> Hops:
        """The hops that an event must go to, each with its entries that match."""
        if self._index is not None:
            return self._by_hop(self._index.match(self._known.completed(attributes)))
        found: Hops = {}
        matches = self._known.matches
        for hop, entries in self._hops.items():
            if hop in self._left_out:
                continue
            keys = [key for key, condition in entries.items() if matches(condition, attributes)]
            if keys:
                found[hop] = keys
        return found

    def _by_hop(self, numbers: list[str]) -> Hops:
        places = self._places
        if len(numbers) == 1:
            hop, key = places[numbers[0]]
            return {hop: [key]}
        found: Hops = {}
        for number in numbers:
            hop, key = places[number]
            found.setdefault(hop, []).append(key)
        return found


def _gathered(at: list[int], targets: list[Target]) -> dict[str, Wanted]:
    """What each hop asks for, of pairs of an event's place and an entry, event by event."""
    if len({hop for hop, _ in targets}) == 1 and len(set(at)) == len(at):
        return {targets[0][0]: Wanted(at, [[key] for _, key in targets])}
    found: dict[str, Wanted] = {}
    last = ""
    places: list[int] = []
    keys: list[list[str]] = []
    for place, (hop, key) in zip(at, targets, strict=True):
        if hop != last:
            last = hop
            wanted = found.get(hop) or found.setdefault(hop, Wanted())
            places, keys = wanted.places, wanted.keys
        if places and places[-1] == place:
            keys[-1].append(key)
        else:
            places.append(place)
            keys.append([key])
    return found


class Holding(Remembered):
    """What one neighbour has told of one table."""

    def __init__(self) -> None:
        self.entries: dict[str, Filter] = {}
        self._texts: dict[str, str] = {}
        self.bytes = 0
        """Of keys and texts, and of what an entry takes beside them."""
        self._digests = [0] * BUCKETS

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entry: Entry, condition: Filter) -> None:
        """Hold an entry."""
        self.remove(entry.key)
        self.entries[entry.key] = condition
        self._texts[entry.key] = entry.filter
        self.bytes += entry_bytes(entry.key, entry.filter)
        bucket, value = entry_digest(entry.key, entry.filter)
        self._digests[bucket] ^= value

    def remove(self, key: str) -> None:
        """Hold an entry no longer."""
        text = self._texts.pop(key, None)
        if text is not None:
            del self.entries[key]
            self.bytes -= entry_bytes(key, text)
            bucket, value = entry_digest(key, text)
            self._digests[bucket] ^= value

    @property
    def texts(self) -> Collection[str]:
        """The filters of all entries, as they were told."""
        return self._texts.values()

    def within(self, buckets: Iterable[int]) -> list[str]:
        """The keys in some buckets."""
        wanted = set(buckets)
        return [key for key in self.entries if bucket_of(key) in wanted] if wanted else []

    def digests(self) -> list[tuple[int, int]]:
        """The digests of the buckets that aren't empty."""
        return [(bucket, value) for bucket, value in enumerate(self._digests) if value]


def entry_bytes(key: str, text: str) -> int:
    """What an entry counts where limits are in bytes."""
    return len(key) + len(text) + ENTRY_BYTES


def bucket_of(key: str) -> int:
    """The bucket of a key."""
    return blake2b(key.encode(), digest_size=1).digest()[0]


def entry_digest(key: str, text: str) -> tuple[int, int]:
    """An entry's bucket, and its part in the bucket's digest."""
    value = blake2b(f"{key}\n{text}".encode(), digest_size=7).digest()
    return bucket_of(key), int.from_bytes(value, "big")


def differing_buckets(own: Iterable[tuple[int, int]], other: Iterable[tuple[int, int]]) -> list[int]:
    """The buckets whose digests differ."""
    mine, theirs = dict(own), dict(other)
    return sorted(bucket for bucket in mine.keys() | theirs.keys() if mine.get(bucket) != theirs.get(bucket))


class PrunedTable:
    """Chooses the prunings of all neighbours' entries, and keeps the routing table at what is left of them."""

    def __init__(self, table: RoutingTable, known: KnownFilters, choice: PruningChoice, chances: Chances) -> None:
        self._table = table
        self._choice = choice
        self._pruner = Pruner((), chances, choice.dimension, known.meaning.semantics)
        self._known = known
        self._places: dict[str, tuple[str, str]] = {}
        self._changed = 0
        self._stale = False
        self.waits = False
        """Whether prunings are to be chosen anew when there is time."""

    def add(self, hop: str, key: str, condition: Filter) -> None:
        """An entry came."""
        self.change_many(hop, {key: condition}, ())

    def change_many(self, hop: str, added: Mapping[str, Filter], removed: Iterable[str]) -> None:
        """Entries went, and others came."""
        gone = [key for key in dict.fromkeys((*removed, *added)) if self._forget(hop, key)]
        named = {f"{len(hop)}:{hop}{key}": key for key in added}
        self._places.update((name, (hop, key)) for name, key in named.items())
        self._pruner.add_many((name, added[key]) for name, key in named.items())
        self._changed += len(gone) + len(added)
        self._table.change_many(hop, added, gone)

    def remove(self, hop: str, key: str) -> None:
        """An entry went."""
        self.change_many(hop, {}, (key,))

    def _forget(self, hop: str, key: str) -> bool:
        name = f"{len(hop)}:{hop}{key}"
        if self._places.pop(name, None) is None:
            return False
        self._pruner.remove(name)
        return True

    @property
    def is_due(self) -> bool:
        """Whether enough has changed that prunings are to be chosen anew."""
        return self._stale or (bool(self._changed) and self._changed >= PRUNED_AGAIN_AFTER * len(self._places))

    def choose_anew(self) -> None:
        """What is in force has changed: prunings are to be chosen anew, whatever else has."""
        self._stale = True

    def refresh(self) -> None:
        """Choose prunings anew where enough has changed, and where there is budget for looking at all entries."""
        self.waits = False
        if self.is_due:
            steps, budget = PRUNING_STEPS * len(self._places), self._known.budget
            self.waits = budget.left < steps and not budget.is_for_work
            if self.waits:
                return
            budget.spend(steps)
            self._changed, self._stale = 0, False
            self._pruner.prune_to(int(self._choice.share * self._pruner.total_possible))
            smaller: dict[str, dict[str, Filter]] = {}
            for name, condition in self._pruner.filters():
                hop, key = self._places[name]
                if self._table.entries(hop).get(key) != condition:
                    smaller.setdefault(hop, {})[key] = condition
            for hop, entries in smaller.items():
                self._table.change_many(hop, entries, ())
