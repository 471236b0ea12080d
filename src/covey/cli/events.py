"""Events from files, in batches, each event with its row's number; matched so that a bad event costs only itself.

An event's number is that of its row, from 0; rows that can't be read keep their number, so numbers stay those of the
file. Blank lines of JSON are no rows. With `--on-error raise` everything before a bad row is still handed on first.

Lines of JSON stay bytes: each of some threads takes a block, reads it into columns and matches it, while this one reads
the file and hands on what is done, in order. A handful of lines is read by Python, sooner than kernels are loaded.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import IO, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from covey.cli.lines import Block, Blocks
from covey.cli.terminal import BadRowsError, Report, Step, complain, one_line
from covey.errors import EventError
from covey.events import BadLine, Schema, csv_files
from covey.events.files import Source, parquet_file, with_partitions
from covey.events.json_batches import JsonLines
from covey.events.limits import DEFAULT_EVENT_LIMITS
from covey.events.term_columns import attributes_of
from covey.events.xml_lines import read_xml_lines
from covey.filters.terms import EVENT_TEXT
from covey.kernels import kernels_loaded
from covey.matching import Index, Matches
from covey.matching.threads import workers_for

T = TypeVar("T")

_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.string(),
}


_ABOVE = 2
"""What a row's number, from 0 below the header, is short of its line's, from 1."""
_HANDFUL = 32
"""Lines that are read without kernels, as long as none is loaded."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Some events, their rows' numbers, and the lines on which they stand, where a file has lines."""

    events: pa.RecordBatch | Sequence[Mapping[str, Any]] | JsonLines
    numbers: NDArray[np.int64]
    lines: NDArray[np.int64] | None = None
    bad: Sequence[BadLine] = ()
    """Lines between these that are no events, and have numbers too."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def rows(self) -> int:
        """How many there are, those that are no events too."""
        return len(self.numbers) + len(self.bad)

    def part(self, first: int, last: int) -> EventBatch:
        """The events from `first` to before `last`, with the bad lines between them; the ends of the batch have those
        that are before or behind all events."""
        if isinstance(self.events, pa.RecordBatch):
            lines = None if self.lines is None else self.lines[first:last]
            return EventBatch(self.events.slice(first, last - first), self.numbers[first:last], lines)
        events = self.events.part(first, last) if isinstance(self.events, JsonLines) else self.events[first:last]
        assert self.lines is not None
        above = 0 if first == 0 else self.lines[first]
        below = np.inf if last == len(self) else self.lines[last]
        bad = [line for line in self.bad if above <= line.line < below]
        return EventBatch(events, self.numbers[first:last], self.lines[first:last], bad)

    def place(self) -> str:
        """Where the first event stands, for an error."""
        return f"row {self.numbers[0]}" if self.lines is None else f"line {self.lines[0]}"


Outcome: TypeAlias = "Matches | EventError"


class EventFile:
    """The events of a file."""

    def __init__(
        self,
        given: Source,
        index: Index,
        *,
        batch_size: int,
        skip: bool,
        step: Step,
        schema: Schema | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        self.source = given
        self.report = Report("event", given.name)
        self._index = index
        self._size = batch_size
        self._skip = skip
        self._step = step
        self._schema = schema
        self._columns = columns
        self._rows: int | None = None  # where the file says how many it has

    def batches(self) -> Iterator[EventBatch]:
        """The events in order."""
        for batch, _ in self._tried(lambda _: None, 1):
            if batch.bad and not self._skip:
                before = self._before_bad(batch)
                if len(before):
                    yield before
            elif len(batch):
                yield batch
            self._report_lines(batch.bad)

    def matches(self, threads: int | None) -> Iterator[tuple[EventBatch, Matches]]:
        """The events in order with their matches, without those that can't be read or matched."""
        workers = workers_for(threads)
        each = 1 if self.source.format == "jsonl" else workers
        for batch, outcome in self._tried(lambda batch: self._match(batch, each), workers):
            if batch.bad and not self._skip:
                before = self._before_bad(batch)
                yield from self._settled(before, self._match(before, workers))
                self._report_lines(batch.bad)
            yield from self._settled(batch, outcome)

    def _tried(self, work: Callable[[EventBatch], T], workers: int) -> Iterator[tuple[EventBatch, T]]:
        """All batches in order, each with what some work made of it, and progress told."""
        with self.source.open() as (file, raw):
            size = self.source.size
            if self.source.format == "jsonl":
                done = self._json_lines(file, work, workers)
            else:
                done = ((batch, work(batch)) for batch in _READERS[self.source.format](self, file))
            rows = 0
            for batch, outcome in done:
                if not batch.rows:
                    continue
                rows = max(rows + batch.rows, int(batch.numbers[-1]) + 1 if len(batch) else 0)
                yield batch, outcome
                if self._rows is not None:
                    self._step(rows, rows, self._rows)
                else:
                    self._step(rows, raw.tell() if size is not None else 0, size)

    def bad(self, place: str, problem: str) -> None:
        """Report a bad event; stop there unless bad ones are skipped."""
        self.report.bad(place, problem)
        if not self._skip:
            raise BadRowsError("stopped at that event; --on-error skip goes on without such events")

    def _match(self, batch: EventBatch, threads: int) -> Outcome:
        try:
            return self._index.match_batch(batch.events, threads=threads)
        except EventError as error:
            return error

    def _settled(self, batch: EventBatch, outcome: Outcome) -> Iterator[tuple[EventBatch, Matches]]:
        """A batch with its matches; where an event can't be matched, what is before it and after it, by halving."""
        if not isinstance(outcome, EventError):
            yield batch, outcome
            self._report_lines(batch.bad)
            return
        if len(batch) == 1:
            place = batch.place()
            self._report_lines([line for line in batch.bad if line.line < self._line(batch)])
            problem = one_line(outcome)
            for prefix in ("row 0: ", "event 0: ", f"{place}: "):
                problem = problem.removeprefix(prefix)
            self.bad(place, problem)
            self._report_lines([line for line in batch.bad if line.line > self._line(batch)])
            return
        if isinstance(batch.events, pa.RecordBatch):
            wrong = self._match(batch.part(0, 0), 1)
            if isinstance(wrong, EventError):
                raise EventError(f"{self.source.name}: {one_line(wrong)}")  # a column, not a row, is wrong
        middle = len(batch) // 2
        for half in (batch.part(0, middle), batch.part(middle, len(batch))):
            yield from self._settled(half, self._match(half, 1))

    @staticmethod
    def _line(batch: EventBatch) -> int:
        return 0 if batch.lines is None else int(batch.lines[0])

    def _before_bad(self, batch: EventBatch) -> EventBatch:
        assert batch.lines is not None
        before = batch.part(0, int(np.searchsorted(batch.lines, batch.bad[0].line)))
        return replace(before, bad=())

    def _report_lines(self, unread: Sequence[BadLine]) -> None:
        for line in unread:
            self.bad(f"line {line.line}", line.message.partition(": ")[2])

    def _json_lines(
        self, file: IO[bytes], work: Callable[[EventBatch], T], workers: int
    ) -> Iterator[tuple[EventBatch, T]]:
        """Batches of JSON lines: full ones, or what has come so far from a pipe that has no more yet."""
        blocks = Blocks(file, self._size, DEFAULT_EVENT_LIMITS.line_length)
        names = attributes_of(self._index.tested)

        def done(block: Block) -> tuple[EventBatch, T]:
            batch = _batch(block, names)
            return batch, work(batch)

        rows = 0
        for batch, outcome in _in_order(blocks, done, workers):
            yield replace(batch, numbers=batch.numbers + rows), outcome
            rows += batch.rows

    def csv(self, file: IO[bytes]) -> Iterator[EventBatch]:
        """Batches of CSV. Arrow parses ahead, so a bad row is held back until the rows before it are out."""
        held: dict[int, str] = {}
        types = {
            name: _ARROW_TYPES[attribute.type]
            for name, attribute in (self._schema.attributes.items() if self._schema is not None else ())
            if attribute.type in _ARROW_TYPES
        }
        row = inner = 0  # and line ends inside of values
        blocks = csv_files.batches(
            file, self.source.name, types, held.__setitem__, "say what its columns hold with --schema"
        )
        for block in blocks:
            known = tuple(held)  # Arrow may add to it meanwhile
            numbers = np.setdiff1d(np.arange(row, row + block.num_rows + len(known)), known)[: block.num_rows]
            if row == 0:
                self._say_types(block.schema, types)
            within = np.concatenate(([0], np.cumsum(_line_ends(block))))
            whole = EventBatch(
                with_partitions(block, self.source.partitions), numbers, numbers + _ABOVE + inner + within[:-1]
            )
            start = 0
            for wrong in sorted(number for number in known if row <= number <= (numbers[-1] if len(numbers) else row)):
                end = int(np.searchsorted(numbers, wrong))
                yield from self._sliced(whole.part(start, end))
                self.bad(f"line {wrong + _ABOVE + inner + int(within[end])}", held.pop(wrong))
                start = end
            yield from self._sliced(whole.part(start, len(whole)))
            row = int(numbers[-1]) + 1 if len(numbers) else row
            inner += int(within[-1])
        for wrong in sorted(held):
            self.bad(f"line {wrong + _ABOVE + inner}", held[wrong])

    def _say_types(self, schema: pa.Schema, known: Mapping[str, pa.DataType]) -> None:
        """Say once which types were guessed of columns that subscriptions test."""
        tested = {name for name in schema.names if name in self._index.attributes and name not in known}
        for one in schema:
            if one.name in tested and pa.types.is_binary(one.type):
                raise EventError(f"{self.source.name}: column {one.name!r} isn't text in UTF-8; save the file as UTF-8")
        once = [one for one in schema if one.name in tested and schema.names.count(one.name) == 1]
        guessed = Schema.infer(pa.schema(once)).attributes
        if guessed:
            told = json.dumps({name: attribute.type for name, attribute in guessed.items()}, ensure_ascii=False)
            complain(f"{self.source.name}: types guessed from the first rows; to be sure, give --schema {told!r}")

    def _sliced(self, batch: EventBatch) -> Iterator[EventBatch]:
        for first in range(0, len(batch), self._size):
            yield batch.part(first, min(first + self._size, len(batch)))

    def xml(self, file: IO[bytes]) -> Iterator[EventBatch]:
        """Batches of XML documents."""
        events: list[tuple[int, dict[str, Any]]] = []
        bad: list[BadLine] = []
        row = 0
        for read in read_xml_lines(file, self._schema):
            if isinstance(read, BadLine):
                bad.append(read)
            else:
                events.append(read)
            if len(events) + len(bad) == self._size:
                yield _xml_batch(events, bad, row)
                row += self._size
                events, bad = [], []
        if events or bad:
            yield _xml_batch(events, bad, row)

    def parquet(self, file: IO[bytes]) -> Iterator[EventBatch]:
        """Batches of Parquet, of those columns only that subscriptions or the schema may name."""
        table = parquet_file(file, self.source.name)
        wanted = {name.partition(".")[0] for name in self._index.attributes} | set(self._index.attributes)
        if self._schema is not None:
            wanted |= {name.partition(".")[0] for name in self._schema.attributes} | set(self._schema.attributes)
        whole = any(term.name == EVENT_TEXT for term in self._index.terms)
        wanted |= set(self._columns)
        whole = whole or "*" in self._columns
        names = [name for name in table.schema_arrow.names if whole or name in wanted or "." in name]
        self._rows = table.metadata.num_rows
        row = 0
        for batch in table.iter_batches(batch_size=self._size, columns=names):
            yield EventBatch(with_partitions(batch, self.source.partitions), np.arange(row, row + batch.num_rows))
            row += batch.num_rows


def _line_ends(block: pa.RecordBatch) -> NDArray[np.int64]:
    """For each row how many line ends are inside of its values."""
    count = np.zeros(block.num_rows, np.int64)
    for column in block.columns:
        if pa.types.is_string(column.type):
            count += pc.fill_null(pc.count_substring(column, "\n"), 0).to_numpy(zero_copy_only=False)
    return count


def _batch(block: Block, names: Sequence[str]) -> EventBatch:
    """The events of a block, numbered from 0."""
    bad: list[BadLine] = []
    lines = JsonLines(block.content, bad=bad, first_line=block.first_line)
    events: JsonLines | list[dict[str, Any]]
    if lines.line_count <= _HANDFUL and not kernels_loaded():
        read = lines.events()
        events, places = list(read.values()), np.fromiter(read, np.int64, len(read))
    else:
        events, places = lines, lines.scan(names)
    numbers = np.arange(len(places)) + np.searchsorted([line.line for line in bad], places)
    return EventBatch(events, numbers, places, bad)


def _in_order(blocks: Iterable[Block], work: Callable[[Block], T], workers: int) -> Iterator[T]:
    """What some work makes of blocks, on threads, with one block more than these have in hand; in the blocks' order.
    Nothing is held back while a pipe has no more."""
    if workers == 1:
        yield from map(work, blocks)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="covey-read") as pool:
        started: deque[Future[T]] = deque()
        try:
            for block in blocks:
                started.append(pool.submit(work, block))
                while started and (block.last or len(started) > workers or started[0].done()):
                    yield started.popleft().result()
            while started:
                yield started.popleft().result()
        finally:
            for one in started:
                one.cancel()


def _xml_batch(events: list[tuple[int, dict[str, Any]]], bad: list[BadLine], row: int) -> EventBatch:
    lines = np.array([line for line, _ in events], np.int64)
    numbers = row + np.arange(len(events)) + np.searchsorted([line.line for line in bad], lines)
    return EventBatch([event for _, event in events], numbers, lines, bad)


_READERS: Mapping[str, Callable[[EventFile, IO[bytes]], Iterator[EventBatch]]] = {
    "csv": EventFile.csv,
    "parquet": EventFile.parquet,
    "xml": EventFile.xml,
}
