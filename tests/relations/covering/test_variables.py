from __future__ import annotations

import itertools
import math
import random

import pytest

from covey.kernels.value_sets import COVERED, COVERS, relate
from covey.relations.covering.lines import LABELS, Line, places_of
from covey.relations.covering.variables import VariableIndex
from covey.relations.value_sets import DEFINED, EVERYTHING, MISSING, ValueSet
from tests.random_worlds import NUMBERS, TEXTS, TIMES


def random_set(rng: random.Random) -> ValueSet:
    """Any set but the empty one; simple ones mostly, over values that collide."""
    pool = rng.choice((NUMBERS, NUMBERS, TEXTS, TIMES))
    roll = rng.random()
    if roll < 0.4:
        low, high = rng.choice(pool), rng.choice(pool)
        values = ValueSet.between(low, None) if roll < 0.2 else ValueSet.between(None, high)
    elif roll < 0.7:
        values = ValueSet.of(rng.choice((None, True, *pool)) for _ in range(rng.randint(1, 4)))
    elif roll < 0.8:
        values = rng.choice((EVERYTHING, DEFINED, MISSING))
    else:
        values = random_set(rng) & ~random_set(rng)
    return random_set(rng) if values.is_empty else values


@pytest.mark.parametrize("related", [1_024, 0, 16])
def test_variables_follow_from_each_other_as_their_sets_include_each_other(related: int) -> None:
    rng = random.Random(related)
    index = VariableIndex(related)
    known: dict[tuple[str, ValueSet], int] = {}
    for _ in range(60):
        name, values = rng.choice("ab"), random_set(rng)
        known[name, values] = index.take(name, values)
    for (name, values), variable in known.items():
        for (other, theirs), asked in known.items():
            assert index.implies(variable, asked) == (name == other and values.issubset(theirs))


def reachable(index: VariableIndex, variable: int) -> set[int]:
    reached, waiting = {variable}, [variable]
    while waiting:
        new = index.consequences(waiting.pop()) - reached
        reached |= new
        waiting.extend(new)
    return reached


@pytest.mark.parametrize("related", [1_024, 0, 16])
def test_the_table_of_dependencies_stays_complete_and_minimal_as_variables_enter_and_leave(related: int) -> None:
    rng = random.Random(2 + related)
    index = VariableIndex(related)
    taken: list[tuple[ValueSet, int]] = []
    for step in range(150):
        if taken and rng.random() < 0.4:
            index.release(taken.pop(rng.randrange(len(taken)))[1])
        else:
            values = random_set(rng)
            taken.append((values, index.take("x", values)))
        assert len(index) == len({values for values, _ in taken})
        if step % 15 == 0:
            known = dict(taken)
            rows = {variable: index.consequences(variable) for variable in known.values()}
            for values, variable in known.items():
                following = {asked for theirs, asked in known.items() if values.issubset(theirs)}
                assert reachable(index, variable) == following
                for direct in rows[variable]:
                    around = {end for other in rows[variable] - {direct} for end in reachable(index, other)}
                    assert direct not in around


def test_the_two_bits_of_price_80_and_price_below_150_are_those_of_figure_6() -> None:
    index = VariableIndex()
    known = index.take("price", ValueSet.between(None, 150, high_included=False))
    new = index.take("price", ValueSet.of((80,)))
    sets = index.sets
    assert sets.relation[sets.rows[new] + sets.local[known]] == COVERED
    assert sets.relation[sets.rows[known] + sets.local[new]] == COVERS
    assert sets.relation[sets.rows[new] + sets.local[new]] == COVERED | COVERS


def test_a_ring_of_thresholds_has_a_chain_of_dependencies() -> None:
    index = VariableIndex()
    ten, eight, five = (index.take("price", ValueSet.between(low, None)) for low in (10, 8, 5))
    assert index.consequences(ten) == {eight}
    assert index.consequences(eight) == {five}
    index.release(eight)
    assert index.consequences(ten) == {five}


def twin_of_relate(new: list[int], known: list[int]) -> int:
    """The two bits from labels, piece by piece."""

    def inside(inner: list[int], outer: list[int]) -> bool:
        pieces = list(zip(outer[::2], outer[1::2], strict=True))
        return all(
            any(low <= start and end <= high for low, high in pieces)
            for start, end in zip(inner[::2], inner[1::2], strict=True)
        )

    return COVERED * inside(new, known) | COVERS * inside(known, new)


def test_the_kernel_gives_the_bits_that_its_twin_gives() -> None:
    rng = random.Random(11)
    index = VariableIndex()
    for _ in range(120):
        index.take("x", random_set(rng))
    sets = index.sets

    def labels(variable: int) -> list[int]:
        start = int(sets.start[variable])
        return [int(label) for label in sets.labels[start : start + sets.cuts[variable]]]

    for new in range(len(index)):
        for known in range(len(index)):
            bits = relate(new, known, *sets[3:8])
            assert bits == twin_of_relate(labels(new), labels(known)) == relate.py_func(new, known, *sets[3:8])
            assert bits == sets.relation[sets.rows[new] + sets.local[known]]


def test_labels_keep_the_order_of_cuts_when_a_gap_is_used_up() -> None:
    line = Line()
    moved = 0
    taken = []
    for step in range(200):
        places = places_of(ValueSet.between(1 - 2.0**-step if step < 50 else 1 + step, math.inf))
        taken.append(places)
        moved += line.take(places) is not None
        every = sorted({place for one in taken for place in one})
        labels = line.labels(every)
        assert labels == sorted(set(labels))
        assert 0 < labels[0] <= labels[-1] < LABELS
    assert moved > 0
    for places in taken:
        line.release(places)
    assert len(line) == 0


def test_variables_are_right_after_labels_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []
    move = VariableIndex._move_labels
    monkeypatch.setattr(VariableIndex, "_move_labels", lambda *given: (moves.append(given), move(*given)))
    index = VariableIndex(related_variables=0)
    # One within the other, so that each halves the gap that is left twice; and some that have more cuts than two.
    sets = [ValueSet.between(0.5 - 2.0**-step, 0.5 + 2.0**-step) for step in range(1, 50)]
    sets += [ValueSet.of((0.5, 3, step + 10)) for step in range(20)] + [ValueSet.of((0.5,))]
    known = [index.take("x", values) for values in sets]
    assert moves
    for at, given in enumerate(sets):
        for other, asked in enumerate(sets):
            assert index.implies(known[at], known[other]) is given.issubset(asked), (given, asked)


@pytest.mark.parametrize("order", ["ascending", "descending", "in turns"])
def test_cuts_that_come_in_order_are_seldom_labelled_anew(order: str) -> None:
    line = Line()
    numbers = {
        "ascending": list(range(3_000)),
        "descending": list(range(3_000, 0, -1)),
        "in turns": [value for low in range(1_500) for value in (low, 10_000 - low)],
    }[order]
    line.take(places_of(ValueSet.of((-1, 5_000, 20_000))))  # so that there is no end to append at
    moved = sum(line.take(places_of(ValueSet.of((number,)))) is not None for number in numbers)
    assert moved < 3
    labels = line.labels([place for number in sorted(numbers) for place in places_of(ValueSet.of((number,)))])
    assert all(low < high for low, high in itertools.pairwise(labels))
