"""One broker measured: started, given its subscriptions, then events in several ways. Broker, publisher and subscriber
are a process each and share the machine's cores.

How many events a run has is found by trial, so that slow brokers end and quick ones run long enough. Of every run the
deliveries are counted and their numbers summed up: a run in which an event was lost, came twice or came for a wrong
subscription is an error, not a figure.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.broker import servers

PACE = 200.0
"""Events a second of which latency on an idle broker is taken."""
PACE_SECONDS = 5.0
TRIAL_EVENTS = 20
LEAST_SECONDS = 0.5
"""A trial that was shorter is repeated with more events."""
PATIENCE = 120.0
"""Seconds after which a run is given up."""
LONGEST_BATCH = 10.0
"""Seconds: batches that would take longer, by the rate of smaller ones, aren't tried."""

Server = Callable[[Path], AbstractContextManager[tuple[str, int]]]
SERVERS: dict[str, Server] = {
    "covey": lambda directory: servers.covey(directory, durable=False),
    "covey, durable": lambda directory: servers.covey(directory, durable=True),
    "mosquitto": servers.mosquitto,
    "nats": servers.nats,
    "rabbitmq": servers.rabbitmq,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    subscriptions: int
    events: int
    """At most, in one run."""
    batches: tuple[int, ...]
    runs: int
    subscribe_seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run, at full speed or at a pace."""

    events: int
    rate: float
    broker_cpu: float
    """Microseconds of processor time an event; these say more than rates on a machine that does other things too."""
    publisher_cpu: float
    subscriber_cpu: float
    p50: float
    p99: float

    @property
    def cpu(self) -> float:
        """Of all three."""
        return self.broker_cpu + self.publisher_cpu + self.subscriber_cpu


@dataclass(frozen=True, slots=True)
class Making:
    """The subscriptions that were made, and what that took."""

    count: int
    seconds: float
    broker_cpu: float
    subscriber_cpu: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one broker."""

    making: Making
    best: dict[int, Run]
    """By size of batch, but for those that would take too long."""
    idle: Run
    half: Run
    """At half the rate of the largest batches, in batches of a hundredth of a second."""


def measure(system: str, plan: Plan, say: Callable[[str], None]) -> Figures:
    """Start a broker and measure it."""
    with tempfile.TemporaryDirectory(prefix="covey-bench-") as name:
        directory = Path(name)
        with SERVERS[system](directory) as (address, pid), _Clients(system, address, pid, plan).open() as clients:
            making = clients.subscribe()
            say(f"{system}: {making.count:,} subscriptions in {making.seconds:.1f} s")
            best: dict[int, Run] = {}
            for batch in plan.batches:
                if best and batch / best[max(best)].rate > LONGEST_BATCH:
                    say(f"{system}: batches of {batch:,} would take longer than {LONGEST_BATCH:.0f} s")
                    continue
                events = clients.trial(batch)
                found = [clients.run(events, batch, seed) for seed in range(plan.runs)]
                best[batch] = max(found, key=lambda run: run.rate)
                say(f"{system}: batches of {batch:,}: " + ", ".join(f"{run.rate:,.0f}" for run in found) + " events/s")
            largest = best[max(best)].rate
            pace = min(PACE, largest / 4)
            idle = clients.run(max(1, int(pace * PACE_SECONDS)), 1, 98, rate=pace)
            batch = max(1, int(largest / 200))
            events = max(1, min(plan.events, int(largest / 2 * PACE_SECONDS)) // batch) * batch
            half = clients.run(events, batch, 99, rate=largest / 2)
            say(f"{system}: latency p50 {idle.p50 * 1e3:.2f} ms, p99 {idle.p99 * 1e3:.2f} ms")
    return Figures(making, best, idle, half)


class _Clients:
    """The publisher and the subscriber of one broker."""

    def __init__(self, system: str, address: str, pid: int, plan: Plan) -> None:
        self._system, self._address, self._pid, self._plan = system, address, pid, plan
        self._made = plan.subscriptions

    @contextmanager
    def open(self) -> Iterator[_Clients]:
        self._subscriber = self._start("subscriber")
        self._publisher: subprocess.Popen[str] | None = None
        try:
            yield self
        finally:
            for process in (self._subscriber, self._publisher):
                if process is not None:
                    process.kill()
                    process.wait()

    def subscribe(self) -> Making:
        """Make the subscriptions, as many as time allows."""
        used = servers.processor_seconds(self._pid)
        _tell(self._subscriber, {"seconds": self._plan.subscribe_seconds})
        answer = _heard(self._subscriber)
        self._made = answer["made"]
        self._publisher = self._start("publisher")
        each = 1e6 / self._made
        used = servers.processor_seconds(self._pid) - used
        return Making(self._made, answer["seconds"], used * each, answer["cpu"] * each)

    def trial(self, batch: int) -> int:
        """How many events a run may have. The first one isn't timed: what is loaded when needed is loaded then."""
        events = max(TRIAL_EVENTS, batch)
        self.run(events, batch, seed=0)
        while True:
            run = self.run(events, batch, seed=events)
            if events >= self._plan.events or events / run.rate >= LEAST_SECONDS:
                return min(events, self._plan.events)
            events = min(self._plan.events, events * 10)

    def run(self, events: int, batch: int, seed: int, rate: float = 0.0) -> Run:
        """Publish events, at full speed or at a rate, and wait for their deliveries."""
        publisher, subscriber = self._publisher, self._subscriber
        assert publisher is not None
        _tell(subscriber, {"events": events, "seconds": PATIENCE})
        _heard(subscriber)
        used = servers.processor_seconds(self._pid)
        _tell(publisher, {"events": events, "batch": batch, "seed": seed, "rate": rate})
        came = _heard(subscriber)
        went = _heard(publisher)
        used = servers.processor_seconds(self._pid) - used
        if (came["count"], came["numbers"], came["wrong"]) != (events, events * (events - 1) // 2, 0):
            raise RuntimeError(
                f"{self._system}: {came['count']:,} deliveries of {events:,} events, {came['missed']:,} missed, "
                f"{came['wrong']:,} for a wrong subscription"
            )
        each = 1e6 / events
        return Run(
            events, events / (came["last"] - went["start"]), used * each, went["cpu"] * each, came["cpu"] * each,
            came["p50"], came["p99"],
        )  # fmt: skip

    def _start(self, role: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.broker.role", role, self._system, self._address, str(self._made)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _tell(process: subprocess.Popen[str], command: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(command) + "\n")
    process.stdin.flush()


def _heard(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a client ended; its error is above")
    answer: dict[str, Any] = json.loads(line)
    return answer
