"""A table of subscriptions that are merged from time to time, and of mergers that are cancelled when they must be.

Every subscription is part of one entry: its own, or a merger's. A merger is cancelled where a part of it goes, and what
is left of it is recovered, subscription by subscription; and where a new subscription covers it, which then stands for
its parts (Li, Hou and Jacobsen, section 5.1.2, figure 9). Each call says which entries came and went, for whoever
forwards them; one table is for the subscriptions of one neighbour (section 5.3: mergers have one last hop).

Pure: no clock, no messages. `merge` starts again from the subscriptions, so mergers don't pile up on mergers.

Cost: `add` compares with the mergers on as many or more attributes, `remove` with the parts of one merger; `merge` is
`merge_table` over all subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from covey.errors import CoveyError, DuplicateIdError, UnknownIdError
from covey.events.meaning import Meaning
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Semantics
from covey.relations.merging.mergers import Merger
from covey.relations.merging.policy import MergingPolicy
from covey.relations.merging.rules import MAX_PIECES, Rule
from covey.relations.merging.shapes import Shape, shape_of
from covey.relations.merging.table_merging import Measure, merge_table
from covey.relations.progress import Progress

if TYPE_CHECKING:
    from covey.events.schema import Schema
    from covey.history import Chances

Id = TypeVar("Id")
_Key = frozenset[str]


def _nothing(id: object) -> float:  # noqa: ARG001
    return 0.0


@dataclass(frozen=True, slots=True)
class Change(Generic[Id]):
    """Entries that came into a table and those that went, by one call."""

    added: tuple[Merger[Id], ...] = ()
    removed: tuple[Merger[Id], ...] = ()


class MergerTable(Generic[Id]):
    """Subscriptions and the mergers that stand for them."""

    def __init__(
        self,
        *,
        imt: float = 0.0,
        perfect_only: bool = False,
        chances: Chances | None = None,
        advertisements: Sequence[Filter] = (),
        semantics: Semantics = "sql",
        defaults: Defaults | None = None,
        schema: Schema | None = None,
        measure: Measure = "degree",
        rules: Sequence[Rule] = ("union", "hull"),
        max_pieces: int = MAX_PIECES,
        policy: MergingPolicy | None = None,
        spent: Callable[[Id], float] = _nothing,
    ) -> None:
        """As `merge_table`. `perfect_only` is for advertisements: imperfect ones would lead subscriptions astray.
        `spent` says what a subscription that is a merger already has spent of the threshold, by its id."""
        if perfect_only and (imt or advertisements):
            raise CoveyError(
                "a table of perfect mergers only takes neither a threshold nor advertisements; leave them out"
            )
        self.imt = imt
        self.chances = chances
        self.advertisements = tuple(advertisements)
        self.policy = policy or MergingPolicy()
        self._meaning = Meaning(semantics, defaults, schema)
        self._measure = measure
        self._rules = tuple(rules)
        self._max_pieces = max_pieces
        self._spent = spent
        self._filters: dict[Id, Filter] = {}
        self._entry_of: dict[Id, Merger[Id]] = {}
        self._entries: dict[Merger[Id], None] = {}
        self._mergers: dict[_Key, dict[Merger[Id], Shape]] = {}
        self._arrivals = 0
        self._last = 0.0
        self._since: float | None = None
        """Since when arrivals are counted: the last merging, or before any, the first time that it was asked for."""

    def __len__(self) -> int:
        """How many entries there are; of subscriptions, `len(table.subscriptions)`."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Merger[Id]]:
        """The entries: subscriptions on their own and mergers."""
        return iter(self._entries)

    @property
    def subscriptions(self) -> dict[Id, Filter]:
        """All subscriptions as they were added."""
        return dict(self._filters)

    def filter(self, id: Id) -> Filter:
        """A subscription as it was added."""
        return self._filters[id]

    def entry(self, id: Id) -> Merger[Id]:
        """The entry that a subscription is part of."""
        try:
            return self._entry_of[id]
        except KeyError:
            raise UnknownIdError(f"subscription {id!r} is not in the table") from None

    def add(self, id: Id, condition: Filter) -> Change[Id]:
        """Add a subscription on its own, or in the place of the mergers that it covers."""
        if id in self._filters:
            raise DuplicateIdError(f"subscription {id!r} is in the table already; remove it first, or use another id")
        shape = shape_of(condition, self._meaning)
        covered = tuple(self._covered_mergers(shape))
        self._filters[id] = condition
        self._arrivals += 1
        parts = (id, *(part for merger in covered for part in merger.parts))
        return self._change((Merger(condition, parts, True, self._spent(id)),), covered)

    def _covered_mergers(self, shape: Shape) -> Iterator[Merger[Id]]:
        names = {name for name, _ in shape.conjunction.sets}
        for key, mergers in self._mergers.items():
            if names <= key:
                yield from (merger for merger, own in mergers.items() if shape.covers(own))

    def remove(self, id: Id) -> Change[Id]:
        """Remove a subscription; the merger that it is part of is cancelled, and its other parts are recovered.

        Where one of the other parts is all that the entry asks for, the entry stays as its own.
        """
        entry = self.entry(id)
        del self._filters[id], self._entry_of[id]
        left = tuple(part for part in entry.parts if part != id)
        if not left:
            return self._change((), (entry,))
        same = [self._spent(part) for part in left if self._filters[part] == entry.filter]
        if same:
            return self._change((Merger(entry.filter, left, True, min(same)),), (entry,))
        recovered = tuple(Merger(self._filters[part], (part,), True, self._spent(part)) for part in left)
        # What was merged once likely is again: nobody need come before that is looked at.
        self._arrivals += max(len(recovered), self.policy.at_arrivals or 0)
        return self._change(recovered, (entry,))

    def merge(self, now: float = 0.0, *, progress: Progress | None = None) -> Change[Id]:
        """Merge all subscriptions anew; entries that come out as they were are no change."""
        meaning = self._meaning
        merged = merge_table(
            self._filters.items(),
            imt=self.imt,
            chances=self.chances,
            advertisements=self.advertisements,
            semantics=meaning.semantics,
            defaults=meaning.defaults,
            schema=meaning.schema,
            measure=self._measure,
            rules=self._rules,
            max_pieces=self._max_pieces,
            progress=progress,
            spent={id: spent for id in self._filters if (spent := self._spent(id))},
        )
        self._arrivals, self._last, self._since = 0, now, now
        wanted = dict.fromkeys(merged)
        removed = tuple(entry for entry in self._entries if entry not in wanted)
        return self._change(tuple(entry for entry in wanted if entry not in self._entries), removed)

    def advertise(self, advertisements: Sequence[Filter]) -> bool:
        """Events are of these advertisements from now on; counts as an arrival where that is news. Mergers stay until
        the next merging."""
        if self.advertisements == tuple(advertisements):
            return False
        self.advertisements = tuple(advertisements)
        self._arrivals += 1
        return True

    def due(self, now: float, *, bandwidth: float = 0.0) -> bool:
        """Whether the policy says to merge now. `bandwidth` is what the caller measures, in its own unit."""
        if self._since is None and self._arrivals:
            self._since = now
        return self.policy.due(
            now,
            last=self._last,
            since=self._since,
            size=len(self._entries),
            arrivals=self._arrivals,
            group_size=0.0 if self.policy.at_group_size is None else self.group_size(),
            bandwidth=bandwidth,
        )

    def group_size(self) -> float:
        """How many entries have the same attributes, on average."""
        groups = {entry.filter.attributes() for entry in self._entries}
        return len(self._entries) / len(groups) if groups else 0.0

    def _change(self, added: Iterable[Merger[Id]], removed: Iterable[Merger[Id]]) -> Change[Id]:
        change = Change(tuple(added), tuple(removed))
        for entry in change.removed:
            del self._entries[entry]
            if len(entry.parts) > 1:
                mergers = self._mergers[self._key(entry)]
                del mergers[entry]
                if not mergers:
                    del self._mergers[self._key(entry)]
        for entry in change.added:
            self._entries[entry] = None
            for part in entry.parts:
                self._entry_of[part] = entry
            if len(entry.parts) > 1:
                shape = shape_of(entry.filter, self._meaning)
                self._mergers.setdefault(self._key(entry), {})[entry] = shape
        return change

    def _key(self, entry: Merger[Id]) -> _Key:
        return frozenset(name for name, _ in shape_of(entry.filter, self._meaning).conjunction.sets)
