"""The strategies: which stages make of all entries what a neighbour must know (R2).

To add one: its stage in a file of its own (unless those that are there do), its name and its options in `config.py`,
its plan here, and, where it has options, how a configuration file gives them in `covey.network.routing_options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from covey.routing.config import BrokerConfig, Strategy
from covey.routing.covering_stage import Covering
from covey.routing.identity_stage import Identity
from covey.routing.known_filters import KnownFilters
from covey.routing.merging_stage import Merging
from covey.routing.stages import Distinct, Stage, own_key
from covey.routing.subsumption_stage import Subsumption


@dataclass(frozen=True, slots=True)
class Plan:
    """What a strategy does."""

    stages: Callable[[BrokerConfig, KnownFilters], list[Stage]]
    """Made anew for each neighbour."""
    floods: bool = False
    """Neighbours get all events and no entries."""
    judges: bool = False
    """Its stages judge by what is known of events, and are made anew where a profile changes that."""


def _simple(config: BrokerConfig, known: KnownFilters) -> list[Stage]:  # noqa: ARG001
    return [Distinct(own_key)]


def _identity(config: BrokerConfig, known: KnownFilters) -> list[Stage]:  # noqa: ARG001
    return [Identity(known)]


def _covering(config: BrokerConfig, known: KnownFilters) -> list[Stage]:  # noqa: ARG001
    return [Identity(known), Covering(known)]


def _subsumption(config: BrokerConfig, known: KnownFilters) -> list[Stage]:
    options = config.subsumption
    assert options is not None, "the configuration has seen to it"
    return [
        Identity(known),
        Covering(known),
        Subsumption(known, options),
    ]


def _merging(config: BrokerConfig, known: KnownFilters) -> list[Stage]:
    merging = Merging(known, config.merging.policy, config.merging, config.chances)
    return [Identity(known), Covering(known), merging, Covering(known)]


PLANS: Final[Mapping[Strategy, Plan]] = {
    "flooding": Plan(_simple, floods=True),
    "simple": Plan(_simple),
    "identity": Plan(_identity),
    "covering": Plan(_covering),
    "subsumption": Plan(_subsumption),
    "merging": Plan(_merging, judges=True),
}


def subscription_stages(config: BrokerConfig, known: KnownFilters) -> list[Stage]:
    """The stages that a configuration asks for."""
    return PLANS[config.strategy].stages(config, known)


def advertisement_stages(config: BrokerConfig, known: KnownFilters) -> list[Stage]:
    """The stages for advertisements: covering, and perfect mergers only (M8)."""
    return [Identity(known), Covering(known), Merging(known, config.merging.advertisements), Covering(known)]
