"""`python -m benchmarks.history`: what a profile of past events and subscriptions is good for, each use beside none.

Four uses, one run: the variable order of shared diagrams, an index's accesses, imperfect merging at a threshold, and
pruning. Events that are learned from and events that are counted on are drawn apart. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import covey
from benchmarks import sections
from covey.diagrams import SharedDiagram
from covey.filters import Filter
from covey.history import Chances, Profile
from covey.lab.workloads.auctions import generate as auctions
from covey.matching import Index
from covey.relations.merging import Uniform, merge_table
from covey.relations.pruning import Pruner


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def quotes(rng: np.random.Generator, count: int) -> pa.Table:
    """Events of a skewed world: nine in ten come from one exchange, prices crowd at the low end, and a currency follows
    from the exchange."""
    exchange = np.where(rng.random(count) < 0.9, 0, rng.integers(1, 20, count))
    price = np.round(np.minimum(1000, rng.exponential(30, count)), 2)
    return pa.table(
        {
            "exchange": [f"X{number}" for number in exchange],
            "currency": [f"C{number % 5}" for number in exchange],
            "account": [f"A{number}" for number in rng.integers(0, 2_000, count)],
            "price": price,
        }
    )


def wishes(rng: np.random.Generator, count: int) -> list[Filter]:
    """Subscriptions by people who don't know how events are spread: exchanges evenly, prices evenly."""
    exchanges, accounts = rng.integers(0, 20, count), rng.zipf(1.3, count) % 2_000
    lows, widths = rng.integers(0, 900, count), rng.integers(1, 100, count)
    return [
        covey.parse(f"exchange = 'X{exchange}' AND account = 'A{account}' AND price BETWEEN {low} AND {low + width}")
        for exchange, account, low, width in zip(exchanges, accounts, lows, widths, strict=True)
    ]


def tickets(rng: np.random.Generator, count: int) -> list[Filter]:
    """Subscriptions to plane tickets (the example of Li, Hou and Jacobsen, section 3.2): few classes and destinations,
    many dates and prices, some asked for by all and some by few."""
    draw = {
        "class": rng.integers(0, 3, count), "date": rng.integers(0, 365, count),
        "destination": rng.zipf(1.5, count) % 50, "price": rng.integers(50, 2_000, count),
    }  # fmt: skip
    filters = []
    for row in zip(*draw.values(), rng.random((count, 2)), strict=True):
        klass, date, destination, price, (with_class, with_date) = row
        parts = [f"destination = 'D{destination}'", f"price < {price}"]
        parts += [f"class = {klass}"] if with_class < 0.8 else []
        parts += [f"date = {date}"] if with_date < 0.3 else []
        filters.append(covey.parse(" AND ".join(parts)))
    return filters


def ranges(rng: np.random.Generator, count: int) -> list[Filter]:
    """Subscriptions to an exchange and a range of prices, which merge well."""
    exchanges, lows, widths = rng.integers(0, 20, count), rng.integers(0, 900, count), rng.integers(1, 20, count)
    return [
        covey.parse(f"exchange = 'X{exchange}' AND price BETWEEN {low} AND {low + width}")
        for exchange, low, width in zip(exchanges, lows, widths, strict=True)
    ]


def orders(filters: Sequence[Filter], profile: Profile) -> list[str]:
    """Nodes of one shared diagram under each order."""
    rows = ["| variable order | nodes | of the random order's |", "|---|---:|---:|"]
    nodes: dict[str, int] = {}
    for order in ("random", "attribute", "learned"):
        diagram = SharedDiagram()
        diagram.add_many(enumerate(filters), order=order, history=profile.history() if order == "learned" else None)
        nodes[order] = diagram.node_count()
        shown = "learned from a profile of other subscriptions" if order == "learned" else order
        rows.append(f"| {shown} | {nodes[order]:,} | {nodes[order] / nodes['random']:.2f} |")
    return rows


def accesses(filters: Sequence[Filter], events: pa.Table, profile: Profile) -> list[str]:
    """Events a second with and without statistics, best of several, in turns."""
    subscriptions = [(str(number), one) for number, one in enumerate(filters)]
    indexes = {"no profile": Index(), "profile": Index(statistics=profile.statistics())}
    totals = set()
    for index in indexes.values():
        index.add_many(subscriptions)
        totals.add(len(index.match_batch(events)))
    assert len(totals) == 1, "the same answers"
    best = dict.fromkeys(indexes, float("inf"))
    for _ in range(5):
        for name, index in indexes.items():
            start = time.perf_counter()
            index.match_batch(events)
            best[name] = min(best[name], time.perf_counter() - start)
    rows = ["| index | events/s | |", "|---|---:|---:|"]
    for name, seconds in best.items():
        rows.append(f"| {name} | {events.num_rows / seconds:,.0f} | {best['no profile'] / seconds:.2f}× |")
    return rows


def in_vain(pairs: Sequence[tuple[Filter, Sequence[Filter]]], events: pa.Table) -> float:
    """Of the matches of some filters, the part that none of what they stand for matches."""
    index = Index()
    index.add_many((f"m{at}", whole) for at, (whole, _) in enumerate(pairs))
    index.add_many(
        (f"p{at}.{number}", part) for at, (_, parts) in enumerate(pairs) for number, part in enumerate(parts)
    )
    wanted = matched = 0
    for ids in index.match_batch(events).to_pylist():
        mergers = {id[1:] for id in ids if id[0] == "m"}
        matched += len(mergers)
        wanted += len({id[1:].partition(".")[0] for id in ids if id[0] == "p"} & mergers)
    return 1 - wanted / matched if matched else 0.0


def mergings(filters: Sequence[Filter], sources: dict[str, Chances], events: pa.Table, imt: float) -> list[str]:
    """Entries left at a threshold, and what of their matches is in vain."""
    entries = [(number, one) for number, one in enumerate(filters)]
    rows = ["| estimates from | entries left | matches in vain |", "|---|---:|---:|"]
    for name, chances in sources.items():
        merged = merge_table(entries, imt=imt, chances=chances)
        vain = in_vain([(one.filter, [filters[part] for part in one.parts]) for one in merged], events)
        rows.append(f"| {name} | {len(merged):,} of {len(filters):,} | {vain:.2%} |")
        say(rows[-1])
    return rows


def prunings(filters: Sequence[Filter], sources: dict[str, Chances], events: pa.Table, share: float) -> list[str]:
    """After a share of all prunings for the network, how much more is matched."""
    subscriptions = [(str(number), one) for number, one in enumerate(filters)]
    rows = ["| estimates from | prunings | matches, of those without pruning |", "|---|---:|---:|"]
    before = _matches(subscriptions, events)
    for name, chances in sources.items():
        pruner = Pruner(subscriptions, chances)
        count = int(share * pruner.total_possible)
        pruner.prune(count=count)
        rows.append(f"| {name} | {count:,} | {_matches(list(pruner.filters()), events) / before:.2f}× |")
        say(rows[-1])
    return rows


def _matches(subscriptions: Sequence[tuple[str, Filter]], events: pa.Table) -> int:
    index = Index()
    index.add_many(subscriptions)
    return sum(len(index.match_batch(events.slice(first, 500))) for first in range(0, events.num_rows, 500))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    count = int(50_000 * options.scale)
    past, filters = wishes(rng, count // 5), wishes(rng, count)
    learned_from, counted_on = quotes(rng, 200_000), quotes(rng, 200_000)
    profile = Profile.of(learned_from, past)
    parts = [f"An index of {count:,} subscriptions that spread evenly, events that don't:\n"]
    say("orders")
    flights = Profile.of(subscriptions=tickets(rng, count // 5))
    parts.insert(0, f"Diagrams of {count:,} subscriptions to plane tickets:\n")
    parts[1:1] = [*orders(tickets(rng, count), flights), ""]
    say("accesses")
    parts += [*accesses(filters, counted_on, profile), ""]
    say("merging")
    some = ranges(rng, count // 100)
    parts += [f"Imperfect merging of {len(some):,} subscriptions to ranges of prices, up to a degree of 0.1:\n"]
    guess = Uniform.around(some)
    parts += [
        *mergings(some, {"no events: uniform": guess, "the profile": profile}, counted_on.slice(0, 20_000), 0.1),
        "",
    ]
    say("pruning")
    books = auctions(int(20_000 * options.scale), 12_000)
    wanted = [one for _, one in books.subscriptions]
    learned = Profile.of(books.events.slice(0, 10_000), wanted)
    sources: dict[str, Chances] = {"no events: uniform": Uniform.around(wanted), "the profile": learned}
    parts += [f"A third of all prunings of {len(wanted):,} book auctions' subscriptions, for the network:\n"]
    parts += [*prunings(wanted, sources, books.events.slice(10_000), 1 / 3), ""]
    text = "\n".join(parts)
    print(text)
    if options.write:
        sections.write(
            "history", "What a profile is good for", ["python", "-m", "benchmarks.history", *sys.argv[1:]], text
        )


if __name__ == "__main__":
    main()
