"""Traders say what they want to hear of; each quote reaches those who asked for it, and the index can say why."""

import covey

index = covey.Index()
index.add("ann", "symbol = 'IBM' AND price < 150")
index.add("bob", "symbol IN ('IBM', 'DELL') AND volume >= 10000")
index.add("cyd", covey.attr("price").between(100, 200) & ~(covey.attr("symbol") == "DELL"))

quotes = [
    {"symbol": "IBM", "price": 142.5, "volume": 12_000},
    {"symbol": "DELL", "price": 118.0, "volume": 900},
    {"symbol": "DELL", "price": 117.2, "volume": 45_000},
]
for quote in quotes:
    print(quote["symbol"], quote["price"], "->", ", ".join(index.match(quote)) or "nobody")

# Subscriptions come and go while events are matched.
index.replace("ann", "symbol = 'IBM' AND price < 140")
index.remove("bob")
print("after the changes:", index.match(quotes[0]))
print(index.explain("ann", quotes[0]))
