"""Running an experiment: its points as Spark tasks, and each finished point kept on disk.

A point is a flat dictionary of parameters; the function that measures it is an ordinary module-level function, which a
Spark task calls in a Python worker. Every point is a job of one task, submitted from a few threads of the driver, as
many as there are task slots: so each result is written the moment it is there, and a run that is interrupted goes on
where it was. What measures time runs `alone`: one point after the other, with nothing else of the lab beside it.

A kept point is a small JSON file named by the hash of all that decides its result: the function, the parameters, the
scale, the seed, and the code (the version of covey and the sources of what the function uses of the lab). Two
figures that are read off one run, as papers have them, ask for the same points and measure them once.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from importlib.metadata import version
from inspect import ismodule
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from covey.lab.experiments import Cell, LabError, Row

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Point = Mapping[str, Cell]
Measure = Callable[[Row], Row | list[Row]]

_ROOM: Final = "covey.lab."
MOST_POINTS: Final = 1_000
"""A single experiment never asks for more points; each is a Spark job."""
MOST_SLOTS: Final = 32
"""The most points that are under way at once, however many cores there are."""


class Lab:
    """What an experiment is given: Spark, how large to be, and where finished work is kept.

    Points kept before `since`, in seconds of the epoch, are measured again.
    """

    def __init__(
        self,
        spark: SparkSession,
        work: Path,
        *,
        name: str = "",
        scale: float = 1.0,
        seed: int = 1,
        slots: int = 2,
        since: float = 0.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        if not 0 < scale <= 1:
            raise LabError(f"the scale is {scale}; it is above 0 and at most 1, the papers' full size")
        self.spark = spark
        self.scale = scale
        self.seed = seed
        self.seconds = 0.0
        """What the points took that were asked for, whenever they were measured."""
        self._work = work
        self._name = name
        self._slots = max(1, min(slots, MOST_SLOTS))
        self._since = since
        self._say = say

    def size(self, count: int, least: int = 1) -> int:
        """The paper's count at this scale, `least` or more (but never above the paper's)."""
        return min(count, max(least, round(count * self.scale)))

    def progress(self, text: str) -> None:
        """Say what is being done now."""
        self._say(text)

    def points(self, rows: Sequence[Point], function: Measure, alone: bool = False) -> list[Row]:
        """`function(point)` for each point, as Spark tasks; results in the points' order.

        The function gets the point with the lab's `seed` added where the point has none, and gives one row or several;
        the point's own columns are put in front of each. `alone` runs one at a time, for what measures time.
        """
        if len(rows) > MOST_POINTS:
            raise LabError(f"{self._name} asks for {len(rows)} points; the most is {MOST_POINTS}")
        asked = [{"seed": self.seed, **row} for row in rows]
        files = [self._file(point, function, alone) for point in asked]
        missing = [place for place, file in enumerate(files) if not self._is_kept(file)]
        if len(missing) < len(rows):
            self.progress(f"{len(rows) - len(missing)} of {len(rows)} points are there already")
        for place, found, seconds in self._measured(asked, missing, function, 1 if alone else self._slots):
            write_json(files[place], {"point": asked[place], "seconds": round(seconds, 6), "rows": found})
        results: list[Row] = []
        for point, file in zip(rows, files, strict=True):
            kept = json.loads(file.read_text())
            self.seconds += kept["seconds"]
            results += [{**point, **row} for row in kept["rows"]]
        return results

    def stored(self, name: str, make: Callable[[SparkSession], DataFrame], **parameters: Cell) -> str:
        """The path of a Parquet directory with the rows of `make(spark)`, made once for these parameters.

        For workloads that several points read; on a cluster the work directory must be one that all machines see.
        """
        key = _digest([name, parameters, self.seed, code_version(make.__module__)])
        path = self._work / "tables" / f"{name}-{key}"
        if not (path / "_SUCCESS").exists():
            self.progress(f"drawing {name}")
            make(self.spark).write.mode("overwrite").parquet(str(path))
        return str(path)

    def _measured(
        self, points: list[Row], places: list[int], function: Measure, slots: int
    ) -> Iterator[tuple[int, list[Row], float]]:
        """Places of points with their rows and seconds, as they are finished."""
        waiting = iter(places)
        running: dict[Future[tuple[list[Row], float]], int] = {}
        done, patient = 0, True
        pool = ThreadPoolExecutor(slots, thread_name_prefix="lab")
        try:
            while True:
                while len(running) < slots and (place := next(waiting, None)) is not None:
                    self.progress(f"point {done + len(running) + 1} of {len(places)}: {_shown(points[place])}")
                    running[pool.submit(_as_task, self.spark, function, points[place])] = place
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    rows, seconds = future.result()
                    done += 1
                    yield running.pop(future), rows, seconds
        except KeyboardInterrupt:
            patient = False  # Whoever interrupts doesn't wait; the tasks end with the session.
            raise
        finally:
            pool.shutdown(wait=patient, cancel_futures=True)

    def _is_kept(self, file: Path) -> bool:
        return file.exists() and file.stat().st_mtime >= self._since

    def _file(self, point: Row, function: Measure, alone: bool) -> Path:
        key = _digest(
            [
                function.__module__,
                function.__qualname__,
                point,
                alone,
                self.scale,
                self.seed,
                code_version(function.__module__),
            ]
        )
        return self._work / "points" / function.__module__.rpartition(".")[2] / f"{key}.json"


def _as_task(spark: SparkSession, function: Measure, point: Row) -> tuple[list[Row], float]:
    """One point as a Spark job of one task; results cross as JSON, whatever columns they have."""

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for _ in batches:
            pass
        start = time.perf_counter()
        found = function(dict(point))
        answer = {"rows": found if isinstance(found, list) else [found], "seconds": time.perf_counter() - start}
        yield pyarrow.RecordBatch.from_pydict({"answer": [json.dumps(answer, default=plain)]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(measure, "answer string").collect()
    answer = json.loads(row["answer"])
    return answer["rows"], answer["seconds"]


def plain(value: Any) -> Any:
    """A numpy number as Python's own, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a row holds {value!r}, of type {type(value).__name__}; use numbers, text, booleans or None")


@cache
def code_version(module: str) -> str:
    """What stands for the code of a measurement: covey's version, and the sources of its module and of those of the
    lab that it uses, in turn."""
    found: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        loaded = importlib.import_module(name)
        found[name] = Path(str(loaded.__file__)).read_bytes()
        used = {
            value.__name__ if ismodule(value) else getattr(value, "__module__", "") for value in vars(loaded).values()
        }
        waiting += [other for other in used if isinstance(other, str) and other.startswith(_ROOM)]
    texts = hashlib.sha256(b"".join(found[name] for name in sorted(found))).hexdigest()
    return f"{version('covey')}-{texts[:12]}"


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=plain).encode()).hexdigest()[:20]


def _shown(point: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.items() if name != "seed")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Written whole or not at all, so that a file that exists is a finished point."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.part")
    beside.write_text(json.dumps(content, default=plain))
    beside.replace(path)
