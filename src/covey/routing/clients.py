"""Clients: sessions, subscriptions and advertisements with their leases, permissions.

A client with durable subscriptions is remembered without a session, and what matches these is queued for it
(`queues.py`). Permissions are filters. A principal may subscribe to what its filter covers, and may publish what its
filter matches; where covering can't be decided the answer is no.

A permission can change while subscriptions stand: a token is another one at the next connection, a file is read again.
Each subscription says which permission it was found to be within. Where that is the present one nothing more is to be
checked; otherwise each delivery is, by itself, so that what is forbidden now isn't delivered, whoever asked for it and
when, and what is allowed goes on. An advertisement beyond the permission ends.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.routing.by_table import Table
from covey.routing.client import SPACES, Claim, ClaimRow, Client, ClientRow, QueueRow, RunRow, row_key
from covey.routing.context import Context
from covey.routing.kept_events import KeptEvents
from covey.routing.messages import CAPABILITIES, PROTOCOL, ClientAnswer, Expired, Permissions, Welcome
from covey.routing.principals import Principals
from covey.routing.queues import Queues
from covey.routing.undo import Remembered, note

ENDS = 1_000
"""Ends of leases from which on those that don't count any more are looked for."""


class Clients(Remembered):
    """All clients of one broker.

    Owns the clients with their sessions, claims and leases, and the queues. Touches nothing else: that tables and
    exports follow a claim is the business of whoever asks for it.
    """

    def __init__(self, context: Context, events: KeptEvents) -> None:
        self.queues = Queues(context, events)
        self._context = context
        self._clients: dict[str, Client] = {}
        self._principals = Principals(context)
        self._ends: list[tuple[float, str, Table, str]] = []
        self._tidy_ends_at = ENDS
        self._look_at = 0.0
        """When publishers that are away are looked at again."""
        self._meant: OrderedDict[str, int] = OrderedDict()
        """Deliveries without a number that clients had in sessions that are over, for those who come again."""

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients.values()))

    def get(self, id: str) -> Client | None:
        """A client that is connected or remembered."""
        return self._clients.get(id)

    def present(self, id: str, connection: int) -> Client | None:
        """A client in this session; None where the session is over."""
        client = self._clients.get(id)
        return client if client is not None and client.up and client.connection == connection else None

    @property
    def delivered(self) -> int:
        """Deliveries sent to all clients since the broker was started."""
        return self.queues.delivered

    # Sessions

    def connect(
        self,
        id: str,
        permissions: Permissions,
        connection: int,
        capabilities: Iterable[str] = (),
        principal: str = "",
    ) -> Client:
        """A session opened."""
        client = self._enter(id, principal)
        client.up, client.connection = True, connection
        client.session += 1
        self.permit(client, permissions)
        # Of who stayed known, also what there was for its leases while it was away.
        meant = max(self._meant.pop(id, 0), client.meant)
        self.queues.open(client, frozenset(capabilities))
        self.send(
            client,
            Welcome(
                self._context.config.broker,
                sorted(client.claims.subscriptions),
                sorted(client.claims.advertisements),
                client.published,
                client.credit,
                PROTOCOL,
                list(CAPABILITIES),
                client.credit_bytes,
                meant,
                self._context.pressure,
            ),
        )
        return client

    def permit(self, client: Client, permissions: Permissions) -> None:
        """What a client may do from now on."""
        client.permissions = permissions
        client.watched = any(self._is_beyond(client, claim) for claim in client.claims.subscriptions.values())

    def _is_beyond(self, client: Client, claim: Claim) -> bool:
        """Whether a subscription may go beyond what the client may have."""
        allowed = client.permissions.subscribe
        return allowed is not None and claim.within != allowed

    def _enter(self, id: str, principal: str) -> Client:
        """A client that is there from now on."""
        client = self._clients.setdefault(id, Client(id))
        self._principals.enter(client, principal)
        return client

    def disconnect(self, client: Client) -> list[tuple[Table, list[Claim]]]:
        """A session ended; gives the claims that end with it."""
        client.up = False
        client.session += 1
        if client.meant:
            self._meant[client.id] = client.meant
            if len(self._meant) > self._context.config.limits.ended_sessions:
                self._meant.popitem(last=False)
        self.queues.close(client)
        return [
            (table, [claim for claim in claims.values() if not claim.outlives_session])
            for table, claims in client.claims.by_table()
        ]

    def tidy(self, client: Client) -> None:
        """Forget a client of whom nothing is left."""
        if not client.up and not client.is_remembered:
            self._clients.pop(client.id, None)
            self._principals.leave(client)
            self.queues.forget(client)

    def send(self, client: Client, message: ClientAnswer) -> None:
        """Send a message to a client, after the commit."""
        self._context.turn.out.sends.append(client.answer(message))

    # Permissions

    def refusal(self, client: Client, table: Table, text: str, id: str, *, durable: bool = False) -> str | None:
        """Why a claim can't be made; None where it can."""
        refusal = self._principals.refusal(client, table, id, durable=durable)
        if refusal is not None:
            return refusal
        try:
            condition = self._context.known.parse(text)
        except CoveyError as error:
            return str(error)
        allowed = client.permissions.subscribe if table is Table.SUBSCRIPTIONS else client.permissions.advertise
        allows = True if allowed is None else self._allows(allowed, condition)
        if allows is None:
            return (
                f"whether the {SPACES[table]} {id!r} asks for more than is allowed, which is {allowed}, can't be found "
                "out within permission_steps; make it simpler"
            )
        if not allows:
            return f"the {SPACES[table]} {id!r} asks for more than is allowed, which is {allowed}; narrow it"
        return None

    def _allows(self, allowed: str, condition: Filter) -> bool | None:
        """None where it can't be found out."""
        known = self._context.known
        try:
            return known.is_allowed(known.parse(allowed), condition, self._context.config.limits.permission_steps)
        except CoveyError:
            return False

    def may_publish(self, client: Client, attributes: Mapping[str, Any]) -> bool:
        """Whether the client's permissions have this event."""
        return self._context.known.allow(client.permissions.publish, attributes)

    def has_advertised(self, client: Client, attributes: Mapping[str, Any]) -> bool:
        """Whether one of the client's advertisements has this event."""
        known = self._context.known
        return known.allow(client.permissions.advertise, attributes) and any(
            known.matches(claim.condition, attributes) for claim in client.claims.advertisements.values()
        )

    # Claims

    def claim(
        self, client: Client, table: Table, id: str, text: str, *, durable: bool, lease: float | None
    ) -> tuple[Claim | None, Claim]:
        """Make a claim; gives the one that it replaces, and itself."""
        longest = self._context.config.timing.longest_lease
        if longest is not None:
            lease = longest if lease is None else min(lease, longest)
        old = client.claims[table].get(id)
        within = client.permissions.subscribe if table is Table.SUBSCRIPTIONS else client.permissions.advertise
        new = Claim(id, text, self._context.known.parse(text), durable, lease, self._end(lease), within=within)
        if old is not None and old.text == text:
            new.hits = old.hits
        client.claims[table][id] = new
        self._count(client, table, old, new)
        self._note_end(client, table, new)
        if old is not None and table is Table.SUBSCRIPTIONS and old.text != text:
            self.queues.narrow(client)
        if durable:
            self._write(client, table, new)
        elif old is not None and old.durable:
            self._drop(client, table, id)
        return old, new

    def end(self, client: Client, table: Table, id: str) -> Claim | None:
        """End a claim."""
        claim = client.claims[table].pop(id, None)
        if claim is None:
            return None
        self._count(client, table, claim, None)
        if claim.durable:
            self._drop(client, table, id)
        if table is Table.SUBSCRIPTIONS:
            self.queues.narrow(client)
            self.queues.ended(client, (id,))
        return claim

    def end_many(self, client: Client, table: Table, claims: list[Claim]) -> None:
        """End claims that aren't durable."""
        held = client.claims[table]
        if len(claims) == len(held):
            held.clear()
        else:
            for claim in claims:
                del held[claim.id]
        self._principals.count_ended(client, table, claims)
        if table is Table.SUBSCRIPTIONS and claims:
            self.queues.narrow(client)
            self.queues.ended(client, tuple(claim.id for claim in claims))

    def change_many(self, client: Client, ended: list[str], made: list[Claim]) -> None:
        """End and make durable subscriptions, as one change."""
        claims = client.claims.subscriptions
        self._clients.setdefault(client.id, client)
        self._principals.enter(client, client.principal)
        narrowed = bool(ended) or any(claim.id in claims for claim in made)
        for id in ended:
            self._count(client, Table.SUBSCRIPTIONS, claims[id], None)
            del claims[id]
            self._drop(client, Table.SUBSCRIPTIONS, id)
        for claim in made:
            self._count(client, Table.SUBSCRIPTIONS, claims.get(claim.id), claim)
            claims[claim.id] = claim
            self._write(client, Table.SUBSCRIPTIONS, claim)
            client.watched = client.watched or self._is_beyond(client, claim)
        if narrowed:
            self.queues.narrow(client)
            self.queues.ended(client, [id for id in ended if id not in claims])

    def _count(self, client: Client, table: Table, old: Claim | None, new: Claim | None) -> None:
        """One claim takes the place of another, or of none."""
        self._principals.count(client, table, old, new)
        if table is Table.SUBSCRIPTIONS:
            client.durables += (new is not None and new.durable) - (old is not None and old.durable)

    def count_hits(self, hits: Mapping[tuple[str, str], int]) -> None:
        """So many events matched entries of the table, by hop and key."""
        for (hop, key), count in hits.items():
            client = self._clients.get(hop[2:])
            claim = None if client is None else client.claims.subscriptions.get(key)
            if claim is not None:
                claim.hits += count

    def _write(self, client: Client, table: Table, claim: Claim) -> None:
        self._context.turn.out.put(SPACES[table], row_key(client.id, claim.id), claim.row(client))

    def _drop(self, client: Client, table: Table, id: str) -> None:
        self._context.turn.out.drop(SPACES[table], row_key(client.id, id))

    # Leases

    def renew(self, client: Client, ids: list[str]) -> str | None:
        """Start leases anew; why not, where that can't be."""
        unknown = [id for id in ids if not any(id in claims for claims in client.claims)]
        if unknown:
            return f"there is no subscription or advertisement {unknown[0]!r}; it may have expired"
        for table, claims in client.claims.by_table():
            for claim in list(claims.values()):
                if (not ids or claim.id in ids) and claim.lease is not None:
                    claims[claim.id] = renewed = replace(claim, expires_at=self._end(claim.lease))
                    self._note_end(client, table, renewed)
                    if claim.durable:
                        self._write(client, table, renewed)
        return None

    def expired(self) -> list[tuple[Client, Table, Claim]]:
        """Claims whose lease has ended."""
        found: list[tuple[Client, Table, Claim]] = []
        now = self._context.turn.now
        while self._ends and self._ends[0][0] <= now:
            ended = self._ends[0]
            note(heappush, self._ends, ended)
            heappop(self._ends)
            _, name, table, id = ended
            client = self._clients.get(name)
            claim = None if client is None else client.claims[table].get(id)
            end = None if claim is None else claim.expires_at
            if client is not None and claim is not None and end is not None and end <= now:
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
        return None if lease is None else self._context.turn.now + lease

    def _note_end(self, client: Client, table: Table, claim: Claim) -> None:
        if claim.expires_at is not None:
            heappush(self._ends, (claim.expires_at, client.id, table, claim.id))
            if len(self._ends) > self._tidy_ends_at:
                self._tidy_ends()

    def _tidy_ends(self) -> None:
        """Forget the ends of leases that were renewed, or whose claim is gone: they might stay for years."""
        self._ends = [
            (claim.expires_at, client.id, table, claim.id)
            for client in self._clients.values()
            for table, claims in client.claims.by_table()
            for claim in claims.values()
            if claim.expires_at is not None
        ]
        heapify(self._ends)
        self._tidy_ends_at = max(ENDS, 2 * len(self._ends))

    # Publishers

    def forget_publishers(self) -> None:
        """Forget the numbers of publishers that have been away for too long."""
        now, forget = self._context.turn.now, self._context.config.timing.forget_publisher
        if now < self._look_at:
            return
        self._look_at = now + forget / 10
        self.queues.has_publishers = False
        for client in list(self._clients.values()):
            if client.published and not client.up and client.published_at + forget <= now:
                client.published = 0
                self.queues.write_later(client)
                self.tidy(client)
            self.queues.has_publishers |= bool(client.published)

    def next_look(self) -> float:
        """When publishers are to be looked at."""
        return self._look_at if self.queues.has_publishers else inf

    # Restoring

    def restore_client(self, id: str, row: ClientRow) -> None:
        """Take a client back from its row."""
        client = self._clients.setdefault(id, Client(id))
        client.next_number, client.published, client.freed = row.next_number, row.published, row.freed
        client.is_written = True
        self.queues.has_publishers |= bool(row.published)
        # Rows of before don't say when.
        client.published_at = row.published_at or self._context.turn.now

    def restore_claim(self, table: Table, row: ClaimRow) -> tuple[Client, Claim]:
        """Take a claim back from its row."""
        known = self._clients.get(row.client)
        client = self._enter(row.client, row.principal or (known.principal if known is not None else ""))
        condition = self._context.known.parse(row.filter)
        claim = Claim(row.id, row.filter, condition, True, row.lease, row.expires_at, row.load, row.under, row.within)
        client.claims[table][row.id] = claim
        self._count(client, table, None, claim)
        self._note_end(client, table, claim)
        return client, claim

    def restore_queues(self, runs: Iterable[RunRow], single: Iterable[QueueRow]) -> None:
        """Take deliveries back from their rows, and from those of before."""
        known: dict[str, list[int]] = {}
        rows = list(single)
        for one in rows:
            known.setdefault(one.client, []).append(one.number)
        for run in sorted(runs, key=lambda run: run.deliveries[0][0]):
            rows += self.queues.restore_run(self._clients.setdefault(run.client, Client(run.client)), run)
        for row in sorted(rows, key=lambda row: row.number):
            self.queues.restore(self._clients.setdefault(row.client, Client(row.client)), row)
        for client, numbers in known.items():
            self.queues.bring_forward(self._clients[client], numbers)
