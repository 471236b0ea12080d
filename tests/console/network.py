"""Three brokers in a line, a - b - c, each in a process of its own, as an operator would start them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import covey.network


class Broker:
    """One process."""

    def __init__(self, name: str, data: Path, *options: str) -> None:
        self.name = name
        self._data = data
        self._options = options
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Start it; again, on the same port."""
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "covey.cli", "broker", "--id", self.name, "--data", str(self._data / self.name),
                "--log-level", "error", "--port", self._port, *self._options,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(f"broker {self.name} listens on ws://"), line
        self.url = line.split()[-1]
        self._port = self.url.rpartition(":")[2]

    @property
    def page(self) -> str:
        """The console's address."""
        return self.url.replace("ws", "http", 1)

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


@contextmanager
def line(data: Path) -> Iterator[dict[str, Broker]]:
    """The three, linked."""
    a = Broker("a", data, "--peer", "b")
    brokers = {"a": a}
    with ExitStack() as stack:
        stack.callback(a.kill)
        a.start()
        b = brokers["b"] = Broker("b", data, "--peer", f"a={a.url}", "--peer", "c")
        stack.callback(b.kill)
        b.start()
        c = brokers["c"] = Broker("c", data, "--peer", f"b={b.url}")
        stack.callback(c.kill)
        c.start()
        # An event that crosses from one end to the other shows that all are linked.
        with covey.network.connect_sync(a.url, name="probe") as probe, covey.network.connect_sync(c.url) as other:
            seen = probe.subscribe("probe = 1")
            while True:
                other.publish({"probe": 1})
                try:
                    seen.get(timeout=0.2)
                    break
                except TimeoutError:
                    continue
        yield brokers
