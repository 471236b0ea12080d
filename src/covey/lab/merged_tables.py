"""Routing tables of Li, Hou and Jacobsen's sets: made smaller by each method, and asked by publications.

Each function here measures one point of figures 12, 14, 15 or table 2. Publications are integers, uniform on every
attribute's range, as in their evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters import Compare, Filter, all_of
from covey.lab.experiments import Row
from covey.lab.measuring import seconds, without_collecting
from covey.lab.plain_scans import LinearScan
from covey.lab.workloads.blocks import generator
from covey.lab.workloads.predicate_pools import ATTRIBUTES, POOLS, Pool, draw, predicates
from covey.matching import Index
from covey.relations.covering import CoveringTable
from covey.relations.merging import MAX_PIECES, Merger, Uniform, merge_table

METHODS: Final = ("none", "covering", "perfect merging", "imperfect merging")
SINGLE_PIECE: Final = 1
"""The paper's mergers replace a predicate by one predicate."""
ADVERTISED_ATTRIBUTES: Final = 4
"""How many attributes, the most asked for, the advertisement bounds."""
SCANNED: Final = 4
"""Publications that are held against every entry by the interpreter; it takes some microseconds an entry."""
ASKED_ALONE: Final = 200
"""Publications that are matched one at a time."""
MATCHED_AT_ONCE: Final = 2_000

THRESHOLDS: Final = (0.0, 0.025, 0.05, 0.1, 0.15, 0.3, 0.6, 1.0)
COARSE: Final = (0.0, 0.1, 0.3)
PIECES: Final = (SINGLE_PIECE, 2, MAX_PIECES)
"""How many values or intervals a merged test may list: one, as in the paper's table 1, or more."""
ORDERS: Final = ("popular last", "random", "popular first")

Measured = Literal["degree", "traffic"]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def routing_table(point: Row) -> Row:
    """How many entries a method leaves of a set, and how long a publication takes on them."""
    pool, count, seed = POOLS[str(point["set"])], cast(int, point["subscriptions"]), cast(int, point["seed"])
    with without_collecting():
        filters = draw(pool, count, seed).subscriptions()
        entries = compacted(pool, filters, str(point["method"]), cast(float, point["imt"]))
        index = Index()
        index.add_many((str(at), one) for at, one in enumerate(entries))
        events = publications(pool, cast(int, point["publications"]), seed)
        index.wait()
        index.match_batch(events.slice(0, 1))
        found = len(index.match_batch(events.slice(0, MATCHED_AT_ONCE)))
        batch = seconds(match_all, index, events)
        alone = events.slice(0, ASKED_ALONE).to_pylist()
        index.match(alone[0])
        single = seconds(lambda: [index.match(event) for event in alone])
        scanned = LinearScan(entries)
        scan = seconds(lambda: [scanned.match(event) for event in alone[:SCANNED]])
    return {
        "entries": len(entries),
        "removed": round(1 - len(entries) / count, 4),
        "matches a publication": round(found / min(MATCHED_AT_ONCE, events.num_rows), 1),
        "batch µs": round(batch / events.num_rows * 1e6, 2),
        "single µs": round(single / len(alone) * 1e6, 1),
        "scan µs": round(scan / len(alone[:SCANNED]) * 1e6, 1),
    }


def merged_tables(point: Row) -> list[Row]:
    """A table merged at one threshold after the other: its entries, and what it forwards that nobody wanted."""
    pool, count, seed = POOLS[str(point["set"])], cast(int, point["subscriptions"]), cast(int, point["seed"])
    share = cast(float, point["advertised"])
    rows: list[Row] = []
    with without_collecting():
        filters = draw(pool, count, seed).subscriptions()
        events = publications(pool, cast(int, point["publications"]), seed, share)
        wanted = pairs_of(filters, events)
        for imt in THRESHOLDS if point["steps"] == "fine" else COARSE:
            merged = merge_table(
                enumerate(filters),
                imt=imt,
                chances=uniform(pool),
                advertisements=advertisement(pool, share),
                measure=cast(Measured, point["measure"]),
                max_pieces=SINGLE_PIECE,
            )
            rows.append({"imt": imt, "entries": len(merged), **in_vain(wanted, merged, count, events)})
    return rows


def drawn_set(point: Row) -> Row:
    """What covering and perfect merging leave of a set that is drawn another way."""
    pool, count = _pool(point), cast(int, point["subscriptions"])
    with without_collecting():
        filters = draw(pool, count, cast(int, point["seed"])).subscriptions()
        covering = len(compacted(pool, filters, "covering", 0.0))
        left = {pieces: len(merge_table(enumerate(filters), max_pieces=pieces)) for pieces in PIECES}
    return {
        "covered": round(1 - covering / count, 4),
        **{merged_by(pieces): round(1 - entries / covering, 4) for pieces, entries in left.items()},
    }


def merged_by(pieces: int) -> str:
    """The column of what perfect merging takes off the rest, where a merged test lists so many values or intervals."""
    return f"merged, up to {pieces} {'piece' if pieces == 1 else 'pieces'}"


def _pool(point: Row) -> Pool:
    """A set with other predicates in a subscription, other operators, other popularity of attributes."""
    return replace(
        POOLS[str(point["set"])],
        widths=((cast(int, point["width"]), 1.0),),
        equal_share=cast(float, point["equalities"]),
        skew=cast(float, point["skew"]),
    )


def compacted(pool: Pool, filters: Sequence[Filter], method: str, imt: float) -> list[Filter]:
    """The entries that a method leaves of subscriptions."""
    if method == "none":
        return list(filters)
    if method == "covering":
        table = CoveringTable()
        table.insert_many(enumerate(filters))
        return [table.filter(id) for id in table.roots()]
    threshold = imt if method == "imperfect merging" else 0.0
    merged = merge_table(
        enumerate(filters), imt=threshold, chances=uniform(pool), measure="traffic", max_pieces=SINGLE_PIECE
    )
    return [entry.filter for entry in merged]


def merged_by_order(point: Row) -> list[Row]:
    """Perfect mergers where only subscriptions that differ in the first attribute of an order are candidates, as among
    the output nodes of one MBD."""
    pool, count, seed = _pool(point), cast(int, point["subscriptions"]), cast(int, point["seed"])
    with without_collecting():
        roots = compacted(pool, draw(pool, count, seed).subscriptions(), "covering", 0.0)
        return [{"order": name, "covering": len(roots), **_merged_first(roots, name, seed)} for name in ORDERS]


def _merged_first(roots: Sequence[Filter], name: str, seed: int) -> Row:
    order = attribute_order(name, seed)
    groups: dict[tuple[str, frozenset[Filter]], list[Filter]] = {}
    for root in roots:
        parts = sorted(_conjuncts(root), key=lambda part: order[part.attribute])
        groups.setdefault((parts[0].attribute, frozenset(parts[1:])), []).append(root)
    left = sum(
        len(merge_table(enumerate(group), max_pieces=MAX_PIECES)) if len(group) > 1 else 1 for group in groups.values()
    )
    return {"with the same rest": len(roots) - len(groups), "entries": left}


def attribute_order(name: str, seed: int) -> dict[str, int]:
    """Places of the attributes, the one that is tested first at 0: the popular ones last or first, or at random."""
    if name == "random":
        order = [str(one) for one in generator(seed, "attribute order").permutation(np.array(ATTRIBUTES))]
    else:
        order = list(ATTRIBUTES if name == "popular first" else reversed(ATTRIBUTES))
    return {attribute: place for place, attribute in enumerate(order)}


def _conjuncts(condition: Filter) -> list[Compare]:
    return [part for part in getattr(condition, "parts", (condition,)) if isinstance(part, Compare)]


def uniform(pool: Pool) -> Uniform:
    """Each attribute over the range of its constants."""
    return Uniform(dict.fromkeys(ATTRIBUTES, (0, highest(pool))))


def highest(pool: Pool) -> int:
    """The largest constant of a set."""
    return max(int(predicate.value) for predicate in predicates(pool) if isinstance(predicate.value, int))


def advertisement(pool: Pool, share: float) -> tuple[Filter, ...]:
    """One that allows the upper `share` of the values of the first attributes; none for all of them."""
    if share >= 1:
        return ()
    least = _least(pool, share)
    return (all_of(Compare(name, ">=", least) for name in ATTRIBUTES[:ADVERTISED_ATTRIBUTES]),)


def publications(pool: Pool, count: int, seed: int, share: float = 1.0) -> pa.Table:
    """Events that are uniform over what is advertised."""
    rng = generator(seed, "publications")
    top = highest(pool)
    least = [_least(pool, share) if at < ADVERTISED_ATTRIBUTES else 0 for at in range(len(ATTRIBUTES))]
    return pa.table({name: rng.integers(least[at], top + 1, count) for at, name in enumerate(ATTRIBUTES)})


def _least(pool: Pool, share: float) -> int:
    return round((1 - share) * highest(pool))


def in_vain(wanted_pairs: Pairs, merged: Sequence[Merger[int]], count: int, events: pa.Table) -> Row:
    """Publications that somebody wants and that are forwarded; of all pairs of a publication and an entry that matches
    it, the part without a matching subscription behind the entry."""
    entry_of = np.zeros(count, np.int64)
    for at, entry in enumerate(merged):
        entry_of[list(entry.parts)] = at
    event, subscription = wanted_pairs
    useful = np.unique(event * len(merged) + entry_of[subscription])
    forwarded, entries = pairs_of([entry.filter for entry in merged], events)
    wanted = len(np.unique(event))
    return {
        "wanted": wanted,
        "forwarded": len(np.unique(forwarded)),
        "false events": round(1 - wanted / max(1, len(np.unique(forwarded))), 5),
        "pairs": len(entries),
        "false pairs": round(1 - len(useful) / max(1, len(entries)), 5),
    }


def pairs_of(filters: Sequence[Filter], events: pa.Table) -> Pairs:
    """All matching pairs: the event's row, the filter's place."""
    index = Index()
    index.add_many((str(at), one) for at, one in enumerate(filters))
    pairs = index.match_batch(events).pairs()
    ids = pairs["subscription"].combine_chunks()
    places = np.array(ids.dictionary.to_pylist(), dtype=np.int64)
    return pairs["event"].to_numpy(), places[ids.indices.to_numpy()]


def match_all(index: Index, events: pa.Table) -> None:
    """Match events some thousand at a time, on one thread."""
    for first in range(0, events.num_rows, MATCHED_AT_ONCE):
        index.match_batch(events.slice(first, MATCHED_AT_ONCE), threads=1)
