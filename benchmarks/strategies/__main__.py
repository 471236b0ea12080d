"""`python -m benchmarks.strategies`: traffic and table sizes of every strategy on the same workload, in one table.

Stops where a strategy delivers anything else than an index over all subscriptions says, to anyone. `--write` puts the
table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse

from benchmarks import sections
from benchmarks.machine import describe
from benchmarks.strategies.measure import (
    BROKERS,
    IMT,
    MANY,
    ROUNDS,
    SHARE,
    Measured,
    adaptive_or_not,
    expected,
    measure,
    strategies,
)
from benchmarks.strategies.workload import generate

HEADER = (
    "| strategy | control messages | their bytes | entries | largest table | predicates | events forwarded "
    "| false positives | false deliveries | s subscribing | s publishing |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strategies", description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=500)
    parser.add_argument("--quotes", type=int, default=4_000)
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    workload = generate(options.subscriptions, options.quotes)
    deliveries, matches = expected(workload)
    rows = [HEADER]
    print(HEADER)
    for strategy in strategies(workload):
        found = measure(strategy, workload)
        _check(found, deliveries, matches)
        rows.append(_row(found))
        print(rows[-1], flush=True)
    many = round(MANY * options.subscriptions)
    workload = generate(many, options.quotes)
    deliveries_of_many = expected(workload)
    wanted = [HEADER]
    print(f"\n{many:,} subscriptions\n{HEADER}")
    for found in adaptive_or_not(workload):
        _check(found, *deliveries_of_many)
        wanted.append(_row(found))
        print(wanted[-1], flush=True)
    rows += ["", _about_many(many, found), "", *wanted]
    if options.write:
        intro = _intro(options.subscriptions, len(workload.ended), options.quotes, deliveries, matches)
        command = ["python", "-m", "benchmarks.strategies"]
        sections.write("strategies", "Routing strategies", command, f"{intro}\n\n" + "\n".join(rows))


def _check(found: Measured, deliveries: int, matches: int) -> None:
    got = found.publishing
    if (got.deliveries, got.matches, got.false_deliveries) != (deliveries, matches, 0):
        raise SystemExit(
            f"{found.name}: {got.deliveries:,} deliveries of {got.matches:,} matches, {got.false_deliveries:,} false; "
            f"an index says {deliveries:,} of {matches:,}"
        )


def _row(found: Measured) -> str:
    said, sent = found.subscribing, found.publishing
    subscribing, publishing = found.handling
    return (
        f"| {found.name} | {said.control_messages:,} | {said.control_bytes:,} | {sent.entries:,} | {sent.largest:,} "
        f"| {sent.predicates:,} | {sent.forwarded:,} | {sent.false_positives:,} | {sent.false_deliveries:,} "
        f"| {subscribing:.1f} | {publishing:.2f} |"
    )


def _about_many(subscriptions: int, found: Measured) -> str:
    sent = found.publishing
    return (
        f"With {subscriptions:,} subscriptions most events are wanted beyond most links, which is what adaptive "
        f"filtering is for: of {sent.forwarded:,} events that it forwards {sent.forwarded - sent.false_positives:,} "
        f"are wanted, and what isn't filtered needn't be matched. By turns, the best of {ROUNDS} rounds."
    )


def _intro(subscriptions: int, ended: int, quotes: int, deliveries: int, matches: int) -> str:
    facts = describe()
    return (
        f"{facts['Processor']}, {facts['Cores']} cores, {facts['Memory']}.\n\n"
        f"The brokers of `covey.routing`, {BROKERS} of them in a binary tree, without a network or disks between them. "
        f"{subscriptions:,} subscriptions of {BROKERS} clients, one at each broker, made one by one; {ended:,} of them "
        f"end again; then two exchanges at two leaves publish {quotes:,} quotes. All strategies deliver the same: "
        f"{deliveries:,} events to clients, for {matches:,} matching subscriptions, checked against an index, and each "
        "delivery against the client's own filters.\n\n"
        "*Control messages* and *their bytes*: everything between brokers that isn't an event, while subscriptions "
        "come and go (and one minute after). *Entries*: what neighbours told, in all routing tables; with "
        "*predicates* as they are matched. *Events forwarded*: over links, once for each. *False positives*: those of "
        "them that nobody beyond the link asked for. *False deliveries* to clients: none. Seconds are processor time "
        f"of all brokers. Imperfect merging takes mergers up to a degree of {IMT:g}; pruning does {SHARE:.0%} of all "
        "prunings, in the receiver's table; *adaptive filtering* stops filtering on links where more than half of the "
        "events match."
    )


if __name__ == "__main__":
    main()
