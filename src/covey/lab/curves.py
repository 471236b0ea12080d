"""Curves over the share of prunings: where they bend, and where one crosses another."""

from __future__ import annotations

from itertools import pairwise

from covey.lab.experiments import Cell, Rows
from covey.lab.readings import number, where

Curve = list[tuple[float, float]]


def curve(rows: Rows, x: str, y: str, **values: Cell) -> Curve:
    """The points of the rows that have these values, by x."""
    return sorted((number(row, x), number(row, y)) for row in where(rows, **values))


def at(points: Curve, x: float) -> float:
    """The height of a curve, straight between its points; the nearest end's beyond them."""
    if x <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in pairwise(points):
        if x <= right:
            return low + (high - low) * (x - left) / (right - left)
    return points[-1][1]


def bend(points: Curve) -> float | None:
    """Where a rising curve turns up most sharply: the point farthest below the line between its ends. None where no
    point lies below that line."""
    (left, low), (right, high) = points[0], points[-1]
    below = {x: low + (high - low) * (x - left) / (right - left) - y for x, y in points}
    x = max(below, key=below.__getitem__)
    return x if below[x] > 0 else None


def crossing(first: Curve, second: Curve) -> float | None:
    """From where on the first curve, below the second before, is above it for good; None where it never comes to be."""
    gaps = [(x, y - at(second, x)) for x, y in first]
    for (left, before), (right, after) in reversed(list(pairwise(gaps))):
        if before <= 0 < after:
            return left - before * (right - left) / (after - before)
        if after <= 0:
            return None
    return None
