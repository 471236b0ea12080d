"""Perfect mergers among the rows of a table: which rows are equal but for one attribute, and how their sets unite.

Rows are hashed without each of their constraints in turn: a constraint has a random 64-bit number, a row their sum, so
leaving one out is a subtraction, and rows that are equal but for one attribute meet when these keys are sorted. Members
of a group are compared exactly before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.filters.values import Kind
from covey.relations.cuts import BOTTOM, TOP
from covey.relations.merging.constraints import Constraints, Row
from covey.relations.merging.covering import rows_as_arrays
from covey.relations.merging.rules import is_simple, with_gaps_closed
from covey.relations.value_sets import ValueSet

_SEED = 0x5EED


def random_numbers(count: int, stream: int) -> NDArray[np.uint64]:
    """The first `count` of a fixed sequence of random words."""
    return np.random.default_rng((_SEED, stream)).integers(0, 2**64, count, np.uint64)


def groups_but_for_one(
    places: Sequence[int], rows: Sequence[Row], is_new: Sequence[bool], constraints: Constraints
) -> Iterator[tuple[int, list[int]]]:
    """Attributes, each with places of rows, some of them new, that seem equal but for it; largest groups first."""
    chosen = [rows[place] for place in places]
    first, sets = rows_as_arrays(chosen)
    if not len(sets):
        return
    word = random_numbers(len(constraints.values), 0)[sets]
    attribute = np.array(constraints.attribute_of, np.int64)[sets]
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(word, dtype=np.uint64)))
    owner = np.repeat(np.arange(len(chosen)), np.diff(first))
    row_key = total[first[1:]] - total[first[:-1]]
    key = (row_key[owner] - word) ^ random_numbers(len(constraints.attributes), 1)[attribute]
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], key[order][1:] != key[order][:-1])))
    stops = np.concatenate((starts[1:], [len(order)]))
    fresh = np.concatenate(([0], np.cumsum(np.array(is_new, np.bool_)[owner[order]])))
    wanted = np.flatnonzero((stops - starts > 1) & (fresh[stops] > fresh[starts]))
    by_size = wanted[np.argsort(starts[wanted] - stops[wanted], kind="stable")]
    for group in by_size.tolist():
        members = order[starts[group] : stops[group]]
        yield int(attribute[members[0]]), [places[at] for at in owner[members].tolist()]


def same_rest(
    members: Sequence[int], rows: Sequence[Row], attribute: int, constraints: Constraints
) -> dict[Row, list[tuple[int, int]]]:
    """Members by what their rows have beside the attribute, each with its constraint on the attribute."""
    attribute_of = constraints.attribute_of
    found: dict[Row, list[tuple[int, int]]] = {}
    for member in members:
        row = rows[member]
        at = next(at for at, one in enumerate(row) if attribute_of[one] == attribute)
        found.setdefault(row[:at] + row[at + 1 :], []).append((member, row[at]))
    return found


def clusters(
    sets: Sequence[tuple[int, ValueSet]], max_pieces: int, free: ValueSet | None
) -> list[tuple[ValueSet, list[int], bool]]:
    """Members brought together whose sets have a simple union: it, they, and whether it is exactly their union.

    First intervals that connect, over gaps of free values too, in ascending order; then as many of these as may be
    listed together, those that are open above and below side by side, since they leave out one interval.
    """
    connected: list[tuple[ValueSet, list[int], bool]] = []
    for member, values in sorted(sets, key=lambda one: _low(one[1])):
        if connected:
            before, others, exact = connected[-1]
            union = before | values
            closed = union if free is None else with_gaps_closed(union, free)
            if closed.is_interval or closed in (before, values):
                connected[-1] = (closed, [*others, member], exact and closed == union)
                continue
        connected.append((values, [member], True))
    packed: list[tuple[ValueSet, list[int], bool]] = []
    for values, members, exact in sorted(connected, key=lambda one: not _is_open_above(one[0])):
        if packed:
            before, others, exact_before = packed[-1]
            union = before | values
            if is_simple(union, (before, values), max_pieces):
                packed[-1] = (union, others + members, exact and exact_before)
                continue
        packed.append((values, members, exact))
    return packed


def _low(values: ValueSet) -> tuple[int, Any]:
    for rank, cuts in enumerate((values.numbers, values.strings, values.timestamps)):
        if cuts:
            return rank, cuts[0]
    return 3, (values.flags, 0)


def _is_open_above(values: ValueSet) -> bool:
    return any(
        cuts and cuts[-1] == TOP[kind] and cuts[0] != BOTTOM[kind]
        for kind, cuts in (
            (Kind.NUMBER, values.numbers),
            (Kind.STRING, values.strings),
            (Kind.TIMESTAMP, values.timestamps),
        )
    )


def free_values(free: Mapping[str, ValueSet], constraints: Constraints, attribute: int) -> ValueSet | None:
    """The values of an attribute that no advertised event has; None where there is nothing known of that."""
    name = constraints.attributes[attribute]
    return free.get(name) if isinstance(name, str) else None
