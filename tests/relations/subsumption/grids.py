"""Brute force on small worlds: every cell of a small integer space, painted one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from covey.relations.subsumption import Integer, Rectangle, Region, Space

Grid = NDArray[np.int64]


def grid_space(d: int, side: int) -> Space:
    return Space(Integer(f"a{j}", 0, side - 1, optional=False) for j in range(d))


def painted(region: Iterable[Rectangle], d: int, side: int) -> Grid:
    """How many of the rectangles hold each cell."""
    grid = np.zeros((side,) * d, np.int64)
    for rectangle in region:
        for cell in product(*(range(a, b) for a, b in zip(rectangle.low, rectangle.high, strict=True))):
            grid[cell] += 1
    return grid


def listed(region: Region) -> tuple[Rectangle, ...]:
    return (region,) if isinstance(region, Rectangle) else region


def rectangles(d: int, side: int) -> st.SearchStrategy[Rectangle]:
    ends = st.tuples(st.integers(0, side - 1), st.integers(1, side)).map(lambda e: (min(e[0], e[1] - 1), e[1]))
    return st.lists(ends, min_size=d, max_size=d).map(
        lambda cells: Rectangle(tuple(a for a, _ in cells), tuple(b for _, b in cells))
    )


def regions(d: int, side: int) -> st.SearchStrategy[Region]:
    return rectangles(d, side) | st.lists(rectangles(d, side), max_size=3).map(tuple)
