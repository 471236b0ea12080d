"""What one neighbour must know: the entries of all other hops, through the strategy's stages.

An export gets the entries of the other hops. It keeps those that can matter to the neighbour (all, or with
advertisements those that overlap one that came from there: R4), sends them through the stages, and knows what its
outcome is and how that has changed since it was last asked. Where the stages become others, those that are there go on
until the new ones have looked at all entries, when there is time; then the neighbour is told the difference.

Mergers are made here, of entries from hops other than the neighbour only. So the neighbour never hears a filter that is
wider than what lies behind this broker for its own sake (R3), and clients, who are filtered by their own entries, see
no false positive (M13).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from covey.filters.algebra import Filter
from covey.relations.steps import LaterError
from covey.routing.config import BrokerConfig
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import Entry
from covey.routing.routing_table import differing_buckets, entry_digest
from covey.routing.staged import Staged
from covey.routing.stages import Change, Stage
from covey.routing.strategies import advertisement_stages, subscription_stages
from covey.routing.undo import Remembered, repair

FED_TOGETHER: Final = 16
"""Entries that new stages are given in one piece."""
FEEDING_STEPS: Final = 2
"""Steps that giving them one counts as, beside what they make of it."""
LEAST_STALE: Final = 64
"""Numbers of changes that were told, or taken back, and are still listed; from so many on, half of the list at most."""

Reason: TypeAlias = str
"""What became of an entry: it is told as it is ("forwarded"), no advertisement overlaps it ("advertisements"), or a
stage, by whose name it goes, let another stand for it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one entry on its way to a neighbour."""

    hop: str
    """Where it came from; empty for the broker itself."""
    condition: Filter
    reason: Reason
    by: Filter | None = None
    """What stands for it; None where nothing needs to, or several do together."""
    told: Filter | None = None
    """What the neighbour is told in the end."""


class Export(Remembered):
    """The entries for one neighbour in one table."""

    def __init__(self, known: KnownFilters, make: Callable[[], list[Stage]], *, by_advertisements: bool) -> None:
        self._known = known
        self._make = make
        self._stages = Staged(make())
        self._make_next: Callable[[], list[Stage]] | None = None
        self._next: Staged | None = None
        """Stages that will take the place of those that are there."""
        self._unfed: dict[str, None] = {}
        """Relevant entries that they haven't got, in order."""
        self._by_advertisements = by_advertisements
        self._advertised: dict[str, Filter] = {}
        self._inputs: dict[str, Filter] = {}
        self._relevant: set[str] = set()
        self._unsure: dict[str, None] = {}
        """What is relevant until it is known whether an advertisement overlaps it."""
        self._announced: dict[str, Filter] = {}
        """The outcome as the neighbour has it from us, or will."""
        self._news: dict[str, int] = {}
        """Keys of the outcome that the neighbour may not have as they are, each with the number of its change."""
        self._gone: dict[str, int] = {}
        """Keys that it may have, and that aren't in the outcome any more."""
        self._touches: deque[tuple[int, str]] = deque()
        """The numbers of both, ascending, with some of before: the first that still holds says how far all is told."""
        self._changed = 0

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
            if self._matters(key, condition, self._advertised.values()):
                self._relevant.add(key)
                change.add(key, condition)
        self._pass(change, now)

    def clear(self, now: float) -> None:
        """There is nothing that the neighbour must know."""
        self.change({}, list(self._inputs), now)

    def advertise(self, advertised: dict[str, Filter], now: float) -> None:
        """The neighbour's advertisements are these now."""
        if not self._by_advertisements:
            return
        before, self._advertised = self._advertised, dict(advertised)
        came = [condition for key, condition in advertised.items() if before.get(key) != condition]
        went = any(advertised.get(key) != condition for key, condition in before.items())
        change = Change()
        for key, condition in self._inputs.items():
            if key in self._relevant:
                if went and not self._matters(key, condition, self._advertised.values()):
                    self._relevant.discard(key)
                    change.remove(key)
            elif self._matters(key, condition, came):
                self._relevant.add(key)
                change.add(key, condition)
        self._pass(change, now)
        for stages in (self._stages, self._next):
            if stages is not None:
                stages.advertise(tuple(self._advertised.values()))

    def _matters(self, key: str, condition: Filter, advertised: Iterable[Filter]) -> bool:
        """Whether an entry overlaps an advertisement; it counts as one that does until that is known."""
        if not self._by_advertisements:
            return True
        try:
            return any(self._known.may_meet(condition, other, self._known.budget) for other in advertised)
        except LaterError:
            self._unsure[key] = None
            return True

    def _look_again(self) -> Change:
        """Find out about entries that count as relevant for now."""
        change = Change()
        for key in list(self._unsure):
            if self._known.budget.left <= 0:
                break
            del self._unsure[key]
            if key not in self._relevant or self._matters(key, self._inputs[key], self._advertised.values()):
                continue
            self._relevant.discard(key)
            change.remove(key)
        return change

    def restage(self, make: Callable[[], list[Stage]], now: float) -> None:
        """Other stages, in the place of those that are there once they have looked at all entries."""
        self._begin(now)
        self._make_next = make
        self._start_next()
        self._get_on(now)

    def _start_next(self) -> None:
        assert self._make_next is not None
        self._next = Staged(self._make_next())
        self._next.advertise(tuple(self._advertised.values()))
        self._unfed = {key: None for key in self._inputs if key in self._relevant}

    def _get_on(self, now: float) -> None:
        """Give the next stages entries, as far as the budget goes, and let them take over when they have all."""
        following, budget = self._next, self._known.budget
        assert following is not None
        while self._unfed and budget.left > 0:
            keys = list(islice(self._unfed, FED_TOGETHER))
            for key in keys:
                del self._unfed[key]
            budget.spend(FEEDING_STEPS * len(keys))
            following.change(Change({key: self._inputs[key] for key in keys}), now)
        if following.behind:
            following.work(now)
        if self._unfed:
            return
        following.catch_up(now)
        if not following.behind:
            assert self._make_next is not None
            before, after = self._stages.outcome, following.outcome
            self._stages, self._make = following, self._make_next
            self._next = self._make_next = None
            self._touch([key for key in before.keys() | after.keys() if before.get(key) != after.get(key)])

    def _pass(self, change: Change, now: float) -> None:
        """Let a change of the relevant entries go through the stages."""
        self._begin(now)
        self._touch(self._stages.change(change, now))
        if self._next is not None:
            gone = Change()
            for key in change.removed:
                if key in self._unfed:
                    del self._unfed[key]
                else:
                    gone.remove(key)
            self._next.change(gone, now)
            self._unfed.update(dict.fromkeys(change.added))

    def _begin(self, now: float) -> None:
        if repair(self, lambda: self._take_back(now)):
            self._stages.begin()
            if self._next is not None:
                self._next.begin()

    def _take_back(self, now: float) -> None:
        """The entries are what they were before this turn: so must be what is made of them. Of equivalent filters
        another may stand for both afterwards."""
        staged = self._stages
        relevant = {key: condition for key, condition in self._inputs.items() if key in self._relevant}
        touched = None if staged.is_broken else staged.change(staged.back_to(relevant), now)
        if touched is None:
            self._stages = Staged(self._make())
            touched = self._stages.change(Change(relevant), now) | staged.outcome.keys()
        self._stages.advertise(tuple(self._advertised.values()))
        self._touch(touched | staged.touched)
        if self._next is not None:
            self._start_next()

    def catch_up(self, now: float) -> None:
        """Let stages do what is due at this time."""
        if self._stages.defers:
            self._begin(now)
            touched = self._stages.catch_up(now)
            if touched:
                self._touch(touched)

    @property
    def behind(self) -> int:
        """How much was put off."""
        later = 0 if self._next is None else 1 + len(self._unfed) + self._next.behind
        return len(self._unsure) + self._stages.behind + later

    def work(self, now: float) -> None:
        """Do what was put off, as far as the budget goes."""
        if self._unsure:
            self._pass(self._look_again(), now)
        if self._stages.behind:
            self._begin(now)
            self._touch(self._stages.work(now))
        if self._next is not None and self._known.budget.left > 0:
            self._begin(now)
            self._get_on(now)

    @property
    def outcome(self) -> Mapping[str, Filter]:
        """What the neighbour must know."""
        return self._stages.outcome

    def _touch(self, keys: Iterable[str]) -> None:
        for key in sorted(keys):
            self._changed += 1
            here, there = (self._news, self._gone) if key in self.outcome else (self._gone, self._news)
            there.pop(key, None)
            if key not in here:
                here[key] = self._changed
                self._touches.append((self._changed, key))
        if len(self._touches) > 2 * (len(self._news) + len(self._gone)) + LEAST_STALE:
            held = (*self._news.items(), *self._gone.items())
            self._touches = deque(sorted((number, key) for key, number in held))

    def __len__(self) -> int:
        """How many entries the other hops have."""
        return len(self._inputs)

    def verdicts(self) -> Iterator[Verdict]:
        """What became of each entry of the other hops. Changes nothing; ask for all of it between two changes."""
        first: dict[str, str] = {}
        for source, condition in self._inputs.items():
            hop = source.rpartition("\n")[0]
            if source not in self._relevant:
                yield Verdict(hop, condition, "advertisements")
                continue
            reason, by, told = self._verdict(source, first)
            yield Verdict(hop, condition, reason, by, told)

    def _verdict(self, source: str, first: dict[str, str]) -> tuple[Reason, Filter | None, Filter | None]:
        """An entry through the stages; `first` has the entries that came before it, by what they are identified by."""
        reason: Reason = "forwarded"
        by: Filter | None = None
        key = source
        for stage in self._stages.stages:
            followed = stage.follow(key)
            if followed.key is None:
                return (stage.name, None, None) if reason == "forwarded" else (reason, by, None)
            if reason == "forwarded":
                same = first.setdefault(followed.key, source) if stage.name == "identity" else source
                if same != source:
                    reason, by = "identity", self._inputs[same]
                elif not followed.is_itself:
                    reason, by = stage.name, followed.by
            key = followed.key
        return reason, by, self.outcome.get(key)

    @property
    def has_changed(self) -> bool:
        """Whether `changes` may have something."""
        return bool(self._news or self._gone)

    def changes(self, most: int | None = None) -> tuple[list[Entry], list[str]]:
        """What came and what went since this was last asked; of much, what came longest ago. What went is told only
        where all that came is: what stands for it may be among that."""
        added: list[Entry] = []
        for key in list(islice(self._news, most)):
            del self._news[key]
            new = self.outcome[key]
            if self._announced.get(key) != new:
                self._announced[key] = new
                added.append(Entry(key, self._known.text(key, new)))
        if self._news:
            return added, []
        gone = list(islice(self._gone, most))
        removed = [key for key in gone if self._announced.pop(key, None) is not None]
        for key in gone:
            del self._gone[key]
        return added, removed

    @property
    def changed(self) -> int:
        """A number that every change makes larger."""
        return self._changed

    @property
    def told(self) -> int:
        """The number up to which `changes` has given all changes."""
        order, news, gone = self._touches, self._news, self._gone
        while order and order[0][0] not in (news.get(order[0][1]), gone.get(order[0][1])):
            order.popleft()
        return (order[0][0] if order else self._changed + 1) - 1

    def touched(self) -> set[str]:
        """The keys whose changes weren't asked for."""
        return {*self._news, *self._gone}

    def difference(self, held: Iterable[tuple[int, int]]) -> tuple[list[int], list[Entry]]:
        """The buckets in which a neighbour that holds these digests differs, and all entries there."""
        self._announced = dict(self.outcome)
        self._news.clear()
        self._gone.clear()
        digests: dict[int, int] = {}
        entries: dict[int, list[Entry]] = {}
        for key, condition in sorted(self.outcome.items()):
            entry = Entry(key, self._known.text(key, condition))
            bucket, value = entry_digest(key, entry.filter)
            digests[bucket] = digests.get(bucket, 0) ^ value
            entries.setdefault(bucket, []).append(entry)
        buckets = differing_buckets(digests.items(), held)
        return buckets, [entry for bucket in buckets for entry in entries.get(bucket, ())]


def subscription_export(config: BrokerConfig, known: KnownFilters) -> Export:
    """The export of subscriptions that a configuration asks for."""
    return Export(known, lambda: subscription_stages(config, known), by_advertisements=config.advertisements)


def advertisement_export(config: BrokerConfig, known: KnownFilters) -> Export:
    """The export of advertisements."""
    return Export(known, lambda: advertisement_stages(config, known), by_advertisements=False)
