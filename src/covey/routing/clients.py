"""Clients: sessions, subscriptions and advertisements with their leases, permissions, queues.

A client with durable subscriptions is remembered without a session. What matches these is numbered and queued, row by
row in the journal, until the client acknowledges it; after a reconnection everything that isn't acknowledged comes
again, with the same numbers, in order. Other deliveries wait in memory for the client's credit. Where a client takes
too little, the oldest go and it hears of a gap; after too many gaps its session is closed. A delivery is only sent
while one of the subscriptions that it was meant for is still there and still matches, so nothing comes after a
confirmed unsubscription.

Permissions are filters. A principal may subscribe to what its filter covers, and may publish what its filter matches;
where covering can't be decided the answer is no.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from typing import Any

import msgspec

from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.routing.config import BrokerConfig
from covey.routing.journal import Turn
from covey.routing.kept_events import KeptEvents
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    ClientAnswer,
    CloseClient,
    Deliver,
    Envelope,
    Expired,
    Gap,
    Permissions,
    ToClient,
    Welcome,
)

SPACES = ("subscription", "advertisement")
"""The journal's spaces for the two kinds of claims, by table."""


class ClaimRow(msgspec.Struct, frozen=True, array_like=True):
    """A durable subscription or advertisement."""

    client: str
    id: str
    filter: str
    lease: float | None
    expires_at: float | None
    load: str = ""
    under: str = ""


class ClientRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a client beside its claims and its queue."""

    next_number: int
    published: int


class QueueRow(msgspec.Struct, frozen=True, array_like=True):
    """One delivery that isn't acknowledged."""

    client: str
    number: int
    event: str
    subscriptions: list[str]


@dataclass(frozen=True, slots=True)
class Claim:
    """A subscription or an advertisement."""

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


@dataclass(slots=True)
class Client:
    """One client."""

    id: str
    up: bool = False
    connection: int = 0
    """The driver's number for the session."""
    session: int = 0
    permissions: Permissions = field(default_factory=Permissions)
    claims: tuple[dict[str, Claim], dict[str, Claim]] = field(default_factory=lambda: ({}, {}))
    queue: deque[QueueRow] = field(default_factory=deque)
    unsent: deque[QueueRow] = field(default_factory=deque)
    next_number: int = 1
    sent: int = 0
    narrowed: int = 1
    """Deliveries below this number were queued before some subscription ended or changed."""
    published: int = 0
    buffer: deque[tuple[int, list[str], Envelope]] = field(default_factory=deque)
    """What only subscriptions without durability asked for, each with the number of the last delivery before it."""
    credit: int = 0
    gap: int = 0
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
            claim.durable for claims in self.claims for claim in claims.values()
        )


class Clients:
    """All clients of one broker."""

    def __init__(self, config: BrokerConfig, known: KnownFilters, events: KeptEvents, turn: Turn) -> None:
        self._config = config
        self._known = known
        self._events = events
        self._turn = turn
        self._clients: dict[str, Client] = {}
        self._pumped: dict[str, Client] = {}
        self._unwritten: dict[str, Client] = {}
        self._ends: list[tuple[float, str, int, str]] = []
        self.delivered = 0
        """Deliveries sent to all clients since the broker was started."""

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients.values()))

    def get(self, id: str) -> Client | None:
        """A client that is connected or remembered."""
        return self._clients.get(id)

    # Sessions

    def connect(self, id: str, permissions: Permissions, connection: int) -> Client:
        """A session opened."""
        client = self._clients.setdefault(id, Client(id))
        client.up, client.permissions, client.connection = True, permissions, connection
        client.session += 1
        client.unsent = deque(client.queue)
        client.sent = 0
        client.credit = self._config.limits.credit
        client.dropped = 0
        client.buffer.clear()
        self.send(
            client,
            Welcome(
                self._config.broker,
                sorted(client.claims[SUBSCRIPTIONS]),
                sorted(client.claims[ADVERTISEMENTS]),
                client.published,
                client.credit,
            ),
        )
        self._pumped[id] = client
        return client

    def disconnect(self, client: Client) -> list[tuple[int, Claim]]:
        """A session ended; gives the claims that end with it."""
        client.up = False
        client.session += 1
        client.buffer.clear()
        client.unsent.clear()
        return [
            (table, claim)
            for table, claims in enumerate(client.claims)
            for claim in list(claims.values())
            if not claim.durable
        ]

    def tidy(self, client: Client) -> None:
        """Forget a client of whom nothing is left."""
        if not client.up and not client.is_remembered:
            self._clients.pop(client.id, None)

    def send(self, client: Client, message: ClientAnswer) -> None:
        """Send a message to a client, after the commit."""
        self._turn.out.sends.append(ToClient(client.id, message, client.connection))

    # Claims

    def refusal(self, client: Client, table: int, text: str, id: str) -> str | None:
        """Why a claim can't be made; None where it can."""
        limit = self._config.limits.subscriptions
        if id not in client.claims[table] and len(client.claims[table]) >= limit:
            return f"there are {limit:,} {SPACES[table]}s already; end some of them first"
        try:
            condition = self._known.parse(text)
        except CoveyError as error:
            return str(error)
        allowed = client.permissions.subscribe if table == SUBSCRIPTIONS else client.permissions.advertise
        if allowed is not None and not self._allows(allowed, condition):
            return f"the {SPACES[table]} {id!r} asks for more than is allowed, which is {allowed}; narrow it"
        return None

    def _allows(self, allowed: str, condition: Filter) -> bool:
        try:
            return self._known.covers(self._known.parse(allowed), condition)
        except CoveyError:
            return False

    def may_publish(self, client: Client, attributes: Mapping[str, Any]) -> bool:
        """Whether the client's permissions have this event."""
        if client.permissions.publish is None:
            return True
        try:
            return self._known.matches(self._known.parse(client.permissions.publish), attributes)
        except CoveyError:
            return False

    def claim(
        self, client: Client, table: int, id: str, text: str, *, durable: bool, lease: float | None
    ) -> tuple[Claim | None, Claim]:
        """Make a claim; gives the one that it replaces, and itself."""
        longest = self._config.timing.longest_lease
        if longest is not None:
            lease = longest if lease is None else min(lease, longest)
        old = client.claims[table].get(id)
        new = Claim(id, text, self._known.parse(text), durable, lease, self._end(lease))
        client.claims[table][id] = new
        if new.expires_at is not None:
            heappush(self._ends, (new.expires_at, client.id, table, id))
        if old is not None and table == SUBSCRIPTIONS and old.text != text:
            self._narrow(client)
        if durable:
            self._write_claim(client, table, new)
        elif old is not None and old.durable:
            self._turn.out.drop(SPACES[table], row_key(client.id, id))
        return old, new

    def end(self, client: Client, table: int, id: str) -> Claim | None:
        """End a claim."""
        claim = client.claims[table].pop(id, None)
        if claim is None:
            return None
        if claim.durable:
            self._turn.out.drop(SPACES[table], row_key(client.id, id))
        if table == SUBSCRIPTIONS:
            self._narrow(client)
        return claim

    def change_many(self, client: Client, ended: list[str], made: list[Claim]) -> None:
        """End and make durable subscriptions, as one change."""
        claims = client.claims[SUBSCRIPTIONS]
        self._clients.setdefault(client.id, client)
        narrowed = bool(ended) or any(claim.id in claims for claim in made)
        for id in ended:
            del claims[id]
            self._turn.out.drop(SPACES[SUBSCRIPTIONS], row_key(client.id, id))
        for claim in made:
            claims[claim.id] = claim
            self._write_claim(client, SUBSCRIPTIONS, claim)
        if narrowed:
            self._narrow(client)

    def _narrow(self, client: Client) -> None:
        """A subscription ended or changed: what waits is looked at again before it is sent."""
        client.narrowed = client.next_number
        client.buffer = deque(
            (after, wanted, envelope)
            for after, subscriptions, envelope in client.buffer
            if (wanted := self._still_wanted(client, subscriptions, envelope))
        )

    def _still_wanted(self, client: Client, subscriptions: list[str], envelope: Envelope) -> list[str]:
        claims = client.claims[SUBSCRIPTIONS]
        return [
            id
            for id in subscriptions
            if id in claims and self._known.matches(claims[id].condition, envelope.attributes)
        ]

    def renew(self, client: Client, ids: list[str]) -> str | None:
        """Start leases anew; why not, where that can't be."""
        unknown = [id for id in ids if not any(id in claims for claims in client.claims)]
        if unknown:
            return f"there is no subscription or advertisement {unknown[0]!r}; it may have expired"
        for table, claims in enumerate(client.claims):
            for claim in list(claims.values()):
                if (not ids or claim.id in ids) and claim.lease is not None:
                    claims[claim.id] = renewed = replace(claim, expires_at=self._end(claim.lease))
                    assert renewed.expires_at is not None
                    heappush(self._ends, (renewed.expires_at, client.id, table, claim.id))
                    if claim.durable:
                        self._write_claim(client, table, renewed)
        return None

    def expired(self) -> list[tuple[Client, int, Claim]]:
        """Claims whose lease has ended."""
        found: list[tuple[Client, int, Claim]] = []
        while self._ends and self._ends[0][0] <= self._turn.now:
            _, name, table, id = heappop(self._ends)
            client = self._clients.get(name)
            claim = None if client is None else client.claims[table].get(id)
            end = None if claim is None else claim.expires_at
            if client is not None and claim is not None and end is not None and end <= self._turn.now:
                found.append((client, table, claim))
        return found

    def next_end(self) -> float:
        """When the next lease may end."""
        return self._ends[0][0] if self._ends else inf

    def tell_expired(self, client: Client, claim: Claim) -> None:
        """Tell a client that a lease ended, if it is there."""
        if client.up:
            self.send(client, Expired(claim.id))

    def _end(self, lease: float | None) -> float | None:
        return None if lease is None else self._turn.now + lease

    def _write_claim(self, client: Client, table: int, claim: Claim) -> None:
        row = ClaimRow(
            client.id, claim.id, claim.text, claim.lease, claim.expires_at, claim.load, claim.under
        )  # fmt: skip
        self._turn.out.put(SPACES[table], row_key(client.id, claim.id), row)

    # Deliveries

    def deliver(self, client: Client, subscriptions: list[str], envelope: Envelope) -> None:
        """An event for a client."""
        self._pumped[client.id] = client
        claims = client.claims[SUBSCRIPTIONS]
        for id in subscriptions:
            if claims[id].durable:
                self._enqueue(client, subscriptions, envelope)
                return
        if client.up:
            client.buffer.append((client.next_number - 1, subscriptions, envelope))
            if len(client.buffer) > self._config.limits.buffer + max(0, client.credit):
                client.buffer.popleft()
                self._count_gap(client)

    def _enqueue(self, client: Client, subscriptions: list[str], envelope: Envelope) -> None:
        row = QueueRow(client.id, client.next_number, envelope.key, subscriptions)
        client.next_number += 1
        client.queue.append(row)
        if client.up:
            client.unsent.append(row)
        self._events.refer(envelope)
        self._turn.out.put("queue", queue_key(row), row)
        self._unwritten[client.id] = client
        if len(client.queue) > self._config.limits.queue:
            self._count_gap(client)
            self._unqueue(client)

    def _unqueue(self, client: Client) -> None:
        row = client.queue.popleft()
        if client.unsent and client.unsent[0] is row:
            client.unsent.popleft()
        self._turn.out.drop("queue", queue_key(row))
        self._events.release(row.event)

    def _count_gap(self, client: Client) -> None:
        client.gap += 1
        client.dropped += 1

    def acknowledge(self, client: Client, number: int) -> None:
        """The client has deliveries up to a number."""
        while client.queue and client.queue[0].number <= min(number, client.sent):
            self._unqueue(client)

    def grant(self, client: Client, deliveries: int) -> None:
        """The client takes more."""
        client.credit += max(0, deliveries)
        self._pumped[client.id] = client

    def published(self, client: Client, number: int) -> None:
        """A durable publication is committed with this turn."""
        client.published = number
        self._unwritten[client.id] = client

    def pump(self) -> list[Client]:
        """Send what may be sent; gives the clients that were too slow for too long."""
        closed: list[Client] = []
        for client in self._pumped.values():
            if not client.up:
                continue
            if client.gap:
                self.send(client, Gap(client.gap))
                client.gap = 0
            if client.dropped > self._config.limits.gaps:
                self._turn.out.sends.append(
                    CloseClient(client.id, "too slow: too many deliveries had to be dropped", client.connection)
                )
                closed.append(client)
                continue
            self._pump_one(client)
        self._pumped.clear()
        return closed

    def write(self) -> None:
        """Journal what has changed of clients, at the end of a turn."""
        for client in self._unwritten.values():
            self._turn.out.put("client", client.id, ClientRow(client.next_number, client.published))
        self._unwritten.clear()

    def _pump_one(self, client: Client) -> None:
        """Send to one client what its credit allows, in the order in which it came."""
        unsent, buffer, credit = client.unsent, client.buffer, client.credit
        deliveries: list[tuple[int, list[str], Envelope]] = []
        while len(deliveries) < credit and (unsent or buffer):
            if buffer and (not unsent or unsent[0].number > buffer[0][0]):
                _, wanted, envelope = buffer.popleft()
                deliveries.append((0, wanted, envelope))
                continue
            row = unsent.popleft()
            client.sent = row.number
            envelope = self._events[row.event]
            wanted = row.subscriptions
            if row.number < client.narrowed:
                wanted = self._still_wanted(client, wanted, envelope)
            if wanted:
                deliveries.append((row.number, wanted, envelope))
            elif client.queue[0] is row:
                self._unqueue(client)
        self._send_events(client, deliveries)

    def _send_events(self, client: Client, deliveries: list[tuple[int, list[str], Envelope]]) -> None:
        client.credit -= len(deliveries)
        client.delivered += len(deliveries)
        self.delivered += len(deliveries)
        name, session, send = client.id, client.connection, self._turn.out.sends.append
        for number, wanted, one in deliveries:
            send(
                ToClient(
                    name,
                    Deliver(
                        number, wanted, one.attributes, one.publisher, one.publisher_number, one.durable, one.key,
                        one.recalled,
                    ),
                    session,
                )
            )  # fmt: skip

    # Restoring

    def restore_client(self, id: str, row: ClientRow) -> None:
        """Take a client back from its row."""
        client = self._clients.setdefault(id, Client(id))
        client.next_number, client.published = row.next_number, row.published

    def restore_claim(self, table: int, row: ClaimRow) -> tuple[Client, Claim]:
        """Take a claim back from its row."""
        client = self._clients.setdefault(row.client, Client(row.client))
        condition = self._known.parse(row.filter)
        claim = Claim(row.id, row.filter, condition, True, row.lease, row.expires_at, row.load, row.under)
        client.claims[table][row.id] = claim
        if claim.expires_at is not None:
            heappush(self._ends, (claim.expires_at, client.id, table, claim.id))
        return client, claim

    def restore_queue(self, rows: list[QueueRow]) -> None:
        """Take deliveries back from their rows."""
        for row in sorted(rows, key=lambda row: row.number):
            client = self._clients.setdefault(row.client, Client(row.client))
            client.queue.append(row)
            client.narrowed = client.next_number
            self._events.refer_again(row.event)


def row_key(client: str, id: str) -> str:
    """A journal key of a client's own, whatever the names."""
    return f"{len(client)}:{client}{id}"


def queue_key(row: QueueRow) -> str:
    """The journal key of a delivery."""
    return row_key(row.client, f"{row.number:012d}")
