"""How a broker routes, how long it waits, and how much it keeps. Every limit has a name, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from covey.errors import CoveyError
from covey.filters.semantics import Defaults, Semantics, check_semantics
from covey.limits import DEFAULT_LIMITS, Limits
from covey.relations.merging import MergingPolicy
from covey.relations.pruning.dimensions import Dimension
from covey.relations.subsumption import Space

if TYPE_CHECKING:
    from covey.events.schema import Schema
    from covey.history import Chances

Strategy: TypeAlias = Literal["flooding", "simple", "identity", "covering", "subsumption", "merging"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class ConfigError(CoveyError):
    """A broker's configuration that can't be used."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. Neighbours should use the same."""

    retry: float = 0.5
    """t1: what isn't acknowledged for so long is sent again, and silent links are pinged."""

    failed: float = 5.0
    """t2: a neighbour that was silent for so long counts as failed: nothing waits for it any more."""

    remember: float = 600.0
    """Durable events are kept so long for neighbours whose tables were apart from ours meanwhile."""

    forget: float = 7 * 24 * 3600.0
    """What a failed neighbour without another path asked for, and what is kept for it, goes after so long."""

    longest_lease: float | None = None
    """Subscriptions and advertisements get this lease at most; None for any, and for none at all."""


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What a broker keeps at most. What is beyond is dropped from the oldest on, or refused."""

    hops: int = 64
    """Links that an event may cross: bounds what disagreeing trees can do."""

    events_kept: int = 10_000
    """Durable events kept for neighbours whose tables were apart, and not kept for anything else."""

    ids_remembered: int = 100_000
    """Ids of events that came by, so that a second copy is known for one."""

    outbox: int = 100_000
    """Items that wait for a neighbour; beyond, events are dropped from the oldest on."""

    stream_items: int = 256
    """Items of the stream in one message."""

    stream_flying: int = 1_024
    """Items of the stream sent and not acknowledged."""

    queue: int = 100_000
    """Deliveries that wait for a client with durable subscriptions; beyond, the oldest go and the client hears of a
    gap."""

    buffer: int = 1_000
    """Deliveries without durability that wait for a client's credit; beyond, the oldest go with a gap."""

    gaps: int = 10_000
    """Deliveries dropped in one session before it is closed."""

    credit: int = 1_000
    """Deliveries that a client gets before it has to grant more."""

    subscriptions: int = 100_000
    """Subscriptions, and advertisements, of one client."""

    publications: int = 10_000
    """Events in one Publish."""

    loads: int = 100
    """Named loads of subscriptions."""

    loaded_subscriptions: int = 1_000_000
    """Subscriptions of one load."""

    profile_bytes: int = 64 << 20
    """A profile that is loaded."""

    delta_bytes: int = 1 << 20
    """Filters and keys in one message to a neighbour, in characters; a larger change of its table comes in parts."""

    recall_filters: int = 1_000
    """Filters in one Recall; beyond, it asks for everything."""

    filters: Limits = DEFAULT_LIMITS
    """What one filter may be."""


@dataclass(frozen=True, slots=True)
class MergingOptions:
    """How filters are merged for neighbours."""

    imt: float = 0.0
    """Imperfect merging threshold: the largest imperfect degree. 0 for perfect mergers only."""
    policy: MergingPolicy = field(default_factory=lambda: MergingPolicy(at_arrivals=16, every=60.0))
    """When to merge."""


@dataclass(frozen=True, slots=True)
class SubsumptionOptions:
    """How filters that a union of others holds are found."""

    space: Space
    """The attributes that count. Dimensions without bounds and optional ones hold all events; where a dimension is
    bounded, events outside of it may be lost."""
    approximate: bool = False
    """Take a bounded effort, and now and then forward what needn't be."""


@dataclass(frozen=True, slots=True)
class PruningOptions:
    """How neighbours' filters are pruned for matching."""

    dimension: Dimension = "network"
    share: float = 0.5
    """Which part of all possible prunings is done."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigError(f"pruning share is {self.share}; give a part between 0 and 1")


@dataclass(frozen=True, slots=True)
class AdaptiveFiltering:
    """When to stop filtering on a link, and when to ask for it again (Mühl et al., section 2.8)."""

    stop_above: float = 0.9
    """A sender stops filtering where more than this part of events match."""
    ask_above: float = 0.3
    """A receiver asks for filtering where more than this part of what comes is of no use."""
    sample: int = 100
    """Events to judge by."""
    patience: int = 10
    """Samples that a sender filters after it was asked to."""

    def __post_init__(self) -> None:
        for name, part in (("stop_above", self.stop_above), ("ask_above", self.ask_above)):
            if not 0 <= part <= 1:
                raise ConfigError(f"adaptive filtering {name} is {part}; give a part between 0 and 1")
        if self.sample < 1 or self.patience < 0:
            raise ConfigError(
                f"adaptive filtering has sample={self.sample} and patience={self.patience}; "
                "give 1 or more, and 0 or more"
            )


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """One broker."""

    broker: str
    """Its id, one for each broker of the network."""

    peers: tuple[str, ...] = ()
    """Its neighbours; `AddPeer` and `RemovePeer` change them later, and what they did survives a restart."""

    strategy: Strategy = "covering"
    """What neighbours get to know of the subscriptions: nothing (`flooding`), all (`simple`), or ever fewer."""

    advertisements: bool = False
    """Subscriptions go only where an advertisement overlaps them. The same on all brokers."""

    merging: MergingOptions = field(default_factory=MergingOptions)
    subsumption: SubsumptionOptions | None = None
    """Needed by the strategy `subsumption`."""
    pruning: PruningOptions | None = None
    """Match neighbours' entries by smaller filters; needs `chances`."""
    adaptive: AdaptiveFiltering | None = None
    meta_events: bool = False
    """Publish an event for each subscription and advertisement that comes or goes."""

    semantics: Semantics = "sql"
    defaults: Defaults | None = None
    schema: Schema | None = None
    chances: Chances | None = None
    timing: Timing = field(default_factory=Timing)
    limits: BrokerLimits = field(default_factory=BrokerLimits)

    def __post_init__(self) -> None:
        check_semantics(self.semantics)
        if self.strategy not in STRATEGIES:
            raise ConfigError(f"strategy {self.strategy!r} is not known; use one of {', '.join(STRATEGIES)}")
        if self.strategy == "subsumption" and self.subsumption is None:
            raise ConfigError(
                "the strategy 'subsumption' needs a space; "
                "give subsumption=SubsumptionOptions(space), or the table [subsumption.space]"
            )
        if self.pruning is not None and self.chances is None:
            raise ConfigError("pruning needs to know how likely filters are to match; give chances, or a profile")
        if not self.broker or "/" in self.broker:
            raise ConfigError(f"a broker can't be named {self.broker!r}; use a name without a slash")
        if self.broker in self.peers:
            raise ConfigError(f"broker {self.broker!r} can't be its own neighbour; leave it out of peers")
        if not 0 < self.timing.retry < self.timing.failed:
            raise ConfigError(
                f"retry={self.timing.retry} and failed={self.timing.failed}: "
                "the first must be above 0 and below the second"
            )
