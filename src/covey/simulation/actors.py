"""Simulated clients. Each wants some subscriptions and publishes events, and goes on doing so over broken sessions.

A client that loses its session connects again, asks again for what isn't confirmed, and sends again what it published
durably and wasn't confirmed, under the same numbers: what a client library does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from math import inf
from zlib import crc32

import msgspec
from msgspec import structs

from covey.routing.messages import (
    CAPABILITIES,
    Acknowledge,
    Advertise,
    ClientAnswer,
    ClientDown,
    ClientMessage,
    ClientUp,
    Confirmed,
    Credit,
    Deliver,
    Expired,
    FromClient,
    Permit,
    Publication,
    Publish,
    Refused,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from covey.routing.meta_events import META
from covey.routing.packed_events import read_publications
from covey.simulation.ledger import Ledger, Published, Wanted
from covey.simulation.permissions import WINDOW
from covey.simulation.scenarios import principal_of
from covey.simulation.world import Clock, Node

_encode = msgspec.msgpack.Encoder().encode

TRY_AGAIN = 0.4
"""Seconds until a client tries to connect again."""


class Actor:
    """One client."""

    def __init__(self, clock: Clock, name: str, node: Node, ledger: Ledger, *, advertised: bool) -> None:
        self.principal = principal_of(name)
        self.clock = clock
        self.name = name
        self.node = node
        self.ledger = ledger
        self._advertised_only = advertised
        self._session = 0
        self._sessions = count(1)
        self._up = False
        self._welcome = False
        self._wants_to_be_up = False
        self._requests = count(1)
        self._open: dict[int, ClientMessage] = {}
        self._advertisements: dict[str, Advertise] = {}
        self._confirmed_advertisements: set[str] = set()
        self._numbers = count(1)
        self._unconfirmed: dict[int, Published] = {}
        self._to_broker = self._from_broker = 0.0
        self._acked = 0
        self.buffer_bytes = inf
        """What may be on the way to this client before its connection is cut."""
        self._on_the_way = 0
        self._counts_bytes = crc32(name.encode()) % 2 == 0
        """Whether it grants credit in bytes; others are of protocol 1."""

    # What scenarios make clients do

    def connect(self) -> None:
        """Be connected from now on."""
        self._wants_to_be_up = True
        self._dial()

    def disconnect(self, seconds: float) -> None:
        """Go away for a while."""
        self._wants_to_be_up = False
        if self._up:
            self._up = self._welcome = False
            self._lost_session()
            self._send_input(ClientDown(self.name, self._session))
        self._session = 0
        self.clock.later(seconds, self.connect)

    def subscribe(self, id: str, text: str, *, durable: bool, lease: float) -> None:
        """Ask for events."""
        key = (self.name, id)
        if key not in self.ledger.wanted:
            condition = self.ledger.condition(text)
            self.ledger.wanted[key] = Wanted(self.name, id, text, condition, durable, lease, self.clock.now)
            self._ask(self.ledger.wanted[key])

    def unsubscribe(self, id: str) -> None:
        """Don't ask for them any more."""
        wanted = self.ledger.wanted.get((self.name, id))
        if wanted is not None and wanted.leaving_at == inf:
            wanted.leaving_at = self.clock.now
            self._request(lambda request: Unsubscribe(request, id))

    def advertise(self, id: str, text: str) -> None:
        """Say what will be published."""
        self._advertisements[id] = Advertise(0, id, text, True)
        self._request(lambda request: Advertise(request, id, text, True))

    def publish(self, uid: str, kind: str, price: str, *, durable: bool, steady: bool = False, weight: int = 0) -> None:
        """Publish an event; not where it must be advertised and isn't."""
        attributes: dict[str, object] = {"uid": uid}
        if kind:
            attributes["k"] = kind
        if price:
            attributes["p"] = int(price)
        if weight:
            attributes["weight"] = "x" * weight
        if self._advertised_only:
            advertised = (self._advertisements[id].filter for id in self._confirmed_advertisements)
            if not any(self.ledger.condition(text).matches(attributes) for text in advertised):
                return
        event = Published(uid, self.name, attributes, durable, next(self._numbers) if durable else 0, steady=steady)
        if not durable and not self._welcome:
            return
        self.ledger.published[uid] = event
        event.sent_at = self.clock.now
        if durable:
            self._unconfirmed[event.number] = event
        self._send_events([event])

    # Sessions

    def _dial(self) -> None:
        if not self._wants_to_be_up or self._up:
            return
        if not self.node.up:
            self.clock.later(TRY_AGAIN, self._dial)
            return
        self._up, self._session = True, next(self._sessions)
        self._to_broker = self._from_broker = self.clock.now
        self._on_the_way = 0
        capabilities = CAPABILITIES if self._counts_bytes else ()
        self._send_input(ClientUp(self.name, session=self._session, capabilities=capabilities))

    def broker_died(self) -> None:
        """The broker's process is gone; what it sent before still comes."""
        if self._up:
            self.clock.at(self._from_broker + 1e-6, self.closed, self._session)

    def _lost(self) -> None:
        if self._up:
            self._up = self._welcome = False
            self._session = 0
            self._lost_session()
            self.clock.later(TRY_AGAIN, self._dial)

    def _lost_session(self) -> None:
        self._open.clear()
        for wanted in self.ledger.wanted.values():
            if wanted.client == self.name and not wanted.durable:
                wanted.confirmed_at = inf
                if wanted.leaving_at < inf:
                    wanted.left_at = min(wanted.left_at, self.clock.now)

    def _send_input(self, input: ClientUp | ClientDown | FromClient) -> None:
        self._to_broker = max(self._to_broker, self.clock.now + self.clock.rng.uniform(0.001, 0.01))
        session = self._session
        self.clock.at(self._to_broker, self._arrive, session, input)

    def _arrive(self, session: int, input: ClientUp | ClientDown | FromClient) -> None:
        if isinstance(input, ClientUp):
            # Who it is and what it may do is found out where it connects.
            input = structs.replace(input, permissions=self.ledger.rights.of(self.principal), principal=self.principal)
        if isinstance(input, ClientDown) or session == self._session:
            self.node.take(input)

    def permit(self) -> None:
        """What its principal may do has changed."""
        if self._up:
            self.node.take(Permit(self.name, self.ledger.rights.of(self.principal), self._session))

    def closed(self, session: int) -> None:
        """The broker closed a session."""
        if session == self._session:
            self._lost()

    def hear(self, message: ClientAnswer, session: int) -> None:
        """The broker sent something."""
        if self._up and session == self._session:
            if isinstance(message, Deliver):
                self._on_the_way += message.bytes
                if self._on_the_way > self.buffer_bytes:
                    self.clock.note(f"{self.name} is cut")
                    self._send_input(ClientDown(self.name, session))
                    self._lost()
                    return
            self._from_broker = max(self._from_broker, self.clock.now + self.clock.rng.uniform(0.001, 0.01))
            self.clock.at(self._from_broker, self._receive, self._session, message)

    def _receive(self, session: int, message: ClientAnswer) -> None:
        if session != self._session:
            return
        match message:
            case Welcome(_, subscriptions, advertisements):
                self._welcomed(set(subscriptions), set(advertisements))
            case Confirmed(request):
                self._confirmed(request)
            case Refused(request, reason):
                self._refused(request, reason)
            case Deliver():
                self._delivered(message)
            case Expired(id):
                wanted = self.ledger.wanted.get((self.name, id))
                if wanted is not None:
                    wanted.over_at = min(wanted.over_at, self.clock.now)

    def _welcomed(self, subscriptions: set[str], advertisements: set[str]) -> None:
        self._welcome = True
        for (client, id), wanted in self.ledger.wanted.items():
            if client == self.name:
                self._resume(wanted, id in subscriptions)
        for id, message in self._advertisements.items():
            if id not in self._confirmed_advertisements or id not in advertisements:
                self.advertise(id, message.filter)
        if self._unconfirmed:
            self._send_events(list(self._unconfirmed.values()))

    def _resume(self, wanted: Wanted, is_known: bool) -> None:
        """Bring the broker, which knows a subscription or doesn't, to what is wanted."""
        if wanted.leaving_at < inf:
            if is_known:
                self._request(lambda request: Unsubscribe(request, wanted.id))
            else:
                wanted.left_at = min(wanted.left_at, self.clock.now)
            return
        if wanted.durable and wanted.confirmed_at < inf and not is_known and not wanted.lease:
            self.ledger.fail(f"{self.clock.now:.3f} the confirmed subscription {wanted.id} of {self.name} is lost")
        if not wanted.lease and not wanted.refused and (wanted.confirmed_at == inf or not wanted.durable):
            self._ask(wanted)

    # Requests

    def _ask(self, wanted: Wanted) -> None:
        lease = wanted.lease or None
        text = wanted.text
        self._request(lambda request: Subscribe(request, wanted.id, text, wanted.durable, lease))

    def _request(self, make: Callable[[int], ClientMessage]) -> None:
        if self._welcome:
            request = next(self._requests)
            message = make(request)
            self._open[request] = message
            self._send_input(FromClient(self.name, message, self._session))

    def _send_events(self, events: list[Published]) -> None:
        self._request(lambda request: Publish(request, _publications(events, request)))

    def _confirmed(self, request: int) -> None:
        now = self.clock.now
        match self._open.pop(request, None):
            case Subscribe(_, id):
                wanted = self.ledger.wanted[self.name, id]
                wanted.confirmed_at = now
                if wanted.lease:
                    wanted.over_at = now + wanted.lease
            case Unsubscribe(_, id):
                self.ledger.wanted[self.name, id].left_at = now
            case Advertise(_, id):
                self._confirmed_advertisements.add(id)
            case Publish(_, events):
                for publication in events:
                    self.ledger.published[publication.attributes["uid"]].confirmed_at = now
                    self._unconfirmed.pop(publication.number, None)
                    if not self.ledger.rights.may_publish(now, self.name, publication.attributes):
                        self.ledger.fail(f"{now:.3f} {self.name} was let publish {publication.attributes}")

    def _refused(self, request: int, reason: str) -> None:
        match self._open.pop(request, None):
            case Publish(_, events):
                for publication in events:
                    self.ledger.published[publication.attributes["uid"]].refused = True
                    self._unconfirmed.pop(publication.number, None)
                if "may be published" in reason:
                    self._check_forbidden(events, reason)
                elif "advertise" not in reason:
                    self.ledger.fail(f"{self.clock.now:.3f} {self.name} was refused: {reason}")
            case Subscribe(_, id) if "more than is allowed" in reason:
                wanted = self.ledger.wanted[self.name, id]
                wanted.refused = True
                asked_at = self.clock.now - WINDOW
                if not self.ledger.rights.may_refuse_subscription(asked_at, self.name, wanted.condition):
                    self.ledger.fail(f"{self.clock.now:.3f} {self.name} was refused {wanted.condition}: {reason}")
            case Unsubscribe(_, id):
                self.ledger.wanted[self.name, id].left_at = self.clock.now
            case _:
                self.ledger.fail(f"{self.clock.now:.3f} {self.name} was refused: {reason}")

    def _check_forbidden(self, events: Sequence[Publication], reason: str) -> None:
        rights, asked_at = self.ledger.rights, self.clock.now - WINDOW
        if not any(rights.may_refuse_event(asked_at, self.name, event.attributes) for event in events):
            self.ledger.fail(f"{self.clock.now:.3f} {self.name} was refused: {reason}")

    def _delivered(self, message: Deliver) -> None:
        if "uid" in message.attributes or META in message.attributes:
            self.ledger.deliver(self.clock.now, self.name, message)
        self._on_the_way -= message.bytes
        granted = message.bytes if self._counts_bytes else 0
        self._send_input(FromClient(self.name, Credit(1, granted), self._session))
        if message.number and self.clock.rng.random() < 0.5:
            self._send_input(FromClient(self.name, Acknowledge(message.number), self._session))

    @property
    def waits(self) -> bool:
        """Whether a request isn't answered."""
        return bool(self._open)


def _publications(events: list[Published], request: int) -> Sequence[Publication]:
    """Events as they are published. Those of every other request come as bytes that the broker hasn't decoded; of the
    rest every other event is known by its id as well as by its number."""
    is_packed = request % 2 == 0
    publications = [
        Publication(event.attributes, event.durable, event.number, "" if event.number % 2 or is_packed else event.uid)
        for event in events
    ]
    packed = read_publications([_encode(publications)]) if is_packed else None
    return publications if packed is None else packed[0]
