"""The examples and propositions that Jafarpour et al. give in text: Figures 2, 3 and 5, Propositions 1, 2 and 4."""

from __future__ import annotations

import random

import pytest

from covey.relations.subsumption import Method, NegativeSpace, Number, Rectangle, Space
from tests.relations.subsumption.grids import grid_space

FIGURE = Space([Number("x", 0, 1000, optional=False), Number("y", 0, 1000, optional=False)])
S1 = FIGURE.rectangle({"x": (175, 510), "y": (180, 680)})
S2 = FIGURE.rectangle({"x": (405, 840), "y": (110, 540)})
S3 = FIGURE.rectangle({"x": (380, 720), "y": (230, 495)})


def test_figure_2_neither_s1_nor_s2_covers_s3_but_their_union_does() -> None:
    assert not S1.covers(S3)
    assert not S2.covers(S3)
    for alone in (S1, S2):
        negative = NegativeSpace(FIGURE)
        negative.subscribe("alone", alone)
        assert not negative.is_subsumed(S3)
    negative = NegativeSpace(FIGURE)
    negative.subscribe("s1", S1)
    negative.subscribe("s2", S2)
    assert negative.is_subsumed(S3)


def test_figure_3_the_first_subscription_leaves_four_negative_rectangles() -> None:
    negative = NegativeSpace(FIGURE)
    outcome = negative.subscribe("s1", S1)
    assert outcome.active
    assert outcome.growth == 3
    assert negative.rectangle_count() == 4


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_figure_5_after_s2_there_are_seven_negative_rectangles_and_s3_is_passive(method: Method) -> None:
    negative = NegativeSpace(FIGURE, method=method)
    for name, subscription in (("s1", S1), ("s2", S2), ("s3", S3)):
        negative.subscribe(name, subscription)
    assert negative.rectangle_count() == 7
    assert negative.actives() == ("s1", "s2")
    assert negative.passives() == ("s3",)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_figure_5_without_s2_the_passive_s3_is_forwarded(method: Method) -> None:
    negative = NegativeSpace(FIGURE, method=method)
    for name, subscription in (("s1", S1), ("s2", S2), ("s3", S3)):
        negative.subscribe(name, subscription)
    assert negative.unsubscribe("s2") == ("s3",)
    assert negative.actives() == ("s1", "s3")


@pytest.mark.parametrize("d", range(1, 7))
def test_proposition_2_a_split_makes_at_most_2d_minus_1_new_rectangles_and_an_inner_box_makes_all_of_them(
    d: int,
) -> None:
    negative = NegativeSpace(grid_space(d, 3))
    assert negative.subscribe("inner", Rectangle((1,) * d, (2,) * d)).growth == 2 * d - 1


def test_proposition_4_n_ranges_on_a_line_leave_at_most_n_plus_1_negative_ranges() -> None:
    rng = random.Random(4)
    negative = NegativeSpace(grid_space(1, 10_000))
    for n in range(1, 200):
        low = rng.randrange(9_990)
        negative.subscribe(n, Rectangle((low,), (low + rng.randrange(1, 10),)))
        assert negative.rectangle_count() <= n + 1
