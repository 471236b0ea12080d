"""From conjunctive filters to rectangles.

A conjunction has one value set for each attribute (`covey.relations.conjunctions`). In a dimension such a set is some
runs of cells, and the filter is the product of the runs: one rectangle where each set is one run, several where not
(`x != 5` is two). Rectangles mean exactly what the filter means on the events of the space, or there are none: a filter
that isn't a conjunction, names an attribute outside of the space, or has a bound that the space has no cells for, gives
None.
"""

from __future__ import annotations

import math
from itertools import product

from covey.events.meaning import Meaning
from covey.filters.algebra import Filter
from covey.filters.semantics import Defaults, Semantics
from covey.filters.values import Kind
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.subsumption.dimensions import (
    ANOTHER_KIND,
    MISSING,
    Cells,
    Dimension,
    Nominal,
    Range,
    RectangleError,
)
from covey.relations.subsumption.rectangles import Rectangle, Space
from covey.relations.value_sets import MISSING as MISSING_SET
from covey.relations.value_sets import ValueSet

MOST_RECTANGLES = 64
"""Rectangles that one filter may become; beyond, splitting would cost more than subsumption saves."""


def rectangle_of(
    condition: Filter, space: Space, semantics: Semantics = "sql", defaults: Defaults | None = None
) -> Rectangle | None:
    """The one rectangle that a filter is; None where it is none or several."""
    rectangles = rectangles_of(condition, space, semantics, defaults)
    return rectangles[0] if rectangles is not None and len(rectangles) == 1 else None


def rectangles_of(
    condition: Filter,
    space: Space,
    semantics: Semantics = "sql",
    defaults: Defaults | None = None,
    *,
    limit: int = MOST_RECTANGLES,
) -> tuple[Rectangle, ...] | None:
    """The disjoint rectangles that a filter is, of which () is the filter that nothing meets; None where it is no such
    thing, or more than `limit` of them.
    """
    conjunction = conjunction_of(condition, Meaning(semantics, defaults))
    return None if conjunction is None else rectangles_of_conjunction(conjunction, space, limit=limit)


def rectangles_of_conjunction(
    conjunction: Conjunction, space: Space, *, limit: int = MOST_RECTANGLES
) -> tuple[Rectangle, ...] | None:
    """As `rectangles_of`, for a conjunction."""
    if not conjunction.satisfiable:
        return ()
    runs = [[dimension.whole()] for dimension in space.dimensions]
    for attribute, values in conjunction.sets:
        number = space.number_of(attribute)
        found = None if number is None else _runs(space.dimensions[number], values)
        if number is None or found is None:
            return None
        runs[number] = found
    if math.prod(map(len, runs)) > limit:
        return None
    return tuple(space.box(cells) for cells in product(*runs))


def _runs(dimension: Dimension, values: ValueSet) -> list[Cells] | None:
    """The runs of cells that a value set is; None where it holds some values of a cell and not others."""
    pieces = _absent_cells(dimension, values)
    if pieces is None:
        return None
    nominal = dimension if isinstance(dimension, Nominal) else None
    inside = _ordered_cells(dimension, values) if nominal is None else _nominal_cells(nominal, values)
    return None if inside is None else _joined([*pieces, *inside])


def _absent_cells(dimension: Dimension, values: ValueSet) -> list[Cells] | None:
    missing, another = dimension.absent(MISSING), dimension.absent(ANOTHER_KIND)
    if missing is None or another is None:
        return []
    others = ~(ValueSet.of_kind(dimension.kind()) | MISSING_SET)
    cells = [(missing, missing + 1)] if None in values else []
    return _with_cell(cells, another, others, values)


def _nominal_cells(dimension: Nominal, values: ValueSet) -> list[Cells] | None:
    cells = [(place, place + 1) for place, value in enumerate(dimension.known) if value in values]
    if not dimension.other:
        return cells
    return _with_cell(
        cells, len(dimension.known), ValueSet.of_kind(dimension.kind()) - ValueSet.of(dimension.known), values
    )


def _with_cell(cells: list[Cells], cell: int, content: ValueSet, values: ValueSet) -> list[Cells] | None:
    """The cells, with one more where all of its content is among the values; None where only some is."""
    if values.issuperset(content):
        return [*cells, (cell, cell + 1)]
    return None if values.overlaps(content) else cells


def _ordered_cells(dimension: Dimension, values: ValueSet) -> list[Cells] | None:
    cuts = values.numbers if dimension.kind() is Kind.NUMBER else values.timestamps
    cells = []
    for (low, low_side), (high, high_side) in zip(cuts[::2], cuts[1::2], strict=True):
        # A cut is just below (0) or just above (1) a value; above NaN, the end of all numbers, it is 2.
        wanted = Range(low, high if high_side < 2 else None, low_side == 1, high_side == 0)
        try:
            found = dimension.cells(wanted)
        except RectangleError:
            return None
        if found is not None:
            cells.append(found)
    return cells


def _joined(cells: list[Cells]) -> list[Cells]:
    joined: list[Cells] = []
    for low, high in cells:
        if joined and joined[-1][1] == low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined
