"""Which tests follow from which: Li, Hou and Jacobsen's cached variable dependencies (section 4.4, figure 8).

The paper keeps a table of pairs x1 -> x2, complete (whatever follows can be reached along it) and minimal (no pair
can be left out), by adding all pairs of a new variable and removing the redundant ones until nothing changes, in
quadratic time. Most tests are comparisons, and their table needs no computing: sorted, each comparison's direct
consequences are its neighbours. `price >= 10` leads to the next lower `>=` or `>`; what that one implies further is
reached through it. So the table of comparisons is kept as four sorted lists for each attribute and kind, and a row of
it is read by binary search when asked for. Adding and removing is one insertion into a list. With n equalities and n
inequalities the table has n² pairs, all of them needed; they are not stored either.

Comparisons by their shape on the line, where a constant c has a cut below it, (c, 0), and one above it, (c, 1):
  down   `< c`, `<= c`: everything below a cut. Leads to the next higher down, and to each `!= d` above its cut that
         lies below that next one.
  up     the mirror image.
  equal  `= c`: between two cuts. Leads to the lowest down above, the highest up below, and each `!= d` in between.
  unequal `!= d`: leads nowhere.
That is complete and minimal for a dense order without ends. (Between neighbouring integers, or below the empty
string, a little more holds; no answer depends on it.)

All other tests (sets, texts, lists, booleans, NaN) are compared pairwise through their worlds (`worlds.py`), which
is remembered. A row is then the minimal ones among the sorted neighbours and these. Tests that say the same form a
ring, whose first member (the smallest variable) stands for it in all other rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from covey.diagrams.worlds import implies as world_implies
from covey.errors import CoveyError
from covey.filters.predicates import Compare
from covey.filters.two_valued import Test, attribute_of
from covey.filters.values import Kind, kind_of, order_key

Shape: TypeAlias = Literal["down", "up", "equal", "unequal"]
Cut: TypeAlias = tuple[Any, int]
Placed: TypeAlias = tuple[Kind, Shape, Cut]

_SHAPES: dict[str, tuple[Shape, int]] = {
    "<": ("down", 0),
    "<=": ("down", 1),
    ">": ("up", 1),
    ">=": ("up", 0),
    "=": ("equal", 0),
    "!=": ("unequal", 0),
}


class Dependencies:
    """The dependencies among variables in use. Tests must be canonical (`filters/two_valued.py`)."""

    def __init__(self) -> None:
        self._tests: dict[int, Test] = {}
        self._attributes: dict[str, _AttributeDependencies] = {}

    def __len__(self) -> int:
        return len(self._tests)

    def add(self, variable: int, test: Test) -> None:
        """The `variable` came into use, for this `test`."""
        if variable in self._tests:
            raise CoveyError(f"variable {variable} is there already; remove it first")
        self._tests[variable] = test
        self._attributes.setdefault(attribute_of(test), _AttributeDependencies()).add(variable, test)

    def remove(self, variable: int) -> None:
        """The `variable` is no longer in use."""
        attribute = attribute_of(self._tests.pop(variable))
        self._attributes[attribute].remove(variable)
        if not self._attributes[attribute].placed and not self._attributes[attribute].others:
            del self._attributes[attribute]

    def implies(self, given: int, asked: int) -> bool:
        """Whether the variable `asked` holds wherever the variable `given` does."""
        if given == asked:
            return True
        attribute = attribute_of(self._tests[given])
        return attribute == attribute_of(self._tests[asked]) and self._attributes[attribute].implies(given, asked)

    def successors(self, variable: int) -> frozenset[int]:
        """One row of the minimal table: what directly follows from a `variable`."""
        return self._attributes[attribute_of(self._tests[variable])].successors(variable)

    def edges(self) -> Iterator[tuple[int, int]]:
        """The whole minimal table."""
        for variable in self._tests:
            for follower in self.successors(variable):
                yield variable, follower

    def closure(self, variable: int) -> set[int]:
        """All that follows from a `variable`, itself included, by way of the table."""
        reached = {variable}
        waiting = [variable]
        while waiting:
            new = self.successors(waiting.pop()) - reached
            reached |= new
            waiting.extend(new)
        return reached


class _AttributeDependencies:
    """The tests on one attribute: comparisons in sorted lists, the others pairwise."""

    def __init__(self) -> None:
        self.placed: dict[int, Placed] = {}
        self.others: dict[int, Test] = {}
        self._tests: dict[int, Test] = {}
        self._sorted: defaultdict[tuple[Kind, Shape], list[tuple[Cut, int]]] = defaultdict(list)
        self._pairs: dict[tuple[int, int], bool] = {}
        self._rows: dict[int, frozenset[int]] = {}

    def add(self, variable: int, test: Test) -> None:
        self._rows.clear()
        self._tests[variable] = test
        place = _place(test)
        if place is None:
            self.others[variable] = test
            return
        kind, shape, cut = place
        self.placed[variable] = place
        insort(self._sorted[kind, shape], (cut, variable))

    def remove(self, variable: int) -> None:
        self._rows.clear()
        del self._tests[variable]
        place = self.placed.pop(variable, None)
        if place is None:
            del self.others[variable]
        else:
            kind, shape, cut = place
            listed = self._sorted[kind, shape]
            del listed[bisect_left(listed, (cut, variable))]
        self._pairs = {pair: known for pair, known in self._pairs.items() if variable not in pair}

    def implies(self, given: int, asked: int) -> bool:
        if given in self.placed and asked in self.placed:
            return _follows(self.placed[given], self.placed[asked])
        pair = (given, asked)
        if pair not in self._pairs:
            self._pairs[pair] = world_implies(self._tests[given], self._tests[asked])
        return self._pairs[pair]

    def successors(self, variable: int) -> frozenset[int]:
        row = self._rows.get(variable)
        if row is None:
            row = self._rows[variable] = frozenset(self._row(variable))
        return row

    def _row(self, variable: int) -> set[int]:
        if not self.others:
            return set(self._neighbours(self.placed[variable]))
        ring = self._ring(variable)
        row = {ring[(ring.index(variable) + 1) % len(ring)]} if len(ring) > 1 else set()
        if variable != ring[0]:
            return row
        if variable in self.placed:
            candidates = set(self._neighbours(self.placed[variable]))
        else:
            candidates = {other for other in self.placed if self.implies(variable, other)}
        candidates |= {other for other in self.others if self.implies(variable, other)}
        candidates = {self._ring(other)[0] for other in candidates.difference(ring)}
        minimal = {
            other
            for other in candidates
            if not any(between != other and self.implies(between, other) for between in candidates)
        }
        return row | minimal

    def _ring(self, variable: int) -> list[int]:
        """The tests that say the same, ascending. Canonical comparisons differ from each other."""
        same = {other for other in self.others if self.implies(variable, other) and self.implies(other, variable)}
        if variable in self.others:
            same |= {other for other in self.placed if self.implies(variable, other) and self.implies(other, variable)}
        return sorted(same | {variable})

    def _neighbours(self, place: Placed) -> Iterator[int]:
        """The direct consequences of a comparison among comparisons."""
        kind, shape, cut = place
        downs, ups = self._sorted[kind, "down"], self._sorted[kind, "up"]
        unequal = self._sorted[kind, "unequal"]
        if shape in ("down", "equal"):
            # An equality lies between its cuts: what is above it starts at the upper one.
            least = bisect_right(downs, (cut, math.inf)) if shape == "down" else bisect_left(downs, ((cut[0], 1), -1))
            start = bisect_left(unequal, (cut, -1)) if shape == "down" else bisect_right(unequal, (cut, math.inf))
            if least < len(downs):
                yield downs[least][1]
            end = bisect_left(unequal, (downs[least][0], -1)) if least < len(downs) else len(unequal)
            yield from (variable for _, variable in unequal[start:end])
        if shape in ("up", "equal"):
            most = bisect_left(ups, (cut, -1)) if shape == "up" else bisect_right(ups, (cut, math.inf))
            # `!= d` has d's lower cut in the list; d is below a cut (c, 1) where d <= c, below (c, 0) where d < c.
            end = _below(unequal, cut)
            if most > 0:
                yield ups[most - 1][1]
            start = _below(unequal, ups[most - 1][0]) if most > 0 else 0
            yield from (variable for _, variable in unequal[start:end])


def _below(unequal: list[tuple[Cut, int]], cut: Cut) -> int:
    """How many of the excluded constants lie below a cut."""
    key, side = cut
    return bisect_right(unequal, ((key, 0), math.inf)) if side else bisect_left(unequal, ((key, 0), -1))


def _place(test: Test) -> Placed | None:
    """A comparison's place on the line of its kind; None for what has none, or has special neighbours."""
    if not isinstance(test, Compare) or test.value is None or test.operator not in _SHAPES:
        return None
    kind = kind_of(test.value)
    key = order_key(test.value)
    if kind is Kind.BOOLEAN or key[0] == 1:
        return None
    shape, side = _SHAPES[test.operator]
    return kind, shape, (key, side)


def _follows(given: Placed, asked: Placed) -> bool:
    """Whether one comparison follows from another by the order alone."""
    (kind, shape, cut), (asked_kind, asked_shape, asked_cut) = given, asked
    if kind is not asked_kind:
        return False
    upper = (cut[0], 1) if shape == "equal" else cut
    match shape, asked_shape:
        case (("down" | "equal"), "down"):
            return upper <= asked_cut
        case (("up" | "equal"), "up"):
            return cut >= asked_cut
        case "down", "unequal":
            return cut <= asked_cut
        case "up", "unequal":
            return cut >= (asked_cut[0], 1)
        case "equal", "unequal":
            return cut != asked_cut
        case ("equal", "equal") | ("unequal", "unequal"):
            return cut == asked_cut
    return False
