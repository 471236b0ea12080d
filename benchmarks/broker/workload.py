"""Stock quotes, and subscriptions that divide them: each event is asked for by exactly one.

Subscription i asks for one symbol and one band of its prices. covey is given that as a filter. Brokers that match
topics, or headers by equality, can't compare a price: for them the publisher itself works out the band and says it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

SYMBOLS = 10_000
HIGHEST = 1_000.0

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quotes:
    """So many subscriptions, and events that meet one of them each."""

    subscriptions: int

    @property
    def symbols(self) -> int:
        """Companies."""
        return min(SYMBOLS, self.subscriptions)

    @property
    def width(self) -> float:
        """Of a band of prices."""
        return HIGHEST / -(-self.subscriptions // self.symbols)

    def filter(self, number: int) -> str:
        """Subscription `number` for covey."""
        band, symbol = divmod(number, self.symbols)
        return f"symbol = 'S{symbol}' AND price >= {band * self.width} AND price < {(band + 1) * self.width}"

    def words(self, number: int) -> tuple[str, str]:
        """Subscription `number` where nothing can be compared: symbol and band."""
        band, symbol = divmod(number, self.symbols)
        return f"S{symbol}", f"B{band}"

    def events(self, count: int, seed: int) -> list[Event]:
        """Events, numbered, for subscriptions drawn evenly; `for` tells which, so that deliveries can be checked."""
        chance = random.Random(seed)
        events = []
        for number in range(count):
            wanted = chance.randrange(self.subscriptions)
            band, symbol = divmod(wanted, self.symbols)
            price = round((band + 0.05 + 0.9 * chance.random()) * self.width, 4)
            volume = chance.randrange(10_000)
            events.append(
                {"symbol": f"S{symbol}", "price": price, "volume": volume, "number": number, "for": wanted}
            )  # fmt: skip
        return events
