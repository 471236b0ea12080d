from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.network.limits import Rate


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 50)), min_size=1, max_size=60))
def test_whoever_waits_as_told_never_takes_more_than_the_rate_and_one_seconds_worth(
    steps: list[tuple[float, int]],
) -> None:
    rate, now, taken = Rate(10.0), 0.0, 0
    for pause, units in steps:
        now += pause
        now += rate.take(units, now)
        taken += units
        assert taken <= 10.0 * now + 10.0 + 1e-6


def test_nobody_waits_below_the_rate() -> None:
    rate = Rate(10.0)
    assert [rate.take(5, at * 0.5) for at in range(20)] == [0.0] * 20
