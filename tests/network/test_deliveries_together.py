"""Deliveries that come in one frame go where they would have gone one by one, and grant and acknowledge the same."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from covey.network.asyncio.deliveries import Deliveries
from covey.network.asyncio.subscription import Inbox, LoadedSubscriptions, SubscriptionGroup
from covey.network.client_protocol import ClientProtocol
from covey.routing.messages import Deliver, Welcome

NAMES = ("a", "b", "c", "stray")
CAME = st.lists(st.tuples(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True), st.booleans()))
STEPS = st.lists(CAME | st.sampled_from(["take all", "take one", "another session"]), max_size=12)


class Box(Inbox):
    """An inbox that belongs to no connection."""

    async def close(self) -> None:
        """There is nothing to close."""


async def heard(steps: list[Any], *, together: bool, rest: bool) -> list[Any]:
    """What two inboxes have handed out, and what the client has said, after each step."""
    protocol = ClientProtocol(named=True)
    protocol.welcome(Welcome("broker", ["a"], [], 0, 8, credit_bytes=4_000))
    deliveries = Deliveries(protocol, lambda: None)
    deliveries.kept = frozenset("a")
    boxes = [Box(cast("Any", None), deliveries, manual_ack=False) for _ in range(3)]
    deliveries.inboxes = {
        "a": cast("SubscriptionGroup", boxes[0]), "b": cast("SubscriptionGroup", boxes[0]),
        "c": cast("SubscriptionGroup", boxes[1]),
    }  # fmt: skip
    deliveries.rest = cast("LoadedSubscriptions", boxes[2]) if rest else None
    number = event = 0
    found: list[Any] = []
    for step in steps:
        if step == "another session":
            protocol.lost()
            protocol.welcome(Welcome("broker", ["a"], [], 0, 8, credit_bytes=4_000))
        elif isinstance(step, str):
            for box in boxes:
                if box._queue:
                    taken = await box.get_many(most=1 if step == "take one" else None)
                    found.append([(one.event, one.attributes, one.subscriptions, one.number) for one in taken])
        else:
            messages = []
            for ids, is_numbered in step:
                number, event = number + is_numbered, event + 1
                counted = number if is_numbered else 0
                messages.append(Deliver(counted, ids, {"n": event}, "ann", 0, is_numbered, f"x/{event}", bytes=300))
            if together:
                deliveries.deliver_many(messages)
            else:
                for message in messages:
                    deliveries.deliver(message)
        found.append([msgspec.msgpack.decode(one) for one in protocol.outgoing])
        found.append([protocol._used, protocol._used_bytes, protocol._came, {*deliveries.early}])
    return found


@given(STEPS, st.booleans())
def test_together_is_as_one_by_one(steps: list[Any], rest: bool) -> None:
    one_by_one = asyncio.run(heard(steps, together=False, rest=rest))
    assert asyncio.run(heard(steps, together=True, rest=rest)) == one_by_one
