from __future__ import annotations

import random

from covey.network.histograms import SECONDS, Histogram


def test_each_time_counts_in_all_classes_from_its_own_on() -> None:
    histogram, rng = Histogram(), random.Random(1)
    times = [rng.choice([*SECONDS[:-1], rng.expovariate(3.0)]) for _ in range(500)]
    for seconds in times:
        histogram.observe(seconds)
    expected = [(end, sum(seconds <= end for seconds in times)) for end in SECONDS]
    assert [(float(end), count) for end, count in histogram.buckets()] == expected
    assert abs(histogram.sum - sum(times)) < 1e-9
