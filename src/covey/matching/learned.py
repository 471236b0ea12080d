"""The attribute order that a profile of past subscriptions teaches (Li, Hou and Jacobsen, section 3.2).

What past subscriptions named, how concentrated and in which company says in which order attributes are asked. The room
that learns it (`covey.history`) is above this one, so here it is only an order of names. An attribute's number decides
when the order "attribute" asks it, so a learned order is a numbering: `arranged` renumbers flat subscriptions before
they are compiled. Attributes that the past didn't know come last, as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from covey.matching.lowering import Flat

if TYPE_CHECKING:
    from covey.matching.statistics import Statistics

LEARNED: Final = "learned"
"""The name of this order."""


class Past(Protocol):
    """What an index asks of a profile; `covey.Profile` answers."""

    @property
    def events(self) -> object | None:
        """What is known of events; None if nothing."""

    def statistics(self) -> Statistics:
        """How rare values are among the events."""

    def attribute_order(self) -> list[str]:
        """The attributes that subscriptions named, in the order in which to ask them."""


def arranged(flat: Flat, attributes: Sequence[str]) -> Flat:
    """The same subscriptions, with attributes numbered in the given order."""
    if not attributes:
        return flat
    place = {name: at for at, name in enumerate(attributes)}
    order = sorted(range(len(flat.names)), key=lambda number: place.get(flat.names[number], len(place)))
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return replace(flat, names=[flat.names[number] for number in order], leaf_attribute=numbers[flat.leaf_attribute])
