"""All tests of one list's elements, asked of a list together.

Most are one test on the element itself: `x LIKE 'a%'`, `x = 5`, `x IN (…)`. Of those a list costs time in its elements
and their hits, and some nanoseconds a test: texts are searched for all patterns at once, and constants are looked up.
For each test it is known of how many elements it is true, of how many it is false and whether it is unknown of one;
that gives `exists` and `forall`. Any other condition is interpreted, element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.errors import EventError
from covey.filters import Compare, ElementTest, In, Predicate
from covey.filters.predicates import TextTest
from covey.filters.semantics import truth_for
from covey.filters.values import Element, Kind, Scalar, is_scalar, kind_of

TRUE_BIT, FALSE_BIT = 1, 2
_CELLS = 1 << 22
"""Truths of tests and texts that are held at a time."""
_TRUTH_BITS = {True: TRUE_BIT, False: FALSE_BIT, None: 0}


class ElementPatterns:
    """The tests of a list's elements by their numbers; `write(value, bits)` puts their truth into `bits`."""

    def __init__(self, tests: Sequence[tuple[int, ElementTest]], text_patterns: Any, key: Any) -> None:
        """`text_patterns` makes the patterns of one attribute of tests on text, `key` gives what equal values share."""
        self._key = key
        texts: dict[Predicate, int] = {}
        constants: list[tuple[Kind, set[object]]] = []
        of_text: list[tuple[int, int, bool]] = []
        of_constants: list[tuple[int, int, bool]] = []
        self._others: list[tuple[int, ElementTest]] = []
        for number, test in tests:
            leaf = test.condition
            if isinstance(leaf, TextTest) and leaf.attribute == test.variable:
                of_text.append((number, texts.setdefault(leaf, len(texts)), test.every))
                continue
            values = _equal_to(leaf, test.variable)
            if values is None:
                self._others.append((number, test))
            else:
                of_constants.append((number, len(constants), test.every))
                constants.append((kind_of(values[0]), {key(value) for value in values}))
        self._texts = text_patterns(list(texts)) if texts else None
        self._text_count = len(texts)
        self._of_text, self._of_constants = _columns(of_text), _columns(of_constants)
        self._kinds = np.array([_KINDS[kind] for kind, _ in constants], dtype=np.int64)
        self._places: dict[object, list[int]] = {}
        for place, (_, keys) in enumerate(constants):
            for one in keys:
                self._places.setdefault(one, []).append(place)

    def write(self, value: tuple[Element, ...], bits: NDArray[np.uint8]) -> None:
        """The truth of all tests for a list."""
        count = len(value)
        if self._texts is not None:
            words = [element for element in value if isinstance(element, str)]
            others = len(words) < count
            words = list(dict.fromkeys(words))
            true = np.zeros(self._text_count, dtype=np.int64)
            step = max(1, _CELLS // self._text_count)
            for first in range(0, len(words), step):
                true += (self._texts.truth(words[first : first + step])[:, 1:] == TRUE_BIT).sum(axis=1)
            _settle(self._of_text, true, len(words) - true, np.full(len(true), others), bits)
        if len(self._kinds):
            kinds = np.zeros(len(_KINDS), dtype=np.int64)
            true = np.zeros(len(self._kinds), dtype=np.int64)
            for element in value:
                if is_scalar(element):
                    kinds[_KINDS[kind_of(element)]] += 1
                    for place in self._places.get(self._key(element), ()):
                        true[place] += 1
            alike = kinds[self._kinds]
            _settle(self._of_constants, true, alike - true, alike < count, bits)
        for number, test in self._others:
            bits[number] = _TRUTH_BITS[_interpreted(test, value)]


_KINDS = {kind: number for number, kind in enumerate(Kind)}


def _equal_to(leaf: object, variable: str) -> tuple[Scalar, ...] | None:
    """The constants of which an element must equal one, where that is all; None where it isn't."""
    if isinstance(leaf, Compare) and leaf.operator == "=" and leaf.attribute == variable and leaf.value is not None:
        return (leaf.value,)
    if isinstance(leaf, In) and leaf.attribute == variable and None not in leaf.values:
        return tuple(value for value in leaf.values if value is not None)
    return None


def _columns(rows: list[tuple[int, int, bool]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    numbers, places, every = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(numbers, dtype=np.int64), np.array(places, dtype=np.int64), np.array(every, dtype=np.bool_)


def _settle(
    tests: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]],
    true: NDArray[np.int64],
    false: NDArray[np.int64],
    unknown: NDArray[np.bool_],
    bits: NDArray[np.uint8],
) -> None:
    """`exists` and `forall`, given of how many elements a test is true and false and whether it is unknown of one."""
    numbers, places, every = tests
    decided = np.where(every, false[places] > 0, true[places] > 0)
    otherwise = np.where(unknown[places], 0, np.where(every, TRUE_BIT, FALSE_BIT))
    bits[numbers] = np.where(decided, np.where(every, FALSE_BIT, TRUE_BIT), otherwise)


def _interpreted(test: ElementTest, value: tuple[Element, ...]) -> bool | None:
    try:
        return truth_for(test, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise EventError(f"attribute {test.attribute!r}: in a record of its list, {error}") from None
