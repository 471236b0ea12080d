"""`python -m tests.attacks.soak [MINUTES]` (`make soak-broker`): half an hour of churn against a broker and its
neighbour, after which neither holds more than it did after the first minutes.

Clients come and go, subscribe and unsubscribe, publish durably and plainly, acknowledge and remove what they had.
Memory is that of the larger broker; journals are looked at when everything is removed again.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from covey.network import connect
from covey.network.errors import NetworkError
from tests.attacks.ground import Ground, ground

MINUTES: Final = 30.0
SETTLED: Final = 1 / 6
"""The part of the time after which memory counts as settled: five minutes of thirty."""
GROWTH: Final = 1.05
CHURNERS: Final = 4
TURN_SECONDS: Final = 0.5
"""A churner comes so often, and no more often where the machine has more time: what is kept for `REMEMBER_SECONDS`, and
with it memory, would follow how busy the machine is with other things."""
REMEMBER_SECONDS: Final = 60.0
"""How long durable events are kept for neighbours: they fill memory and journals until the first of them go, which by
default is after ten minutes, when memory should have settled."""
SETTLING_SECONDS: Final = 120.0
"""How long a journal may take to shrink again."""


async def main(minutes: float) -> int:
    """Go on for so long, then say whether anything was left behind."""
    with tempfile.TemporaryDirectory() as folder:
        async with ground(Path(folder), 2, {"timing": {"remember": REMEMBER_SECONDS}}) as brokers:
            await _churn(brokers, 0, time.monotonic() + 2.0)
            journal = brokers.journal_bytes()
            end = time.monotonic() + minutes * 60
            churning = [asyncio.create_task(_churn(brokers, number, end)) for number in range(CHURNERS)]
            settled = await _watch(brokers, minutes * 60)
            await asyncio.gather(*churning)
            last = max(brokers.memory(at) for at in range(2))
            until = time.monotonic() + SETTLING_SECONDS
            while brokers.journal_bytes() > journal and time.monotonic() < until:
                await asyncio.sleep(1.0)
            left = brokers.journal_bytes()
    good = last <= settled * GROWTH and left <= journal
    print(
        f"memory {settled / 2**20:.1f} MiB after {minutes * SETTLED:.1f} min, {last / 2**20:.1f} MiB in the end "
        f"({last / settled - 1:+.1%}); journal {journal:,} bytes at first, {left:,} in the end: "
        f"{'nothing left behind' if good else 'too much'}"
    )
    return 0 if good else 1


async def _watch(brokers: Ground, seconds: float) -> int:
    """Show memory as it goes, and give the one that counts as settled."""
    began = time.monotonic()
    settled = 0
    while (passed := time.monotonic() - began) < seconds:
        brokers.look()
        now = max(brokers.memory(at) for at in range(2))
        if not settled and passed >= seconds * SETTLED:
            settled = now
        print(f"{passed:6.0f} s  {now / 2**20:7.1f} MiB  journals {brokers.journal_bytes():,}", flush=True)
        await asyncio.sleep(min(10.0, seconds / 30))
    return settled


async def _churn(brokers: Ground, number: int, end: float) -> None:
    """One who comes and goes."""
    chance = random.Random(number)
    turn = 0
    while time.monotonic() < end:
        turn += 1
        due = time.monotonic() + TURN_SECONDS
        url = brokers.urls[chance.randrange(2)]
        name = f"c{number}"
        with suppress(NetworkError):
            async with connect(url, name=name) as client:
                filters = {
                    f"s{at}": f"x = {chance.randrange(1_000)} AND y < {chance.randrange(100)} OR z = {at}"
                    for at in range(chance.randrange(1, 60))
                }
                await client.subscribe_many(filters)
                kept = await client.subscribe(f"x = {number} AND durable = 1", id="kept", durable=True)
                for _ in range(chance.randrange(1, 10)):
                    await client.publish({"x": chance.randrange(1_000), "y": chance.randrange(100), "z": 70})
                    await client.publish(
                        {"x": number, "durable": 1, "text": "t" * chance.randrange(5_000)}, durable=True
                    )
                for delivery in await kept.get_many():
                    delivery.ack()
                await client.unsubscribe("kept")
                await client.unsubscribe(*filters)
        await asyncio.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES)))
