"""`covey hits`: how many events each subscription matched."""

from __future__ import annotations

import json

from covey.cli.broker.arguments import HitsOptions
from covey.cli.broker.connection import ask


def run(options: HitsOptions) -> int:
    """The subscriptions with the most hits, or the fewest."""
    query = {"limit": str(options.rows), "order": "fewest" if options.fewest else "most"}
    if options.client is not None:
        query["client"] = options.client
    found = ask(options, "/v1/hits", query=query)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    rows = [("hits", "client", "id", "filter")]
    rows += [(f"{row['hits']:,}", row["client"], row["id"], row["filter"]) for row in found["rows"]]
    hits, client, id = (max(len(row[column]) for row in rows) for column in range(3))
    for row in rows if found["rows"] else ():
        print(f"{row[0]:>{hits}}  {row[1]:<{client}}  {row[2]:<{id}}  {row[3]}")
    without = f"; {found['without']:,} without any" if found["without"] else ""
    print(f"{found['subscriptions']:,} subscriptions of clients of {found['broker']}, {found['hits']:,} hits{without}")
    return 0
