"""The linear scan and covering by separate passes, as Li, Hou and Jacobsen's evaluation has them: yardsticks.

`LinearScan` holds a publication against every entry by the interpreter, their "naive" column in table 2: it takes time
in proportion to the entries, which is how many it looks at.

`PlainCovering` goes through a table's conjunctions one by one. What it counts are looks at an entry's tests. Their
algorithm evaluates both directions in one pass, and leaves an entry once neither can hold any more, all once one covers
the new subscription (figure 7). What they compare it with is two algorithms that know nothing of each other: one that
looks for who covers the new one, until there is one, and one that looks for whom it covers, in all entries, always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from covey.filters import Filter
from covey.filters.semantics import matches
from covey.relations.conjunctions import Conjunction
from covey.relations.value_sets import ValueSet

COVERED, COVERS = 1, 2
"""The two bits: the entry covers the new one; the new one covers the entry."""
BOTH: Final = COVERED | COVERS


class LinearScan:
    """Entries known by their places."""

    def __init__(self, entries: Sequence[Filter]) -> None:
        self._entries = list(entries)

    def __len__(self) -> int:
        """How many entries a publication is held against."""
        return len(self._entries)

    def match(self, event: Mapping[str, Any]) -> list[int]:
        """The entries that an event meets."""
        return [place for place, entry in enumerate(self._entries) if matches(entry, event)]


@dataclass(frozen=True, slots=True)
class Related:
    """Whether some entry covers the new one, those that it covers, and how many tests were looked at.

    `covers` is what a pass had found when it ended: where `covered` is true, one pass doesn't go on.
    """

    covered: bool
    covers: tuple[int, ...]
    looked: int


class PlainCovering:
    """Conjunctions that new ones are held against."""

    def __init__(self, entries: Sequence[Conjunction]) -> None:
        self._entries = [entry.sets for entry in entries]
        self._known: dict[tuple[ValueSet, ValueSet], int] = {}

    def one_pass(self, new: Conjunction) -> Related:
        """Both directions at once."""
        return self._pass(new, BOTH)

    def two_passes(self, new: Conjunction) -> Related:
        """Each direction by itself, always both."""
        first, second = self._pass(new, COVERED), self._pass(new, COVERS)
        return Related(first.covered, second.covers, first.looked + second.looked)

    def _pass(self, new: Conjunction, wanted: int) -> Related:
        own = dict(new.sets)
        covers: list[int] = []
        looked = 0
        for place, entry in enumerate(self._entries):
            bits, matched = wanted, 0
            for name, values in entry:
                looked += 1
                theirs = own.get(name)
                if theirs is None:
                    bits &= ~COVERED
                else:
                    matched += 1
                    bits &= self._relation(values, theirs)
                if not bits:
                    break
            if bits & COVERED:
                return Related(True, tuple(covers), looked)
            if bits & COVERS and matched == len(own):
                covers.append(place)
        return Related(False, tuple(covers), looked)

    def _relation(self, values: ValueSet, theirs: ValueSet) -> int:
        """The two bits of an entry's test against the new one's, kept as variables' dependencies are (figure 8)."""
        known = self._known.get((values, theirs))
        if known is None:
            known = COVERED * values.issuperset(theirs) | COVERS * theirs.issuperset(values)
            self._known[values, theirs] = known
        return known
