"""`register`: rules get names, and a session functions that know them.

The functions carry the names and places of index files, not the rules. `refresh` reads the sources again and registers
the functions anew; a query that was planned before goes on with the rules that it was planned with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from covey.errors import CoveyError, FilterError, OnError, skips
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import AddManyError, BadSubscription, Index
from covey.matching.constants import constants_of
from covey.spark.build import add_frame, type_of_ids
from covey.spark.conditions.names import is_case_sensitive
from covey.spark.options import SubscriptionOptions, check_keywords
from covey.spark.plain_rules import plain_texts
from covey.spark.source import register_source
from covey.spark.sql.functions import checker, matcher
from covey.spark.sql.named_rules import NamedRules
from covey.spark.sql.table_function import table_function
from covey.spark.types import comparable
from covey.spark.worker_files import Placed, Subscriptions, linked, place

Events: TypeAlias = DataFrame | str
_UNREAD = (
    "how Spark reads this rule depends on the events' columns; register it with events= (a DataFrame or a table's name)"
)


class Registered:
    """What `register` made known to a session."""

    def __init__(
        self,
        spark: SparkSession,
        rules: Mapping[str, Subscriptions],
        events: Events | Mapping[str, Events] | None,
        on_error: OnError,
        options: SubscriptionOptions,
    ) -> None:
        self._spark = spark
        self._sources = dict(rules)
        self._events = events
        self._on_error: OnError = on_error
        self._options = options
        self.named: dict[str, NamedRules] = {}
        """The rules by their names, as workers have them."""
        self._computed: dict[str, dict[str, DataType]] = {}
        self.errors: dict[str, list[BadSubscription]] = {}
        """With `on_error="skip"`, the bad rules of each name."""
        self.refresh()

    def refresh(self, *names: str) -> None:
        """Read these rules again, or all; queries from now on use them."""
        for name in names or tuple(self._sources):
            if name not in self._sources:
                raise CoveyError(f"there are no rules {name!r}; registered are {', '.join(map(repr, self._sources))}")
            self._read(name)
        ids = {name: _type(rules.id_type) for name, rules in self.named.items()}
        if len({rules.id_type for rules in self.named.values()}) > 1:
            kinds = ", ".join(f"{rules.id_type} in {name!r}" for name, rules in self.named.items())
            raise CoveyError(f"covey_matches has ids of one type, and they are {kinds}; cast them to one type")
        kind = next(iter(ids.values()), _type("string"))
        # Not deterministic, which it is: Spark would copy it into every filter on its result and match twice.
        lists = F.arrow_udf(matcher(self.named, kind), f"array<{kind.simpleString()}>").asNondeterministic()
        self._spark.udf.register("covey_matches", lists)
        functions = tuple(self._options.get("functions", ()))
        check = F.arrow_udf(checker(functions, self._options.get("limits", DEFAULT_LIMITS)), "string")
        self._spark.udf.register("covey_check", check)
        self._spark.udtf.register(
            "covey_match", F.udtf(table_function(self.named, self._computed, ids), useArrow=False)
        )

    def _read(self, name: str) -> None:
        source, events = self._source(name), self._over(name)
        options: dict[str, Any] = dict(self._options)
        case_sensitive = str(self._spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
        if events is None:
            index, errors, id_type = self._unbound(source)
            if errors and not skips(self._on_error):
                raise AddManyError(errors)
            nothing = self._spark.createDataFrame([], "nothing boolean")
            placed = place(nothing, index, as_json=True, memory_budget=options.get("memory_budget"))
            rules = NamedRules(
                name, placed.files, tuple(index.attributes), constants_of(index),
                by_schema=index.schema is not None, id_type=id_type, case_sensitive=case_sensitive,
            )  # fmt: skip
            types: dict[str, DataType] = {}
        else:
            placed = place(events, source, on_error=self._on_error, **options)
            errors = list(placed.errors)
            rules, types = _bound(name, events, placed)
        self.named[name], self._computed[name], self.errors[name] = rules, types, errors

    def _unbound(self, source: Subscriptions) -> tuple[Index, list[BadSubscription], str]:
        """An index of rules that mean the same over whatever columns, those that don't, and the type of ids."""
        options = self._options
        limits = options.get("limits", DEFAULT_LIMITS)
        if isinstance(source, (str, os.PathLike)):
            source = Index.open(linked(Path(source)), verify=False, limits=limits)
        if isinstance(source, Index):
            index, errors, id_type = source, [], "bigint" if source.integer_ids else "string"
        else:
            index = Index(semantics=options.get("semantics") or "sql", schema=options.get("schema"), limits=limits)
            errors = add_frame(
                index, source, id=options.get("id", "id"), filter=options.get("filter", "filter"),
                dialect=options.get("dialect", "sql"), on_error=self._on_error,
                functions=options.get("functions", ()),
            ).errors  # fmt: skip
            id_type = type_of_ids(source, options.get("id", "id"))
        if index.schema is None:
            index, unread = _only_plain(index, limits)
            errors = errors + unread
        return index, errors, id_type

    def _source(self, name: str) -> Subscriptions:
        """What was given; a name that is no file is a table's or a view's."""
        given = self._sources[name]
        if not isinstance(given, str) or os.path.exists(given):
            return given
        if self._spark.catalog.tableExists(given):
            return self._spark.table(given)
        raise CoveyError(f"rules {name!r}: {given!r} is neither a saved index nor a table or view of this session")

    def _over(self, name: str) -> DataFrame | None:
        given = self._events
        if isinstance(given, Mapping):
            given = given.get(name)
        return self._spark.table(given) if isinstance(given, str) else given


def _only_plain(index: Index, limits: Limits) -> tuple[Index, list[BadSubscription]]:
    rows = list(index.rows())
    plain = [plain_texts(part.segment.texts) for part in index.parts()]
    if all(part.all() for part in plain):
        return index, []
    good = plain_texts(pa.array([text for _, text in rows], pa.large_string()))
    errors = [BadSubscription(row, rows[row][0], FilterError(_UNREAD)) for row in np.flatnonzero(~good).tolist()]
    kept = Index(semantics=index.semantics, limits=limits)
    kept.add_many([row for row, is_good in zip(rows, good.tolist(), strict=True) if is_good])
    return kept, errors


def _bound(name: str, events: DataFrame, placed: Placed) -> tuple[NamedRules, dict[str, DataType]]:
    """Rules over these events, and the types of what Spark computes for them."""
    sensitive = is_case_sensitive(events)
    if placed.columns is None:  # a schema of covey's says what attributes are
        known = [one for one in placed.attributes if one in comparable(events.schema)]
        return NamedRules(name, placed.files, tuple(known), {}, by_schema=True, id_type=placed.id_type), {}
    computed = {one: sql for one, sql in placed.columns.expressions.items() if one in placed.columns.derived}
    plain = [one for one in placed.columns.expressions if one not in computed]
    heads = dict.fromkeys(one.partition(".")[0] for one in plain)
    types = {one: events.schema[one].dataType.simpleString() for one in heads}
    rules = NamedRules(
        name, placed.files, tuple(plain), {}, types=types, computed=computed, id_type=placed.id_type,
        case_sensitive=sensitive,
    )  # fmt: skip
    if not computed:
        return rules, {}
    found = events.select(*(F.expr(sql).alias(f"c{n}") for n, sql in enumerate(computed.values()))).schema
    return rules, dict(zip(computed, (one.dataType for one in found.fields), strict=True))


def _type(id_type: str) -> DataType:
    return StructType.fromDDL(f"id {id_type}").fields[0].dataType


def register(
    spark: SparkSession,
    rules: Mapping[str, Subscriptions] | None = None,
    *,
    events: Events | Mapping[str, Events] | None = None,
    on_error: OnError = "raise",
    **options: Unpack[SubscriptionOptions],
) -> Registered | None:
    """Make covey known to a session's SQL: the data source `covey` and, with `rules`, functions over them.

    `rules` gives each table of rules a name: a DataFrame (columns `id` and `filter`), the name of a table or view, a
    `covey.Index` or the path of a saved one. Then `covey_matches(struct(*), 'name')` is the array of ids that an event
    matches, `SELECT * FROM covey_match(TABLE(events), 'name')` has a row for each match, and `covey_check(filter)` says
    what is wrong with a filter. `events`, a DataFrame or a table's name, for all rules or by their names, has the
    columns that rules are read over, as Spark reads them. Without it, rules are refused that may be read in more than
    one way. The answer's `refresh()` reads the rules again. The options are those of `match_events`.
    """
    check_keywords("register", options)
    if rules is None:
        register_source(spark)
        return None
    skips(on_error)  # or an error that says what there is
    register_source(spark, needed=False)
    return Registered(spark, rules, events, on_error, options)
