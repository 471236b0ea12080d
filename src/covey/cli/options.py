"""What several commands let the user say, as classes that the commands' own options are made of.

A command's options are a class of its own, beside the function that adds its arguments: annotations and nothing else.
They don't derive from argparse's Namespace, where a type checker finds any name. A test holds each class against the
arguments of its command.
"""

from __future__ import annotations

import argparse
from typing import Final, Literal, TypeAlias, get_args

from covey.errors import OnError
from covey.file_names import Format
from covey.filters.semantics import Semantics

ON_ERROR: Final = get_args(OnError)
"""`collect` is another name of `skip`."""


Measure: TypeAlias = Literal["degree", "traffic"]
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)
"""`covey.relations.merging` has them too; importing it takes a second."""


def add_measure(parser: argparse.ArgumentParser) -> None:
    """Add what the threshold of imperfect merging bounds; both commands that compact have it."""
    parser.add_argument(
        "--measure", choices=MEASURES, default="degree",
        help="what --imt bounds: degree, the part of a merger's events that nobody asked for; or traffic, the part of "
        "all events (%(default)s)",
    )  # fmt: skip


class ColumnOptions:
    """Which columns of a table of subscriptions are meant."""

    id_column: str
    filter_column: str


class MeaningOptions:
    """What filters are written in, and what they mean."""

    dialect: str
    semantics: Semantics | None
    schema: str | None


class FilterOptions(ColumnOptions, MeaningOptions):
    """How subscriptions are read and meant."""


class IndexOptions(FilterOptions):
    """What makes an index."""

    subscriptions: str
    subscriptions_format: Format | None
    on_error: OnError


MissingColumns: TypeAlias = Literal["refuse", "null"]
MISSING_COLUMNS: Final[tuple[MissingColumns, ...]] = get_args(MissingColumns)


class MissingColumnOptions(MeaningOptions):
    """What becomes of rules that name columns which a table hasn't."""

    missing_columns: MissingColumns | None


def add_missing_columns(parser: argparse.ArgumentParser) -> None:
    """Add that option; all commands that match tables have it."""
    parser.add_argument(
        "--missing-columns",
        choices=MISSING_COLUMNS,
        help="what a rule is that names a column which Parquet, CSV or a table hasn't: one that can't be used (refuse, "
        "the default, as SQL has it), or one that finds null there (null, as in JSON lines)",
    )
