"""What is odd about a set of rules, before anybody relies on them: those that can never match, that always match, and
that are equal to each other.

A rule that always matches also matches an event without attributes, which few do. Equal rules match the same events, so
whatever event shows that a rule can match tells it apart from all rules that don't match it; and so does that event
moved to a constant of one of the rule's tests, or next to it, where the rule and its like begin to differ. An index of
all rules answers for these events at once. Rules that they can't tell apart, and that name the same attributes, are
decided exactly, pair by pair. So rules that are written alike cost one search, and another one where they are equal to
some before. Rules whose search goes beyond the limits are held only against those that are written alike, and the
report says how many that are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np

from covey.errors import CoveyError
from covey.events.meaning import Meaning
from covey.filters.algebra import FALSE, TRUE, Filter, leaves
from covey.filters.predicates import Predicate, compared_with
from covey.filters.terms import is_path
from covey.filters.values import Scalar
from covey.matching import Index
from covey.matching.progress import Told
from covey.relations.exact import Event, Question, RelationLimits

SEARCH: Final = RelationLimits(steps=60_000)
"""What one search may cost: some tenths of a second."""
STEPS: Final = 20_000_000
"""What all searches of one examination may cost: a minute or so."""
WITNESSES: Final = 64
"""Events that tell few rules apart, or those that no index takes."""
MANY: Final = 32
"""Rules of one set of attributes from which on an index answers for all of them at once."""
ANSWERS: Final = 20_000_000
"""Answers, of rules to events, that are looked at for one set of attributes."""
STEP: Final = 100
"""Rules between two words on how far it is."""
FEW: Final = 16
"""Tests of a rule, and constants of a test, at which events are tried."""


@dataclass(frozen=True, slots=True)
class Member:
    """A rule among those that name the same attributes: its ids, and an event that matches it, if one is known."""

    ids: list[Hashable]
    condition: Filter
    event: Event | None

    def variants(self) -> Iterator[Event]:
        """Events at which this rule may differ from others: its own, and that one moved to where its tests change."""
        if self.event is None:
            return
        yield self.event
        for leaf in islice(leaves(self.condition), FEW):
            if isinstance(leaf, Predicate) and is_path(leaf.attribute):
                for value in compared_with(leaf)[:FEW]:
                    if value is not None:
                        yield from ({**self.event, leaf.attribute: one} for one in _around(value))


@dataclass(slots=True)
class Findings:
    """What is odd about rules, by their ids."""

    never: list[Hashable] = field(default_factory=list)
    """Rules that no event matches."""
    always: list[Hashable] = field(default_factory=list)
    """Rules that every event matches."""
    equal: list[list[Hashable]] = field(default_factory=list)
    """Groups of rules that match the same events; of those that never or always match none."""
    undecided: int = 0
    """Rules about which not all is known, for the limits' sake."""


def examine(rules: Mapping[Hashable, Filter], meaning: Meaning, told: Told | None = None) -> Findings:
    """What is odd about these rules; `told` hears how many have been looked at, and of how many."""
    return _Examination(meaning, told).of(rules)


class _Examination:
    def __init__(self, meaning: Meaning, told: Told | None = None) -> None:
        self.meaning = meaning
        self.told = told
        self.found = Findings()
        self.steps = STEPS

    def of(self, rules: Mapping[Hashable, Filter]) -> Findings:
        written: dict[Filter, list[Hashable]] = {}
        for id, given in rules.items():
            written.setdefault(self.meaning.read(given), []).append(id)
        alike: dict[frozenset[str], list[Member]] = {}
        for number, (condition, ids) in enumerate(written.items()):
            if self.told is not None and number % STEP == 0:
                self.told(number, len(written))
            met, event = self.only(condition, FALSE)
            if met is False:
                self.found.never += ids
            elif self.meaning.matches(condition, {}) and self.only(TRUE, condition)[0] is False:
                self.found.always += ids
            else:
                self.found.undecided += len(ids) if met is None else 0
                alike.setdefault(condition.attributes(), []).append(Member(ids, condition, event))
        for members in alike.values():
            self.group(members)
        if self.told is not None:
            self.told(len(written), len(written))
        places = {id: place for place, id in enumerate(rules)}
        for found in (self.found.never, self.found.always, *self.found.equal):
            found.sort(key=places.__getitem__)
        self.found.equal.sort(key=lambda group: places[group[0]])
        return self.found

    def only(self, f: Filter, g: Filter) -> tuple[bool | None, Event | None]:
        """Whether some event meets f and not g, and one that does."""
        if self.steps <= 0:
            return None, None
        question = Question(f, g, self.meaning, SEARCH)
        answer = question.only_f()
        self.steps -= question.spent
        return answer

    def group(self, members: list[Member]) -> None:
        """Find equal ones among rules that name the same attributes."""
        told: dict[bytes, list[list[Member]]] = {}
        for member, answers in zip(members, self.answers(members), strict=True):
            groups = told.setdefault(answers, [])
            same = next((group for group in groups if self.equal(group[0], member)), None)
            if same is None:
                groups.append([member])
            else:
                same.append(member)
        equal = ([id for member in group for id in member.ids] for groups in told.values() for group in groups)
        self.found.equal += [ids for ids in equal if len(ids) > 1]

    def equal(self, f: Member, g: Member) -> bool:
        """Whether two rules certainly match the same events."""
        if g.event is None:
            return False
        return self.only(f.condition, g.condition)[0] is False and self.only(g.condition, f.condition)[0] is False

    def answers(self, members: list[Member]) -> list[bytes]:
        """For each rule which of some events it matches."""
        if len(members) == 1:
            return [b""]
        most = max(WITNESSES, ANSWERS // len(members))
        events = list(islice((event for member in members for event in member.variants()), most))
        if len(members) >= MANY and not self.meaning.defaults:
            try:
                return self._by_index(members, events)
            except CoveyError:  # a rule beyond an index's limits
                pass
        events = [member.event for member in members if member.event is not None][:WITNESSES]
        return [bytes(self.meaning.matches(member.condition, event) for event in events) for member in members]

    def _by_index(self, members: list[Member], events: list[Event]) -> list[bytes]:
        index = Index(semantics=self.meaning.semantics)
        index.add_many([(place, member.condition) for place, member in enumerate(members)])
        found = index.match_batch(events, progress=False).pairs()
        answers = np.zeros((len(members), len(events)), np.bool_)
        answers[found["subscription"].to_numpy(), found["event"].to_numpy()] = True
        return [row.tobytes() for row in np.packbits(answers, axis=1)]


def _around(value: Scalar) -> tuple[Scalar, ...]:
    """A constant and its neighbours, on either side of which rules may differ."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, value - 1, value + 1
    return (value,)
