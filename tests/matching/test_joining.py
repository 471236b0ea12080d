from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies

from covey.events import row
from covey.filters import Filter
from covey.filters.semantics import SEMANTICS, Semantics, matches
from covey.language import parse
from covey.matching.joining import joined
from covey.matching.lowering import Flat, Lowering
from covey.matching.options import BuildOptions
from covey.matching.segment import segment_of

Parts = list[list[tuple[Filter, bool]]]


def lowered(conditions: list[Filter]) -> Flat:
    lowering = Lowering()
    for condition in conditions:
        lowering.add(condition)
    return lowering.finish()


@given(
    st.lists(st.lists(st.tuples(strategies.filters(), st.booleans()), max_size=4), min_size=1, max_size=3),
    strategies.events(),
    st.sampled_from(SEMANTICS),
)
def test_joined_parts_match_as_their_living_filters_do(parts: Parts, event: dict[str, object], by: Semantics) -> None:
    alive = [condition for part in parts for condition, lives in part if lives]
    flat = joined(
        [
            (lowered([one for one, _ in part]), np.array([n for n, (_, lives) in enumerate(part) if lives], np.int64))
            for part in parts
        ]
    )
    assert flat.count == len(alive)
    ids = [str(number) for number in range(len(alive))]
    segment = segment_of(
        flat, pa.array(ids, pa.large_string()), pa.array(ids, pa.large_string()), BuildOptions(semantics=by)
    )
    wanted = [number for number, one in enumerate(alive) if matches(one, event, semantics=by)]
    found: list[Any] = []
    segment.match_event(row(event, flat.names), segment.none_deleted, True, found)
    assert found == wanted


def test_what_only_removed_subscriptions_name_stays_behind() -> None:
    flat = lowered([parse("a = 'x' AND b LIKE 'p%q%'"), parse("c = 'y' OR d > 1")])
    left = joined([(flat, np.array([1], np.int64)), (flat, np.array([1], np.int64))])
    assert (sorted(left.names), left.strings, left.patterns) == (["c", "d"], ["y"], [])
    assert (left.count, len(left.leaf_attribute)) == (2, 4)
