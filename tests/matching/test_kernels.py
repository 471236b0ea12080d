"""Kernels equal their plain twins."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from numba import njit

from covey.kernels.encoding import build_grid, encode_doubles, encode_integers, split
from covey.kernels.matching import fill_slots
from covey.kernels.results import by_event
from covey.kernels.sweeping import merge_sorted, transpose
from covey.kernels.vectors import blend_words, count_bits, lowest_bit, range_word
from covey.matching.lowering import number_pair

EXTREMES = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63), 2**63 - 512, 2**63 - 513]


@njit
def _range_words(codes, low, width):
    out = np.zeros(len(codes) // 64, np.uint64)
    for word in range(len(out)):
        out[word] = range_word(codes, 64 * word, np.int32(low), np.uint32(width))
    return out


@njit
def _bit_tricks(word):
    return lowest_bit(word), count_bits(word)


@njit
def _blend(values, bits):
    blend_words(values, 2, 0, 1, bits, 1)


def test_range_word_compares_64_codes() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 50, 640).astype(np.int32)
    for low, high in [(0, 49), (10, 10), (7, 30), (49, 2**31 - 1), (0, 0)]:
        words = _range_words(codes, low, high - low)
        expected = [sum(int(low <= codes[64 * w + i] <= high) << i for i in range(64)) for w in range(10)]
        assert words.tolist() == expected


@pytest.mark.parametrize("word", [1, 2, 2**63, 2**64 - 1, 0b1011000, 2**40 + 2**13])
def test_bits_are_found_and_counted(word: int) -> None:
    assert _bit_tricks(np.uint64(word)) == ((word & -word).bit_length() - 1, word.bit_count())


def test_blend_chooses_by_bit() -> None:
    rng = np.random.default_rng(2)
    values, bits = rng.integers(0, 2**63, 24).astype(np.uint64), rng.integers(0, 2**63, 16).astype(np.uint64)
    yes, no, chosen = values[0:8].copy(), values[8:16].copy(), bits[8:16]
    _blend(values, bits)
    assert (values[16:24] == (yes & chosen) | (no & ~chosen)).all()


def test_transpose_swaps_rows_and_columns() -> None:
    rng = np.random.default_rng(3)
    square = rng.integers(0, 2**63, 64).astype(np.uint64) * np.uint64(2) + rng.integers(0, 2, 64).astype(np.uint64)
    flipped = square.copy()
    transpose(flipped)
    for i in range(64):
        for j in range(64):
            assert int(square[i]) >> j & 1 == int(flipped[j]) >> i & 1


def test_split_is_number_pair_for_integers() -> None:
    rng = random.Random(4)
    for value in [*EXTREMES, *(rng.randint(-(2**63), 2**63 - 1) for _ in range(500))]:
        assert split(np.int64(value)) == number_pair(value)


@pytest.mark.parametrize("gridded", [False, True])
def test_codes_are_positions_among_the_constants(gridded: bool) -> None:
    rng = random.Random(5)
    numbers = sorted(
        {rng.choice([rng.uniform(-50, 50), float(rng.randint(-9, 9)), rng.uniform(0, 1e-3)]) for _ in range(200)}
    )
    constants = np.array([-math.inf, *numbers, math.inf])
    grid, lowest, scale = np.empty(0, np.int32), 0.0, 0.0
    if gridded:
        grid = np.empty(257, np.int32)
        lowest, scale = numbers[0], 256 / (numbers[-1] - numbers[0])
        build_grid(constants, grid, lowest, scale)
    values = [*constants.tolist(), math.nan, -0.0, *(rng.uniform(-60, 60) for _ in range(500)), 5e-324, 1e308]
    out = np.zeros(len(values), np.int32)
    none = np.empty(0, np.int64)
    encode_doubles(np.array(values), none, 0, out, 7, constants, none, 0, len(constants), grid, lowest, scale)
    pairs = [number_pair(constant) for constant in constants.tolist()]
    for value, code in zip(values, out.tolist(), strict=True):
        pair = number_pair(value)
        assert code == 7 + 2 * sum(one < pair for one in pairs) + (pair in pairs)


def test_codes_of_integers_are_exact_beyond_doubles() -> None:
    constants = sorted({number_pair(value) for value in EXTREMES})
    numbers, remainders = (np.array(column) for column in zip(*constants, strict=True))
    values = np.array([value + shift for value in EXTREMES[1:7] for shift in (-1, 0, 1)], dtype=np.int64)
    out = np.zeros(len(values), np.int32)
    encode_integers(
        values, np.empty(0, np.int64), 0, out, 0, numbers.astype(np.float64), remainders.astype(np.int64), 0,
        len(numbers), np.empty(0, np.int32), 0.0, 0.0,
    )  # fmt: skip
    for value, code in zip(values.tolist(), out.tolist(), strict=True):
        below = sum(one < value for one in sorted(set(EXTREMES)))
        assert code == 2 * below + (value in EXTREMES)


def test_slots_hold_every_key() -> None:
    keys = np.array(random.Random(6).sample(range(2**40), 500), dtype=np.int64)
    slots, partitions = np.full(1024, -1, np.int64), np.full(1024, -1, np.int32)
    fill_slots(keys, 100, slots, partitions)
    assert {int(k): int(p) for k, p in zip(slots, partitions, strict=True) if k >= 0} == {
        int(k): 100 + i for i, k in enumerate(keys)
    }


@pytest.mark.parametrize(
    ("count", "many"), [(0, 300), (3, 300), (200, 300), (4_000, 300), (5_000, 300), (5_000, 9_000)]
)
def test_pairs_become_sorted_distinct_lists(count: int, many: int) -> None:
    rng = np.random.default_rng(count)
    events, subscriptions = rng.integers(0, 20, count), rng.integers(0, many, count)
    offsets, ordinals = by_event((events << 32) | subscriptions, count, 20, many)
    for event in range(20):
        expected = sorted(set(subscriptions[events == event].tolist()))
        assert ordinals[offsets[event] : offsets[event + 1]].tolist() == expected


def test_two_results_are_merged_event_by_event() -> None:
    left = (np.array([0, 2, 2, 3]), np.array([1, 5, 9], dtype=np.int32))
    right = (np.array([0, 1, 3, 3]), np.array([3, 0, 2], dtype=np.int32))
    offsets, merged = merge_sorted(*left, *right)
    assert offsets.tolist() == [0, 3, 5, 6]
    assert merged.tolist() == [1, 3, 5, 0, 2, 9]
