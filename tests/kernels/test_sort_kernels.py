from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.kernels.sorting import descending_order, first_above, radix_order, sort_integers

KEYS = st.lists(
    st.integers(0, 2**63 - 1) | st.integers(0, 5) | st.integers(0, 2**20).map(lambda n: n << 32), max_size=80
)


@given(KEYS)
def test_radix_order_is_a_stable_order(keys: list[int]) -> None:
    found = radix_order(np.array(keys, dtype=np.int64))
    assert found.tolist() == sorted(range(len(keys)), key=lambda place: keys[place])


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
def test_integers_are_sorted_in_place(kind: type) -> None:
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 31, 32, 33, 5_000):
        values = rng.integers(0, 1_000_000, count).astype(kind)
        wanted = np.sort(values)
        sort_integers(values)
        assert np.array_equal(values, wanted)


@given(st.lists(st.floats(allow_nan=False) | st.integers(0, 3).map(float), max_size=60))
def test_descending_order_is_stable(worth: list[float]) -> None:
    found = descending_order(np.array(worth, dtype=np.float64))
    assert found.tolist() == sorted(range(len(worth)), key=lambda place: -worth[place])


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(-1, 21))
def test_first_above_is_where_the_value_could_be_inserted_last(values: list[int], value: int) -> None:
    ordered = np.array(sorted(values), dtype=np.int64)
    assert first_above(ordered, value, 0, len(ordered)) == np.searchsorted(ordered, value, side="right")


def test_no_kernel_sorts_by_numbas_own_closures() -> None:
    """See the head of `sort_kernels.py`: their names collide between processes."""
    root = Path(covey.__file__).parent
    banned = re.compile(r"np\.(sort|argsort|unique|searchsorted|partition|median|percentile|quantile)\b|\.sort\(\)")
    for path in root.rglob("*kernel*.py"):
        if path.name != "sort_kernels.py":
            assert not banned.search(path.read_text()), path
