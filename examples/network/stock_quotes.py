"""Stock quotes in real time: traders at two brokers, an exchange at a third, and one trader who is away for a while.

`python examples/network/brokers.py stock_quotes.py` starts the brokers that it needs, and this.
"""

import asyncio
import random

from covey.network import connect

NEW_YORK, LONDON, TOKYO = "ws://127.0.0.1:7400", "ws://127.0.0.1:7401", "ws://127.0.0.1:7402"
START = {"IBM": 140.0, "DELL": 110.0, "SAP": 180.0}


def quotes(count: int, seed: int = 1) -> list[dict[str, object]]:
    """A random walk of made-up prices."""
    chance, prices, made = random.Random(seed), dict(START), []
    for _ in range(count):
        symbol = chance.choice(list(prices))
        prices[symbol] = round(prices[symbol] * chance.uniform(0.98, 1.02), 2)
        made.append({"symbol": symbol, "price": prices[symbol], "volume": chance.randrange(100, 20_000)})
    return made


async def trade(url: str, name: str, wish: str, ready: asyncio.Event) -> None:
    """Print what one trader hears of, until a closing bell that everyone asked for."""
    async with connect(url) as trader:
        heard = 0
        subscription = await trader.subscribe(f"({wish}) OR bell = 'closing'")
        ready.set()
        async for quote in subscription:
            if quote.attributes.get("bell") == "closing":
                break
            heard += 1
            if heard <= 3:
                print(f"{name}: {quote['symbol']} at {quote['price']}, volume {quote['volume']:,}")
        print(f"{name} heard of {heard} quotes: {wish}")


async def main() -> None:
    """One day of trading."""
    # Zoe's wish stays while she is away: the brokers keep what matches it.
    async with connect(NEW_YORK, name="zoe") as zoe:
        await zoe.subscribe("symbol = 'SAP' AND volume >= 15000", id="large-sap", durable=True)

    wishes = {
        "ann in New York": (NEW_YORK, "symbol = 'IBM' AND price < 138"),
        "bob in London": (LONDON, "symbol IN ('IBM', 'DELL') AND volume >= 19000"),
        "cyd in London": (LONDON, "price BETWEEN 100 AND 108 AND NOT symbol = 'SAP'"),
    }
    ready = {name: asyncio.Event() for name in wishes}
    traders = [asyncio.create_task(trade(url, name, wish, ready[name])) for name, (url, wish) in wishes.items()]
    # A subscription that is confirmed is known at every broker, so no quote is too early from here on.
    await asyncio.gather(*(event.wait() for event in ready.values()))
    async with connect(TOKYO, name="exchange") as exchange:
        await exchange.publish(quotes(500), durable=True)
        await exchange.publish({"bell": "closing"}, durable=True)
    await asyncio.gather(*traders)

    async with connect(NEW_YORK, name="zoe") as zoe:
        missed = await zoe.subscribe("symbol = 'SAP' AND volume >= 15000", id="large-sap", durable=True)
        kept = sum(quote["symbol"] == "SAP" and quote["volume"] >= 15_000 for quote in quotes(500))
        for _ in range(kept):
            await missed.get()
        await missed.close()
        print(f"zoe comes back, and gets the {kept} quotes that she missed")


asyncio.run(main())
