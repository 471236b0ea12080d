"""What is odd about a set of rules, before anybody relies on them: those that can never match, that always match, and
that are equal to each other.

A rule that always matches also matches an event without attributes, which few do. Equal rules match the same events, so
whatever event shows that a rule can match tells it apart from all rules that don't match it. Rules that the events of
all others can't tell apart, and that name the same attributes, are decided exactly, pair by pair. So a rule costs one
search, and another one where it is equal to one before. Rules whose search goes beyond the limits are held only against
those that are written alike, and the report says how many that are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

from covey.events.meaning import Meaning
from covey.filters.algebra import FALSE, TRUE, Filter
from covey.relations.exact import Event, Question, RelationLimits

SEARCH: Final = RelationLimits(steps=60_000)
"""What one search may cost: some tenths of a second."""
STEPS: Final = 20_000_000
"""What all searches of one examination may cost: a minute or so."""
WITNESSES: Final = 64
"""Events that tell the rules of one set of attributes apart."""


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


def examine(rules: Mapping[Hashable, Filter], meaning: Meaning) -> Findings:
    """What is odd about these rules."""
    return _Examination(meaning).of(rules)


class _Examination:
    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        self.found = Findings()
        self.steps = STEPS

    def of(self, rules: Mapping[Hashable, Filter]) -> Findings:
        alike: dict[frozenset[str], list[tuple[Hashable, Filter, Event | None]]] = {}
        for id, given in rules.items():
            condition = self.meaning.read(given)
            met, event = self.only(condition, FALSE)
            if met is False:
                self.found.never.append(id)
            elif self.meaning.matches(condition, {}) and self.only(TRUE, condition)[0] is False:
                self.found.always.append(id)
            else:
                self.found.undecided += met is None
                alike.setdefault(condition.attributes(), []).append((id, condition, event))
        for members in alike.values():
            self.group(members)
        return self.found

    def only(self, f: Filter, g: Filter) -> tuple[bool | None, Event | None]:
        """Whether some event meets f and not g, and one that does."""
        if self.steps <= 0:
            return None, None
        question = Question(f, g, self.meaning, SEARCH)
        answer = question.only_f()
        self.steps -= question.spent
        return answer

    def group(self, members: list[tuple[Hashable, Filter, Event | None]]) -> None:
        """Find equal ones among rules that name the same attributes."""
        events = [event for _, _, event in members if event is not None][:WITNESSES]
        told: dict[tuple[bool, ...], list[list[tuple[Hashable, Filter]]]] = {}
        for id, condition, event in members:
            groups = told.setdefault(tuple(self.meaning.matches(condition, one) for one in events), [])
            same = next((group for group in groups if self.equal(group[0][1], condition, event is not None)), None)
            if same is None:
                groups.append([(id, condition)])
            else:
                same.append((id, condition))
        equal = (group for groups in told.values() for group in groups if len(group) > 1)
        self.found.equal += [[id for id, _ in group] for group in equal]

    def equal(self, f: Filter, g: Filter, searched: bool) -> bool:
        """Whether two rules certainly match the same events."""
        if f == g:
            return True
        return searched and self.only(f, g)[0] is False and self.only(g, f)[0] is False
