"""Subsumption by many: is a subscription held by the union of others? By the negative space of Jafarpour et al.

Subscriptions are rectangles over a `Space`; a `NegativeSpace` keeps the active ones, the passive ones and what nobody
asks for. `rectangles_of` makes rectangles of conjunctive filters. Knows nothing of brokers or of forwarding.
"""

from __future__ import annotations

from covey.relations.subsumption.bridge import (
    MOST_RECTANGLES,
    rectangle_of,
    rectangles_of,
    rectangles_of_conjunction,
)
from covey.relations.subsumption.dimensions import Dimension, Instant, Integer, Nominal, Number, Range, RectangleError
from covey.relations.subsumption.negative_space import (
    DEFAULT_K,
    DEFAULT_LIMIT,
    Method,
    Metric,
    NegativeSpace,
    Outcome,
    Rebuilt,
)
from covey.relations.subsumption.rectangles import Rectangle, Region, Space

__all__ = [
    "DEFAULT_K",
    "DEFAULT_LIMIT",
    "MOST_RECTANGLES",
    "Dimension",
    "Instant",
    "Integer",
    "Method",
    "Metric",
    "NegativeSpace",
    "Nominal",
    "Number",
    "Outcome",
    "Range",
    "Rebuilt",
    "Rectangle",
    "RectangleError",
    "Region",
    "Space",
    "rectangle_of",
    "rectangles_of",
    "rectangles_of_conjunction",
]
