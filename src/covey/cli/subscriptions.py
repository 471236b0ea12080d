"""Subscriptions from files: rows with an id and a filter, each bad one reported with its place, into an index."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from covey.cli.lines import Lines
from covey.cli.options import FilterOptions, IndexOptions, MeaningOptions, MissingColumnOptions
from covey.cli.rule_files import RuleFiles
from covey.cli.terminal import BadRowsError, Report, Step, complain, one_line, progress
from covey.errors import CoveyError, OnError, skips
from covey.events import BadLine, Schema, csv_files, read_json_lines
from covey.events.files import Source, parquet_file, source
from covey.events.schema import as_schema
from covey.file_names import Format, is_index
from covey.filters.fitting import UNTYPED
from covey.language import from_json, in_sql
from covey.matching import BadSubscription, Index
from covey.matching.bulk.rule_files import are_files
from covey.matching.ids import check_id, is_integer
from covey.matching.table_columns import TableColumns, held

_STEP = 1_000


class SubscriptionFile:
    """The rows of a file as (id, filter) pairs. It knows where each pair came from, and reports what isn't one."""

    def __init__(self, given: Source, options: FilterOptions) -> None:
        self.source = given
        self.report = Report("subscription", given.name)
        self._id, self._filter = options.id_column, options.filter_column
        self._dialect = options.dialect
        self._places = array("q")
        self._unit = "row" if given.format == "parquet" else "line"
        self._lost: list[tuple[int, str]] = []
        self._strange = 0

    def place(self, pair: int) -> str:
        """Where the pair of that number stands: a line from 1, or a row of Parquet from 0."""
        return f"{self._unit} {self._places[pair]}"

    def pairs(self, step: Step) -> Iterator[tuple[Any, Any]]:
        """The rows that have an id and a filter; whether the filter is one, the index decides."""
        with self.source.open() as (file, raw):
            size = self.source.size
            for number, (place, name, condition) in enumerate(_READERS[self.source.format](self, file)):
                if number % _STEP == 0:
                    step(number, raw.tell() if size is not None else 0, size)
                self._strange += name is None and condition is None
                try:
                    check_id(name)
                except CoveyError as error:
                    self._lost.append((place, one_line(error)))
                else:
                    self._places.append(place)
                    yield name, self._filter_of(condition)

    def settle(self, errors: Sequence[BadSubscription]) -> None:
        """Report all rows that can't be used, those that the index refused among them, in the file's order."""
        refused = [(self._places[bad.row], _said(bad)) for bad in errors]
        for place, problem in sorted(self._lost + refused, key=lambda one: one[0]):
            self.report.bad(f"{self._unit} {place}", problem)
        if self._strange and self._strange == self.report.count and not self._places:
            complain(f"no row has {self._id!r} and {self._filter!r}; did you swap SUBSCRIPTIONS and EVENTS?")

    def rows(self) -> Iterator[tuple[str, Any, Any]]:
        """All rows as they are: where each stands, what it has as id, and what as filter."""
        with self.source.open() as (file, _):
            for place, name, condition in _READERS[self.source.format](self, file):
                yield f"{self._unit} {place}", name, condition

    def _filter_of(self, given: Any) -> Any:
        """A filter, or in its place what is wrong with it: whose id counts is decided later."""
        try:
            if given is None or (isinstance(given, str) and self._dialect == "sql"):
                return given
            if isinstance(given, str):
                return in_sql(given, self._dialect)
            if self._dialect == "eventbridge":  # patterns are JSON, so a line may have them as they are
                return in_sql(json.dumps(given), self._dialect)
            return from_json(given)
        except CoveyError as error:
            return error

    def json_lines(self, file: IO[bytes]) -> Iterator[tuple[int, Any, Any]]:
        """Rows of JSON lines."""
        lines, bad = Lines(file), list[BadLine]()

        def say() -> None:
            for line in bad:
                self._lost.append((line.line, line.message.partition(": ")[2]))
            bad.clear()

        for row in read_json_lines(lines, name="", bad=bad):  # type: ignore[arg-type]
            say()
            yield lines.number, row.get(self._id), row.get(self._filter)
        say()

    def csv(self, file: IO[bytes]) -> Iterator[tuple[int, Any, Any]]:
        """Rows of CSV; both columns are text, whatever they look like."""
        bad: set[int] = set()

        def skip(row: int, problem: str) -> None:
            bad.add(row)
            self._lost.append((row + 2, problem))

        text = {self._id: pa.string(), self._filter: pa.string()}
        row = inner = 0  # and line ends inside of values
        for batch in csv_files.batches(file, self.source.name, text, skip, "is it CSV?"):
            self._check_columns(batch.schema.names)
            columns = (batch.column(batch.schema.get_field_index(name)).to_pylist() for name in text)
            for name, condition in zip(*columns, strict=True):
                while row in bad:
                    row += 1
                yield row + 2 + inner, name, condition
                inner += sum(value.count("\n") for value in (name, condition) if value is not None)
                row += 1

    def parquet(self, file: IO[bytes]) -> Iterator[tuple[int, Any, Any]]:
        """Rows of Parquet."""
        table = parquet_file(file, self.source.name)
        self._check_columns(table.schema_arrow.names)
        row = 0
        for batch in table.iter_batches(columns=[self._id, self._filter]):
            for name, condition in zip(
                batch.column(self._id).to_pylist(), batch.column(self._filter).to_pylist(), strict=True
            ):
                yield row, name, condition
                row += 1

    def _check_columns(self, names: list[str]) -> None:
        for option, name in (("id", self._id), ("filter", self._filter)):
            if name not in names:
                swapped = self._id not in names and self._filter not in names
                hint = "; did you swap SUBSCRIPTIONS and EVENTS?" if swapped else ""
                raise CoveyError(
                    f"{self.source.name}: no column {name!r}; it has {', '.join(names)}. "
                    f"Name the right one with --{option}-column{hint}"
                )


_READERS: Mapping[str, Callable[[SubscriptionFile, IO[bytes]], Iterator[tuple[int, Any, Any]]]] = {
    "jsonl": SubscriptionFile.json_lines,
    "csv": SubscriptionFile.csv,
    "parquet": SubscriptionFile.parquet,
}


def _said(bad: BadSubscription) -> str:
    """What is wrong with a row, and whose it is, once."""
    whose, problem = f"subscription {bad.id!r}", one_line(bad.error)
    named = isinstance(bad.id, (str, int)) and bad.id != "" and not problem.startswith(whose)
    return f"{whose}: {problem}" if named else problem


def as_one_kind(rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The rows with ids as text where not all are integers, as Spark reads a column of both."""
    whole = all(is_integer(id) for id, _ in rows)
    return rows if whole else [(str(id), condition) for id, condition in rows]


def schema_of(options: MeaningOptions) -> Schema | None:
    """The schema in the file that the user named."""
    return as_schema(options.schema)


def subscription_rows(path: str, forced: Format | None, options: FilterOptions) -> SubscriptionFile | RuleFiles:
    """The subscriptions of a table, or of files with one rule each."""
    if are_files(path) and forced is None:
        return RuleFiles(path, options)
    return SubscriptionFile(source(path, forced, "--subscriptions-format"), options)


@dataclass(slots=True)
class Loaded:
    """The user's subscriptions: those that can be read as an index, and a report of the others."""

    index: Index
    report: Report
    places: Callable[[], Mapping[Any, str]] = dict
    """Where each one stands, by id, where that is known; asked only where some are refused."""

    def refuse(self, errors: Sequence[BadSubscription]) -> None:
        """Report subscriptions that were read and can't be used all the same."""
        places = self.places() if errors else {}
        for bad in errors:
            self.report.bad(places.get(bad.id, ""), _said(bad))

    def settle(self, on_error: OnError) -> None:
        """All are reported; with `--on-error raise` none may be."""
        self.places = dict  # which holds all texts
        self.report.end()
        if self.report.count and not skips(on_error):
            raise BadRowsError(f"{self.report} can't be used, so nothing was done; --on-error skip goes on without")


def load(options: IndexOptions, *, shown: bool) -> Loaded:
    """The user's subscriptions: a saved index, or one that is built now. Who asks for them settles the report."""
    path = options.subscriptions
    if is_index(path):
        if options.semantics is not None or options.schema is not None:
            raise CoveyError(f"{path} has a semantics and a schema of its own; give them to covey index build")
        return Loaded(Index.open(path), Report("subscription", path))
    rows = subscription_rows(path, options.subscriptions_format, options)
    index = Index(semantics=options.semantics or "sql", schema=schema_of(options))
    with progress("subscriptions", shown=shown) as step:
        pairs = as_one_kind(list(rows.pairs(step)))
        added = index.add_many(pairs, on_error="skip")
    rows.settle(added.errors)
    wrong = {bad.row for bad in added.errors}
    return Loaded(
        index, rows.report, lambda: {id: rows.place(at) for at, (id, _) in enumerate(pairs) if at not in wrong}
    )


def index_of(options: IndexOptions, *, shown: bool) -> tuple[Index, Report]:
    """The index of the user's subscriptions: a saved one, or built now. With `--on-error raise`, all or none."""
    loaded = load(options, shown=shown)
    loaded.settle(options.on_error)
    return loaded.index, loaded.report


def lacks_columns(options: MissingColumnOptions) -> bool:
    """Whether subscriptions may name columns that a table hasn't."""
    return options.missing_columns == "null"


def is_held(options: MeaningOptions) -> bool:
    """Whether subscriptions are held to the columns of tables: not where they bring types of their own, nor in dialects
    that know no types."""
    return options.schema is None and options.dialect not in UNTYPED


def hold(loaded: Loaded, tables: list[pa.Schema] | None, *, lacking: bool) -> None:
    """Hold subscriptions to the columns of tables; nothing is held to events that have none."""
    if tables is not None and loaded.index.schema is None:
        loaded.index, errors = held(loaded.index, TableColumns(tables, lacking=lacking))
        loaded.refuse(errors)
