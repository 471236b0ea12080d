"""How a stream's rules are read and meant: the options of `match_events`, fixed for as long as a stream runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql.types import StructType

from covey.errors import CoveyError
from covey.events import Schema
from covey.filters import Semantics
from covey.filters.fitting import UNTYPED, Types, fitted
from covey.filters.semantics import check_semantics
from covey.language import check_dialect, parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.spark.conditions import Settings
from covey.spark.conditions.binding import OnTermError
from covey.spark.known_types import known_types


@dataclass(frozen=True)
class RuleSettings:
    """The options of `covey.spark.options.SubscriptionOptions`, with their defaults."""

    id: str = "id"
    filter: str = "filter"
    semantics: Semantics | None = None
    dialect: str = "sql"
    schema: Schema | None = None
    limits: Limits = DEFAULT_LIMITS
    memory_budget: int | None = None
    functions: tuple[str, ...] = ()
    on_term_error: OnTermError = "unknown"
    as_json: bool = False
    """Whether events are JSON texts, whose rules are read as the library reads them."""
    columns: StructType | None = None
    """The events' columns, to whose types rules of dialects without types are fitted."""

    def __post_init__(self) -> None:
        check_dialect(self.dialect)
        check_semantics(self.meaning)
        if self.on_term_error not in ("unknown", "raise"):
            raise CoveyError(f"on_term_error {self.on_term_error!r} is not known; use unknown or raise")
        if self.memory_budget is not None and self.memory_budget < 1:
            raise CoveyError(f"memory_budget is {self.memory_budget} bytes; use 1 or more")
        if self.as_json and (self.functions or self.on_term_error != "unknown"):
            raise CoveyError(
                "functions= and on_term_error= are for what Spark computes, and with json= it computes nothing"
            )
        if self.schema is not None and (self.functions or self.on_term_error != "unknown"):
            raise CoveyError("functions= and on_term_error= are for what Spark computes, and with schema= covey does")

    @property
    def meaning(self) -> Semantics:
        """What a test on a missing attribute means."""
        return self.semantics or "sql"

    @property
    def schema_json(self) -> Any:
        """The schema as a checkpoint keeps it."""
        return None if self.schema is None else self.schema.to_json()

    @cached_property
    def _types(self) -> Types | None:
        fit = self.dialect in UNTYPED and self.schema is None and self.columns is not None and not self.as_json
        return known_types(self.columns) if fit and self.columns is not None else None

    def written(self, text: str) -> str:
        """A rule of the dialect as SQL."""
        if self.dialect == "sql":
            return text
        condition = parse(text, self.dialect, limits=self.limits)
        return str(condition if self._types is None else fitted(condition, self._types, columns=True))

    def on_spark(self) -> Settings:
        """As rules are bound to a table's columns."""
        return Settings(self.functions, self.on_term_error, self.meaning, self.limits)
