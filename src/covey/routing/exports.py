"""What one neighbour must know: the entries of all other hops, through the strategy's stages.

An export is told which entries the other hops have. It keeps those that can matter to the neighbour (all, or with
advertisements those that overlap one that came from there: R4), sends them through the stages, and knows what its
outcome is and how that has changed since it was last asked. Mergers are made here, of entries from hops other than the
neighbour only. So the neighbour never hears a filter that is wider than what lies behind this broker for its own sake
(R3), and clients, who are filtered by their own entries, see no false positive (M13).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from covey.filters.algebra import Filter
from covey.relations.merging import MergingPolicy
from covey.routing.config import BrokerConfig
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import Entry
from covey.routing.strategies import (
    Change,
    Covering,
    Distinct,
    Merging,
    Stage,
    Subsumption,
    own_key,
    through,
)
from covey.routing.tables import differing_buckets, entry_digest

ADVERTISEMENT_POLICY = MergingPolicy(at_arrivals=16)


Reason: TypeAlias = Literal["forwarded", "advertisements", "identity", "covering", "subsumption", "merging"]
"""What became of an entry: it is told as it is, no advertisement overlaps it, or a stage let another stand for it."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one entry on its way to a neighbour."""

    hop: str
    """Where it came from; empty for the broker itself."""
    condition: Filter
    reason: Reason
    by: Filter | None = None
    """What stands for it; None where nothing needs to, or several do together."""
    told: Filter | None = None
    """What the neighbour hears in the end."""


class Export:
    """The entries for one neighbour in one table."""

    def __init__(self, known: KnownFilters, stages: list[Stage], *, by_advertisements: bool) -> None:
        self._known = known
        self._stages = stages
        self._merging = [(at, stage) for at, stage in enumerate(stages) if isinstance(stage, Merging)]
        self._by_advertisements = by_advertisements
        self._advertised: dict[str, Filter] = {}
        self._inputs: dict[str, Filter] = {}
        self._relevant: set[str] = set()
        self.outcome: dict[str, Filter] = {}
        self._told: dict[str, Filter] = {}
        self._touched: set[str] = set()

    def change(self, added: dict[str, Filter], removed: Iterable[str], now: float) -> None:
        """Entries of other hops came and went. Keys are unique over hops; one that is in both is changed."""
        change = Change()
        for key in removed:
            if self._inputs.pop(key, None) is not None and key in self._relevant:
                self._relevant.discard(key)
                change.remove(key)
        for key, condition in added.items():
            if key in self._inputs:
                if self._inputs[key] == condition:
                    continue
                if key in self._relevant:
                    self._relevant.discard(key)
                    change.remove(key)
            self._inputs[key] = condition
            if self._matters(condition):
                self._relevant.add(key)
                change.add(key, condition)
        self._apply(through(self._stages, change, now))

    def clear(self, now: float) -> None:
        """There is nothing that the neighbour must know."""
        self.change({}, list(self._inputs), now)

    def advertise(self, advertised: dict[str, Filter], now: float) -> None:
        """The neighbour's advertisements are these now."""
        if not self._by_advertisements:
            return
        before, self._advertised = self._advertised, dict(advertised)
        came = [one for key, one in advertised.items() if before.get(key) != one]
        went = any(advertised.get(key) != one for key, one in before.items())
        change = Change()
        for key, condition in self._inputs.items():
            if key in self._relevant:
                if went and not self._matters(condition):
                    self._relevant.discard(key)
                    change.remove(key)
            elif self._overlaps_any(condition, came):
                self._relevant.add(key)
                change.add(key, condition)
        self._apply(through(self._stages, change, now))

    def _matters(self, condition: Filter) -> bool:
        return not self._by_advertisements or self._overlaps_any(condition, self._advertised.values())

    def _overlaps_any(self, condition: Filter, others: Iterable[Filter]) -> bool:
        return any(self._known.overlaps(condition, one) for one in others)

    def restage(self, stages: list[Stage], now: float) -> None:
        """Other stages from now on; the entries stay."""
        before, self.outcome = self.outcome, {}
        self._stages = stages
        self._merging = [(at, stage) for at, stage in enumerate(stages) if isinstance(stage, Merging)]
        relevant = {key: condition for key, condition in self._inputs.items() if key in self._relevant}
        self._apply(through(stages, Change(relevant), now))
        self._touched |= before.keys()

    def merge(self, now: float) -> None:
        """Merge what was put off, if it is due."""
        for at, stage in self._merging:
            if stage.is_due(now):
                self._apply(through(self._stages[at + 1 :], stage.merge(now), now))

    def _apply(self, change: Change) -> None:
        for key in change.removed:
            self.outcome.pop(key, None)
        self.outcome.update(change.added)
        self._touched |= change.removed
        self._touched |= change.added.keys()

    def __len__(self) -> int:
        """How many entries the other hops have."""
        return len(self._inputs)

    def fates(self) -> Iterator[Fate]:
        """What became of each entry of the other hops. Changes nothing; ask for all of it between two changes."""
        first: dict[str, str] = {}
        for source, condition in self._inputs.items():
            hop = source.rpartition("\n")[0]
            if source not in self._relevant:
                yield Fate(hop, condition, "advertisements")
                continue
            reason, by, told = self._fate(source, first)
            yield Fate(hop, condition, reason, by, told)

    def _fate(self, source: str, first: dict[str, str]) -> tuple[Reason, Filter | None, Filter | None]:
        """An entry through the stages; `first` has the entries that came before it, by what they are identified by."""
        reason: Reason = "forwarded"
        by: Filter | None = None
        key = source
        for stage in self._stages:
            followed = stage.follow(key)
            if followed.key is None:
                return (cast(Reason, stage.name), None, None) if reason == "forwarded" else (reason, by, None)
            if reason == "forwarded":
                same = first.setdefault(followed.key, source) if stage.name == "identity" else source
                if same != source:
                    reason, by = "identity", self._inputs[same]
                elif not followed.is_itself:
                    reason, by = cast(Reason, stage.name), followed.by
            key = followed.key
        return reason, by, self.outcome.get(key)

    @property
    def has_changed(self) -> bool:
        """Whether `changes` may have something to tell."""
        return bool(self._touched)

    def changes(self) -> tuple[list[Entry], list[str]]:
        """What came and what went since this was last asked."""
        added: list[Entry] = []
        removed: list[str] = []
        for key in sorted(self._touched):
            old, new = self._told.pop(key, None), self.outcome.get(key)
            if new is not None:
                self._told[key] = new
                if old != new:
                    added.append(Entry(key, str(new)))
            elif old is not None:
                removed.append(key)
        self._touched.clear()
        return added, removed

    def touched(self) -> set[str]:
        """The keys that have changed since `changes` was last asked."""
        return set(self._touched)

    def difference(self, held: Iterable[tuple[int, int]]) -> tuple[list[int], list[Entry]]:
        """The buckets in which a neighbour that holds these digests differs, and all entries there."""
        self._told = dict(self.outcome)
        self._touched.clear()
        digests: dict[int, int] = {}
        entries: dict[int, list[Entry]] = {}
        for key, condition in sorted(self.outcome.items()):
            entry = Entry(key, str(condition))
            bucket, value = entry_digest(key, entry.filter)
            digests[bucket] = digests.get(bucket, 0) ^ value
            entries.setdefault(bucket, []).append(entry)
        buckets = differing_buckets(digests.items(), held)
        return buckets, [entry for bucket in buckets for entry in entries.get(bucket, ())]


def subscription_export(config: BrokerConfig, known: KnownFilters) -> Export:
    """The export of subscriptions that a configuration asks for."""
    return Export(known, subscription_stages(config, known), by_advertisements=config.advertisements)


def advertisement_export(known: KnownFilters) -> Export:
    """The export of advertisements: covering, and perfect mergers only (M8)."""
    stages: list[Stage] = [
        Distinct(lambda _, condition: known.normal(condition)),
        Covering(known),
        Merging(known, ADVERTISEMENT_POLICY),
        Covering(known),
    ]
    return Export(known, stages, by_advertisements=False)


def subscription_stages(config: BrokerConfig, known: KnownFilters) -> list[Stage]:
    """The stages that a configuration asks for."""
    distinct = Distinct(lambda _, condition: known.normal(condition))
    match config.strategy:
        case "flooding" | "simple":
            return [Distinct(own_key)]
        case "identity":
            return [distinct]
        case "covering":
            return [distinct, Covering(known)]
        case "subsumption":
            assert config.subsumption is not None
            options = config.subsumption
            return [
                distinct,
                Covering(known),
                Subsumption(known, options.space, approximate=options.approximate),
            ]
        case "merging":
            merging = Merging(known, config.merging.policy, imt=config.merging.imt, chances=config.chances)
            return [distinct, Covering(known), merging, Covering(known)]
