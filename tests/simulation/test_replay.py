"""A seed is a run: the same steps, the same trace, in any process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from covey.simulation import random_scenario, run

SCRIPT = "from covey.simulation import random_scenario, run; print([run(random_scenario(s)).trace for s in (3, 5, 8)])"


@pytest.mark.parametrize("seed", range(12))
def test_a_scenario_has_one_trace(seed: int) -> None:
    first, second = run(random_scenario(seed)), run(random_scenario(seed))
    assert (first.trace, first.steps, first.deliveries) == (second.trace, second.steps, second.deliveries)


def test_a_seed_has_the_same_trace_whatever_the_order_of_hashes() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str([run(random_scenario(seed)).trace for seed in (3, 5, 8)])


def test_seeds_differ() -> None:
    assert len({run(random_scenario(seed)).trace for seed in range(5)}) == 5
