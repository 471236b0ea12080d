"""Workloads with tests on text: alerts on titles, alone and beside numbers and sets.

Words are made of syllables, and the alerts' words are those of the titles. Titles have eight words in mixed case, so a
word is found in some titles as a part of another, as it is with real ones.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.trees import Tree

WORDS = 20_000
CATEGORIES = 200
BRANDS = 500
TITLE_WORDS = 8
PRICE_MAX = 1000.0
_CONSONANTS, _VOWELS = "bcdfghklmnprstvwz", "aeiou"

Parts = tuple[list[Tree], pa.Table]


def vocabulary(rng: np.random.Generator) -> list[str]:
    """Distinct words of two to four syllables."""
    syllables = [first + second for first in _CONSONANTS for second in _VOWELS]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        drawn = rng.integers(0, len(syllables), (WORDS, 4))
        lengths = rng.integers(2, 5, WORDS)
        for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True):
            words["".join(syllables[number] for number in row[:length])] = None
    return list(words)[:WORDS]


def titles(rng: np.random.Generator, words: list[str], count: int) -> list[str]:
    """Titles of some words each, every other word capitalised."""
    drawn = rng.integers(0, len(words), (count, TITLE_WORDS)).tolist()
    return [" ".join(words[w].capitalize() if k % 2 else words[w] for k, w in enumerate(row)) for row in drawn]


def generate_text(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """`title ILIKE '%…%' AND category = …`: some two matches an event at 1,000,000."""
    words = vocabulary(rng)
    drawn, categories = rng.integers(0, WORDS, n).tolist(), rng.integers(0, CATEGORIES, n).tolist()
    trees: list[Tree] = [
        ["and", ["icontains", "title", words[w]], ["cmp", "category", "=", f"c{c}"]]
        for w, c in zip(drawn, categories, strict=True)
    ]
    events = {
        "title": pa.array(titles(rng, words, n_events)),
        "category": pa.array([f"c{c}" for c in rng.integers(0, CATEGORIES, n_events).tolist()]),
    }
    return trees, pa.table(events)


def generate_mixed(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """A part of a text or another, a range of 20% and a set of three in one rule."""
    words = vocabulary(rng)
    drawn = rng.integers(0, WORDS, (n, 2)).tolist()
    brands = rng.integers(0, BRANDS, (n, 3)).tolist()
    lows = np.round(rng.uniform(0, PRICE_MAX * 0.8, n), 2).tolist()
    trees: list[Tree] = [
        [
            "and",
            ["or", ["contains", "title", words[a]], ["icontains", "body", words[b]]],
            ["between", "price", low, round(low + PRICE_MAX * 0.2, 2)],
            ["in", "brand", sorted({f"b{number}" for number in three})],
        ]
        for (a, b), low, three in zip(drawn, lows, brands, strict=True)
    ]
    events = {
        "title": pa.array(titles(rng, words, n_events)),
        "body": pa.array(titles(rng, words, n_events)),
        "price": pa.array(np.round(rng.uniform(0, PRICE_MAX, n_events), 2)),
        "brand": pa.array([f"b{number}" for number in rng.integers(0, BRANDS, n_events).tolist()]),
    }
    return trees, pa.table(events)
