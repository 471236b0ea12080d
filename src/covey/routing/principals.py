"""Principals: what each of them has at a broker, over all of its clients, and how much that may be.

A limit by client is none, since names cost nothing. So clients, subscriptions, the texts of filters and what waits in
queues are also counted by principal, as they come and go. What operators loaded for a client isn't: loads have limits
of their own.
"""

from __future__ import annotations

from collections.abc import Collection

from covey.routing.by_table import Table
from covey.routing.client import SPACES, Claim, Client, Totals
from covey.routing.context import Context
from covey.routing.undo import Remembered


class Principals(Remembered):
    """Who has clients here.

    Owns the totals of each principal, which its clients share; `Queues` counts what waits in them. Changes nothing else
    of a client.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._totals: dict[str, Totals] = {}

    def enter(self, client: Client, principal: str) -> None:
        """Count a client with its principal, and no longer with the one that it had before."""
        if client.principal != principal:
            self.leave(client)
            client.principal = principal
        totals = self._totals.setdefault(principal, client.totals)
        if client.id in totals.clients:
            return
        totals.clients[client.id] = client
        if totals is not client.totals:
            client.totals = totals
            self._add(client, totals, 1)

    def leave(self, client: Client) -> None:
        """Count it no more."""
        totals = self._totals.get(client.principal)
        if totals is None or totals.clients.pop(client.id, None) is None:
            return
        self._add(client, totals, -1)
        client.totals = Totals()
        self._add(client, client.totals, 1)
        if not totals.clients:
            del self._totals[client.principal]

    def _add(self, client: Client, totals: Totals, sign: int) -> None:
        totals.queue_bytes += sign * client.queue_bytes
        totals.filter_bytes += sign * client.filter_bytes
        for table in Table:
            totals.claims[table] += sign * client.counted[table]

    def count(self, client: Client, table: Table, before: Claim | None, after: Claim | None) -> None:
        """A client's claim comes, goes or is replaced; None for none."""
        for claim, sign in ((before, -1), (after, 1)):
            if claim is not None and not claim.load:
                bytes = sign * len(claim.text)
                client.filter_bytes += bytes
                client.counted[table] += sign
                client.totals.filter_bytes += bytes
                client.totals.claims[table] += sign

    def count_ended(self, client: Client, table: Table, claims: Collection[Claim]) -> None:
        """Many claims go, none of them loaded."""
        bytes = sum([len(claim.text) for claim in claims])
        client.filter_bytes -= bytes
        client.counted[table] -= len(claims)
        client.totals.filter_bytes -= bytes
        client.totals.claims[table] -= len(claims)

    def refusal(self, client: Client, table: Table, id: str, *, durable: bool) -> str | None:
        """Why a claim would be too much; None where it isn't."""
        limits, totals = self._context.config.limits, client.totals
        name = client.principal or "anyone"
        if id not in client.claims[table]:
            if len(client.claims[table]) >= limits.subscriptions:
                return f"there are {limits.subscriptions:,} {SPACES[table]}s already; end some of them first"
            if totals.claims[table] >= limits.principal_subscriptions:
                return (
                    f"clients of {name} have {limits.principal_subscriptions:,} {SPACES[table]}s already "
                    "(principal_subscriptions); end some of them first"
                )
        if totals.filter_bytes > limits.principal_filter_bytes:
            return (
                f"filters of {name} have {totals.filter_bytes:,} bytes already (principal_filter_bytes); "
                "end some of them first"
            )
        if durable and len(totals.clients) > limits.principal_clients and not client.is_remembered:
            return (
                f"{name} has {limits.principal_clients:,} clients already (principal_clients); "
                "use the name of one of them, or end what nobody uses"
            )
        return None
