"""One client: its session, what it claims, and what waits for it; and the rows that survive of these."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import msgspec

from covey.filters.algebra import Filter
from covey.routing.by_table import ByTable
from covey.routing.known_filters import digest
from covey.routing.messages import ClientAnswer, Envelope, Permissions, ToClient
from covey.routing.undo import Remembered, RememberedDict

SPACES = ByTable("subscription", "advertisement")
"""The journal's spaces for the two kinds of claims; also what they are called."""


class ClaimRow(msgspec.Struct, frozen=True, array_like=True):
    """A durable subscription or advertisement."""

    client: str
    id: str
    filter: str
    lease: float | None
    expires_at: float | None
    load: str = ""
    under: str = ""
    within: str | None = None
    principal: str = ""


class ClientRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a client beside its claims and its queue."""

    next_number: int
    published: int
    published_at: float = 0.0
    freed: int = 0
    """Deliveries up to this number needn't come again, whatever rows say."""


class QueueRow(msgspec.Struct, frozen=True, array_like=True):
    """One delivery that isn't acknowledged. Journals of before have a row for each."""

    client: str
    number: int
    event: str
    subscriptions: list[str]


class RunRow(msgspec.Struct, frozen=True, array_like=True):
    """Deliveries that a client's queue got in one turn, by number; the row goes with the last of them."""

    client: str
    deliveries: list[tuple[int, str, list[str]]]
    """Number, event and subscriptions of each."""


@dataclass(slots=True)
class Claim:
    """A subscription or an advertisement. Another one takes its place where something but the hits changes."""

    id: str
    text: str
    condition: Filter
    durable: bool
    lease: float | None = None
    expires_at: float | None = None
    load: str = ""
    """The load that brought it; empty where the client made it itself."""
    under: str = ""
    """The load's entry that neighbours hear in its place; empty for none."""
    within: str | None = None
    """The permission that was found to cover it when it was made; None for everything."""
    hits: int = field(default=0, compare=False)
    """Events that it matched since the broker was started, or since it got this filter. A figure and no state: what a
    turn that is taken back has counted stays counted."""

    @property
    def outlives_session(self) -> bool:
        """Whether it is still there when its client is gone; without durability only until the broker is, too."""
        return self.durable or self.lease is not None

    def row(self, client: Client) -> ClaimRow:
        """What survives of it."""
        return ClaimRow(
            client.id, self.id, self.text, self.lease, self.expires_at, self.load, self.under, self.within,
            client.principal,
        )  # fmt: skip


def _no_claims() -> ByTable[dict[str, Claim]]:
    return ByTable(RememberedDict(), RememberedDict())


@dataclass(slots=True)
class Totals(Remembered):
    """What one principal has at a broker, over all of its clients (`principals.py`)."""

    clients: dict[str, Client] = field(default_factory=dict)
    claims: list[int] = field(default_factory=lambda: [0, 0])
    """Their subscriptions and advertisements."""
    queue_bytes: int = 0
    """What waits for them in the journal."""
    filter_bytes: int = 0
    """The texts of their subscriptions and advertisements."""


@dataclass(slots=True)
class Client(Remembered):
    """One client."""

    id: str
    up: bool = False
    connection: int = 0
    """The driver's number for the session."""
    session: int = 0
    principal: str = ""
    """Whose it is, by the last session."""
    totals: Totals = field(default_factory=Totals)
    """What its principal has; shared by all of the principal's clients."""
    counted: list[int] = field(default_factory=lambda: [0, 0])
    """Its own subscriptions and advertisements."""
    filter_bytes: int = 0
    """The texts of these."""
    permissions: Permissions = field(default_factory=Permissions)
    watched: bool = False
    """Some subscription was made under another permission than the present one: each delivery is checked by itself."""
    claims: ByTable[dict[str, Claim]] = field(default_factory=_no_claims)
    durables: int = 0
    """How many of its subscriptions are durable."""
    queue: deque[QueueRow] = field(default_factory=deque)
    unsent: deque[QueueRow] = field(default_factory=deque)
    runs: deque[tuple[int, int]] = field(default_factory=deque)
    """The first and the last number of each row that the queue has in the journal."""
    freed: int = 0
    """The number of the last delivery that left the queue at its head."""
    next_number: int = 1
    sent: int = 0
    narrowed: int = 1
    """Deliveries below this number were queued before some subscription ended or changed."""
    published: int = 0
    """The number of the last durable event that it published."""
    published_at: float = 0.0
    is_written: bool = False
    """Whether the journal has a row of it."""
    queue_bytes: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Deliveries in the queue by the subscriptions that they are for."""
    loose: int = 0
    """Places in the queue for subscriptions that have ended, since it was last looked through."""
    buffer: deque[tuple[int, list[str], Envelope, int]] = field(default_factory=deque)
    """What only subscriptions without durability asked for, each with the number of the last delivery before it, and
    its size."""
    buffer_bytes: int = 0
    credit: int = 0
    credit_bytes: int = 0
    capabilities: frozenset[str] = frozenset()
    flying: deque[int] = field(default_factory=deque)
    """Sizes of deliveries sent and not granted back, in order; of a client that doesn't count bytes itself."""
    meant: int = 0
    """Deliveries without a number that there were in this session and after it, sent or dropped."""
    gap: int = 0
    """Deliveries dropped that the client hasn't heard of."""
    gap_unnumbered: int = 0
    """Those of them without a number."""
    dropped: int = 0
    delivered: int = 0
    """Deliveries sent since the broker was started."""

    @property
    def hop(self) -> str:
        """The client's name in the routing table."""
        return f"c:{self.id}"

    @property
    def is_remembered(self) -> bool:
        """Whether something of the client outlives its session."""
        return bool(self.queue or self.published) or any(
            claim.outlives_session for claims in self.claims for claim in claims.values()
        )

    def answer(self, message: ClientAnswer) -> ToClient:
        """A message for the client, in the present session."""
        return ToClient(self.id, message, self.connection)


def row_key(client: str, id: str) -> str:
    """A journal key of a client's own, whatever the names."""
    return f"{len(client)}:{client}{id}"


def queue_key(client: str, number: int) -> str:
    """The journal key of a delivery, and of a run by its first one."""
    return row_key(client, f"{number:012d}")


def entry_key(broker: str, client: str, id: str, text: str) -> str:
    """The key of a client's entry, one in the whole network; another filter is another entry."""
    return f"{broker}/{digest(f'{len(client)}:{client}{id}')}/{digest(text)}"
