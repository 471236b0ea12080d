"""The yardstick: the same space as covey's own exact method, in more rectangles."""

from __future__ import annotations

import numpy as np
import pytest

from covey.lab import plain_negative_space
from covey.lab.experiments import LabError
from covey.lab.negative_space_points import covered_by_one
from covey.lab.plain_negative_space import PlainNegativeSpace
from covey.lab.workloads.rectangles import DOMAIN, ends, regions, space
from covey.relations.subsumption import NegativeSpace


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_both_find_the_same_subscriptions_active_and_leave_the_same_volume(dimensions: int) -> None:
    low, high = ends(dimensions, 150, 4)
    solid = (low < high).all(axis=1)  # A rectangle without volume is nothing to the yardstick.
    low, high = low[solid], high[solid]
    plain, own = PlainNegativeSpace(dimensions), NegativeSpace(space(dimensions))
    for place, region in enumerate(regions(own.space, (low, high))):
        assert plain.subscribe(low[place], high[place]) == own.subscribe(place, region).active
    assert plain.volume() == pytest.approx(own.volume(own.rectangles()), abs=1e-3)
    assert len(plain) >= own.rectangle_count()


def test_random_points_are_in_the_negative_space_or_in_a_subscription() -> None:
    low, high = ends(2, 40, 2)
    plain = PlainNegativeSpace(2)
    for one in zip(low, high, strict=True):
        plain.subscribe(*one)
    points = np.random.default_rng(1).uniform(0, DOMAIN, (4_000, 1, 2))
    wanted = ((points >= low) & (points <= high)).all(axis=2).any(axis=1)
    assert plain.volume() == pytest.approx(1 - wanted.mean(), abs=0.03)


def test_a_subscription_of_everything_leaves_nothing() -> None:
    plain = PlainNegativeSpace(3)
    assert plain.subscribe(np.full(3, 100.0), np.full(3, 200.0))
    assert len(plain) == 6
    assert plain.subscribe(np.zeros(3), np.full(3, float(DOMAIN)))
    assert (len(plain), plain.volume()) == (0, 0.0)
    assert not plain.subscribe(np.zeros(3), np.ones(3))


def test_the_limit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_negative_space, "MOST_RECTANGLES", 5)
    with pytest.raises(LabError, match="the most is 5"):
        PlainNegativeSpace(3).subscribe(np.full(3, 100.0), np.full(3, 200.0))


def test_covered_by_one_means_an_earlier_one() -> None:
    low = np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 2.0], [2.0, 0.0]])
    high = np.array([[5.0, 5.0], [4.0, 4.0], [4.0, 5.0], [5.0, 5.0]])
    assert covered_by_one((low, high)).tolist() == [False, False, True, False]
