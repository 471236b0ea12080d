from __future__ import annotations

from typing import Any

import pytest

from covey import CoveyError
from covey.relations.merging import MergingPolicy


def due(policy: MergingPolicy, **changed: Any) -> bool:
    seen: dict[str, Any] = {"now": 10.0, "last": 5.0, "size": 100, "arrivals": 10, "group_size": 4.0, "bandwidth": 7.0}
    seen.update(changed)
    return policy.due(seen.pop("now"), **seen)


@pytest.mark.parametrize(
    ("rule", "met", "unmet"),
    [
        ("every", 5, 5.1),
        ("at_size", 100, 101),
        ("at_arrivals", 10, 11),
        ("at_rate", 2.0, 2.1),
        ("at_group_size", 4.0, 4.1),
        ("at_bandwidth", 7.0, 7.5),
    ],
)
def test_merging_is_due_where_a_rule_is_met(rule: str, met: float, unmet: float) -> None:
    assert due(MergingPolicy(**{rule: met}))
    assert not due(MergingPolicy(**{rule: unmet}))


def test_one_rule_of_several_is_enough() -> None:
    assert due(MergingPolicy(every=100, at_size=50))


def test_merging_is_never_due_without_a_rule_or_without_arrivals() -> None:
    assert not due(MergingPolicy())
    assert not due(MergingPolicy(every=1), arrivals=0)


def test_no_time_has_no_rate() -> None:
    assert not due(MergingPolicy(at_rate=1), now=5.0)


def test_a_rule_that_is_not_above_0_is_an_error() -> None:
    with pytest.raises(CoveyError, match="every is 0"):
        MergingPolicy(every=0)
