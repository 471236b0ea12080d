"""`python -m benchmarks.broker [--write]`: throughput and latency of one broker, beside Mosquitto, NATS and RabbitMQ
where they are installed, in one run; as Markdown. `pip install 'covey[broker,bench]'` for RabbitMQ's client."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from benchmarks import sections
from benchmarks.broker.measure import LONGEST_BATCH, PACE, SERVERS, Figures, Plan, measure
from benchmarks.broker.servers import NotInstalledError
from benchmarks.broker.workload import SYMBOLS
from benchmarks.machine import describe

MATCHES = {
    "covey": "filters",
    "covey, durable": "filters; committed to disk, acknowledged",
    "mosquitto": "topics",
    "nats": "topics",
    "rabbitmq": "headers by equality",
}
NEEDS = {"rabbitmq": "pika"}
"""A client library, for what isn't done by bare clients."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker", description=__doc__)
    parser.add_argument("systems", nargs="*", choices=[*SERVERS, []], help="which; by itself all")
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=100_000, help="at most, in one run")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--runs", type=int, default=5, help="the best of so many counts")
    parser.add_argument("--subscribe-seconds", type=float, default=300.0, help="for making the subscriptions")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    plan = Plan(
        options.subscriptions, options.events, tuple(sorted(options.batches)), options.runs, options.subscribe_seconds
    )
    found: dict[str, Figures | str] = {}
    for system in options.systems or SERVERS:
        try:
            if system in NEEDS and find_spec(NEEDS[system]) is None:
                raise NotInstalledError(f"{NEEDS[system]} is not installed")
            found[system] = measure(system, plan, say)
        except NotInstalledError as error:
            found[system] = str(error)
            say(f"{system}: {error}")
        except (RuntimeError, OSError) as error:
            found[system] = f"failed: {error}"
            say(f"{system}: {error}")
    text = report(plan, found)
    print(text)
    if options.write:
        facts = describe()
        where = f"{facts['Processor']}, {facts['Cores']} cores, {facts['Memory']}.\n\n"
        sections.write("broker", "One broker", ["python", "-m", "benchmarks.broker", *sys.argv[1:]], where + text)


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def report(plan: Plan, found: dict[str, Figures | str]) -> str:
    """What was found, as Markdown."""
    return "\n".join([_preface(plan), *_throughput(plan, found), "", *_latency(found), "", *_making(found)])


def _preface(plan: Plan) -> str:
    return f"""\
Broker, publisher and subscriber are a process each on loopback and share the cores. The subscriber has
{plan.subscriptions:,} subscriptions `symbol = 'S17' AND price >= 300.0 AND price < 400.0`, over {SYMBOLS:,} symbols; an
event has five attributes (`symbol`, `price`, `volume`, `number`, `for`) and meets one of them, so each event is
delivered once. Every run's deliveries are counted and checked. Best of {plan.runs} runs; µs are processor time an
event, which other work on the machine changes less than rates.

The others are given less to do. Mosquitto and NATS match topics, RabbitMQ's headers exchange compares headers for
equality, and none of them can compare a price: their publisher works out the band of prices by itself and puts it into
the topic or the headers, and they have a topic or a binding for each of the subscriptions. They confirm nothing to the
publisher, while covey confirms every batch. MQTT (QoS 0) and NATS are spoken by bare clients written for this, since
their libraries cost more than these brokers do; RabbitMQ by pika. A batch is written in one go there, and in covey it
is one message.
"""


def _throughput(plan: Plan, found: dict[str, Figures | str]) -> list[str]:
    lines = [
        "| broker | matches | batch | events/s | beside covey | µs broker | µs publisher | µs subscriber | µs in all |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    own = found.get("covey")
    for system, figures in found.items():
        if isinstance(figures, str):
            lines.append(f"| {system} | {MATCHES[system]} | | {figures} | | | | | |")
            continue
        for batch in plan.batches:
            run = figures.best.get(batch)
            if run is None:
                lines.append(f"| {system} | {MATCHES[system]} | {batch:,} | over {LONGEST_BATCH:.0f} s | | | | | |")
                continue
            ratio = _rate(run.rate / own.best[batch].rate) if isinstance(own, Figures) else ""
            lines.append(
                f"| {system} | {MATCHES[system]} | {batch:,} | {_rate(run.rate)} | {ratio} | {run.broker_cpu:,.1f} | "
                f"{run.publisher_cpu:,.1f} | {run.subscriber_cpu:,.1f} | {run.cpu:,.1f} |"
            )
    return lines


def _latency(found: dict[str, Figures | str]) -> list[str]:
    lines = [
        f"Latency from the time when an event was due to its delivery, one at a time ({PACE:,.0f} a second, or a "
        "quarter of the throughput where that is less), and at half the throughput of the largest batches:",
        "",
        "| broker | p50 ms | p99 ms | at half: events/s | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|",
    ]
    for system, figures in found.items():
        if not isinstance(figures, str):
            idle, half = figures.idle, figures.half
            lines.append(
                f"| {system} | {idle.p50 * 1e3:.2f} | {idle.p99 * 1e3:.2f} | {_rate(half.rate)} | "
                f"{half.p50 * 1e3:.2f} | {half.p99 * 1e3:.2f} |"
            )
    return lines


def _making(found: dict[str, Figures | str]) -> list[str]:
    lines = ["| broker | subscriptions made | a second | µs broker | µs subscriber |", "|---|---|---|---|---|"]
    for system, figures in found.items():
        if not isinstance(figures, str):
            made = figures.making
            lines.append(
                f"| {system} | {made.count:,} | {made.count / made.seconds:,.0f} | {made.broker_cpu:,.1f} | "
                f"{made.subscriber_cpu:,.1f} |"
            )
    return lines


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.3g}"


if __name__ == "__main__":
    main()
