from __future__ import annotations

import random

import pytest

from covey.events import Meaning
from covey.filters.semantics import SEMANTICS, Semantics, matches
from covey.relations.conjunctions import conjunction_of
from covey.relations.covering.bounds import INNER_BOXES, bounds_of
from tests.random_worlds import DEFAULTS as ALL_DEFAULTS
from tests.random_worlds import event_of, filter_of
from tests.relations.covering.small_worlds import DEFAULTS, NAMES, Oracle, boolean, conjunctive


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_a_filter_lies_between_its_inner_boxes_and_its_hull(semantics: Semantics) -> None:
    oracle = Oracle(semantics, NAMES[:2])
    for seed in range(60):
        condition = boolean(random.Random(seed), NAMES[:2])
        bounds = bounds_of(condition, Meaning(semantics, DEFAULTS))
        matched = oracle.matches_of(condition)
        hull = oracle.matches_of(bounds.hull.to_filter(semantics))
        boxes = [oracle.matches_of(box.to_filter(semantics)) for box in bounds.inner]
        assert not matched & ~hull
        union = 0
        for box in boxes:
            assert box
            assert not box & ~matched
            union |= box
        assert len(boxes) <= INNER_BOXES
        if bounds.complete:
            assert union == matched


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_the_bounds_hold_for_patterns_lists_and_values_of_every_kind(semantics: Semantics) -> None:
    for seed in range(250):
        rng = random.Random(seed)
        condition = filter_of(rng, 3)
        bounds = bounds_of(condition, Meaning(semantics, ALL_DEFAULTS))
        hull = bounds.hull.to_filter(semantics)
        boxes = [box.to_filter(semantics) for box in bounds.inner[:3]]
        for _ in range(8):
            event = event_of(rng)
            meets = matches(condition, event, semantics=semantics, defaults=ALL_DEFAULTS)
            assert not meets or matches(hull, event, semantics=semantics, defaults=ALL_DEFAULTS)
            for box in boxes:
                assert meets or not matches(box, event, semantics=semantics, defaults=ALL_DEFAULTS)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_what_is_a_conjunction_is_one_box(semantics: Semantics) -> None:
    meaning = Meaning(semantics, DEFAULTS if semantics == "default" else None)
    conjunctions = 0
    for seed in range(400):
        rng = random.Random(seed)
        condition = rng.choice((boolean, conjunctive, lambda one: filter_of(one, 3)))(rng)
        known = conjunction_of(condition, meaning)
        if known is not None and known.satisfiable:
            bounds = bounds_of(condition, meaning)
            assert (bounds.hull, bounds.inner, bounds.complete) == (known, (known,), True)
            conjunctions += 1
    assert conjunctions > 100
