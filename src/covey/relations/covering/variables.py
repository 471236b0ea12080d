"""The global predicate index of a covering table: a variable for each distinct value set of an attribute.

Li, Hou and Jacobsen (section 3.1) give each distinct predicate one Boolean variable, and cache which variables follow
from which (section 4.4, M6). Here a variable is an attribute with a value set: all tests that a subscription makes on
one attribute are one set in normal form, so `price >= 10 AND price < 20` is one variable and predicates that say the
same are the same variable.

What follows from what is inclusion of sets. It is kept in two forms. Each variable has the labels of its cuts
(`lines.py`), which is enough to compare any two. On top, the variables of an attribute have a *relation*: a square of
bytes with the paper's two bits for every pair, so that the assignment which a new subscription gives to the variables
of its attributes is read and never computed. A variable that enters fills one row and one column; one that leaves
gives its number back, and the next one overwrites them. The relation is complete. The least table from which it can be
deduced (figure 8) is read off it: inclusion of different sets has no rings, so the least table is unique, and
`consequences` gives its rows. It isn't what inserting uses, since walking it takes longer than reading a byte.

The square grows with the square of an attribute's variables. Beyond `RELATED_VARIABLES` of them, or `RELATION_BYTES`
for all attributes together, an attribute does without and its labels are compared.

Cost: a known set is two dictionary lookups; a new one a search for its cuts and, with a relation, some nanoseconds for
each variable of the attribute.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from covey.kernels.value_sets import COVERED, Sets, direct_consequences, relate, relate_to_all
from covey.relations.covering.lines import Line, places_of
from covey.relations.growing_arrays import grown
from covey.relations.value_sets import ValueSet

RELATED_VARIABLES: Final = 512
"""Variables of one attribute whose relation is kept: a quarter of a megabyte. Enlarging a larger square takes longer
than anybody should wait (80 ms at 2,048); without one, insertions took up to a tenth longer, on a machine with other
work."""

RELATION_BYTES: Final = 1 << 26
"""Bytes of all relations of a table together."""

_LEAST_STRIDE = 16


class _Attribute:
    """One attribute's variables: by set, and where their relation lies."""

    __slots__ = ("free", "line", "number", "square", "stride", "variables")

    def __init__(self, number: int) -> None:
        self.number = number
        self.variables: dict[ValueSet, int] = {}
        self.line = Line()
        self.stride = 0
        self.square = 0
        """Where the square begins; -1 where there is none any more."""
        self.free: list[int] = []


class VariableIndex:
    """The variables in use, counted."""

    def __init__(self, related_variables: int = RELATED_VARIABLES, relation_bytes: int = RELATION_BYTES) -> None:
        self._related_variables = related_variables
        self._relation_bytes = relation_bytes
        self._attributes: dict[str, _Attribute] = {}
        self._owner: list[tuple[_Attribute, ValueSet] | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self._free_labels: dict[int, list[int]] = {}
        self._free_squares: dict[int, list[int]] = {}
        self._labels_used = 0
        self._relation_used = 0
        self._sets = Sets(
            np.zeros(64, np.int32),
            np.full(64, -1, np.int64),
            np.zeros(4_096, np.uint8),
            np.zeros(64, np.int64),
            np.zeros(64, np.int32),
            np.zeros(64, np.int64),
            np.zeros(64, np.int64),
            np.zeros(256, np.int64),
            np.zeros(64, np.uint8),
        )

    def __len__(self) -> int:
        """How many variables are in use."""
        return len(self._owner) - len(self._free)

    @property
    def sets(self) -> Sets:
        """The arrays as they are now; a new variable may replace them."""
        return self._sets

    @property
    def attributes(self) -> int:
        """How many attributes have been named."""
        return len(self._attributes)

    @property
    def relation_bytes(self) -> int:
        """Bytes taken for relations."""
        return self._relation_used

    def take(self, name: str, values: ValueSet) -> int:
        """The variable of a set (not empty) of an attribute; counts a use."""
        ((_, variable),) = self.take_all(((name, values),))
        return variable

    def take_all(self, sets: tuple[tuple[str, ValueSet], ...]) -> list[tuple[int, int]]:
        """The attribute and the variable of each of some sets; counts a use of each."""
        pairs = []
        for name, values in sets:
            attribute = self._attributes.get(name) or self._attribute(name)
            variable = attribute.variables.get(values)
            if variable is None:
                variable = self._enter(attribute, values)
            self._uses[variable] += 1
            pairs.append((attribute.number, variable))
        return pairs

    def release(self, variable: int) -> None:
        """Take back a use; a variable without any leaves."""
        self._uses[variable] -= 1
        if not self._uses[variable]:
            self._leave(variable)

    def implies(self, given: int, asked: int) -> bool:
        """Whether the second variable holds wherever the first does."""
        attribute, _ = self._owned(given)
        if attribute is not self._owned(asked)[0]:
            return False
        sets = self._sets
        if attribute.square >= 0:
            return bool(sets.relation[sets.rows[given] + sets.local[asked]] & COVERED)
        return bool(relate(given, asked, *sets[3:8]) & COVERED)

    def consequences(self, variable: int) -> frozenset[int]:
        """A row of the least table (figure 8): the variables that directly follow from one."""
        attribute, _ = self._owned(variable)
        return frozenset(direct_consequences(variable, _members(attribute), *self._sets[:8]).tolist())

    def _owned(self, variable: int) -> tuple[_Attribute, ValueSet]:
        owner = self._owner[variable]
        assert owner is not None, "a variable that isn't in use"
        return owner

    def _attribute(self, name: str) -> _Attribute:
        attribute = self._attributes.get(name)
        if attribute is None:
            attribute = self._attributes[name] = _Attribute(len(self._attributes))
        return attribute

    def _enter(self, attribute: _Attribute, values: ValueSet) -> int:
        if self._free:
            variable = self._free.pop()
            self._owner[variable] = (attribute, values)
        else:
            variable = len(self._owner)
            self._owner.append((attribute, values))
            self._uses.append(0)
            self._make_room(variable + 1)
        places = places_of(values)
        self._sets.points[variable] = len(places) == 2 and places[0][:2] == places[1][:2]
        moved = attribute.line.take(places)
        self._write_labels(variable, attribute.line.labels(places))
        if moved is not None:
            self._move_labels(attribute, *moved)
        self._relate(attribute, variable)
        attribute.variables[values] = variable
        return variable

    def _leave(self, variable: int) -> None:
        attribute, values = self._owned(variable)
        places = places_of(values)
        attribute.line.release(places)
        attribute.free.append(int(self._sets.local[variable]))
        del attribute.variables[values]
        self._free_labels.setdefault(len(places), []).append(int(self._sets.start[variable]))
        self._owner[variable] = None
        self._free.append(variable)

    def _make_room(self, variables: int) -> None:
        sets = self._sets
        if variables > len(sets.local):
            self._sets = sets._replace(
                local=grown(sets.local, variables),
                rows=grown(sets.rows, variables, -1),
                start=grown(sets.start, variables),
                cuts=grown(sets.cuts, variables),
                low=grown(sets.low, variables),
                high=grown(sets.high, variables),
                points=grown(sets.points, variables),
            )

    def _write_labels(self, variable: int, labels: list[int]) -> None:
        length = len(labels)
        if self._free_labels.get(length):
            start = self._free_labels[length].pop()
        else:
            start = self._labels_used
            self._labels_used += length
            self._sets = self._sets._replace(labels=grown(self._sets.labels, self._labels_used))
        self._sets.start[variable] = start
        self._sets.cuts[variable] = length
        self._place_labels(variable, labels)

    def _place_labels(self, variable: int, labels: list[int]) -> None:
        sets = self._sets
        start = int(sets.start[variable])
        sets.labels[start : start + len(labels)] = labels
        sets.low[variable] = labels[0]
        sets.high[variable] = labels[-1]

    def _move_labels(self, attribute: _Attribute, before: list[int], after: list[int]) -> None:
        """Give all variables of an attribute the labels that its cuts have now, for those that they had."""
        sets = self._sets
        members = _members(attribute)
        lengths = sets.cuts[members]
        ends = np.cumsum(lengths)
        # The places of all labels: those of a variable follow each other from its start.
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(sets.start[members] - ends + lengths, lengths)
        had, have = np.array(before, np.int64), np.array(after, np.int64)
        sets.labels[places] = have[np.searchsorted(had, sets.labels[places])]
        sets.low[members] = sets.labels[sets.start[members]]
        sets.high[members] = sets.labels[sets.start[members] + lengths - 1]

    def _relate(self, attribute: _Attribute, variable: int) -> None:
        """Give a variable its number in the attribute, and its row and column of the relation."""
        number = attribute.free.pop() if attribute.free else len(attribute.variables)
        self._sets.local[variable] = number
        if attribute.square >= 0 and number >= attribute.stride:
            self._enlarge(attribute)
        sets = self._sets
        if attribute.square < 0:
            sets.rows[variable] = -1
            return
        sets.rows[variable] = attribute.square + number * attribute.stride
        relate_to_all(variable, _members(attribute, variable), *sets[:8])

    def _enlarge(self, attribute: _Attribute) -> None:
        """Move an attribute's square to a place twice as wide, or give it up where that is beyond a limit."""
        stride = max(_LEAST_STRIDE, 2 * attribute.stride)
        start = self._square(stride)
        old, old_stride = attribute.square, attribute.stride
        if old_stride:
            self._free_squares.setdefault(old_stride, []).append(old)
        members = np.fromiter(attribute.variables.values(), np.int64, len(attribute.variables))
        sets = self._sets
        attribute.square, attribute.stride = start, stride
        if start < 0:
            sets.rows[members] = -1
            return
        if old_stride:
            former = sets.relation[old : old + old_stride * old_stride].reshape(old_stride, old_stride).copy()
            wide = sets.relation[start : start + stride * stride].reshape(stride, stride)
            wide[:old_stride, :old_stride] = former
        sets.rows[members] = start + sets.local[members].astype(np.int64) * stride

    def _square(self, stride: int) -> int:
        """Where a square can lie; -1 beyond the limits."""
        if stride > max(self._related_variables, _LEAST_STRIDE) or not self._related_variables:
            return -1
        if self._free_squares.get(stride):
            return self._free_squares[stride].pop()
        if self._relation_used + stride * stride > self._relation_bytes:
            return -1
        start = self._relation_used
        self._relation_used += stride * stride
        self._sets = self._sets._replace(relation=grown(self._sets.relation, self._relation_used))
        return start


def _members(attribute: _Attribute, new: int | None = None) -> NDArray[Any]:
    """The attribute's variables, with the one that is about to enter at the end."""
    length = len(attribute.variables) + (new is not None)
    members = np.empty(length, np.int64)
    members[: len(attribute.variables)] = list(attribute.variables.values())
    if new is not None:
        members[-1] = new
    return members
