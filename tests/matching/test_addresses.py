"""A segment's arrays behind their addresses: checked when they are written down, alive while they are read."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

import covey
from covey.kernels.segments import Event, addresses


def event(**changed: np.ndarray) -> Event:
    arrays = {
        "codes": np.zeros((2, 1), np.int32),
        "kinds": np.zeros(2, np.int8),
        "numbers": np.zeros(2),
        "pattern_start": np.zeros(0, np.int64),
        "pattern_truth": np.zeros(1, np.uint8),
        "out": np.zeros(8, np.int32),
        "blank": np.zeros(2, np.int32),
        "deleted": np.zeros(3, np.uint8),
        "known": np.zeros(16, np.int64),
        "requests": np.zeros(4, np.int64),
        "counts": np.zeros(2, np.int64),
        "is_text": np.zeros(6, np.uint8),
        **{name: np.zeros(3, np.int64) for name in ("text_first", "text_last", "lowered_first", "lowered_last")},
        "text_data": np.zeros(5, np.uint8),
        "seen": np.zeros(7, np.int32),
        "hit_start": np.zeros(7, np.int64),
        "hits": np.zeros(9, np.int32),
        "automaton": np.zeros(39, np.int64),
    }
    return Event(**{**arrays, **changed})


def test_each_field_has_its_address_and_shape() -> None:
    given = event()
    found = addresses(given).reshape(-1, 3)
    assert found[:, 0].tolist() == [array.ctypes.data for array in given]
    lengths = [2, 2, 2, 0, 1, 8, 2, 3, 16, 4, 2, 6, 3, 3, 3, 3, 5, 7, 7, 9, 39]
    assert found[:, 1:].tolist() == [[length, 1] for length in lengths]


@pytest.mark.parametrize(
    "wrong", [np.zeros(8, np.int64), np.zeros((8, 1), np.int32), np.zeros(16, np.int32)[::2]], ids=str
)
def test_an_array_of_another_kind_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(TypeError, match="out is int"):
        addresses(event(out=wrong))


def test_an_index_may_be_dropped_while_it_is_matched(tmp_path: Path) -> None:
    made = covey.Index()
    made.add_many([(f"s{n}", f"price < {n} AND company = 'C{n % 5}'") for n in range(3000)])
    made.save(tmp_path / "rules.covey")
    wanted = made.match({"price": 1500, "company": "C3"})
    kept: dict[str, covey.Index] = {"index": made}
    wrong: list[list[str]] = []
    stop = threading.Event()

    def match() -> None:
        while not stop.is_set():
            if (found := kept["index"].match({"price": 1500, "company": "C3"})) != wanted:
                wrong.append(found)

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    del made
    for _ in range(12):
        kept["index"] = covey.Index.open(tmp_path / "rules.covey")
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
