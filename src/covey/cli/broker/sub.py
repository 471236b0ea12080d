"""`covey sub`: print events that match, as they come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from covey.cli.arguments import UsageError
from covey.cli.broker.arguments import SubOptions
from covey.cli.broker.connection import client
from covey.cli.terminal import complain

if TYPE_CHECKING:
    from covey.network.sync import Delivery


def run(options: SubOptions) -> int:
    """Print events."""
    import msgspec

    if options.remove:
        if options.id is None or options.name is None:
            raise UsageError("--remove needs --name and --id, of the subscription to end")
        with client(options) as subscriber:
            subscriber.unsubscribe(options.id)
        return 0
    if options.filter is None:
        raise UsageError("covey sub needs a filter; see covey sub --help")
    with client(options) as subscriber:
        subscription = subscriber.subscribe(
            options.filter, id=options.id, durable=options.durable, lease=options.lease, manual_ack=True,
            dialect=options.dialect,
        )  # fmt: skip
        # Whoever publishes from now on is heard: people see it, and scripts can wait for it.
        complain("subscribed")
        left = options.most
        missed = maybe = 0
        lines = msgspec.json.Encoder().encode_lines
        while left is None or left > 0:
            try:
                deliveries = subscription.get_many(options.timeout, left)
            except TimeoutError:
                return 0
            shown = list(map(_shown, deliveries)) if options.verbose else deliveries.dicts()
            sys.stdout.write(lines(shown).decode())
            sys.stdout.flush()
            # Printed is done: whoever reads the pipe has it.
            deliveries.ack()
            if subscriber.missed > missed:
                complain(f"{subscriber.missed - missed:,} events were dropped, as this came too slowly")
                missed = subscriber.missed
            if subscriber.maybe_missed > maybe:
                complain(
                    f"{subscriber.maybe_missed - maybe:,} events were lost between brokers, some of which may have "
                    "been for this subscription"
                )
                maybe = subscriber.maybe_missed
            left = None if left is None else left - len(deliveries)
    sys.stdout.flush()
    return 0


def _shown(delivery: Delivery) -> dict[str, object]:
    return {
        "event": delivery.event,
        "publisher": delivery.publisher,
        "subscriptions": delivery.subscriptions,
        "durable": delivery.durable,
        "attributes": delivery.attributes,
        **({"trace": delivery.trace} if delivery.trace else {}),
    }
