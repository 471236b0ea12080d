"""Somebody who publishes to himself and measures how long that takes, in a process of his own.

    python -m tests.attacks.bystander URL PUBLISH_URL

Plain events go out at a steady pace and their ways are timed from when each was due, so a broker that stands still is
seen by all that would have gone out meanwhile. Durable ones, a few a second, show whether anything confirmed is lost.
Any line on standard input ends it; a `Seen` as JSON is printed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

import msgspec

from covey.network import connect
from covey.network.asyncio import Client, Subscription
from covey.network.errors import NetworkError

PACE: Final = 50.0
"""Plain events a second."""
DURABLE_PACE: Final = 5.0
LAST_SECONDS: Final = 15.0
"""How long to wait in the end for what was confirmed."""


class Seen(msgspec.Struct):
    """What the bystander saw; times in seconds."""

    times: list[float]
    """From when an event was due to its delivery."""
    lost: int
    """Durable events that were confirmed and didn't come."""
    failed: int
    """Publications that weren't taken."""
    missed: int = 0
    """Plain events that were confirmed and didn't come."""

    def part(self, share: float) -> float:
        """The time that this share of events took at most."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


class Bystander:
    """One run."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.due: dict[int, float] = {}
        self.confirmed: set[int] = set()
        self.came: set[int] = set()
        self.failed = 0
        self.stopped = asyncio.Event()

    async def publish(self, client: Client) -> None:
        number = 0
        began = time.monotonic()
        sending: set[asyncio.Task[None]] = set()
        while not self.stopped.is_set():
            number += 1
            due = began + number / PACE
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.due[number] = due
            sending.add(asyncio.create_task(self._send(client, number)))
            sending = {task for task in sending if not task.done()}
        await asyncio.gather(*sending)

    async def _send(self, client: Client, number: int) -> None:
        try:
            await client.publish({"bystander": number})
        except NetworkError:
            self.failed += 1
            self.due.pop(number, None)

    async def publish_durably(self, client: Client) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            try:
                await client.publish({"bystander kept": number}, durable=True)
                self.confirmed.add(number)
            except NetworkError:
                self.failed += 1
            await asyncio.sleep(1 / DURABLE_PACE)

    async def take(self, subscription: Subscription) -> None:
        async for delivery in subscription:
            due = self.due.pop(delivery["bystander"], None)
            if due is not None:
                self.times.append(time.monotonic() - due)

    async def take_durable(self, subscription: Subscription) -> None:
        async for delivery in subscription:
            self.came.add(delivery["bystander kept"])
            delivery.ack()


async def main(url: str, publish_url: str) -> Seen:
    """Go on until told to stop."""
    run = Bystander()
    loop = asyncio.get_running_loop()
    async with connect(url, name="bystander") as reader, connect(publish_url, name="bystander-too") as writer:
        plain = await reader.subscribe("bystander > 0")
        durable = await reader.subscribe("`bystander kept` <> 0", id="kept", durable=True)
        taking = [asyncio.create_task(run.take(plain)), asyncio.create_task(run.take_durable(durable))]
        while not run.came:  # until the neighbours know what is wanted here
            run.confirmed.clear()
            await writer.publish({"bystander kept": -1}, durable=True)
            await asyncio.sleep(0.1)
        print("ready", flush=True)
        sending = [asyncio.create_task(run.publish(writer)), asyncio.create_task(run.publish_durably(writer))]
        await loop.run_in_executor(None, sys.stdin.readline)
        run.stopped.set()
        await asyncio.wait(sending, timeout=LAST_SECONDS)
        end = time.monotonic() + LAST_SECONDS
        while (run.confirmed - run.came or run.due) and time.monotonic() < end:
            await asyncio.sleep(0.05)
        for task in (*taking, *sending):
            task.cancel()
        return Seen(run.times, len(run.confirmed - run.came), run.failed, len(run.due))


if __name__ == "__main__":
    print(msgspec.json.encode(asyncio.run(main(*sys.argv[1:]))).decode(), flush=True)
