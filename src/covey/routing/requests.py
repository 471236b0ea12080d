"""Clients' requests: subscriptions, advertisements and publications, confirmed when they are safe (rules 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from covey.errors import CoveyError, EventError
from covey.events import Schema
from covey.routing.batches import Originated
from covey.routing.by_table import Table
from covey.routing.client import SPACES, Claim, Client
from covey.routing.clients import Clients
from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.messages import (
    KNOWS_HOLDING,
    Acknowledge,
    Advertise,
    ClientDown,
    ClientUp,
    Confirmed,
    Credit,
    FromClient,
    Held,
    Permit,
    Publications,
    Publish,
    PublishRequest,
    Refused,
    Renew,
    Subscribe,
    Subscriptions,
    Unadvertise,
    Unsubscribe,
)
from covey.routing.meta_events import CAME, RESERVED, WENT, about_claim, reserved_name
from covey.routing.packed_events import PackedEvents
from covey.routing.plain_events import are_plain, size_of, wrong_event
from covey.routing.published_ids import PublishedIds
from covey.routing.router import Router
from covey.routing.settling import Settling, Settlings
from covey.routing.traces import check_trace
from covey.routing.undo import Remembered


class Requests(Remembered):
    """Does what clients ask for.

    Owns publications that are held back, and the ids of those that were published. Changes clients through `Clients`,
    tables and exports through `Exporter`, and sends events through `Router`.
    """

    def __init__(
        self, context: Context, clients: Clients, router: Router, exporter: Exporter, settlings: Settlings
    ) -> None:
        self._context = context
        self._clients = clients
        self._router = router
        self._exporter = exporter
        self._settlings = settlings
        self.published_ids = PublishedIds(context)
        self._held: list[Publications] = []
        self.held_bytes = 0
        """Of publications that wait because publishers are held back."""
        subscriptions, advertisements = Table.SUBSCRIPTIONS, Table.ADVERTISEMENTS
        self.handlers: dict[type, Callable[[Client, Any], None]] = {
            Subscribe: lambda client, message: self._make_claims(client, subscriptions, [message]),
            Advertise: lambda client, message: self._make_claims(client, advertisements, [message]),
            Unsubscribe: lambda client, message: self._unmake_claim(client, subscriptions, message),
            Unadvertise: lambda client, message: self._unmake_claim(client, advertisements, message),
            Acknowledge: lambda client, message: clients.queues.acknowledge(client, message.number),
            Credit: lambda client, message: clients.queues.grant(client, message.deliveries, message.bytes),
            Renew: self._renew,
        }
        """By kind of message. `Loads` adds those of operators."""

    # Sessions

    def client_up(self, input: ClientUp) -> None:
        """A client opened a session."""
        client = self._clients.get(input.client)
        if client is not None and client.up:
            self.end_session(client)
        self._clients.connect(input.client, input.permissions, input.session, input.capabilities, input.principal)

    def permit(self, input: Permit) -> None:
        """What a client may do has changed."""
        client = self._clients.present(input.client, input.session)
        if client is not None:
            self._clients.permit(client, input.permissions)

    def client_down(self, input: ClientDown) -> None:
        """A client's session ended."""
        client = self._clients.present(input.client, input.session)
        if client is not None:
            self.end_session(client)

    def end_session(self, client: Client) -> None:
        """End what ends with a session."""
        for table, claims in self._clients.disconnect(client):
            self._clients.end_many(client, table, claims)
            self._exporter.end_claims(client, table, claims)
        self._clients.tidy(client)

    def from_client(self, input: FromClient) -> None:
        """A client's message; one of a session that is over is ignored."""
        if isinstance(input.message, Publish):
            self.publish(Publications.of([input]))
            return
        client = self._clients.present(input.client, input.session)
        if client is not None:
            self.handlers[type(input.message)](client, input.message)

    # Claims

    def subscribe(self, input: Subscriptions) -> None:
        """Several subscriptions of a client, as they would be made one by one; tables and exports change once."""
        client = self._clients.present(input.client, input.session)
        if client is not None:
            self._make_claims(client, Table.SUBSCRIPTIONS, input.messages)

    def _make_claims(self, client: Client, table: Table, messages: Sequence[Subscribe | Advertise]) -> None:
        requests: list[int] = []
        changes: dict[str, tuple[Claim | None, Claim]] = {}
        for message in messages:
            refusal = self._clients.refusal(client, table, message.filter, message.id, durable=message.durable)
            if message.lease is not None and not message.lease > 0:
                refusal = f"a lease of {message.lease} seconds is over at once; give a number above 0"
            if refusal is not None:
                self._clients.send(client, Refused(message.request, refusal))
                continue
            if message.id in changes or self._context.config.meta_events:
                # Who asks for brokers' own events hears of what comes after, and of nothing before.
                self._claims_changed(client, table, list(changes.values()))
                changes = {}
            changes[message.id] = self._clients.claim(
                client, table, message.id, message.filter, durable=message.durable, lease=message.lease
            )
            requests.append(message.request)
        self._claims_changed(client, table, list(changes.values()))
        if requests:
            self.confirm_when_settled(client, table, *requests)

    def _unmake_claim(self, client: Client, table: Table, message: Unsubscribe | Unadvertise) -> None:
        if message.id not in client.claims[table]:
            self._clients.send(client, Refused(message.request, f"there is no {SPACES[table]} {message.id!r}"))
            return
        self._end_claim(client, table, message.id)
        self.confirm_when_settled(client, table, message.request)

    def _end_claim(self, client: Client, table: Table, id: str) -> None:
        claim = self._clients.end(client, table, id)
        if claim is not None:
            self._claims_changed(client, table, [(claim, None)])

    def _claims_changed(
        self, client: Client, table: Table, changes: Sequence[tuple[Claim | None, Claim | None]]
    ) -> None:
        """A client's subscriptions or advertisements came, went or changed: tables and exports follow."""
        changes = [
            (old, new)
            for old, new in changes
            if old is None or new is None or (old.text, old.under) != (new.text, new.under)
        ]
        if not changes:
            return
        self._exporter.change_claims(client, table, changes)
        if self._context.config.meta_events:
            broker = self._context.config.broker
            for old, new in changes:
                if old is not None:
                    self._router.publish(about_claim(broker, client.id, WENT[table], old))
                if new is not None:
                    self._router.publish(about_claim(broker, client.id, CAME[table], new))

    def confirm_when_settled(self, client: Client, table: Table, *requests: int) -> None:
        """Confirm requests once what they changed is known wherever it matters (rule 4)."""
        session = client.session

        def confirm() -> None:
            if client.up and client.session == session:
                for request in requests:
                    self._clients.send(client, Confirmed(request))

        self._settlings.add(Settling(confirm), table)

    def _renew(self, client: Client, message: Renew) -> None:
        refusal = self._clients.renew(client, message.ids)
        answer = Confirmed(message.request) if refusal is None else Refused(message.request, refusal)
        self._clients.send(client, answer)

    def expire(self) -> None:
        """End leases before anything else happens: a broker that was held up must not deliver to them."""
        for client, table, claim in self._clients.expired():
            self._end_claim(client, table, claim.id)
            self._clients.tell_expired(client, claim)
            self._clients.tidy(client)

    # Publications

    def publish(self, publications: Publications) -> None:
        """Publish what may be, all of it matched together, and answer; where publishers are held back, later."""
        if self._context.pressure:
            self._hold(publications)
            return
        batch = Originated()
        answers: list[tuple[Client, Confirmed | Refused]] = []
        # Where all events are plain, as nearly always, requests needn't be looked at one by one.
        events = publications.attributes
        are_right = self._context.config.schema is None and (
            isinstance(events, PackedEvents) or (are_plain(events) and reserved_name(events) is None)
        )
        for request in publications.requests:
            client = self._clients.present(request.client, request.session)
            if client is None:
                continue
            try:
                self._accept(client, request, publications, batch, are_right=are_right)
            except CoveyError as refusal:
                answers.append((client, Refused(request.request, str(refusal))))
            else:
                if not request.more:
                    answers.append((client, Confirmed(request.request)))
        self._router.originate(batch)
        for client, answer in answers:
            self._clients.send(client, answer)

    # Holding publishers back

    def press(self, reason: str) -> None:
        """Hold publishers back, for a reason; or, without one, let them go on."""
        if reason == self._context.pressure:
            return
        self._context.pressure = reason
        for client in self._clients:
            if client.up and KNOWS_HOLDING in client.capabilities:
                self._clients.send(client, Held(reason))
        if not reason:
            held, self._held = self._held, []
            self.held_bytes = 0
            for publications in held:
                self.publish(publications)

    def _hold(self, publications: Publications) -> None:
        """Let publications wait, as far as there is room; what is beyond is refused, as what can't be published is."""
        for request in publications.requests:
            client = self._clients.present(request.client, request.session)
            if client is None:
                continue
            try:
                self._hold_one(request, publications)
            except CoveyError as refusal:
                self._clients.send(client, Refused(request.request, str(refusal)))

    def _hold_one(self, request: PublishRequest, publications: Publications) -> None:
        places = slice(request.start, request.end)
        attributes = list(publications.attributes[places])
        wrong = wrong_event(attributes)
        if wrong is not None:
            raise EventError(f"event {wrong[0]}: an attribute can't be used: {wrong[1]}")
        size = sum(map(size_of, attributes))
        if self.held_bytes + size > self._context.config.limits.held_bytes:
            raise EventError(f"publishers are held back: {self._context.pressure}; publish it later")
        moved = PublishRequest(
            request.client, request.request, 0, len(attributes), request.session, more=request.more,
            trace=request.trace,
        )  # fmt: skip
        ids = {at - request.start: id for at, id in publications.ids.items() if request.start <= at < request.end}
        self._held.append(
            Publications([moved], attributes, publications.durable[places], publications.numbers[places], ids)
        )
        self.held_bytes += size

    def _accept(
        self, client: Client, request: PublishRequest, publications: Publications, batch: Originated, *,
        are_right: bool,
    ) -> None:  # fmt: skip
        """Put one request's events into the batch; an error where one of them may not be published, so that all are or
        none is. `are_right` says that they can travel and are nobody else's."""
        if request.trace:
            check_trace(request.trace)
        places = slice(request.start, request.end)
        events = publications.attributes[request.start : request.until or request.end]
        checked = self._checked(client, events, are_right=are_right)
        attributes = checked[: request.end - request.start]
        durable, numbers = publications.durable[places], publications.numbers[places]
        ids = publications.ids
        if ids or any(durable):
            news = [
                at
                for at in range(len(attributes))
                if self._is_news(client, durable[at], numbers[at], ids.get(request.start + at, ""))
            ]
            if len(news) < len(attributes):
                durable = [durable[at] for at in news]
                numbers = [numbers[at] for at in news]
                attributes = [attributes[at] for at in news]
        batch.extend(client.id, numbers, durable, attributes, request.trace)

    def _is_news(self, client: Client, durable: bool, number: int, id: str) -> bool:
        """Whether an event wasn't published before under the same number or id; from now on it was."""
        if durable and number:
            if number <= client.published:
                return False
            self._clients.queues.publish(client, number)
        return not id or self.published_ids.is_first(client, id)

    def _checked(
        self, client: Client, events: Sequence[dict[str, Any]], *, are_right: bool
    ) -> Sequence[dict[str, Any]]:
        """The events as they are published."""
        config = self._context.config
        limit = config.limits.publications
        if len(events) > limit:
            raise EventError(f"{len(events):,} events in one publication; the limit publications is {limit:,}")
        if not are_right:
            events = self._corrected(events)
        if client.permissions.publish is not None or config.advertisements:
            for at, event in enumerate(events, 1):
                self._check_allowed(client, at, event)
        return events

    def _corrected(self, events: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """Events as the schema makes them; an error where one can't travel or is a broker's own."""
        schema = self._context.config.schema
        if schema is not None:
            events = [_decoded(at, event, schema) for at, event in enumerate(events, 1)]
        wrong = wrong_event(events)
        if wrong is not None:
            raise EventError(f"event {wrong[0]}: an attribute can't be used: {wrong[1]}")
        reserved = reserved_name(events)
        if reserved is not None:
            at = next(at for at, event in enumerate(events, 1) if reserved in event)
            raise EventError(
                f"event {at}: {reserved!r} can't be published: {RESERVED!r} and {RESERVED + '.'!r}... are names of "
                "brokers' own events; use another name"
            )
        return events

    def _check_allowed(self, client: Client, at: int, event: dict[str, Any]) -> None:
        if not self._clients.may_publish(client, event):
            raise EventError(f"event {at} isn't among what may be published, which is {client.permissions.publish}")
        if self._context.config.advertisements and not self._clients.has_advertised(client, event):
            raise EventError(f"event {at} matches no advertisement of {client.id!r}; advertise it first")


def _decoded(at: int, event: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """An event as the schema makes it; all brokers after this one take it as it is."""
    try:
        return schema.decode(event)
    except EventError as error:
        raise EventError(f"event {at}: {error}") from None
