"""A program of a user's, as type checkers see it: it is checked with `mypy --strict`, against the package alone.

It is also run where covey is installed from a wheel, up to what needs a broker.
"""

import asyncio
from typing import Any, assert_type

import covey
from covey.network.asyncio import Client
from covey.network.sync import Client as SyncClient

index = covey.Index()
index.add("ann", "company = 'IBM' AND price < 150")
report = index.add_many([("bob", "price > 10"), ("cyd", covey.attr("halted") == True)])  # noqa: E712
assert_type(report, covey.AddReport)
assert_type(index.match({"company": "IBM", "price": 142.5}), list[Any])
assert_type(index.match_batch([{"price": 5}]), covey.Matches)
assert_type(index.explain("ann", {"price": 5}), covey.Explanation)
assert_type(covey.parse("price < 5"), covey.Filter)
assert_type(covey.parse("price < 5").covers(covey.parse("price < 3")), bool)
assert_type(covey.__version__, str)


async def publish(url: str) -> None:
    async with covey.connect(url) as client:
        assert_type(client, Client)
        await client.publish({"price": 5})


def listen(url: str) -> None:
    with covey.connect_sync(url, name="ann") as client:
        assert_type(client, SyncClient)
        client.subscribe("price < 10")


def main(url: str) -> None:
    asyncio.run(publish(url))
    listen(url)


print(index.match({"company": "IBM", "price": 142.5}))
