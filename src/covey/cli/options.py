"""What several commands let the user say, as classes that the commands' own options are made of.

A command's options are a class of its own, beside the function that adds its arguments: annotations and nothing else.
They don't derive from argparse's Namespace, where a type checker finds any name. A test holds each class against the
arguments of its command.
"""

from __future__ import annotations

from typing import Final, get_args

from covey.errors import OnError
from covey.file_names import Format
from covey.filters.semantics import Semantics

ON_ERROR: Final = get_args(OnError)
"""`collect` is another name of `skip`."""


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
