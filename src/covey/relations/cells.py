"""The cells of one attribute: sets of values that no predicate of the given filters tells apart.

All value sets of the predicates (where each is true, where it is false) and the schema's domain cut numbers, strings
and timestamps into segments between neighbouring cuts; false, true, lists and "missing" are a cell each. Cuts are
exact, so every segment has a value. Where there are tests on texts besides, a cell of strings is a segment and the
tests that are met there (`text_worlds.py`). A set of cells is a bit mask, and a value set's mask comes from the
positions of its cuts.

Cells of which it isn't known whether a value shows them are kept apart (`doubtful`): what can't be met with them
can't be met at all, what can be met without them can be met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from covey.filters.predicates import Predicate
from covey.filters.semantics import truth_for
from covey.filters.values import Kind, Scalar, Value
from covey.relations import text_facts
from covey.relations.cuts import BOTTOM, FULL, TOP, Cut, Cuts
from covey.relations.examples import between
from covey.relations.steps import Steps
from covey.relations.text_worlds import TextWorlds, World, text_worlds
from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

LARGEST_GUESS: Final = 4096
"""Worlds of texts that are taken to be possible where not all of them could be visited."""

MOST_GUESSED: Final = 64
"""Tests of which it is asked, two by two, whether they go together."""

_FLAGS: Final[tuple[tuple[int, Value | None], ...]] = (
    (IS_TRUE, True),
    (IS_FALSE, False),
    (IS_LIST, ()),
    (IS_MISSING, None),
)
_KINDS: Final = tuple(FULL)
_STRINGS: Final = _KINDS.index(Kind.STRING)


@dataclass(frozen=True, slots=True)
class TextTests:
    """Tests on texts of one attribute, and the default that they see where it is missing."""

    predicates: tuple[Predicate, ...] = ()
    default: Scalar | None = None
    steps: Steps | None = None
    """What finding out how they go together may take, with all other attributes; None for nothing."""


NO_TESTS: Final = TextTests()


class Cells:
    """The cells that some value sets and some tests on texts leave of one attribute."""

    def __init__(
        self, sets: Iterable[ValueSet], domain: ValueSet, tests: TextTests = NO_TESTS, *, integer: bool = False
    ) -> None:
        self._integer = integer
        self._tests = tests
        spans = [domain.spans, *(values.spans for values in sets)]
        self._bounds = tuple(_bounds(kind, [span[at] for span in spans]) for at, kind in enumerate(FULL))
        self._positions = tuple({cut: at for at, cut in enumerate(bounds)} for bounds in self._bounds)
        self._worlds: list[World] = []
        self._shown: dict[World, str] = {}
        self.complete = True
        """Whether there are no cells but these."""
        if tests.predicates and domain.strings:
            self._explore()
        numbers, strings, _ = self._bounds
        first_string = len(_FLAGS) + len(numbers) - 1
        self._first = (len(_FLAGS), first_string, first_string + (len(self._worlds) or len(strings) - 1))
        self.possible = self.mask(domain)
        """Cells that the attribute may take, for all that is known."""
        self.certain = self.possible & ~self._mask_of_worlds(world not in self._shown for world in self._worlds)
        """Cells that it can take."""

    def _explore(self) -> None:
        bounds = self._bounds[_STRINGS]
        steps = self._tests.steps or Steps(0)
        found = text_worlds(self._tests.predicates, bounds, steps)
        self._shown = found.shown
        self._worlds = [*found.shown, *found.doubtful]
        if not found.complete:
            guessed = _guessed(self._tests.predicates, len(bounds) - 1, found)
            self.complete = guessed is not None
            self._worlds += guessed or ()

    def mask(self, values: ValueSet) -> int:
        """The cells of a set that is made of the given sets."""
        # The flags' bits are those of the first cells.
        mask = values.flags
        for at, cuts in enumerate(values.spans):
            if cuts:
                segments = _span_mask(self._positions[at], cuts)
                if at == _STRINGS and self._worlds:
                    mask |= self._mask_of_worlds(segments >> place & 1 for place, _ in self._worlds)
                else:
                    mask |= segments << self._first[at]
        return mask

    def text_masks(self, predicate: Predicate) -> tuple[int, int]:
        """The cells of texts that meet a test, and those of texts that don't; "missing" sees the default."""
        bit = 1 << self._tests.predicates.index(predicate)
        true = self._mask_of_worlds(truths & bit for _, truths in self._worlds)
        false = self._mask_of_worlds(not truths & bit for _, truths in self._worlds)
        if truth_for(predicate, self._tests.default):
            true |= IS_MISSING
        return true, false

    def value(self, cells: int) -> Value | None:
        """A value in one of the cells: of the kind that the filters compare most, and "missing" last."""
        for at in sorted(range(len(FULL)), key=lambda one: -len(self._bounds[one])):
            if at == _STRINGS and self._worlds:
                texts = self._texts_in(cells)
                if texts:
                    return min(texts, key=len)
                continue
            bounds = self._bounds[at]
            within = cells >> self._first[at] & (1 << len(bounds) - 1) - 1
            if within:
                low = (within & -within).bit_length() - 1
                return between(_KINDS[at], bounds[low], bounds[low + 1], integer=self._integer)
        return next(value for flag, value in _FLAGS if cells & flag)

    def _texts_in(self, cells: int) -> list[str]:
        first = self._first[_STRINGS]
        chosen = (world for at, world in enumerate(self._worlds) if cells >> first + at & 1)
        return [self._shown[world] for world in chosen if world in self._shown]

    def _mask_of_worlds(self, chosen: Iterable[object]) -> int:
        first = self._first[_STRINGS]
        return sum(1 << first + at for at, one in enumerate(chosen) if one)


def _span_mask(positions: dict[Cut, int], cuts: Cuts) -> int:
    mask = 0
    for at in range(0, len(cuts), 2):
        mask |= (1 << positions[cuts[at + 1]]) - (1 << positions[cuts[at]])
    return mask


def _bounds(kind: Kind, sets: Iterable[Cuts]) -> Cuts:
    found: set[Cut] = {BOTTOM[kind], TOP[kind]}
    for cuts in sets:
        found.update(cuts)
    return tuple(sorted(found))


def _guessed(tests: Sequence[Predicate], segments: int, found: TextWorlds) -> list[World] | None:
    """Worlds beyond the found ones that no two tests rule out; None where there are too many."""
    if len(tests) > MOST_GUESSED:
        return None
    combinations = [0]
    for at, test in enumerate(tests):
        earlier = tests[:at]
        ruled_out = {
            (truth, its): sum(1 << j for j, other in enumerate(earlier) if not _compatible(test, truth, other, its))
            for truth, its in product((False, True), repeat=2)
        }
        combinations = [
            bits | truth << at
            for bits, truth in product(combinations, (False, True))
            if not (bits & ruled_out[truth, True] or ~bits & ruled_out[truth, False])
        ]
        if len(combinations) * segments > LARGEST_GUESS:
            return None
    known = {*found.shown, *found.doubtful}
    return [world for world in product(range(segments), combinations) if world not in known]


def _compatible(left: Predicate, left_truth: bool, right: Predicate, right_truth: bool) -> bool:
    if left_truth and right_truth:
        return not text_facts.excludes(left, right)
    if left_truth:
        return not text_facts.implies(left, right)
    return not (right_truth and text_facts.implies(right, left))
