"""Everything that goes into a broker and comes out of it, as frozen structs.

All are tagged and array-like, so that `msgspec.msgpack` writes them as they are: a client's frame is a
`ClientMessage` or a `ClientAnswer`, a link's frame a `PeerMessage`. What the driver tells the broker about its
surroundings (`PeerUp`, `ClientDown`, `Tick`, ...) never travels.

Filters travel as SQL text, events as a mapping of attributes. Times are seconds of the driver's clock, and only
durations (leases) travel, since clocks of two machines don't agree.

What an event travels in isn't tracked by Python's garbage collector (`gc=False`): it can't be part of a cycle, and
looking through thousands of events again and again would cost more than passing them on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from covey.filters.algebra import Filter

if TYPE_CHECKING:
    from covey.history import Profile


class Struct(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A value that can travel."""


# What clients say


class Subscribe(Struct, frozen=True):
    """Ask for events. The same id again replaces the filter and starts the lease anew."""

    request: int
    """Chosen by the client; `Confirmed` and `Refused` name it."""
    id: str
    """Chosen by the client, one for each of its subscriptions."""
    filter: str
    durable: bool = False
    """Survives the client's absence: matching events are queued for it. Others end with the client's session."""
    lease: float | None = None
    """Seconds until it ends unless it is renewed; None for no end (if the broker's configuration allows it)."""


class Unsubscribe(Struct, frozen=True):
    """End a subscription. After `Confirmed`, nothing that it alone asked for is delivered."""

    request: int
    id: str


class Advertise(Struct, frozen=True):
    """Say what will be published. Where a broker routes by advertisements, publications must match one."""

    request: int
    id: str
    filter: str
    durable: bool = False
    lease: float | None = None


class Unadvertise(Struct, frozen=True):
    """End an advertisement."""

    request: int
    id: str


class Publication(Struct, frozen=True, gc=False):
    """One event as its publisher gives it."""

    attributes: dict[str, Any]
    durable: bool = False
    number: int = 0
    """Counts the publisher's durable events, ascending from 1: one that was sent before is confirmed and not published
    again. 0 for none."""


class Publish(Struct, frozen=True, gc=False):
    """Publish events, in order."""

    request: int
    events: list[Publication]


class Acknowledge(Struct, frozen=True):
    """Deliveries up to this number needn't be delivered again."""

    number: int


class Credit(Struct, frozen=True):
    """The broker may send this many more deliveries."""

    deliveries: int


class Renew(Struct, frozen=True):
    """Start the leases of these subscriptions and advertisements anew; of all where none is named."""

    request: int
    ids: list[str] = []


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


OperatorMessage: TypeAlias = Load | Unload | LoadProfile

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


class Gap(Struct, frozen=True):
    """Deliveries that were dropped because the client was too slow, or away for too long."""

    deliveries: int


class Expired(Struct, frozen=True):
    """A subscription or an advertisement whose lease ended."""

    id: str


class Welcome(Struct, frozen=True):
    """The first answer of a session: what the broker has kept for this client."""

    broker: str
    subscriptions: list[str]
    advertisements: list[str]
    published: int
    """The number of the last durable publication that is committed."""
    credit: int
    """Deliveries that the broker sends before it waits for `Credit`."""


ClientAnswer: TypeAlias = Confirmed | Refused | Deliver | Gap | Expired | Welcome

# What brokers say to each other


class Envelope(Struct, frozen=True, gc=False):
    """An event on its way."""

    origin: str
    number: int
    """With `origin`, the event's id."""
    publisher: str
    publisher_number: int
    durable: bool
    hops: int
    """Links that it may still cross."""
    attributes: dict[str, Any]
    recalled: bool = False
    """Sent again after tables had been apart: it may come after events that were published later."""

    @property
    def key(self) -> str:
        """The event's id."""
        return f"{self.origin}/{self.number}"


class Entry(Struct, frozen=True):
    """One filter that a neighbour must know."""

    key: str
    filter: str


SUBSCRIPTIONS = 0
ADVERTISEMENTS = 1


class Hello(Struct, frozen=True):
    """Opens a session: what I hold from you, and how far I have your stream."""

    broker: str
    digests: list[list[tuple[int, int]]]
    """For subscriptions and advertisements: the digests of buckets that aren't empty, as (bucket, digest)."""
    stream_epoch: int
    stream_received: int
    answer: bool
    """Whether I have had your Hello in this session."""


class Delta(Struct, frozen=True):
    """A numbered change of what the receiver must know; applied as a whole, then acknowledged."""

    table: int
    number: int
    """From 1 on in each session, for each table."""
    joined: bool
    """Whether the sender's spanning tree has this link; what it exports over others is nothing."""
    recalls: list[str]
    """Filters that the receiver may not have known in time, and so may have let events pass: it sends what it has kept
    and matches them, and recalls them further on."""
    buckets: list[int]
    """Buckets whose entries go before the others come."""
    added: list[Entry]
    removed: list[str]
    more: bool = False
    """Whether the next one goes with this one: a large change comes in parts, and is applied with the last."""


class DeltaAck(Struct, frozen=True):
    """Deltas of a table up to `received` are committed, those up to `settled` have been passed on and settled there."""

    table: int
    received: int
    settled: int


class Stream(Struct, frozen=True):
    """A part of the reliable stream of one direction of a link."""

    epoch: int
    first: int
    items: list[Envelope]


class StreamAck(Struct, frozen=True):
    """The stream is committed up to this number."""

    epoch: int
    received: int


class Events(Struct, frozen=True):
    """Events that aren't durable, in order."""

    envelopes: list[Envelope]


class LinkState(Struct, frozen=True):
    """A broker's own account of its links."""

    origin: str
    number: int
    links: list[tuple[str, bool]]
    """All neighbours that it is configured with, and which of them it reaches."""


class LinkStates(Struct, frozen=True):
    """Link states that the receiver may not know."""

    states: list[LinkState]


class Ping(Struct, frozen=True):
    """I am alive, this is the digest of the link states that I know, and these are my acknowledgements once more."""

    topology: int
    acks: list[DeltaAck] = []


class Filtering(Struct, frozen=True):
    """Filter what you send me (again): too much of it is of no use here."""


PeerMessage: TypeAlias = (
    Hello | Delta | DeltaAck | Stream | StreamAck | Events | LinkStates | Ping | Filtering
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


class ClientDown(Struct, frozen=True):
    """A client's session ended."""

    client: str
    session: int = 0


class FromClient(Struct, frozen=True, gc=False):
    """A client's message."""

    client: str
    message: ClientMessage | OperatorMessage
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


class RemovePeer(Struct, frozen=True):
    """A link is gone for good: what was known from it and kept for it goes too."""

    peer: str


class Tick(Struct, frozen=True):
    """Time has passed."""


Input: TypeAlias = (
    ClientUp | ClientDown | FromClient | PeerUp | PeerDown | FromPeer | AddPeer | RemovePeer | Tick
)  # fmt: skip

# What a broker tells the driver


class ToClient(Struct, frozen=True, gc=False):
    """Send this to a client, in this session or not at all."""

    client: str
    message: ClientAnswer
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


Output: TypeAlias = ToClient | ToPeer | CloseClient | ClosePeer
