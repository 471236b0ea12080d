"""Rows of (id, filter) to a segment: texts in bulk, with every bad row found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from covey.errors import CoveyError, DuplicateIdError
from covey.events import Schema
from covey.filters import Filter, Semantics
from covey.filters.values import Scalar
from covey.limits import Limits
from covey.matching.index import BadSubscription, as_filter, check_id
from covey.matching.lowering import Lowering
from covey.matching.segment import DiagramLimitError, Segment, segment_of
from covey.matching.statistics import Statistics


def compile_rows(
    rows: Sequence[tuple[str, str | Filter]],
    *,
    semantics: Semantics,
    schema: Schema | None,
    defaults: Mapping[str, Scalar],
    limits: Limits,
    order: str,
    statistics: Statistics | None,
) -> tuple[Segment | None, list[BadSubscription]]:
    """The segment of the good rows, or None where there are none, and the bad rows."""
    errors: list[BadSubscription] = []
    good: list[tuple[int, str, str, Filter]] = []
    seen: set[str] = set()
    lowering = Lowering(limits)
    for number, (id, given) in enumerate(rows):
        try:
            check_id(id)
            if id in seen:
                raise DuplicateIdError(f"subscription {id!r} stands in an earlier row too")
            condition = as_filter(given, limits)
            if schema is not None:
                condition = schema.check(condition)
            lowering.add(condition)
        except CoveyError as error:
            errors.append(BadSubscription(number, id, error))
            continue
        seen.add(id)
        good.append((number, id, given if isinstance(given, str) else str(given), condition))
    while good:
        try:
            segment = segment_of(
                lowering.finish(),
                pa.array([id for _, id, _, _ in good], pa.large_string()),
                pa.array([text for _, _, text, _ in good], pa.large_string()),
                semantics=semantics,
                defaults=defaults,
                limits=limits,
                order=order,
                statistics=statistics,
            )
        except DiagramLimitError as error:
            over = set(error.rows)
            errors += [BadSubscription(good[row][0], good[row][1], error) for row in error.rows]
            good = [one for row, one in enumerate(good) if row not in over]
            lowering = Lowering(limits)
            for _, _, _, condition in good:
                lowering.add(condition)
        else:
            return segment, errors
    return None, errors
