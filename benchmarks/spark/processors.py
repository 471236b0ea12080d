"""Processor time of a Spark on this machine: of its JVM, of the Python workers under it, and of other processes beside
them. It tells two ways apart where wall time doesn't, on a machine that does something else as well."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    """What a job took."""

    wall: float
    java: float
    """Processor seconds of the JVMs,"""
    python: float
    """and of all Python processes under them."""

    @property
    def processor(self) -> float:
        """All processor seconds."""
        return self.java + self.python


@dataclass
class Best:
    """The least that several runs of the same took."""

    runs: list[Used] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """Seconds."""
        return min(run.wall for run in self.runs)

    @property
    def processor(self) -> float:
        """Processor seconds."""
        return min(run.processor for run in self.runs)

    @property
    def least(self) -> Used:
        """The run that took the least of the processor."""
        return min(self.runs, key=lambda run: run.processor)


def java_of(spark: SparkSession) -> int:
    """The JVM of a classic session."""
    return int(spark.sparkContext._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]


def seconds(roots: Iterable[int]) -> tuple[float, float]:
    """Processor seconds so far of these processes themselves, and of all Python processes below them, those that have
    ended and were waited for among them."""
    java = python = 0.0
    children = _children()
    for root in roots:
        java += _ticks(root, ended=False)
        python += sum(_ticks(one, ended=True) for one in below(root, children))
    return java / _TICK, python / _TICK


def below(root: int, children: Mapping[int, list[int]] | None = None) -> list[int]:
    """All processes that a process has started, and that these have."""
    known = _children() if children is None else children
    found, waiting = [], list(known.get(root, ()))
    while waiting:
        found.append(waiting.pop())
        waiting += known.get(found[-1], ())
    return found


def command_of(process: int) -> str:
    """What a process runs; nothing of one that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def threads_of(process: int) -> list[int]:
    """A process's threads; none of one that has ended."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return []


def _ticks(process: int, *, ended: bool) -> int:
    found = _stat(process)
    return 0 if found is None else sum(map(int, found[11:15] if ended else found[11:13]))


def _stat(process: int) -> list[str] | None:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return None


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _stat(int(name))
            if stat is not None:
                found.setdefault(int(stat[1]), []).append(int(name))
    return found


def used(frame: DataFrame, roots: Iterable[int]) -> Used:
    """Compute a frame, into Spark's sink that keeps nothing."""
    roots = list(roots)
    before, start = seconds(roots), time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    wall, after = time.perf_counter() - start, seconds(roots)
    return Used(wall, after[0] - before[0], after[1] - before[1])


def interleaved(
    makers: Mapping[str, Callable[[], DataFrame]], roots: Iterable[int], runs: int, warm: int = 1
) -> dict[str, Best]:
    """Each in turn, and that several times, so that what else the machine does falls on all alike. A frame is planned
    once, before; the first runs only warm up."""
    roots = list(roots)
    frames = {what: make() for what, make in makers.items()}
    found = {what: Best() for what in makers}
    for number in range(warm + runs):
        for what, frame in frames.items():
            took = used(frame, roots)
            if number >= warm:
                found[what].runs.append(took)
            print(f"{what}: {took.wall:.2f} s, {took.java:.2f} of Java, {took.python:.2f} of Python",
                  file=sys.stderr, flush=True)  # fmt: skip
    return found
