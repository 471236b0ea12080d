"""How a broker routes, how long it waits, and how much it keeps. Every limit has a name, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from covey.errors import CoveyError
from covey.filters.semantics import Defaults, Semantics, check_semantics
from covey.limits import BROKER_FILTER_LIMITS, Limits
from covey.relations.merging import MergingPolicy
from covey.relations.pruning.dimensions import DIMENSIONS, Dimension
from covey.relations.subsumption import Space
from covey.relations.subsumption.negative_space import DEFAULT_K, Metric

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

    forget_publisher: float = 30 * 24 * 3600.0
    """A client with a name that published durable events and was away for so long is forgotten: what it would send
    again after that may come twice."""

    longest_lease: float | None = None
    """Subscriptions and advertisements get this lease at most; None for any, and for none at all."""


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What a broker keeps at most. What is beyond is dropped from the oldest on, or refused."""

    hops: int = 64
    """Links that an event may cross: bounds what disagreeing trees can do."""

    events_kept: int = 10_000
    """Durable events kept for neighbours whose tables were apart, and not kept for anything else."""

    events_kept_bytes: int = 128 << 20
    """The same in bytes."""

    ids_remembered: int = 100_000
    """Ids of events that came from one neighbour, so that a second copy is known for one."""

    outbox: int = 100_000
    """Items that wait for a neighbour; beyond, events are dropped from the oldest on."""

    outbox_bytes: int = 512 << 20
    """The same in bytes."""

    stream_items: int = 256
    """Items of the stream in one message."""

    stream_flying: int = 1_024
    """Items of the stream sent and not acknowledged."""

    stream_flying_bytes: int = 8 << 20
    """The same in bytes; one item may fly whatever its size."""

    events_flying_bytes: int = 8 << 20
    """Events without durability sent to a neighbour that it hasn't taken; others wait."""

    link_buffer_bytes: int = 32 << 20
    """Events without durability that wait for a neighbour; beyond, the oldest are dropped and counted."""

    queue: int = 100_000
    """Deliveries that wait for a client with durable subscriptions; beyond, the oldest go and the client hears of a
    gap."""

    queue_bytes: int = 256 << 20
    """The same in bytes."""

    buffer: int = 1_000
    """Deliveries without durability that wait for a client's credit; beyond, the oldest go with a gap."""

    buffer_bytes: int = 8 << 20
    """The same in bytes."""

    gaps: int = 10_000
    """Deliveries dropped in one session before it is closed."""

    credit: int = 1_000
    """Deliveries that a client gets before it has to grant more."""

    credit_bytes: int = 4 << 20
    """The same in bytes; the delivery that passes it is still sent, so that one of any size gets through."""

    ended_sessions: int = 10_000
    """Sessions that are over of which it is remembered how many deliveries they had, so that a client that comes again
    can tell what it missed."""

    subscriptions: int = 100_000
    """Subscriptions, and advertisements, of one client."""

    principal_subscriptions: int = 200_000
    """Subscriptions, and advertisements, of all clients of one principal."""

    principal_filter_bytes: int = 64 << 20
    """Texts of all subscriptions and advertisements of one principal."""

    principal_queue_bytes: int = 1 << 30
    """Deliveries that wait for all clients of one principal; beyond, the oldest of whoever gets one more go, with a
    gap."""

    principal_clients: int = 1_000
    """Clients of one principal that are there or remembered; beyond, they can make nothing that lasts."""

    publications: int = 10_000
    """Events in one Publish."""

    publication_ids: int = 100_000
    """Ids of published events of one principal that are remembered, so that one that is sent again is known."""

    held_bytes: int = 16 << 20
    """Publications that wait while publishers are held back; beyond, they are refused."""

    loads: int = 100
    """Named loads of subscriptions."""

    loaded_subscriptions: int = 1_000_000
    """Subscriptions of one load."""

    profile_bytes: int = 64 << 20
    """A profile that is loaded."""

    delta_bytes: int = 1 << 20
    """Filters and keys in one message to a neighbour, in characters; a larger change of its table comes in parts."""

    part_entries: int = 32
    """Entries in one such part: whoever takes them has time for others between two."""

    table_bytes: int = 256 << 20
    """What a neighbour may have told of one table; beyond, the link is closed."""

    delta_entries: int = 64
    """Changes of a neighbour's table in one message, as long as it has missed nothing: more of them take the neighbour
    longer than others' events should wait."""

    deltas_flying: int = 3
    """Such messages sent and not acknowledged; more changes wait, and go together."""

    recall_filters: int = 1_000
    """Filters in one Recall; beyond, it asks for everything."""

    filters: Limits = BROKER_FILTER_LIMITS
    """What one filter may be."""

    pair_steps: int = 5_000
    """Steps (some microseconds each) that the question how two filters relate may take; beyond, neither counts as
    covering the other. The same on all brokers."""

    request_steps: int = 4_000
    """Steps that a request may take for covering, merging and the like before it goes on without; the rest is done when
    there is time."""

    request_entries: int = 256
    """Entries of one request (a load, say, or the end of a session) that are seen to at once; those of more are loaded,
    ended, and brought into their normal form when there is time."""

    permission_steps: int = 10_000
    """Steps that the question whether a subscription is allowed may take; beyond, it is refused."""


@dataclass(frozen=True, slots=True)
class MergingOptions:
    """How filters are merged for neighbours."""

    imt: float = 0.0
    """Imperfect merging threshold: the largest imperfect degree. 0 for perfect mergers only."""
    policy: MergingPolicy = field(default_factory=lambda: MergingPolicy(at_arrivals=16, every=60.0))
    """When to merge."""
    advertisements: MergingPolicy = field(default_factory=lambda: MergingPolicy(at_arrivals=16))
    """When to merge advertisements, by perfect mergers only, whatever the strategy."""
    measure: Literal["degree", "traffic"] = "degree"
    """What the threshold bounds: a merger's imperfect degree, or the degree times the chance that an event meets the
    merger, which is the part of all events that it lets through in vain (Li et al., section 5.3)."""
    bounds: Literal["path", "hop"] = "path"
    """Whose mergers the threshold bounds: what comes as a merger counts with what it has spent already, so that a path
    of brokers stays within the threshold; or each broker's by themselves, as in the papers."""


@dataclass(frozen=True, slots=True)
class SubsumptionOptions:
    """How filters that a union of others holds are found."""

    space: Space
    """The attributes that count. Dimensions without bounds and optional ones hold all events; where a dimension is
    bounded, events outside of it may be lost."""
    approximate: bool = False
    """Take a bounded effort, and now and then forward what needn't be."""
    k: int = DEFAULT_K
    """How many negative rectangles a filter may add, where it is approximate."""
    metric: Metric = "benefit/cost"
    """Which rectangles are cut first, where not all may be."""
    dynamic_threshold: bool = False
    """Whether what earlier filters left of their k goes to later ones."""
    rebuild_after: int | None = None
    """Filters that went after which everything is computed anew, when there is time; None for never."""

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ConfigError(f"subsumption k is {self.k}; give 0 or more")
        if self.metric not in get_args(Metric):
            raise ConfigError(f"subsumption metric is {self.metric!r}; use one of {', '.join(get_args(Metric))}")
        if self.rebuild_after is not None and self.rebuild_after < 1:
            raise ConfigError(f"subsumption rebuild_after is {self.rebuild_after}; give 1 or more, or leave it out")


@dataclass(frozen=True, slots=True)
class PruningOptions:
    """How neighbours' filters are pruned for matching."""

    dimension: Dimension | Literal["auto"] = "network"
    """What prunings spare; "auto" for what the broker has least left of, as it is measured."""
    share: float = 0.5
    """Which part of all possible prunings is done; with "auto", until something is measured."""
    memory_bytes: int = 4 << 30
    """With "auto": memory that counts as all there is."""
    link_bytes: int = 12_500_000
    """With "auto": bytes a second to neighbours that count as all there is."""
    cores: float = 1.0
    """With "auto": processor time a second that counts as all there is; a container may have less than a core."""
    measure_every: float = 10.0
    """With "auto": seconds between two measurements."""

    def __post_init__(self) -> None:
        if self.dimension not in ("auto", *DIMENSIONS):
            raise ConfigError(f"pruning dimension is {self.dimension!r}; use one of {', '.join(DIMENSIONS)}, or auto")
        if self.memory_bytes < 1 or self.link_bytes < 1 or not self.cores > 0 or not self.measure_every > 0:
            raise ConfigError(
                f"pruning has memory_bytes={self.memory_bytes}, link_bytes={self.link_bytes}, cores={self.cores} and "
                f"measure_every={self.measure_every}; give numbers above 0"
            )
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
