"""Many subscriptions through three brokers, while a bystander publishes and receives.

    python -m benchmarks.network_load [--conj 20000] [--bool 5000] [--rounds 1]

Three brokers in a row (a, b, c) with the default strategy and journals, each a process. A client at `a` asks for
`--conj` conjunctions and then for `--bool` Boolean filters by `subscribe_many`; a bystander's publisher at `a` and
subscriber at `c` pass an event every 20 ms all the while. Prints how many subscriptions were confirmed a second, how
long the bystander's events took meanwhile, how long the brokers then took to catch up, how long events took with that,
and the processor time of the three brokers and of this process, which has all clients.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.machine import describe
from covey.network.asyncio import connect

PAUSE = 0.02
QUIET_SECONDS = 3.0
CATCH_UP_SECONDS = 120.0


@contextmanager
def brokers(directory: Path) -> Iterator[tuple[dict[str, str], list[int]]]:
    """Three in a row; their addresses and processes."""
    pids: list[int] = []
    ports = {name: _free_port() for name in "abc"}
    peers = {"a": "b", "b": "c", "c": ""}
    with ExitStack() as stack:
        for name in "cba":
            folder = directory / name
            folder.mkdir()
            (folder / "broker.toml").write_text("[limits]\nmessage_rate = 1e9\n")
            others = [f"{peers[name]}=ws://127.0.0.1:{ports[peers[name]]}"] if peers[name] else []
            others += [before for before, after in peers.items() if after == name]
            command = [
                sys.executable, "-m", "covey.cli", "broker", "--config", "broker.toml", "--id", name, "--port",
                str(ports[name]), "--data", "data", "--log-level", "warning",
                *(option for other in others for option in ("--peer", other)),
            ]  # fmt: skip
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
            pids.append(process.pid)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            assert process.stdout is not None
            process.stdout.readline()
        yield {name: f"ws://127.0.0.1:{port}" for name, port in ports.items()}, pids[::-1]


class Bystander:
    """Publishes at one broker and receives at another."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.sent = 0
        self._stop = asyncio.Event()

    async def run(self, there: str, here: str) -> None:
        async with connect(there) as publisher, connect(here) as subscriber:
            subscription = await subscriber.subscribe("bystander = 1")
            receiving = asyncio.create_task(self._receive(subscription))
            while not self._stop.is_set():
                self.sent += 1
                await publisher.publish({"bystander": 1, "at": time.perf_counter()})
                await asyncio.sleep(PAUSE)
            await asyncio.sleep(1.0)
            receiving.cancel()

    async def _receive(self, subscription: Any) -> None:
        async for delivery in subscription:
            self.delays.append(time.perf_counter() - delivery.attributes["at"])

    def stop(self) -> None:
        self._stop.set()

    def row(self, start: int) -> str:
        """Of the events that came since a number of them."""
        delays = np.array(self.delays[start:]) * 1000
        return f"{np.median(delays):.1f} | {np.quantile(delays, 0.99):.1f} | {delays.max():.0f}"


async def measure(directory: Path, asked: dict[str, dict[str, str]]) -> None:
    with brokers(directory) as (urls, processes):
        pids = [*processes, os.getpid()]
        bystander = Bystander()
        standing_by = asyncio.create_task(bystander.run(urls["a"], urls["c"]))
        await asyncio.sleep(QUIET_SECONDS)
        print(f"| nothing else | | | {bystander.row(0)} |", flush=True)
        async with connect(urls["a"], name="many") as client:
            for name, filters in asked.items():
                count = len(filters)
                start, before, spent = time.perf_counter(), len(bystander.delays), _spent(pids)
                await client.subscribe_many(filters)
                seconds = time.perf_counter() - start
                used = ", ".join(f"{after - earlier:.1f}" for after, earlier in zip(_spent(pids), spent, strict=True))
                row = bystander.row(before)
                caught_up = await _caught_up(urls)
                after = bystander.row(before)
                print(
                    f"| {count:,} {name} | {count / seconds:,.0f} | {caught_up:.1f} | {row} | {after} | {used} |",
                    flush=True,
                )
            bystander.stop()
            await standing_by
        print(f"\nthe bystander had {len(bystander.delays):,} of {bystander.sent:,} events")


async def _caught_up(urls: dict[str, str]) -> float:
    start = time.perf_counter()
    while time.perf_counter() < start + CATCH_UP_SECONDS:
        statuses = [await asyncio.to_thread(_status, url) for url in urls.values()]
        if not any(status["behind"] for status in statuses):
            break
        await asyncio.sleep(0.25)
    return time.perf_counter() - start


def _status(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url.replace('ws', 'http', 1)}/v1/status", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _spent(pids: list[int]) -> list[float]:
    """Processor time of processes, in seconds."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return [(int(one[11]) + int(one[12])) / ticks for one in fields]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conj", type=int, default=20_000)
    parser.add_argument("--bool", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    # Beforehand: the bystander lives in this process, and would wait for it.
    asked = {
        name: {f"{name}{id}": text for id, text in workloads.generate(name, count, 1, seed=5).subscriptions}
        for name, count in (("conj", options.conj), ("bool", options.bool))
    }
    print(f"{describe()['Processor']}\n")
    for _ in range(options.rounds):
        print(
            "| subscriptions | confirmed a second | caught up, s | p50 | p99 | max, ms "
            "| p50 | p99 | max with that | processor, s |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(measure(Path(directory), asked))


if __name__ == "__main__":
    main()
