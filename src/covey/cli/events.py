"""Events from files, in batches, each event with its row's number; matched so that a bad event costs only itself.

An event's number is that of its row, from 0; rows that can't be read keep their number, so numbers stay those of the
file. Blank lines of JSON are no rows. With `--on-error raise` everything before a bad row is still handed on first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.cli import csv_files
from covey.cli.lines import lines_of
from covey.cli.sources import Source
from covey.cli.subscriptions import open_parquet
from covey.cli.terminal import BadRowsError, Report, Step, one_line
from covey.errors import EventError
from covey.events import BadLine, Schema, read_json_lines
from covey.matching import Index, Matches

_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.string(),
}


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Some events, their rows' numbers, and the lines on which they stand, where a file has lines."""

    events: pa.RecordBatch | Sequence[Mapping[str, Any]]
    numbers: NDArray[np.int64]
    lines: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, first: int, last: int) -> EventBatch:
        """The events from `first` to before `last`."""
        events = (
            self.events.slice(first, last - first)
            if isinstance(self.events, pa.RecordBatch)
            else self.events[first:last]
        )
        lines = None if self.lines is None else self.lines[first:last]
        return EventBatch(events, self.numbers[first:last], lines)

    def place(self) -> str:
        """Where the first event stands, for an error."""
        return f"row {self.numbers[0]}" if self.lines is None else f"line {self.lines[0]}"


class EventFile:
    """The events of a file."""

    def __init__(
        self, given: Source, index: Index, *, batch_size: int, skip: bool, step: Step, schema: Schema | None = None
    ) -> None:
        self.source = given
        self.report = Report("event", given.name)
        self._index = index
        self._size = batch_size
        self._skip = skip
        self._step = step
        self._schema = schema
        self._rows: int | None = None  # where the file says how many it has

    def batches(self) -> Iterator[EventBatch]:
        """The events in order."""
        with self.source.open() as (file, raw):
            size = self.source.size
            for batch in _READERS[self.source.format](self, file):
                if not len(batch):
                    continue
                yield batch
                rows = int(batch.numbers[-1]) + 1
                if self._rows is not None:
                    self._step(rows, rows, self._rows)
                else:
                    self._step(rows, raw.tell() if size is not None else 0, size)

    def bad(self, place: str, problem: str) -> None:
        """Report a bad event; stop there unless bad ones are skipped."""
        self.report.bad(place, problem)
        if not self._skip:
            raise BadRowsError("stopped at that event; --on-error skip goes on without such events")

    def matched(self, batch: EventBatch, threads: int | None) -> Iterator[tuple[EventBatch, Matches]]:
        """A batch with its matches; where an event can't be matched, what is before it and after it, by halving."""
        try:
            found = self._index.match_batch(batch.events, threads=threads)
        except EventError as error:
            if len(batch) == 1:
                self.bad(batch.place(), one_line(error).removeprefix("row 0: ").removeprefix("event 0: "))
                return
        else:
            yield batch, found
            return
        try:
            self._index.match_batch(batch.part(0, 0).events, threads=1)
        except EventError as error:
            raise EventError(f"{self.source.name}: {one_line(error)}") from None  # a column, not a row, is wrong
        middle = len(batch) // 2
        yield from self.matched(batch.part(0, middle), threads)
        yield from self.matched(batch.part(middle, len(batch)), threads)

    def json_lines(self, file: IO[bytes]) -> Iterator[EventBatch]:
        """Batches of JSON lines: full ones, or what has come so far from a pipe that has no more yet."""
        lines, unread = lines_of(file), list[BadLine]()
        events: list[dict[str, Any]] = []
        numbers: list[int] = []
        places: list[int] = []
        rows = 0
        for event in read_json_lines(lines, name="", bad=unread):  # type: ignore[arg-type]
            if unread or len(events) >= self._size:
                if events:
                    yield EventBatch(events, np.array(numbers), places)
                    events, numbers, places = [], [], []
                rows += len(unread)
                self._report_lines(unread)
            events.append(event)
            numbers.append(rows)
            places.append(lines.number)
            rows += 1
            if lines.waiting():
                yield EventBatch(events, np.array(numbers), places)
                events, numbers, places = [], [], []
        if events:
            yield EventBatch(events, np.array(numbers), places)
        self._report_lines(unread)

    def _report_lines(self, unread: list[BadLine]) -> None:
        for line in unread:
            self.bad(f"line {line.line}", line.message.partition(": ")[2])
        unread.clear()

    def csv(self, file: IO[bytes]) -> Iterator[EventBatch]:
        """Batches of CSV. Arrow parses ahead, so a bad row is held back until the rows before it are out."""
        held: dict[int, str] = {}
        types = {
            name: _ARROW_TYPES[attribute.type]
            for name, attribute in (self._schema.attributes.items() if self._schema is not None else ())
            if attribute.type in _ARROW_TYPES
        }
        row = 0
        blocks = csv_files.batches(
            file, self.source.name, types, held.__setitem__, "say what its columns hold with --schema"
        )
        for block in blocks:
            known = tuple(held)  # Arrow may add to it meanwhile
            numbers = np.setdiff1d(np.arange(row, row + block.num_rows + len(known)), known)[: block.num_rows]
            whole = EventBatch(block, numbers)
            start = 0
            for wrong in sorted(number for number in known if row <= number <= (numbers[-1] if len(numbers) else row)):
                end = int(np.searchsorted(numbers, wrong))
                yield from self._sliced(whole.part(start, end))
                self.bad(f"row {wrong}", held.pop(wrong))
                start = end
            yield from self._sliced(whole.part(start, len(whole)))
            row = int(numbers[-1]) + 1 if len(numbers) else row
        for wrong in sorted(held):
            self.bad(f"row {wrong}", held[wrong])

    def _sliced(self, batch: EventBatch) -> Iterator[EventBatch]:
        for first in range(0, len(batch), self._size):
            yield batch.part(first, min(first + self._size, len(batch)))

    def parquet(self, file: IO[bytes]) -> Iterator[EventBatch]:
        """Batches of Parquet, of those columns only that subscriptions or the schema may name."""
        table = open_parquet(file, self.source.name)
        wanted = {name.partition(".")[0] for name in self._index.attributes} | set(self._index.attributes)
        if self._schema is not None:
            wanted |= {name.partition(".")[0] for name in self._schema.attributes} | set(self._schema.attributes)
        names = [name for name in table.schema_arrow.names if name in wanted or "." in name]
        self._rows = table.metadata.num_rows
        row = 0
        for batch in table.iter_batches(batch_size=self._size, columns=names):
            yield EventBatch(batch, np.arange(row, row + batch.num_rows))
            row += batch.num_rows


_READERS: Mapping[str, Callable[[EventFile, IO[bytes]], Iterator[EventBatch]]] = {
    "jsonl": EventFile.json_lines,
    "csv": EventFile.csv,
    "parquet": EventFile.parquet,
}
