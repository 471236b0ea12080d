"""What has come for a client and isn't done with: which inbox gets it, what it grants back, when it is acknowledged.

A delivery goes to every inbox that one of its subscriptions has; it is granted back to the broker when the last of
them has taken it, and acknowledged when the last of them is done with it. What comes for a durable subscription that
the broker has kept, before the program asked for it again, waits in `early`. What nobody will ask for is let go.

No connection is known here: the protocol notes what is to be said, and `wake` is called when that is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from covey.network.asyncio.subscription import (
    Arrival,
    Delivery,
    Inbox,
    LoadedSubscriptions,
    Subscription,
    SubscriptionGroup,
)
from covey.network.client_protocol import ClientProtocol
from covey.network.errors import NetworkError
from covey.routing.messages import Deliver


class Deliveries:
    """The inboxes of a client, and the deliveries in them."""

    def __init__(self, protocol: ClientProtocol, wake: Callable[[], None]) -> None:
        self.inboxes: dict[str, Subscription | SubscriptionGroup] = {}
        """By the subscriptions' ids."""
        self.kept: frozenset[str] = frozenset()
        """Subscriptions that the broker had from before."""
        self.early: dict[str, list[Delivery]] = {}
        """What came for those of `kept` that have no inbox yet, in order."""
        self.rest: LoadedSubscriptions | None = None
        """Gets what no other inbox does."""
        self._protocol = protocol
        self._wake = wake

    # Arriving

    def deliver_many(self, messages: Iterable[Deliver]) -> None:
        """As `deliver`. Nearly all of them are for one subscription and needn't be acknowledged: what deliveries of one
        event have in common isn't made for these."""
        inboxes, epoch, came = self.inboxes, self._protocol.epoch, 0
        for message in messages:
            ids = message.subscriptions
            inbox = None if message.number or len(ids) != 1 else inboxes.get(ids[0])
            if inbox is None:
                self.deliver(message)
                continue
            came += 1
            inbox._put(
                Delivery(
                    message.attributes, ids, message.publisher, message.event, message.durable, message.late, 0,
                    message.trace, None, self, epoch, message.bytes,
                )
            )  # fmt: skip
        self._protocol.delivered_plain(came)

    def deliver(self, message: Deliver) -> None:
        """Put what the broker sends where it belongs."""
        if not self._protocol.delivered(message):
            return
        inboxes: dict[Inbox | None, None] = dict.fromkeys(
            self.inboxes.get(id, self.rest) for id in message.subscriptions
        )
        stray = [id for id in message.subscriptions if id not in self.inboxes] if None in inboxes else []
        receivers = len(inboxes) if not stray else len(inboxes) - 1 + len(stray)
        arrival = Arrival(self._protocol.epoch, message.number, receivers, receivers, message.bytes)
        for inbox in inboxes:
            if inbox is not None:
                inbox._put(self._delivery(message, arrival))
        for id in stray:
            if message.number and id in self.kept:
                self.early.setdefault(id, []).append(self._delivery(message, arrival))
            else:
                self.let_go((self._delivery(message, arrival),))

    def _delivery(self, message: Deliver, arrival: Arrival) -> Delivery:
        return Delivery(
            message.attributes, message.subscriptions, message.publisher, message.event, message.durable, message.late,
            message.number, message.trace, arrival, self,
        )  # fmt: skip

    # Inboxes

    def open(self, subscription: Subscription) -> Subscription | None:
        """Give a subscription its inbox, with what came early; the one that had its id before, if any."""
        before = self.inboxes.get(subscription.id)
        if isinstance(before, SubscriptionGroup):
            raise NetworkError(f"{subscription.id!r} is one of a group of subscriptions; unsubscribe it first")
        # What came early is before all that comes from now on, the answer or not.
        for delivery in self.early.pop(subscription.id, ()):
            subscription._put(delivery)
        self.inboxes[subscription.id] = subscription
        return before

    def undo(self, subscription: Subscription, before: Subscription | None) -> None:
        """The broker didn't take it: what came meanwhile goes where it would have gone."""
        if before is None:
            self.inboxes.pop(subscription.id, None)
            if subscription._queue:
                self.early[subscription.id] = list(subscription._queue)
        else:
            self.inboxes[subscription.id] = before
            for delivery in subscription._queue:
                before._put(delivery)

    def check_new(self, ids: Iterable[str]) -> None:
        """Raise where one of these has an inbox."""
        known = next((id for id in ids if id in self.inboxes), None)
        if known is not None:
            raise NetworkError(f"there is a subscription {known!r} already; unsubscribe it first")

    def open_group(self, group: SubscriptionGroup) -> None:
        """Give subscriptions an inbox that they share, with what came early for any of them."""
        waiting = [delivery for id in group.filters for delivery in self.early.pop(id, ())]
        waiting.sort(key=lambda delivery: delivery.number)
        for before, delivery in zip([None, *waiting], waiting, strict=False):
            if before is not None and before.number == delivery.number:
                self.let_go((delivery,))  # it came early for two of these
            else:
                group._put(delivery)
        self.inboxes.update(dict.fromkeys(group.filters, group))

    def disband(self, group: SubscriptionGroup) -> None:
        """The broker didn't take all of a group: what came for those that it had kept waits for them again."""
        for id in group.filters:
            self.inboxes.pop(id, None)
        for delivery in group._queue:
            kept = next((id for id in delivery.subscriptions if id in self.kept and id in group.filters), None)
            if delivery.number and kept is not None:
                self.early.setdefault(kept, []).append(delivery)
            else:
                self.let_go((delivery,))

    def open_rest(self, inbox: LoadedSubscriptions) -> None:
        """Make this the inbox for all that no other gets, with what came early."""
        if self.rest is not None:
            self.rest._finish(None)
        self.rest = inbox
        early, self.early = self.early, {}
        waiting = [delivery for listed in early.values() for delivery in listed]
        seen: set[str] = set()
        for delivery in sorted(waiting, key=lambda delivery: delivery.number):
            if delivery.event in seen:
                self.let_go((delivery,))
            else:
                seen.add(delivery.event)
                inbox._put(delivery)

    def close_rest(self, inbox: LoadedSubscriptions) -> None:
        """What waits in this inbox waits for another one."""
        if self.rest is inbox:
            self.rest = None
        for delivery in inbox._queue:
            self.early.setdefault(delivery.subscriptions[0], []).append(delivery)
        inbox._queue.clear()

    def leave(self, id: str) -> None:
        """A subscription is over, by the client's wish: nobody will ask for what waits for it."""
        inbox = self.inboxes.pop(id, None)
        if inbox is not None:
            self.let_go(inbox._leave(id))
        self.let_go(self.early.pop(id, ()))

    def end(self, id: str, error: NetworkError) -> None:
        """A subscription is over, by the broker's; whoever waits for its events gets the error."""
        inbox = self.inboxes.pop(id, None)
        if inbox is not None:
            inbox._finish(error)

    def end_all(self, error: NetworkError | None) -> None:
        """The client is closed, or has failed for good."""
        for inbox in {*self.inboxes.values(), *([self.rest] if self.rest is not None else [])}:
            inbox._finish(error)

    # Being done

    def take(self, deliveries: Iterable[Delivery]) -> None:
        """Deliveries leave their inboxes; the last inbox to let go of one grants it back."""
        epoch = self._protocol.epoch
        taken = size = 0
        for delivery in deliveries:
            arrival = delivery._arrival
            if arrival is None:
                if delivery._epoch == epoch:
                    taken += 1
                    size += delivery._bytes
                continue
            arrival.untaken -= 1
            # A delivery of a former session grants nothing in this one.
            if not arrival.untaken and arrival.epoch == epoch:
                taken += 1
                size += arrival.bytes
        if taken:
            self._protocol.taken(epoch, taken, size)
            self._wake()

    def finish(self, deliveries: Iterable[Delivery]) -> None:
        """Deliveries needn't come again."""
        numbers: list[int] = []
        for delivery in deliveries:
            arrival = delivery._arrival
            if arrival is None or delivery._acked:
                continue
            delivery._acked = True
            arrival.unfinished -= 1
            if arrival.number and not arrival.unfinished:
                numbers.append(arrival.number)
        if numbers:
            self._protocol.finish(*numbers)
            self._wake()

    def let_go(self, deliveries: Sequence[Delivery]) -> None:
        """Nobody will ask for these."""
        self.take(deliveries)
        self.finish(deliveries)
