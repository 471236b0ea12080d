"""The keywords that all functions have which match against subscriptions, said once.

`match_events`, `matching` and `match_files` take them and hand them to `covey.spark.worker_files.place`, which has the
defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from covey.events.schema import AnySchema
from covey.filters import Semantics
from covey.limits import Limits
from covey.spark.conditions.binding import OnTermError


class SubscriptionOptions(TypedDict, total=False):
    """How subscriptions are read and meant, and how large an index workers may hold."""

    id: str
    """The column with the subscriptions' ids ("id")."""
    filter: str
    """The column with their filters ("filter")."""
    semantics: Semantics | None
    """What a test on a missing attribute means: "sql", unless a saved index brings its own."""
    dialect: str
    """What the filters are written in ("sql")."""
    schema: AnySchema | None
    """Of the events: types, mandatory attributes and defaults; a saved index brings its own."""
    limits: Limits
    """Bounds on one filter."""
    memory_budget: int | None
    """An index larger than so many bytes is matched in shards, one after the other."""
    functions: Sequence[str]
    """Functions that are registered in the session and that filters may call, beside Spark's own."""
    on_term_error: OnTermError
    """What a term that fails does, such as a division by zero: its test is "unknown" (the default), or Spark's error
    is to "raise"."""


def check_keywords(function: str, options: Mapping[str, object]) -> None:
    """Refuse a keyword that isn't one of them, as Python does, and at once: some options are used much later."""
    for name in options:
        if name not in SubscriptionOptions.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
