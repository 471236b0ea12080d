"""The arguments of `covey spark …`, and for each command a class of what it is given."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, get_args

from covey.cli.options import (
    ON_ERROR,
    ColumnOptions,
    FilterOptions,
    Measure,
    MissingColumnOptions,
    add_measure,
    add_missing_columns,
)
from covey.errors import OnError
from covey.file_names import FORMATS, Format
from covey.filters.semantics import SEMANTICS, Semantics
from covey.language import DIALECTS

Form: TypeAlias = Literal["array", "pairs"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)


class SessionOptions:
    """Where Spark is."""

    cores: int | None
    master: str | None
    remote: str | None
    conf: list[tuple[str, str]]
    spark_log: str | None


class EventOptions:
    """Events, and how they are read."""

    events: str
    events_format: Format | None
    events_schema: str | None
    on_error: OnError


class TableOptions(ColumnOptions):
    """How a table of subscriptions is read."""

    subscriptions_format: Format | None


class SparkMatchOptions(EventOptions, TableOptions, FilterOptions, MissingColumnOptions, SessionOptions):
    """Of `covey spark match`."""

    subscriptions: str
    output: str
    form: Form
    columns: list[str] | None
    all: bool
    overwrite: bool
    index: str | None
    bulk: bool
    memory_budget: int | None
    json: bool


class SparkStreamOptions(EventOptions, TableOptions, SessionOptions):
    """Of `covey spark stream`."""

    subscriptions: str
    output: str
    checkpoint: str
    once: bool
    trigger: float | None
    files_per_batch: int | None
    form: Form
    semantics: Semantics | None
    dialect: str


class SparkProfileOptions(EventOptions, TableOptions, SessionOptions):
    """Of `covey spark profile`."""

    subscriptions: str | None
    output: str
    merge: str | None
    dialect: str


class SparkCompactOptions(TableOptions, SessionOptions):
    """Of `covey spark compact`."""

    subscriptions: str
    output: str
    overwrite: bool
    profile: str | None
    imt: float
    measure: Measure
    prune: float
    merging: bool
    advertisements: str | None
    semantics: Semantics | None
    dialect: str


_ROWS = "files (Parquet, CSV, JSON lines), a directory or a pattern of them, or table:NAME"
_SUBSCRIPTIONS = f"rows with an id and a filter: {_ROWS}"


def add(commands: Any, filters: Callable[[argparse.ArgumentParser], None], positive: Callable[[str], int]) -> None:
    """Add `spark` and its actions; `filters` adds the options of subscriptions, `positive` reads a number."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "spark",
        help="match tables and streams on Spark",
        description="The same on Spark: tables, many files, and streams. By itself it starts Spark on this machine.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(parser))
    _match(actions, filters, positive)
    _stream(actions, positive)
    _profile(actions, positive)
    _compact(actions, positive)


def _match(actions: Any, filters: Callable[[argparse.ArgumentParser], None], positive: Callable[[str], int]) -> None:
    parser = actions.add_parser(
        "match",
        help="match a table of events with a table of subscriptions",
        description="Match events with subscriptions and write what was found, as Parquet. "
        "The result has the events' columns and what each matches.",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=f"{_SUBSCRIPTIONS}; or a .covey index")
    parser.add_argument("events", metavar="EVENTS", help=f"rows of attributes: {_ROWS}")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where to write, or table:NAME")
    _form(parser, "array")
    parser.add_argument("--columns", type=_names, metavar="A,B", help="the events' columns to write; by itself all")
    parser.add_argument("--all", action="store_true", help="with array: write events without matches too")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")
    parser.add_argument("--index", metavar="FILE.covey", help="keep the index that is built, to be given next time")
    parser.add_argument(
        "--bulk",
        action="store_true",
        help="Parquet only: workers read the files themselves, which is faster; the result has file, row and --columns",
    )
    parser.add_argument("--memory-budget", type=positive, metavar="BYTES", help="match a larger index in parts")
    _formats(parser)
    _events_schema(parser)
    filters(parser)
    parser.add_argument(
        "--on-error",
        choices=ON_ERROR,
        default="raise",
        help="stop at subscriptions and rows that can't be used (raise, the default), or report the subscriptions, "
        "drop the rows and go on (skip)",
    )
    add_missing_columns(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    add_session(parser, positive)


def _stream(actions: Any, positive: Callable[[str], int]) -> None:
    parser = actions.add_parser(
        "stream",
        help="match a stream of events with subscriptions that change",
        description="Match files of events as they appear in a directory, with subscriptions that may change "
        "meanwhile. Each match is written once, even if this is interrupted or killed: run it again with the same "
        "checkpoint to go on. Ctrl-C ends it after the batch under way.",
    )
    parser.add_argument(
        "subscriptions",
        metavar="SUBSCRIPTIONS",
        help="a directory of change files (version, op, id, filter), a file with id and filter that is read again when "
        "it is replaced, or table:NAME",
    )
    parser.add_argument("events", metavar="EVENTS_DIR", help="the directory where files of events appear")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where to write, one directory a batch")
    parser.add_argument("--checkpoint", metavar="DIR", required=True, help="what the stream must know to go on")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="take what is there and end")
    when.add_argument("--trigger", type=_seconds, metavar="SECONDS", help="a batch every so often; by itself at once")
    parser.add_argument("--files-per-batch", type=positive, metavar="N", help="the most files in a batch")
    _form(parser, "array")
    _formats(parser)
    _events_schema(parser)
    _columns_of_subscriptions(parser)
    _semantics(parser)
    _dialect(parser)
    parser.add_argument(
        "--on-error",
        choices=ON_ERROR,
        default="skip",
        help="note bad changes in the checkpoint and go on (skip, the default), or stop (raise)",
    )
    add_session(parser, positive, remote=False)


def _profile(actions: Any, positive: Callable[[str], int]) -> None:
    parser = actions.add_parser(
        "profile",
        help="learn what events and subscriptions look like",
        description="Learn the statistics of events, and of subscriptions on them, and save them for compact.",
    )
    parser.add_argument("events", metavar="EVENTS", help=f"rows of attributes: {_ROWS}")
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", nargs="?", help=_SUBSCRIPTIONS)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to save the profile")
    parser.add_argument("--merge", metavar="FILE", help="a profile of earlier events, to which these are added")
    _formats(parser)
    _events_schema(parser)
    _columns_of_subscriptions(parser)
    _dialect(parser)
    parser.set_defaults(on_error="raise")
    add_session(parser, positive)


def _compact(actions: Any, positive: Callable[[str], int]) -> None:
    parser = actions.add_parser(
        "compact",
        help="fewer subscriptions that stand for all",
        description="Write a smaller table of subscriptions, each with the ids that it stands for.",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help=_SUBSCRIPTIONS)
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where to write, or table:NAME")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")
    parser.add_argument("--profile", metavar="FILE", help="what covey spark profile has saved")
    parser.add_argument(
        "--imt",
        type=_share,
        default=0.0,
        metavar="X",
        help="how imperfect a merger may be, from 0 (not at all, the default) to 1; more than 0 needs --profile",
    )
    add_measure(parser)
    parser.add_argument(
        "--prune",
        type=_share,
        default=0.0,
        metavar="X",
        help="the share of all events that a pruned subscription may match more (%(default)s); needs --profile",
    )
    parser.add_argument("--no-merging", dest="merging", action="store_false", help="identity and covering only")
    parser.add_argument("--advertisements", metavar="FILE", help=f"filters that all events meet: {_ROWS}")
    _formats(parser, events=False)
    _columns_of_subscriptions(parser)
    _semantics(parser)
    _dialect(parser)
    add_session(parser, positive)


def _form(parser: argparse.ArgumentParser, default: Form) -> None:
    parser.add_argument(
        "--format",
        dest="form",
        choices=FORMS,
        default=default,
        help="an array of ids for each event, or one row for each match (%(default)s)",
    )


def _formats(parser: argparse.ArgumentParser, *, events: bool = True) -> None:
    if events:
        parser.add_argument("--events-format", choices=FORMATS, help="by itself it is told by the files' names")
    parser.add_argument("--subscriptions-format", choices=FORMATS, help="by itself it is told by the files' names")


def _events_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--events-schema",
        metavar="COLUMNS",
        help="what files of events hold, as in 'symbol string, price double'; by itself it is told by the files",
    )


def _columns_of_subscriptions(parser: argparse.ArgumentParser) -> None:
    for name in ("id", "filter"):
        column = f"the subscriptions' column of {name}s, by itself {name!r}"
        parser.add_argument(f"--{name}", dest=f"{name}_column", default=name, metavar="NAME", help=column)


def _semantics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--semantics", choices=SEMANTICS, help="what a test on a missing attribute means (sql)")


def _dialect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dialect", choices=tuple(DIALECTS), default="sql", help="of the filters (%(default)s)")


def add_session(parser: argparse.ArgumentParser, positive: Callable[[str], int], *, remote: bool = True) -> None:
    """Add the options that say where Spark is."""
    where = parser.add_argument_group("Spark")
    master = where.add_mutually_exclusive_group()
    master.add_argument("--cores", type=positive, metavar="N", help="cores of this machine to use; by itself all")
    master.add_argument("--master", metavar="URL", help="a cluster, as spark-submit takes it: spark://host:7077")
    if remote:
        master.add_argument("--remote", metavar="URL", help="a Spark Connect server: sc://host:15002")
    else:
        parser.set_defaults(remote=None)
    where.add_argument(
        "--conf", action="append", default=[], type=_setting, metavar="NAME=VALUE", help="a setting of Spark's"
    )
    where.add_argument("--spark-log", metavar="FILE", help="keep what Spark itself says; by itself it is dropped")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names, such as a,b")
    return names


def _setting(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return share
