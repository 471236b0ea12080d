"""Meta-auctions: one bidder watches two auction houses as if they were one.

Each house advertises what it sells and publishes its bids at a broker of its own. The meta-auctioneer doesn't know the
houses. It subscribes to advertisements, which the brokers publish as events of their own, and then to what they offer;
it tells its bidder where an item is cheapest, and bids there.

`python examples/network/brokers.py meta_auctions.py` starts the brokers that it needs, and this.
"""

import asyncio

from covey.network import connect

WEST, MIDDLE, EAST = "ws://127.0.0.1:7400", "ws://127.0.0.1:7401", "ws://127.0.0.1:7402"
LIMIT = 130


async def auction(url: str, house: str, item: str, price: int, done: asyncio.Event) -> None:
    """Sell one item to the highest bidder: each round announces the price, and a bid raises it."""
    async with connect(url, name=house) as seller:
        await seller.advertise(f"house = '{house}' AND kind = 'offer'", id="offers")
        bids = await seller.subscribe(f"kind = 'bid' AND house = '{house}'")
        while not done.is_set():
            await seller.publish({"kind": "offer", "house": house, "item": item, "price": price})
            try:
                bid = await asyncio.wait_for(bids.get(), 0.3)
            except TimeoutError:
                continue
            price = max(price, bid["price"])
            print(f"{house}: {bid['bidder']} bids {price} for the {item}")


async def bid_everywhere(done: asyncio.Event, watching: asyncio.Event) -> None:
    """Find houses by their advertisements, and bid where the clock is cheapest."""
    async with connect(MIDDLE, name="meta-auctioneer") as client:
        houses = await client.subscribe("`covey.meta` = 'advertised' AND client LIKE '%-house'")
        watching.set()
        found = [await houses.get() for _ in range(2)]
        for advert in found:
            print(f"found {advert['client']} at broker {advert['broker']}, which offers {advert['filter']}")
        wanted = " OR ".join(f"({advert['filter']})" for advert in found)
        offers = await client.subscribe(f"({wanted}) AND item = 'clock' AND price < {LIMIT}")
        prices: dict[str, int] = {}
        for _ in range(6):
            while len(prices) < 2:
                offer = await offers.get()
                prices[offer["house"]] = offer["price"]
            cheapest = min(prices, key=lambda house: prices[house])
            bid = prices.pop(cheapest) + 10
            if bid >= LIMIT:
                print(f"dee stops, as {LIMIT} is too much")
                break
            await client.publish({"kind": "bid", "house": cheapest, "bidder": "dee", "price": bid})
            # An older offer may still be on its way; wait for the one that knows of the bid.
            while prices.get(cheapest, 0) < bid:
                offer = await offers.get()
                prices[offer["house"]] = offer["price"]
        done.set()


async def main() -> None:
    """Two auctions and one bidder."""
    done, watching = asyncio.Event(), asyncio.Event()
    bidder = asyncio.create_task(bid_everywhere(done, watching))
    await watching.wait()
    houses = [
        asyncio.create_task(auction(WEST, "west-house", "clock", 90, done)),
        asyncio.create_task(auction(EAST, "east-house", "clock", 105, done)),
    ]
    await asyncio.wait_for(asyncio.gather(bidder, *houses), 60)
    print("the auctions are over")


asyncio.run(main())
