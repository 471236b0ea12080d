"""The command line: all commands, their arguments, and for each command a class of what it is given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, get_args

from covey import __version__
from covey.cli import lab_arguments
from covey.cli.broker import arguments as broker_arguments
from covey.cli.options import (
    ON_ERROR,
    FilterOptions,
    IndexOptions,
    MeaningOptions,
    Measure,
    MissingColumnOptions,
    add_measure,
    add_missing_columns,
)
from covey.cli.spark import arguments as spark_arguments
from covey.cli.spark.arguments import SessionOptions
from covey.errors import CoveyError
from covey.file_names import EVENT_FORMATS, FORMATS, EventFormat, Format
from covey.filters.semantics import SEMANTICS
from covey.language import DIALECTS

if TYPE_CHECKING:
    from covey.relations.pruning import Dimension

DIMENSIONS: Final[tuple[Dimension, ...]] = ("network", "memory", "throughput")
"""`covey.relations.pruning` has them too; importing it takes a second."""

ResultForm: TypeAlias = Literal["lists", "pairs", "counts"]
RESULT_FORMS: Final[tuple[ResultForm, ...]] = get_args(ResultForm)

BATCH_SIZE: Final = 32_768
"""Events a batch: enough that matching costs little an event, few enough that dense matches fit in memory."""


class UsageError(CoveyError):
    """A command line that can't be read."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = _Parser(
        prog="covey",
        description="Match events with Boolean subscriptions: who asked for what?",
        epilog="Exit codes: 0 all went well, 1 something to mend (said in one line), 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"covey {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _match(commands)
    _explain(commands)
    _relate(commands)
    _check(commands)
    _schema(commands)
    _report(commands)
    _compact(commands)
    _index(commands)
    _demo(commands)
    _doctor(commands)
    spark_arguments.add(commands, _filters, _positive)
    broker_arguments.add(commands, _positive, _filters)
    lab_arguments.add(commands, _positive)
    return parser


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What a command line says: `command`, and the options of that command, which takes them as its own class."""
    options, rest = parser().parse_known_args(arguments)
    if options.command == "explain":
        # argparse gives up on a list of words once an option stands between them.
        options.words += [word for word in rest if not word.startswith("-") or word == "-"]
        rest = [word for word in rest if word not in options.words]
    if rest:
        raise UsageError(f"{rest[0]} is not an option here; see covey {options.command} --help")
    if options.command in ("index", "spark", "lab", "load", "peer"):
        options.command = f"{options.command} {options.action}"
    return options


class MatchOptions(IndexOptions, MissingColumnOptions):
    """Of `covey match`."""

    events: list[str]
    format: EventFormat | None
    batch_size: int
    threads: int | None
    all: bool
    count: bool
    output: str | None
    overwrite: bool
    columns: list[str]
    form: ResultForm
    nan_is_missing: bool


def _match(commands: Any) -> None:
    parser = commands.add_parser(
        "match",
        help="match a file of events with a file of subscriptions",
        description="Print, for every event, the subscriptions that it matches: "
        '{"event": n, "subscriptions": [...]} lines, where n is the event\'s row, from 0. '
        "A terminal gets a table instead. One of the two files may be -, standard input.",
    )
    parser.add_argument(
        "subscriptions", metavar="SUBSCRIPTIONS", help="rows with an id and a filter, or a .covey index"
    )
    parser.add_argument(
        "events",
        metavar="EVENTS",
        nargs="+",
        help="rows of attributes: files, directories (with partitions such as day=2026-01-31), patterns with *, "
        "addresses that Arrow reads such as s3://…; of JSON lines, one object a line",
    )
    parser.add_argument(
        "--format", choices=EVENT_FORMATS, help="of the events; by itself it is told by the file's name"
    )
    parser.add_argument("--subscriptions-format", choices=FORMATS, help="the same, of the subscriptions")
    _filters(parser)
    parser.add_argument(
        "--on-error",
        choices=ON_ERROR,
        default="raise",
        help="stop at subscriptions and events that can't be used (raise, the default), or go on without them (skip); "
        "each is reported in either case",
    )
    add_missing_columns(parser)
    parser.add_argument("--batch-size", type=_positive, default=BATCH_SIZE, help="events at a time (%(default)s)")
    parser.add_argument("--threads", type=_positive, help="threads to match with; by itself one a processor")
    parser.add_argument("--all", action="store_true", help="print events without matches too")
    parser.add_argument("--count", action="store_true", help="print only the totals")
    parser.add_argument(
        "--as",
        dest="form",
        choices=RESULT_FORMS,
        default="lists",
        help="a list of ids for each event, a row for each match (pairs), or how often each subscription was met, "
        "those that never were too (counts); by itself %(default)s",
    )
    parser.add_argument(
        "--columns",
        type=_names,
        default=[],
        metavar="A,B",
        help="columns of the events to write beside their matches; * is all",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to a file: .jsonl, .jsonl.gz or .parquet; rows (--as, --columns) also to .csv",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the output")
    parser.add_argument("--nan-is-missing", action="store_true", help="read NaN as a missing value, as pandas has it")


class ExplainOptions(FilterOptions):
    """Of `covey explain`."""

    words: list[str]
    subscriptions: str | None
    subscriptions_format: Format | None
    id: str | None
    json: bool


def _explain(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="say why an event matches a filter, or why not",
        usage="covey explain [options] FILTER EVENT\n       covey explain [options] --subscriptions FILE --id ID EVENT",
        description="Say why an event matches a filter, or why not. EVENT is a JSON object; - reads it from standard "
        "input.",
    )
    parser.add_argument(
        "words", nargs="*", default=[], metavar="FILTER EVENT", help="the filter, and the event as JSON"
    )
    parser.add_argument("--subscriptions", metavar="FILE", help="where to find the subscription with --id")
    parser.add_argument("--id", help="the subscription to explain")
    parser.add_argument("--subscriptions-format", choices=FORMATS, help="by itself it is told by the file's name")
    _filters(parser)
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")


class RelateOptions(MeaningOptions):
    """Of `covey relate`."""

    first: str
    second: str
    json: bool


def _relate(commands: Any) -> None:
    parser = commands.add_parser(
        "relate",
        help="say whether one filter covers another, and show events that tell them apart",
        description="Say how two filters relate: whether each event that matches one matches the other, whether any "
        "matches both; and show such events, and those that match only one.",
    )
    parser.add_argument("first", metavar="A", help="a filter")
    parser.add_argument("second", metavar="B", help="another")
    _meaning(parser)
    parser.add_argument("--json", action="store_true", help="print the relation as JSON")


class CheckOptions(FilterOptions):
    """Of `covey check`."""

    rules: str
    events: list[str]
    events_format: EventFormat | None
    format: Format | None
    table: str | None
    fix: str | None
    json: bool


def _check(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="say which rules load, which don't and why, and which are odd",
        description="Read rules of any dialect and say which load, which don't and why, which can never match or "
        "always do, and which are equal. The exit code is 1 if some don't load.",
    )
    parser.add_argument(
        "rules", metavar="RULES", help="rows with an id and a filter, or a directory or YAML file with one rule a file"
    )
    parser.add_argument(
        "events", metavar="EVENTS", nargs="*", help="say too which rules can't fire on these events, and why"
    )
    parser.add_argument("--format", choices=FORMATS, help="of the rows; by itself as the name ends")
    parser.add_argument("--events-format", choices=EVENT_FORMATS, help="of the events; by itself as their names end")
    parser.add_argument("--table", metavar="PARQUET", help="check against the columns of a Parquet file or directory")
    parser.add_argument("--fix", metavar="FILE", help="mend what has a plain remedy, and write all that load as SQL")
    parser.add_argument("--json", action="store_true", help="print one JSON object a rule")
    _filters(parser)


class SchemaOptions:
    """Of `covey schema`."""

    events: list[str]
    format: EventFormat | None
    output: str | None
    sample: int


def _schema(commands: Any) -> None:
    parser = commands.add_parser(
        "schema",
        help="write a schema of events from a sample of them",
        description="Print the types that attributes of events have, as JSON for --schema: read it, mend what was "
        "guessed wrong (string keeps 01234 as it is), and give it to the other commands.",
    )
    parser.add_argument("events", metavar="EVENTS", nargs="+", help="files, directories, patterns or addresses")
    parser.add_argument("--format", choices=EVENT_FORMATS, help="of the events; by itself as their names end")
    parser.add_argument(
        "--sample", type=_positive, default=10_000, help="events to look at, in all files together (%(default)s)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it; by itself standard output")


class ReportOptions(IndexOptions):
    """Of `covey report`."""

    events: list[str]
    format: EventFormat | None
    json: bool
    html: str | None


def _report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="say which rules never fire, which are the broadest, equal, covered, contradictory, always true",
        description="Hold rules against each other, and against events where there are some.",
    )
    parser.add_argument("subscriptions", metavar="RULES", help="rows with an id and a filter, or a .covey index")
    parser.add_argument("events", metavar="EVENTS", nargs="*", help="files, directories, patterns or addresses")
    parser.add_argument("--format", choices=EVENT_FORMATS, help="of the events; by itself as their names end")
    parser.add_argument("--subscriptions-format", choices=FORMATS, help="the same, of the rules")
    _filters(parser)
    parser.add_argument("--on-error", choices=ON_ERROR, default="raise", help="at rules and events that can't be used")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--html", metavar="FILE", help="write it as a page with bars")


class CompactOptions(IndexOptions):
    """Of `covey compact`."""

    output: str | None
    merging: bool
    imt: float
    measure: Measure
    prune: float
    dimension: Dimension
    profile: str | None
    events: str | None
    events_format: EventFormat | None
    advertisements: str | None


def _compact(commands: Any) -> None:
    parser = commands.add_parser(
        "compact",
        help="make a file of subscriptions smaller: equal, covered, merged and pruned ones under others",
        description="Print how many subscriptions are left after each step, and write them with what each stands for. "
        "Whatever matched a subscription matches the entry that stands for it; unless --imt or --prune is given, "
        "nothing more does.",
    )
    parser.add_argument("subscriptions", metavar="FILE", help="rows with an id and a filter; - is standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write them: .jsonl or .parquet")
    parser.add_argument("--format", dest="subscriptions_format", choices=FORMATS, help="by itself told by the name")
    _filters(parser)
    parser.add_argument("--no-merging", dest="merging", action="store_false", help="identity and covering only")
    parser.add_argument(
        "--imt", type=_fraction, default=0.0, metavar="X",
        help="imperfect merging threshold: the part of a merger's events that nobody asked for (%(default)s)",
    )  # fmt: skip
    add_measure(parser)
    parser.add_argument(
        "--prune", type=_fraction, default=0.0, metavar="X",
        help="remove parts of filters that then match at most this part of all events more (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--dimension", choices=DIMENSIONS, default="network", help="what to prune for (%(default)s)")
    parser.add_argument("--profile", metavar="FILE", help="what events are like, from covey spark profile")
    parser.add_argument("--events", metavar="FILE", help="events to learn that from")
    parser.add_argument("--events-format", choices=EVENT_FORMATS, help="by itself told by the name")
    parser.add_argument("--advertisements", metavar="FILE", help="filters of what is published at all, one a line")
    parser.add_argument("--on-error", choices=ON_ERROR, default="raise", help="at rows that can't be used")


class IndexBuildOptions(IndexOptions):
    """Of `covey index build`."""

    output: str


class IndexStatsOptions:
    """Of `covey index stats`."""

    file: str
    json: bool


def _index(commands: Any) -> None:
    parser = commands.add_parser("index", help="build an index file, or look at one")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=_Parser)
    build = actions.add_parser("build", help="build an index of subscriptions and save it")
    build.add_argument(
        "subscriptions", metavar="SUBSCRIPTIONS", help="rows with an id and a filter; - is standard input"
    )
    build.add_argument("-o", "--output", metavar="FILE.covey", required=True, help="where to save the index")
    build.add_argument(
        "--format",
        "--subscriptions-format",
        dest="subscriptions_format",
        choices=FORMATS,
        help="by itself it is told by the file's name",
    )
    _filters(build)
    build.add_argument(
        "--on-error",
        choices=ON_ERROR,
        default="raise",
        help="save nothing if a subscription can't be used (raise, the default), or leave it out (skip)",
    )
    stats = actions.add_parser("stats", help="what an index holds, and how large it is")
    stats.add_argument("file", metavar="FILE.covey", help="a saved index")
    stats.add_argument("--json", action="store_true", help="print them as JSON")


class DemoOptions(SessionOptions):
    """Of `covey demo`."""

    traders: int
    quotes: int | None
    seed: int
    spark: bool
    output: str


def _demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="a market of made-up stocks: traders, quotes, who hears of what",
        description="Index the wishes of made-up traders, match made-up stock quotes with them on Spark, as a batch "
        "and as a stream whose subscriptions change while it runs, explain a match and a miss, and say how fast that "
        "was here. Charts go to an HTML file. Without Spark the library alone does what it can.",
    )
    parser.add_argument("--traders", type=_positive, default=50_000, help="subscriptions (%(default)s)")
    parser.add_argument("--quotes", type=_positive, help="events; by itself 1,000,000, without Spark 200,000")
    parser.add_argument("--seed", type=_natural, default=1, help="another seed makes another market (%(default)s)")
    parser.add_argument("--cores", type=_positive, help="cores for Spark; by itself all")
    parser.add_argument("--no-spark", dest="spark", action="store_false", help="the library alone")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="covey-demo.html", help="where the charts go (%(default)s)"
    )
    parser.set_defaults(master=None, remote=None, conf=[], spark_log=None)


class DoctorOptions:
    """Of `covey doctor`, which has none."""


def _doctor(commands: Any) -> None:
    commands.add_parser(
        "doctor",
        help="what is installed here and what is missing, with the remedy",
        description="Say what covey finds on this machine: Python, packages, compiled kernels, Spark and its Java, "
        "cores and memory; one line each, with the remedy where something is missing. The exit code is 0 if covey can "
        "work, even if only without Spark or brokers.",
    )


def _filters(parser: argparse.ArgumentParser) -> None:
    """How subscriptions are read and meant."""
    for name in ("id", "filter"):
        # `explain` has an --id of its own: the subscription's.
        names = [f"--{name}-column"] if parser.prog.endswith("explain") else [f"--{name}", f"--{name}-column"]
        column = f"the subscriptions' column of {name}s, by itself {name!r}"
        parser.add_argument(*names, dest=f"{name}_column", default=name, metavar="NAME", help=column)
    _meaning(parser)


def _meaning(parser: argparse.ArgumentParser) -> None:
    """What filters are written in, and what they mean."""
    parser.add_argument("--dialect", choices=tuple(DIALECTS), default="sql", help="of the filters (%(default)s)")
    parser.add_argument("--semantics", choices=SEMANTICS, help="what a test on a missing attribute means (sql)")
    parser.add_argument(
        "--schema", metavar="FILE", help='the events\' schema: a file, or JSON itself, such as {"ts": "timestamp"}'
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)
