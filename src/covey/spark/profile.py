"""History on Spark: a profile of a table of events and a table of subscriptions.

Each partition becomes one small profile in its worker, groups of them are merged in workers again, and the driver
merges the last few: what travels is some hundred kilobytes a partition, whatever the number of events. Only the columns
that the profile is about cross into Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError
from covey.history import EventProfile, Profile, SubscriptionProfile
from covey.history.files import from_bytes, to_bytes
from covey.history.profile import merged
from covey.language import parse
from covey.spark.build import ERRORS_SHOWN, check_columns, unreadable
from covey.spark.conditions.names import is_case_sensitive
from covey.spark.types import comparable, quoted, selection

_ROWS = 131_072
"""Events profiled at a time in a worker."""
_GROUPS = 8
"""Tasks that merge the partitions' profiles."""
_PARTS = "profile binary, error string"


def profile(
    events: DataFrame | None = None,
    subscriptions: DataFrame | None = None,
    *,
    id: str = "id",
    filter: str = "filter",
    dialect: str = "sql",
    attributes: Iterable[str] | None = None,
    previous: Profile | None = None,
    seed: int = 0,
) -> Profile:
    """What events and subscriptions are like, computed on the executors; with `previous`, merged into what was known.

    Of the events, the attributes that subscriptions name are looked at, or those given, or else all that filters can
    compare; and those of the previous profile. The same rows in the same partitions give the same sample;
    the sketches compact at random, within their error.
    """
    if events is None and subscriptions is None:
        raise CoveyError("profile needs events, subscriptions, or both")
    asked = SubscriptionProfile() if subscriptions is None else _asked(subscriptions, id, filter, dialect)
    seen = None
    if events is not None:
        seen = _seen(events, _names(events, asked, attributes, previous), seed)
    found = Profile(seen, asked)
    if previous is None:
        return found
    _warn(previous, found)
    return previous.merged(found)


def _names(
    events: DataFrame, asked: SubscriptionProfile, attributes: Iterable[str] | None, previous: Profile | None
) -> list[str]:
    if attributes is not None:
        names = set(attributes)
    elif asked.count:
        names = set(asked.attributes)
    else:
        names = set(comparable(events.schema, is_case_sensitive(events)))
    if previous is not None and previous.events is not None:
        names |= set(previous.events.sketches)
    return sorted(names)


def _warn(previous: Profile, found: Profile) -> None:
    if previous.events is None or found.events is None:
        return
    new = sorted(set(found.events.sketches) - set(previous.events.sketches))
    if new:
        warnings.warn(
            f"{', '.join(new)}: not in the previous profile, so left out of the merged one; profile without previous "
            "once to begin with them",
            stacklevel=3,
        )


def _asked(subscriptions: DataFrame, id: str, filter: str, dialect: str) -> SubscriptionProfile:
    check_columns(subscriptions, id, filter)
    rows = subscriptions.select(
        F.col(quoted(id)).cast("string").alias("id"), F.col(quoted(filter)).cast("string").alias("filter")
    )
    return _collected(rows.mapInArrow(_counting(dialect), _PARTS)).subscriptions


def _counting(dialect: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = SubscriptionProfile()
        errors: list[str] = []
        for batch in batches:
            for id, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                try:
                    found.add(parse(text, dialect))
                except (CoveyError, TypeError) as error:
                    errors.append(f"{id}: {str(error).splitlines()[0]}")
        yield _part(Profile(None, found), errors)

    return count


def _seen(events: DataFrame, names: list[str], seed: int) -> EventProfile:
    # Under numbers on the way, since mapInArrow takes no column with a dot in its name.
    chosen = selection(events.schema, names, is_case_sensitive(events)) or [("", F.lit(None).cast("string"))]
    frame = events.select(*(expression.alias(str(at)) for at, (_, expression) in enumerate(chosen)))
    found = _collected(frame.mapInArrow(_sampling([name for name, _ in chosen], names, seed), _PARTS)).events
    assert found is not None
    return found


def _sampling(
    columns: list[str], names: list[str], seed: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def sample(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        found: EventProfile | None = None
        for number, table in enumerate(_tables(batches)):
            part = EventProfile.of(table.rename_columns(columns), names, seed=(seed, partition, number))
            found = part if found is None else found.merged(part)
        yield _part(Profile(found or EventProfile.of([], names)), [])

    return sample


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _part(found: Profile, errors: list[str]) -> pa.RecordBatch:
    message = "\n".join([*errors[:ERRORS_SHOWN], str(len(errors))]) if errors else None
    return pa.RecordBatch.from_pydict(
        {"profile": pa.array([to_bytes(found)], pa.binary()), "error": pa.array([message], pa.string())}
    )


def _collected(parts: DataFrame) -> Profile:
    """The partitions' profiles as one: merged in groups by workers, then here."""
    grouped = parts.repartition(_GROUPS).mapInArrow(_merged_group, _PARTS).toArrow()
    _refuse_bad([text for text in grouped["error"].to_pylist() if text])
    whole = merged(from_bytes(part) for part in grouped["profile"].to_pylist())
    return Profile(whole.events, whole.subscriptions)


def _merged_group(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    profiles: list[Profile] = []
    errors: list[str] = []
    for batch in batches:
        for kept, error in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            profiles = [merged([*profiles, from_bytes(kept)])]
            errors += [error] if error else []
    if profiles:
        message = "\n\n".join(errors) or None
        yield pa.RecordBatch.from_pydict(
            {"profile": pa.array([to_bytes(profiles[0])], pa.binary()), "error": pa.array([message], pa.string())}
        )


def _refuse_bad(messages: list[str]) -> None:
    """One error for all bad filters; each partition tells its first few and their number."""
    parts = [part.split("\n") for message in messages for part in message.split("\n\n")]
    if not parts:
        return
    count = sum(int(part[-1]) for part in parts)
    raise unreadable(count, [line for part in parts for line in part[:-1]][:ERRORS_SHOWN])
