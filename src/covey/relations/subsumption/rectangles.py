"""The content space and the rectangles in it (Section 2.1 of Jafarpour et al.).

A conjunctive subscription constrains some attributes to an interval each; where it names none, the interval is the
whole dimension. It is therefore a rectangle, held as half-open intervals of cells (`dimensions` says why cells), and
an event is a point. Volumes only steer heuristics; which rectangles meet is decided on cells alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.filters.semantics import attribute_value
from covey.relations.subsumption.dimensions import Cells, Dimension, Range, RectangleError

Rows = NDArray[np.int64]
"""Rectangles as rows: all low cells, then all high cells."""

MOST_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A half-open box of cells, never empty."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise RectangleError(f"{self.low} to {self.high} is not a rectangle: each low must be below its high")

    def __contains__(self, point: tuple[int, ...]) -> bool:
        return all(a <= x < b for a, x, b in zip(self.low, point, self.high, strict=True))

    def intersects(self, other: Rectangle) -> bool:
        """Whether the two have a point in common."""
        return all(a < d and c < b for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True))

    def covers(self, other: Rectangle) -> bool:
        """Whether every point of the other is in this one."""
        return all(a <= c and d <= b for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True))


Region = Rectangle | tuple[Rectangle, ...]
"""What a subscription asks for: a rectangle, or several that it asks for together; of none, nothing."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How a kernel measures widths: for each dimension its first value's cell, and the ends and extent of its values.

    `decoded` marks dimensions whose cells are doubles with known bounds: there a width is a difference of values.
    Elsewhere it is a number of cells. Widths are shares of the dimension; cells of absent values count beside them.
    """

    decoded: NDArray[np.bool_]
    first: NDArray[np.int64]
    extent: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Space:
    """The d-dimensional content space: ordered dimensions, one for each attribute."""

    dimensions: tuple[Dimension, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        listed = tuple(dimensions)
        numbers = {dimension.attribute: number for number, dimension in enumerate(listed)}
        if not 1 <= len(listed) <= MOST_DIMENSIONS or len(numbers) != len(listed):
            raise RectangleError(f"a space has 1 to {MOST_DIMENSIONS} dimensions, each of another attribute")
        object.__setattr__(self, "dimensions", listed)
        object.__setattr__(self, "_numbers", numbers)

    def __len__(self) -> int:
        return len(self.dimensions)

    def number_of(self, attribute: str) -> int | None:
        """The place of an attribute's dimension; None where the space has none."""
        return self._numbers.get(attribute)

    def whole(self) -> Rectangle:
        """The rectangle that holds every event of the space."""
        return self.box([dimension.whole() for dimension in self.dimensions])

    def rectangle(self, wanted: Mapping[str, Any]) -> Rectangle:
        """The rectangle of intervals by attribute.

        An interval is a `Range`, a pair (low, high) of closed ends with None for unbounded, or one value. Attributes
        left out are unconstrained. Raises RectangleError where an interval has no value or no exact cells.
        """
        cells = [dimension.whole() for dimension in self.dimensions]
        for attribute, interval in wanted.items():
            number = self.number_of(attribute)
            if number is None:
                raise RectangleError(
                    f"attribute {attribute} is not a dimension of the space; use {list(self._numbers)}"
                )
            found = self.dimensions[number].cells(_as_range(interval))
            if found is None:
                raise RectangleError(f"attribute {attribute}: no value of the space lies in {interval!r}")
            cells[number] = found
        return self.box(cells)

    def box(self, cells: Iterable[Cells]) -> Rectangle:
        """The rectangle of one interval of cells for each dimension."""
        low, high = zip(*cells, strict=True)
        return Rectangle(low, high)

    def point(self, event: Mapping[str, Any]) -> tuple[int, ...] | None:
        """The cells of an event; None where a value lies outside of the space."""
        cells = [dimension.cell(attribute_value(event, dimension.attribute)) for dimension in self.dimensions]
        return None if None in cells else tuple(cell for cell in cells if cell is not None)

    def rows(self, region: Region) -> Rows:
        """A region as rows, cut to the space; rectangles wholly outside of it are left out."""
        rectangles = (region,) if isinstance(region, Rectangle) else region
        if any(len(rectangle.low) != len(self) for rectangle in rectangles):
            raise RectangleError(f"a rectangle of this space has {len(self)} dimensions")
        d, whole = len(self), self.whole()
        rows = np.array([(*rectangle.low, *rectangle.high) for rectangle in rectangles], np.int64).reshape(-1, 2 * d)
        np.maximum(rows[:, :d], whole.low, out=rows[:, :d])
        np.minimum(rows[:, d:], whole.high, out=rows[:, d:])
        return rows[(rows[:, :d] < rows[:, d:]).all(axis=1)]

    def scale(self) -> Scale:
        """How widths are measured in each dimension."""
        ends = [dimension.bounds() for dimension in self.dimensions]
        values = [dimension.values() for dimension in self.dimensions]
        extent = [
            float(high - low) if bounds is None else bounds[1] - bounds[0]
            for bounds, (low, high) in zip(ends, values, strict=True)
        ]
        return Scale(
            np.array([bounds is not None for bounds in ends], np.bool_),
            np.array([low for low, _ in values], np.int64),
            np.array(extent, np.float64),
        )


def rectangles_of_rows(rows: Rows) -> tuple[Rectangle, ...]:
    """Rows as rectangles."""
    d = rows.shape[1] // 2
    return tuple(Rectangle(tuple(row[:d]), tuple(row[d:])) for row in rows.tolist())


def _as_range(interval: Any) -> Range:
    if isinstance(interval, Range):
        return interval
    if isinstance(interval, tuple):
        if len(interval) != 2:
            raise RectangleError(f"{interval!r} is not an interval; use (low, high)")
        return Range(interval[0], interval[1])
    return Range(interval, interval)
