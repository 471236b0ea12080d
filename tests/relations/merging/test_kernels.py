"""The kernels against plain Python: set algebra for covering, sets of events for candidates."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from covey.events import Meaning
from covey.kernels.merging import BLOCK, set_covers
from covey.relations.merging.constraints import Constraints, Row
from covey.relations.merging.covering import covering_rows
from covey.relations.merging.rules import joined
from covey.relations.merging.samples import ENOUGH, SampledDegrees
from covey.relations.merging.shapes import shape_of
from tests.relations.merging.worlds import events, table


def rows_of(seed: int, size: int, names: str = "abcs") -> tuple[Constraints, list[Row]]:
    constraints = Constraints(Meaning())
    shapes = [shape_of(one, Meaning()) for _, one in table(seed, size, names)]
    rows = list(dict.fromkeys(constraints.row(shape) for shape in shapes if shape.satisfiable))
    constraints.number_cuts()
    return constraints, rows


@pytest.mark.parametrize("seed", range(3))
def test_coded_sets_cover_each_other_as_value_sets_do(seed: int) -> None:
    constraints, _ = rows_of(seed, 150)
    set_first, piece = constraints.pieces()
    for outer, wide in enumerate(constraints.values):
        for inner, narrow in enumerate(constraints.values):
            if constraints.attribute_of[outer] == constraints.attribute_of[inner]:
                assert set_covers(outer, inner, set_first, piece) == wide.issuperset(narrow)


@pytest.mark.parametrize("names", ["abcs", "a", "ab", "abcdefghijklmnop"])
def test_a_row_is_covered_exactly_if_the_set_algebra_finds_a_row_that_covers_it(names: str) -> None:
    constraints, rows = rows_of(1, 4 * BLOCK, names)
    may_cover = np.random.default_rng(0).random(len(rows)) < 0.7
    for allowed in (None, may_cover):
        covering = covering_rows(rows, constraints, allowed)
        shapes = [constraints.shape(row) for row in rows]
        for at, shape in enumerate(shapes):
            found = int(covering[at])
            others = (o for o in range(len(rows)) if o != at and (allowed is None or allowed[o]))
            if found < 0:
                assert not any(shapes[other].covers(shape) for other in others)
            else:
                assert found != at
                assert shapes[found].covers(shape)
                assert allowed is None or allowed[found]


def test_values_are_in_coded_sets_as_in_value_sets() -> None:
    constraints, _ = rows_of(2, 100)
    set_first, piece = constraints.pieces()
    candidates = [None, True, False, -1, 0, 3, 3.5, 9, 10**20, "", "a", "ab", "abb", "zz", (1, 2)]
    for number, values in enumerate(constraints.values):
        for value in candidates:
            code = constraints.code(constraints.attribute_of[number], value)
            ends = piece[set_first[number] : set_first[number + 1]]
            assert any(low <= code < high for low, high in zip(ends[::2], ends[1::2], strict=True)) == (value in values)


@pytest.mark.parametrize("count", [0, 63, 64, 500])
def test_candidates_are_counted_as_events_met_one_by_one(count: int) -> None:
    constraints, rows = rows_of(3, 80)
    rng = random.Random(6)
    sample = events(9, count)
    candidates = []
    for _ in range(60):
        parts = rng.sample(rows, rng.randint(1, 4))
        merger = joined([constraints.shape(part) for part in parts], Meaning())
        candidates.append((constraints.row(merger), parts))
    found = SampledDegrees(sample, constraints).degrees(candidates)
    rare = 0
    for at, (merger_row, parts) in enumerate(candidates):
        common = set(merger_row).intersection(*parts)
        of_merger, of_parts = counted(merger_row, parts, constraints, sample, set())
        of_common = count
        if of_merger < ENOUGH:
            rare += 1
            of_common = max(counted(tuple(sorted(common)), [], constraints, sample, set())[0], 1)
            of_merger, of_parts = counted(merger_row, parts, constraints, sample, common)
        wanted = (of_merger - of_parts) / of_merger if of_merger >= ENOUGH else 1.0
        assert found.degree[at] == pytest.approx(wanted)
        if count:
            in_vain = of_merger - of_parts + (3 if of_merger < ENOUGH else 0)
            assert found.traffic[at] == pytest.approx(in_vain / count * of_common / count)
    assert rare < len(candidates) or count < 64


def counted(
    merger: Row, parts: list[Row], constraints: Constraints, sample: list[dict[str, Any]], left_out: set[int]
) -> tuple[int, int]:
    asked = {row: [one for one in row if one not in left_out] for row in (merger, *parts)}
    filters = {row: constraints.shape(tuple(kept)).to_filter(Meaning()) for row, kept in asked.items()}
    matched = [event for event in sample if filters[merger].matches(event)]
    return len(matched), sum(any(filters[part].matches(event) for part in parts) for event in matched)
