"""Merging tables of Li, Hou and Jacobsen's kind (section 6, figures 14 and 15): sizes by threshold. Prints Markdown.

    python -m benchmarks.relations.merging [--subscriptions 100000] [--set A] [--pieces 1] [--measure degree]

The paper's 100,000 subscriptions became some 32,852 at threshold 0, by covering and perfect merging, and few more
merged above 0.15; its world of subscriptions isn't known beyond what `covey.lab.workloads.predicate_pools` says.
Its mergers are single predicates, hence one piece here, and its threshold bounds the degree times the merger's chance
("traffic").

Events are uniform on each attribute's range, those that are counted on drawn independently of those that degrees come
from. Wanted events match a subscription; forwarded ones match the merged table. In vain, of all pairs of an event and
an entry that matches it, are those without a matching part.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.machine import describe
from covey import Index
from covey.filters import Compare, Filter, all_of
from covey.lab.workloads.predicate_pools import ATTRIBUTES, SET_A, SET_B, Pool, draw, predicates
from covey.relations.merging import Merger, Uniform, merge_table

THRESHOLDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
INDEPENDENT = 1_000


def main() -> None:
    options = _options()
    pool = SET_A if options.set == "A" else SET_B
    entries = list(enumerate(draw(pool, options.subscriptions).subscriptions()))
    ranges = uniform(pool)
    events = ranges.events(options.events, INDEPENDENT)
    print(", ".join(f"{name} {fact}" for name, fact in describe().items() if name in ("Processor", "Cores", "Python")))
    print(f"\n{options.subscriptions:,} subscriptions of set {pool.name}, {options.events:,} events, ", end="")
    print(f"at most {options.pieces} pieces, the threshold bounds the {options.measure}.\n")
    print("| Advertised | Threshold | Entries | Seconds | Wanted events | Forwarded events | In vain |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    met = matching([one for _, one in entries], events)
    for advertisements in ((), advertised(pool)):
        for imt in options.thresholds:
            started = time.perf_counter()
            merged = merge_table(
                entries,
                imt=imt,
                chances=ranges,
                advertisements=advertisements,
                measure=options.measure,
                max_pieces=options.pieces,
            )
            seconds = time.perf_counter() - started
            allowed = np.array([not advertisements or advertisements[0].matches(event) for event in events])
            counts = false_positives(merged, met, events, allowed)
            print(
                f"| {'half' if advertisements else 'all'} | {imt} | {len(merged):,} | {seconds:.1f} | {counts} |",
                flush=True,
            )


def uniform(pool: Pool) -> Uniform:
    """Each attribute over the range of its constants."""
    highest = max(int(one.value) for one in predicates(pool) if isinstance(one.value, int))
    return Uniform(dict.fromkeys(ATTRIBUTES, (0, highest)))


def advertised(pool: Pool) -> tuple[Filter, ...]:
    """One advertisement that allows the upper half of the first four attributes."""
    highest = max(int(one.value) for one in predicates(pool) if isinstance(one.value, int))
    return (all_of(Compare(name, ">=", highest // 2) for name in ATTRIBUTES[:4]),)


def matching(filters: Sequence[Filter], events: Sequence[dict[str, Any]]) -> list[list[int]]:
    """For each event the places of the filters that it meets."""
    index = Index()
    index.add_many((str(place), one) for place, one in enumerate(filters))
    return [[int(place) for place in places] for places in index.match_batch(events).to_pylist()]


def false_positives(
    merged: Sequence[Merger[int]], met: Sequence[Sequence[int]], events: Sequence[dict[str, Any]], allowed: Any
) -> str:
    """Wanted events, forwarded events, and the part of the entries' matches that is in vain."""
    entry_of = {part: at for at, entry in enumerate(merged) for part in entry.parts}
    found = matching([entry.filter for entry in merged], events)
    wanted = forwarded = matches = useful = 0
    for event in np.flatnonzero(allowed).tolist():
        wanted += bool(met[event])
        forwarded += bool(found[event])
        matches += len(found[event])
        useful += len({entry_of[part] for part in met[event]})
    return f"{wanted:,} | {forwarded:,} | {(matches - useful) / max(matches, 1):.1%}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--set", choices=("A", "B"), default="A")
    parser.add_argument("--pieces", type=int, default=1)
    parser.add_argument("--measure", choices=("degree", "traffic"), default="degree")
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--thresholds", type=float, nargs="*", default=THRESHOLDS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
