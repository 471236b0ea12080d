"""How subscriptions are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from covey.events import Schema
from covey.filters import Semantics
from covey.filters.values import Scalar
from covey.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from covey.matching.statistics import Statistics


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What all subscriptions of an index are compiled by."""

    semantics: Semantics = "sql"
    """What a filter means."""
    schema: Schema | None = None
    """The attributes' types, subtypes and defaults, if they are known."""
    defaults: Mapping[str, Scalar] = field(default_factory=dict)
    """Values of missing attributes, under the semantics that has them."""
    limits: Limits = DEFAULT_LIMITS
    """What a subscription may not exceed."""
    order: str = "selectivity"
    """By what the members of a conjunction are ordered in its diagram."""
    statistics: Statistics | None = None
    """What is known of events; without, how often subscriptions name a constant stands for it."""
    seed: int = 0
    """For the order "random"."""
    attributes: tuple[str, ...] = ()
    """By which attributes are numbered, which is how the order "attribute" asks them; the others come behind."""

    @property
    def is_two_valued(self) -> bool:
        """Whether a test on what is missing is false rather than unknown."""
        return self.semantics != "sql"

    @property
    def is_strict(self) -> bool:
        """Whether a filter asks for every attribute that it names."""
        return self.semantics == "strict"

    @property
    def defaults_in_force(self) -> dict[str, Scalar]:
        """The defaults, where the semantics has any."""
        return dict(self.defaults) if self.semantics == "default" else {}
