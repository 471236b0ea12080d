"""`python -m benchmarks.broker`: throughput and latency of one broker, as Markdown."""

from __future__ import annotations

import argparse
import asyncio

from benchmarks.broker.measure import Setting, measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--durable", action="store_true", help="durable subscriptions and events, on a disk")
    options = parser.parse_args()
    print(
        "| subscriptions | batch | durable | events/s | CPU of broker / clients, µs an event | idle p50 / p99 ms "
        "| half load p50 / p99 ms | subscribing, /s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for batch in options.batches:
        events = min(options.events, 2_000 * batch)
        found = asyncio.run(measure(Setting(options.subscriptions, events, batch, options.durable)))
        missed = f" ({found.missed:,} missed)" if found.missed else ""
        print(
            f"| {options.subscriptions:,} | {batch:,} | {'yes' if options.durable else 'no'} | "
            f"{found.events_per_second:,.0f}{missed} | {found.broker_cpu:.1f} / {found.clients_cpu:.1f} | "
            f"{found.idle[0]:.1f} / {found.idle[1]:.1f} | "
            f"{found.loaded[0]:.1f} / {found.loaded[1]:.1f} | {found.subscribed_per_second:,.0f} |",
            flush=True,
        )


main()
