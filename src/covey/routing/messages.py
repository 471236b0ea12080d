"""Everything that goes into a broker and comes out of it, as frozen structs.

All are tagged and array-like, so that `msgspec.msgpack` writes them as they are: a client's frame is a
`ClientMessage` or a `ClientAnswer`, a link's frame a `PeerMessage`. What fields may be stands in `ranges.py`, and is
checked where a frame is decoded. What the driver tells the broker about its
surroundings (`PeerUp`, `ClientDown`, `Tick`, ...) never travels.

Filters travel as SQL text, events as a mapping of attributes. Times are seconds of the driver's clock, and only
durations (leases) travel, since clocks of two machines don't agree.

What an event travels in isn't tracked by Python's garbage collector (`gc=False`): it can't be part of a cycle, and
looking through thousands of events again and again would cost more than passing them on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import msgspec
from msgspec import Meta

from covey.filters.algebra import Filter
from covey.routing.ranges import (
    BROKERS,
    BrokerName,
    Bucket,
    Capabilities,
    Digest,
    Hops,
    Key,
    Name,
    Number,
    PublicationId,
    Request,
    Seconds,
    TableNumber,
    Trace,
)

if TYPE_CHECKING:
    from covey.history import Profile
    from covey.routing.config import (
        AdaptiveFiltering,
        BrokerConfig,
        MergingOptions,
        PruningOptions,
        Strategy,
        SubsumptionOptions,
    )
    from covey.routing.packed_events import PackedPublications


class Struct(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A value that can travel."""


# What clients say


class Subscribe(Struct, frozen=True):
    """Ask for events. The same id again replaces the filter and starts the lease anew."""

    request: Request
    """Chosen by the client; `Confirmed` and `Refused` name it."""
    id: Name
    """Chosen by the client, one for each of its subscriptions."""
    filter: str
    durable: bool = False
    """Survives the client's absence: matching events are queued for it. Others end with the client's session."""
    lease: Seconds | None = None
    """Seconds until it ends unless it is renewed; None for no end (if the broker's configuration allows it)."""


class Unsubscribe(Struct, frozen=True):
    """End a subscription. After `Confirmed`, nothing that it alone asked for is delivered."""

    request: Request
    id: Name


class Advertise(Struct, frozen=True):
    """Say what will be published. Where a broker routes by advertisements, publications must match one."""

    request: Request
    id: Name
    filter: str
    durable: bool = False
    lease: Seconds | None = None


class Unadvertise(Struct, frozen=True):
    """End an advertisement."""

    request: Request
    id: Name


class Publication(Struct, frozen=True, gc=False):
    """One event as its publisher gives it."""

    attributes: dict[str, Any]
    durable: bool = False
    number: Number = 0
    """Counts the publisher's durable events, ascending from 1: one that was sent before is confirmed and not published
    again. 0 for none."""
    id: PublicationId = ""
    """The publisher's own name for the event: one that was sent before under it is confirmed and not published again
    (`published_ids.py`). Empty for none."""


class Publish(Struct, frozen=True, gc=False):
    """Publish events, in order."""

    request: Request
    events: Sequence[Publication]
    """A list, or those that a broker hasn't decoded (`packed_events.py`)."""
    trace: Trace = ""
    """The publisher's `traceparent`, which goes with each of the events to whoever gets it; empty for none."""


class Acknowledge(Struct, frozen=True):
    """Deliveries up to this number needn't be delivered again."""

    number: Number


class Credit(Struct, frozen=True):
    """The broker may send this many more deliveries, of so many bytes more."""

    deliveries: Number
    bytes: Number = 0
    """The sum of `Deliver.bytes`; a client without the capability `bytes` says none."""


class Renew(Struct, frozen=True):
    """Start the leases of these subscriptions and advertisements anew; of all where none is named."""

    request: Request
    ids: list[Name] = []


ClientMessage: TypeAlias = (
    Subscribe | Unsubscribe | Advertise | Unadvertise | Publish | Acknowledge | Credit | Renew
)  # fmt: skip

# What operators ask for, in a session of their own. These never travel: the driver makes them (`loading.prepare`).


class LoadedSubscription(Struct, frozen=True):
    """One subscription of a load."""

    filter: str
    condition: Filter
    under: str = ""
    """The entry that neighbours hear in its place; empty for none."""


class Load(Struct, frozen=True):
    """Give a client these durable subscriptions, in the place of those that a load of the same name gave before."""

    request: int
    name: str
    client: str
    subscriptions: dict[str, LoadedSubscription]
    entries: dict[str, tuple[str, Filter]] = {}
    """What stands for subscriptions where neighbours are concerned."""
    allowed: str | None = None
    """What its subscriptions were found to be within; None where anything is allowed."""


class Unload(Struct, frozen=True):
    """End all that a load gave."""

    request: int
    name: str


class LoadProfile(Struct, frozen=True):
    """Judge by this profile from now on how likely filters are to match."""

    request: int
    name: str
    profile: Profile
    file: bytes
    """The same as a file has it."""


class AddLink(Struct, frozen=True):
    """There is a link to a broker from now on, or it has another address."""

    request: Number
    peer: str
    url: str = ""
    """Empty where the neighbour opens it."""


class RemoveLink(Struct, frozen=True):
    """There is no link to a broker any more."""

    request: Number
    peer: str


OperatorMessage: TypeAlias = Load | Unload | LoadProfile | AddLink | RemoveLink

# What clients hear


class Confirmed(Struct, frozen=True):
    """Done: committed here, and for subscriptions and advertisements known wherever it matters."""

    request: int


class Refused(Struct, frozen=True):
    """Not done, and why."""

    request: int
    reason: str


class Deliver(Struct, frozen=True, gc=False):
    """An event for a client, once however many of its subscriptions match."""

    number: int
    """Counts what must be acknowledged; 0 for an event that only subscriptions without durability asked for."""
    subscriptions: list[str]
    """The client's subscriptions that match."""
    attributes: dict[str, Any]
    publisher: str
    publisher_number: int
    durable: bool
    event: str
    """The event's id, the same wherever and however often it is delivered."""
    late: bool = False
    """It may come after events of the same publisher that were published later."""
    bytes: int = 0
    """What it takes of the credit in bytes, to be granted back with it."""
    trace: Trace = ""
    """The `traceparent` that it came with; empty for none."""


class Gap(Struct, frozen=True):
    """Deliveries that were dropped because the client was too slow, or away for too long."""

    deliveries: int
    unnumbered: int = 0
    """Those of them without a number."""


class Lost(Struct, frozen=True):
    """Events without durability that were lost between brokers, on a way that leads here: at most so many of them were
    for this client. Only for clients that know of it."""

    events: int


class Expired(Struct, frozen=True):
    """A subscription or an advertisement whose lease ended."""

    id: str


class Held(Struct, frozen=True):
    """Publications wait, and why; an empty reason where they don't any more. Only for clients that know of it."""

    reason: str


PROTOCOL = 2
"""The protocol that brokers and clients speak. 1 had neither a number nor capabilities; whoever doesn't say is 1."""

COUNTS_BYTES = "bytes"
"""A client grants credit in bytes as well as in deliveries."""
KNOWS_HOLDING = "held"
"""A client knows `Held`; a neighbour knows `StreamAck.held`."""
COUNTS_EVENTS = "taken"
"""A neighbour says what it has taken of events that aren't durable (`Taken`)."""
KNOWS_IDS = "ids"
"""A broker knows `Publication.id`."""
KNOWS_LOSSES = "lost"
"""A client knows `Lost`; a neighbour knows `Events.first`, and that an `Events` without any only tells of losses."""
CAPABILITIES = (COUNTS_BYTES, KNOWS_HOLDING, KNOWS_IDS, KNOWS_LOSSES)
"""Of clients."""
LINK_CAPABILITIES = (KNOWS_HOLDING, COUNTS_EVENTS, KNOWS_LOSSES)
"""Of brokers, towards each other."""


class Welcome(Struct, frozen=True):
    """The first answer of a session: what the broker has kept for this client."""

    broker: str
    subscriptions: list[str]
    advertisements: list[str]
    published: int
    """The number of the last durable publication that is committed."""
    credit: int
    """Deliveries that the broker sends before it waits for `Credit`."""
    version: int = 1
    """The broker's `PROTOCOL`."""
    capabilities: list[str] = []
    """What the broker knows of beyond protocol 1."""
    credit_bytes: int = 0
    """Bytes of deliveries after which it waits too; 0 where it counts deliveries alone."""
    meant: int = 0
    """Deliveries without a number that there were for this client in its session before, dropped ones included: what
    it didn't get of them is lost."""
    held: str = ""
    """Why publications wait; empty where they don't."""


ClientAnswer: TypeAlias = Confirmed | Refused | Deliver | Gap | Lost | Expired | Welcome | Held

# What brokers say to each other


class Envelope(Struct, frozen=True, gc=False):
    """An event on its way."""

    origin: BrokerName
    number: Number
    """With `origin`, the event's id."""
    publisher: Name
    publisher_number: Number
    durable: bool
    hops: Hops
    """Links that it may still cross."""
    attributes: dict[str, Any]
    recalled: bool = False
    """Sent again after tables had been apart: it may come after events that were published later."""
    variant: Name = ""
    """Tells it from another event that came under its number, in one broker (`seen_events.py`); empty while it
    travels."""
    trace: Trace = ""
    """The `traceparent` that its publisher gave, or that a broker on the way made of it; empty for none."""

    @property
    def key(self) -> str:
        """The event's id."""
        return f"{self.origin}/{self.number}{self.variant}"


class Entry(Struct, frozen=True):
    """One filter that a neighbour must know."""

    key: Key
    filter: str


class Hello(Struct, frozen=True):
    """Opens a session: what I hold from you, and how far I have your stream."""

    broker: BrokerName
    digests: Annotated[list[Annotated[list[tuple[Bucket, Digest]], Meta(max_length=256)]], Meta(max_length=256)]
    """For subscriptions and advertisements: the digests of buckets that aren't empty, as (bucket, digest)."""
    stream_epoch: Number
    stream_received: Number
    answer: bool
    """Whether I have had your Hello in this session."""
    version: Number = 1
    """The sender's `PROTOCOL`."""
    capabilities: Capabilities = []
    """What it knows of beyond protocol 1."""
    life: Number = 0
    """Another one whenever the sender was started."""
    events: Number = 0
    """How many events without durability there were for you in this life before this session: those of them that never
    came are lost."""


class Delta(Struct, frozen=True):
    """A numbered change of what the receiver must know; applied as a whole, then acknowledged."""

    table: TableNumber
    """A `Table`; whoever doesn't know it ignores the message."""
    number: Number
    """From 1 on in each session, for each table."""
    joined: bool
    """Whether the sender's spanning tree has this link; what it exports over others is nothing."""
    recalls: list[str]
    """Filters that the receiver may not have known in time, and so may have let events pass: it sends what it has kept
    and matches them, and recalls them further on."""
    buckets: Annotated[list[Bucket], Meta(max_length=256)]
    """Buckets whose entries go before the others come."""
    added: list[Entry]
    removed: list[Key]
    more: bool = False
    """Whether the next one goes with this one: a large change comes in parts. Entries of each count as
    they come; with the last one buckets and entries go, filters are recalled, and all is settled together."""


class DeltaAck(Struct, frozen=True):
    """Deltas of a table up to `received` are committed, those up to `settled` have been passed on and settled there."""

    table: TableNumber
    received: Number
    settled: Number


class Stream(Struct, frozen=True):
    """A part of the reliable stream of one direction of a link."""

    epoch: Number
    first: Number
    items: list[Envelope]


class StreamAck(Struct, frozen=True):
    """The stream is committed up to this number."""

    epoch: Number
    received: Number
    held: bool = False
    """Whether I take no more for the moment: what isn't acknowledged waits, and that is no failure."""


class Events(Struct, frozen=True):
    """Events that aren't durable, in order."""

    envelopes: list[Envelope]
    first: Number = 0
    """The number of the first: they are counted on each link, and what is missing before it was lost. 0 where the
    sender doesn't count."""
    hops: Hops = 0
    """Links that the news of what was lost may still cross."""


class Taken(Struct, frozen=True):
    """I have taken so many bytes of your `Events` in this session."""

    bytes: Number


class LinkState(Struct, frozen=True):
    """A broker's own account of its links."""

    origin: BrokerName
    number: Number
    links: Annotated[list[tuple[BrokerName, bool]], Meta(max_length=BROKERS)]
    """All neighbours that it is configured with, and which of them it reaches."""


class LinkStates(Struct, frozen=True):
    """Link states that the receiver may not know."""

    states: Annotated[list[LinkState], Meta(max_length=BROKERS)]


class Ping(Struct, frozen=True):
    """I am alive, this is the digest of the link states that I know, and these are my acknowledgements once more."""

    topology: Digest
    acks: Annotated[list[DeltaAck], Meta(max_length=256)] = []
    events: Number = 0
    """Bytes of `Events` that I have sent in this session, where not all are known to be taken: say so once more. What
    of them hasn't come is lost."""


class Filtering(Struct, frozen=True):
    """Filter what you send me (again): too much of it is of no use here."""


PeerMessage: TypeAlias = (
    Hello | Delta | DeltaAck | Stream | StreamAck | Events | Taken | LinkStates | Ping | Filtering
)  # fmt: skip

# What the driver tells a broker. A session is numbered by the driver, and whatever is sent for it names that number:
# between a turn and its commit, one session may end and another begin. Messages of another session than the present
# one are ignored by the broker, and must be dropped by the driver.


class Permissions(Struct, frozen=True):
    """What a principal may do, as filters; None for everything."""

    publish: str | None = None
    """Events that it may publish."""
    subscribe: str | None = None
    """Its subscriptions must be covered by this."""
    advertise: str | None = None
    """Its advertisements must be covered by this."""


class ClientUp(Struct, frozen=True):
    """A client opened a session; one that it had before is over."""

    client: str
    permissions: Permissions = Permissions()
    session: int = 0
    capabilities: tuple[str, ...] = ()
    """What the client says that it knows of beyond protocol 1."""
    principal: str = ""
    """Whose client it is: what quotas are counted under. Empty where nobody knows."""


class Permit(Struct, frozen=True):
    """What a client may do has changed, in the middle of its session."""

    client: str
    permissions: Permissions
    session: int = 0


class ClientDown(Struct, frozen=True):
    """A client's session ended."""

    client: str
    session: int = 0


class FromClient(Struct, frozen=True, gc=False):
    """A client's message."""

    client: str
    message: ClientMessage | OperatorMessage
    session: int = 0


class PublishRequest(Struct, frozen=True, gc=False):
    """One client's request among others that came together: whose it is, and which places its events have."""

    client: str
    request: int
    start: int
    end: int
    session: int = 0
    until: int = 0
    """Events up to here are checked with it, so that a request that comes in parts is refused before the first of them;
    0 for `end`."""
    more: bool = False
    """Whether the rest of the request comes later, and with it the answer."""
    trace: str = ""
    """Of all of its events; empty for none."""


class Publications(Struct, frozen=True):
    """What any clients publish, in order, as one input: the events in columns, each known by its place."""

    requests: list[PublishRequest]
    attributes: Sequence[dict[str, Any]]
    durable: list[bool]
    numbers: list[int]
    """As their publishers count them; 0 for none."""
    ids: dict[int, str] = {}
    """As their publishers call them, by place, of those that they call anything."""

    @classmethod
    def part_of(cls, input: FromClient, most: int, *, is_first: bool) -> Publications:
        """The first events of a publication that is too large to be taken at once, with all others where these are to
        be checked too."""
        whole = input.message
        assert isinstance(whole, Publish), f"{type(whole).__name__} is no publication"
        shown = whole.events if is_first else whole.events[:most]
        end = min(most, len(shown))
        request = PublishRequest(
            input.client, whole.request, 0, end, input.session, until=len(shown), more=end < len(whole.events),
            trace=whole.trace,
        )  # fmt: skip
        packed = _packed([shown])
        if packed is not None:
            events = packed[0].events
            return cls([request], events, events.durable, events.numbers)
        return cls(
            [request],
            [event.attributes for event in shown],
            [event.durable for event in shown],
            [event.number for event in shown],
            {place: event.id for place, event in enumerate(shown) if event.id},
        )

    @classmethod
    def of(cls, inputs: Iterable[FromClient]) -> Publications:
        """Publications as they came, one after the other."""
        inputs = list(inputs)
        packed = _packed([input.message.events for input in inputs if isinstance(input.message, Publish)])
        if packed is not None:
            return cls._of_packed(inputs, packed)
        requests: list[PublishRequest] = []
        attributes: list[dict[str, Any]] = []
        durable: list[bool] = []
        numbers: list[int] = []
        ids: dict[int, str] = {}
        for input in inputs:
            message = input.message
            assert isinstance(message, Publish), f"{type(message).__name__} is no publication"
            start = len(attributes)
            for event in message.events:
                if event.id:
                    ids[len(attributes)] = event.id
                attributes.append(event.attributes)
                durable.append(event.durable)
                numbers.append(event.number)
            end = len(attributes)
            requests.append(
                PublishRequest(input.client, message.request, start, end, input.session, trace=message.trace)
            )
        return cls(requests, attributes, durable, numbers, ids)

    @classmethod
    def _of_packed(cls, inputs: list[FromClient], packed: list[PackedPublications]) -> Publications:
        requests: list[PublishRequest] = []
        start = 0
        for input, some in zip(inputs, packed, strict=True):
            message = input.message
            assert isinstance(message, Publish), f"{type(message).__name__} is no publication"
            end = start + len(some)
            requests.append(
                PublishRequest(input.client, message.request, start, end, input.session, trace=message.trace)
            )
            start = end
        events = packed[0].joined(packed[1:])
        return cls(requests, events, events.durable, events.numbers)


def _packed(lists: list[Sequence[Publication]]) -> list[PackedPublications] | None:
    """Lists of events none of which is decoded; None where one is."""
    if not lists or any(isinstance(events, list) for events in lists):
        return None
    return cast("list[PackedPublications]", lists)


class Subscriptions(Struct, frozen=True):
    """What a client asks for in several messages, in order, as one input."""

    client: str
    messages: list[Subscribe]
    session: int = 0


class PeerUp(Struct, frozen=True):
    """A session with a neighbour is open; one before it is over."""

    peer: str
    session: int = 0


class PeerDown(Struct, frozen=True):
    """The session with a neighbour ended."""

    peer: str
    session: int = 0


class FromPeer(Struct, frozen=True):
    """A neighbour's message."""

    peer: str
    message: PeerMessage
    session: int = 0


class AddPeer(Struct, frozen=True):
    """There is a new link to a broker."""

    peer: str
    url: str = ""
    """Its address, for the driver; empty where the neighbour opens the link."""


class RemovePeer(Struct, frozen=True):
    """A link is gone for good: what was known from it and kept for it goes too."""

    peer: str


class Tick(Struct, frozen=True):
    """Time has passed."""


class Work(Struct, frozen=True):
    """There is time for what requests put off: so many steps of it (`covey.relations.steps`)."""

    steps: int


class Pressure(Struct, frozen=True):
    """Why publishers are held back from now on, for people; empty for no reason any more."""

    reason: str = ""


class Measured(Struct, frozen=True):
    """What a broker uses of three resources since it was last measured, each as a share of what there is; and the bytes
    a second that go to neighbours."""

    memory: float
    bandwidth: float
    processing: float
    bytes_a_second: float = 0.0


class Reroute(Struct, frozen=True):
    """How the broker routes from now on, beside what holds as long as it runs: its tables follow when there is time.
    Whether it floods can't change, since its neighbours wouldn't know."""

    strategy: Strategy
    merging: MergingOptions
    subsumption: SubsumptionOptions | None
    pruning: PruningOptions | None
    adaptive: AdaptiveFiltering | None

    @classmethod
    def to(cls, config: BrokerConfig) -> Reroute:
        """To what a configuration says."""
        return cls(config.strategy, config.merging, config.subsumption, config.pruning, config.adaptive)


Input: TypeAlias = (
    ClientUp | Permit | ClientDown | FromClient | Publications | Subscriptions
    | PeerUp | PeerDown | FromPeer | AddPeer | RemovePeer | Tick | Work | Pressure
    | Measured | Reroute
)  # fmt: skip

# What a broker tells the driver


class ToClient(Struct, frozen=True, gc=False):
    """Send this to a client, in this session or not at all."""

    client: str
    message: ClientAnswer
    session: int = 0


class Deliveries(Struct, frozen=True, gc=False):
    """Send these events to a client, in order, in this session or not at all."""

    client: str
    messages: Sequence[Deliver]
    """A list, or what is packed already (`packed_events.py`)."""
    session: int = 0


class ToPeer(Struct, frozen=True):
    """Send this to a neighbour, in this session or not at all."""

    peer: str
    message: PeerMessage
    session: int = 0


class CloseClient(Struct, frozen=True):
    """End a client's session; the broker takes it for ended."""

    client: str
    reason: str
    session: int = 0


class ClosePeer(Struct, frozen=True):
    """End the session with a neighbour and try a new one; the broker takes it for ended."""

    peer: str
    reason: str
    session: int = 0


Output: TypeAlias = ToClient | Deliveries | ToPeer | CloseClient | ClosePeer
