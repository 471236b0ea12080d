"""Clients' requests: subscriptions, advertisements and publications, confirmed when they are safe (rules 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from covey.errors import CoveyError, EventError
from covey.events import Schema
from covey.routing.clients import Claim, Client
from covey.routing.config import BrokerConfig
from covey.routing.exporting import META
from covey.routing.messages import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    Acknowledge,
    Advertise,
    ClientDown,
    ClientUp,
    Confirmed,
    Credit,
    FromClient,
    Publication,
    Publish,
    Refused,
    Renew,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from covey.routing.peers import Peers
from covey.routing.plain_events import wrong_event
from covey.routing.settling import Settling


class Requests(Peers):
    """Does what clients ask for."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._client_handlers: dict[type, Callable[[Client, Any], None]] = {
            Subscribe: self._subscribe,
            Advertise: self._advertise,
            Unsubscribe: self._unsubscribe,
            Unadvertise: self._unadvertise,
            Publish: self._publish,
            Acknowledge: lambda client, message: self.clients.acknowledge(client, message.number),
            Credit: lambda client, message: self.clients.grant(client, message.deliveries),
            Renew: self._renew,
        }

    def _client_up(self, input: ClientUp) -> None:
        client = self.clients.get(input.client)
        if client is not None and client.up:
            self._end_session(client)
        self.clients.connect(input.client, input.permissions, input.session)

    def _client_down(self, input: ClientDown) -> None:
        client = self.clients.get(input.client)
        if client is not None and client.up and client.connection == input.session:
            self._end_session(client)

    def _end_session(self, client: Client) -> None:
        for table, claim in self.clients.disconnect(client):
            self._end_claim(client, table, claim.id)
        self.clients.tidy(client)

    def _from_client(self, input: FromClient) -> None:
        client = self.clients.get(input.client)
        if client is not None and client.up and client.connection == input.session:
            self._client_handlers[type(input.message)](client, input.message)

    def _subscribe(self, client: Client, message: Subscribe) -> None:
        self._make_claim(client, SUBSCRIPTIONS, message)

    def _advertise(self, client: Client, message: Advertise) -> None:
        self._make_claim(client, ADVERTISEMENTS, message)

    def _unsubscribe(self, client: Client, message: Unsubscribe) -> None:
        self._unmake_claim(client, SUBSCRIPTIONS, message)

    def _unadvertise(self, client: Client, message: Unadvertise) -> None:
        self._unmake_claim(client, ADVERTISEMENTS, message)

    def _make_claim(self, client: Client, table: int, message: Subscribe | Advertise) -> None:
        refusal = self.clients.refusal(client, table, message.filter, message.id)
        if message.lease is not None and not message.lease > 0:
            refusal = f"a lease of {message.lease} seconds is over at once; give a number above 0"
        if refusal is not None:
            self.clients.send(client, Refused(message.request, refusal))
            return
        old, new = self.clients.claim(
            client, table, message.id, message.filter, durable=message.durable, lease=message.lease
        )
        self._claim_changed(client, table, old, new)
        self._confirm_when_settled(client, table, message.request)

    def _unmake_claim(self, client: Client, table: int, message: Unsubscribe | Unadvertise) -> None:
        if message.id not in client.claims[table]:
            kind = "subscription" if table == SUBSCRIPTIONS else "advertisement"
            self.clients.send(client, Refused(message.request, f"there is no {kind} {message.id!r}"))
            return
        self._end_claim(client, table, message.id)
        self._confirm_when_settled(client, table, message.request)

    def _end_claim(self, client: Client, table: int, id: str) -> None:
        claim = self.clients.end(client, table, id)
        if claim is not None:
            self._claim_changed(client, table, claim, None)

    def _claim_changed(self, client: Client, table: int, old: Claim | None, new: Claim | None) -> None:
        """A client's subscription or advertisement came, went or changed: tables and exports follow."""
        if old is not None and new is not None and (old.text, old.under) == (new.text, new.under):
            return
        if table == SUBSCRIPTIONS:
            if old is not None:
                self.table.remove(client.hop, old.id)
            if new is not None:
                self.table.add(client.hop, new.id, new.condition)
        added = {} if new is None else dict([self._told(client, new)])
        removed = [] if old is None else self._untold(client, old)
        self._export(table, client.hop, added, removed)
        if self.config.meta_events:
            if old is not None:
                self._publish_meta(client, ("unsubscribed", "unadvertised")[table], old)
            if new is not None:
                self._publish_meta(client, ("subscribed", "advertised")[table], new)

    def _confirm_when_settled(self, client: Client, table: int, request: int) -> None:
        session = client.session

        def confirm() -> None:
            if client.up and client.session == session:
                self.clients.send(client, Confirmed(request))

        self._settlings.append((Settling(confirm), table, None))

    def _renew(self, client: Client, message: Renew) -> None:
        refusal = self.clients.renew(client, message.ids)
        answer = Confirmed(message.request) if refusal is None else Refused(message.request, refusal)
        self.clients.send(client, answer)

    def _publish(self, client: Client, message: Publish) -> None:
        self._publish_all([(client, message)])

    def _from_publishers(self, inputs: Iterable[FromClient]) -> None:
        """Publications of any clients, in order."""
        present: list[tuple[Client, Publish]] = []
        for input in inputs:
            client = self.clients.get(input.client)
            if client is not None and client.up and client.connection == input.session:
                assert isinstance(input.message, Publish)
                present.append((client, input.message))
        self._publish_all(present)

    def _publish_all(self, messages: list[tuple[Client, Publish]]) -> None:
        """Publish what may be, all of it matched together, and answer."""
        accepted: list[tuple[str, list[Publication]]] = []
        answers: list[tuple[Client, Confirmed | Refused]] = []
        for client, message in messages:
            try:
                publications = self._checked(client, message.events)
            except CoveyError as refusal:
                answers.append((client, Refused(message.request, str(refusal))))
                continue
            accepted.append((client.id, list(self._unpublished(client, publications))))
            answers.append((client, Confirmed(message.request)))
        self._originate_all(accepted)
        for client, answer in answers:
            self.clients.send(client, answer)

    def _unpublished(self, client: Client, publications: list[Publication]) -> Iterator[Publication]:
        """The events that weren't published before under the same number."""
        for publication in publications:
            if not publication.durable or not publication.number:
                yield publication
            elif publication.number > client.published:
                self.clients.published(client, publication.number)
                yield publication

    def _checked(self, client: Client, publications: list[Publication]) -> list[Publication]:
        """The events as they are published; an error where one of them may not be, so that all are or none is."""
        limit = self.config.limits.publications
        if len(publications) > limit:
            raise EventError(f"{len(publications):,} events in one publication; the limit publications is {limit:,}")
        if self.config.schema is not None:
            publications = [self._decoded(at, one, self.config.schema) for at, one in enumerate(publications, 1)]
        wrong = wrong_event([one.attributes for one in publications])
        if wrong is not None:
            raise EventError(f"event {wrong[0]}: an attribute can't be used: {wrong[1]}")
        if client.permissions.publish is not None or self.config.advertisements:
            for at, one in enumerate(publications, 1):
                self._check_allowed(client, at, one.attributes)
        return publications

    def _check_allowed(self, client: Client, at: int, attributes: dict[str, Any]) -> None:
        if not self.clients.may_publish(client, attributes):
            raise EventError(f"event {at} isn't among what may be published, which is {client.permissions.publish}")
        if self.config.advertisements and not self._is_advertised(client, attributes):
            raise EventError(f"event {at} matches no advertisement of {client.id!r}; advertise it first")

    def _decoded(self, at: int, publication: Publication, schema: Schema) -> Publication:
        """An event as the schema makes it; all brokers after this one take it as it is."""
        try:
            attributes = schema.decode(publication.attributes)
        except EventError as error:
            raise EventError(f"event {at}: {error}") from None
        return Publication(attributes, publication.durable, publication.number)

    def _is_advertised(self, client: Client, attributes: dict[str, Any]) -> bool:
        claims = client.claims[ADVERTISEMENTS].values()
        return any(self._known.matches(claim.condition, attributes) for claim in claims)

    def _publish_meta(self, client: Client, what: str, claim: Claim) -> None:
        attributes = {
            META: what,
            "broker": self.config.broker,
            "client": client.id,
            "id": claim.id,
            "filter": claim.text,
        }
        self._originate("covey", [Publication(attributes)])
