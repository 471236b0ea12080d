"""One client as a process: `python -m benchmarks.broker.role publisher|subscriber SYSTEM ADDRESS SUBSCRIPTIONS`.

Reads commands from its input, one JSON object a line, and answers each with another. Times are those of the machine's
monotonic clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from benchmarks.broker.workload import Event, Quotes


class Tally:
    """What came since it was set back."""

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes
        self._enough = asyncio.Event()
        self.set_back(0)

    def set_back(self, goal: int) -> None:
        self.goal, self.count, self.numbers, self.wrong, self.last = goal, 0, 0, 0, 0.0
        self.latencies: list[float] = []
        self._enough.clear()

    def take(self, deliveries: list[tuple[int, Event]]) -> None:
        """Deliveries, each with the subscription that it came for (-1 where that isn't said)."""
        now = time.monotonic()
        for subscription, event in deliveries:
            self.numbers += event["number"]
            if subscription >= 0 and subscription != event["for"]:
                self.wrong += 1
            if "sent" in event:
                self.latencies.append(now - event["sent"])
        self.count += len(deliveries)
        self.last = now
        if self.count >= self.goal:
            self._enough.set()

    async def wait(self, seconds: float) -> None:
        """Until all came, or time is up."""
        try:
            await asyncio.wait_for(self._enough.wait(), seconds)
        except TimeoutError:
            return


def clients(system: str) -> tuple[Any, Any]:
    """The subscriber and the publisher of a system."""
    if system.startswith("covey"):
        from benchmarks.broker import covey_clients as covey

        durable = "durable" in system
        return covey.Subscriber(durable=durable), covey.Publisher(durable=durable)
    if system == "rabbitmq":
        from benchmarks.broker import rabbit_clients as rabbit

        return rabbit.RabbitSubscriber(), rabbit.RabbitPublisher()
    from benchmarks.broker import line_clients as lines

    if system == "mosquitto":
        return lines.MqttSubscriber(), lines.MqttPublisher()
    return lines.NatsSubscriber(), lines.NatsPublisher()


async def subscriber(client: Any, address: str, quotes: Quotes) -> None:
    await client.open(address)
    command = await _command()
    start, used = time.monotonic(), time.process_time()
    made = await client.subscribe(quotes, command["seconds"])
    _answer({"made": made, "seconds": time.monotonic() - start, "cpu": time.process_time() - used})
    tally = Tally(quotes)
    receiving = asyncio.create_task(client.receive(tally.take))
    while command := await _command():
        tally.set_back(command["events"])
        used, missed = time.process_time(), client.missed
        _answer({})
        await tally.wait(command["seconds"])
        if receiving.done():
            receiving.result()
        ordered = sorted(tally.latencies)
        _answer(
            {
                "count": tally.count, "numbers": tally.numbers, "wrong": tally.wrong, "last": tally.last,
                "cpu": time.process_time() - used, "missed": client.missed - missed,
                "p50": _part(ordered, 0.5), "p99": _part(ordered, 0.99),
            }
        )  # fmt: skip
    receiving.cancel()


async def publisher(client: Any, address: str, quotes: Quotes) -> None:
    await client.open(address, quotes)
    while command := await _command():
        events, size = quotes.events(command["events"], command["seed"]), command["batch"]
        batches = [events[first : first + size] for first in range(0, len(events), size)]
        start, used = time.monotonic(), time.process_time()
        if command["rate"]:
            await _pace(client, batches, size / command["rate"])
        else:
            await client.publish(batches)
        _answer({"start": start, "cpu": time.process_time() - used})


async def _pace(client: Any, batches: list[list[Event]], pause: float) -> None:
    """Batches at an even pace, each event with the time when it was due."""
    start = time.monotonic()
    under_way = set()
    for at, batch in enumerate(batches):
        due = start + at * pause
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        for event in batch:
            event["sent"] = due
        task = asyncio.create_task(client.publish([batch]))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


def _part(ordered: list[float], part: float) -> float:
    return ordered[int(len(ordered) * part)] if ordered else 0.0


async def _command() -> dict[str, Any]:
    line = await asyncio.to_thread(sys.stdin.readline)
    found: dict[str, Any] = json.loads(line) if line.strip() else {}
    return found


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    role, system, address, subscriptions = sys.argv[1:]
    quotes = Quotes(int(subscriptions))
    one, other = clients(system)
    asyncio.run(subscriber(one, address, quotes) if role == "subscriber" else publisher(other, address, quotes))


if __name__ == "__main__":
    main()
