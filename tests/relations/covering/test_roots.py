from __future__ import annotations

import random

import pytest

from covey.kernels import roots as root_kernels
from covey.kernels.value_sets import COVERED, COVERS
from covey.relations.conjunctions import Conjunction, conjunction_from
from covey.relations.covering.roots import BOTH, Box, RootStore
from covey.relations.covering.variables import VariableIndex
from covey.relations.value_sets import ValueSet


def drawn(rng: random.Random, names: str = "abcd") -> Conjunction:
    sets = []
    for name in names:
        if rng.random() < 0.6:
            low, high = sorted((rng.randint(0, 5), rng.randint(0, 5)))
            sets.append((name, rng.choice((ValueSet.between(low, high), ValueSet.of((low, high, None))))))
    return conjunction_from(sets)


class Shelf:
    """A root store with conjunctions as they are put in: no invariant is kept, so that searches have much to find."""

    def __init__(self, related_signatures: int = 1 << 20) -> None:
        self.index = VariableIndex()
        self.roots = RootStore(related_signatures)
        self.roots.make_room_for_forms(4_000)
        self.held: dict[int, Conjunction] = {}

    def box(self, conjunction: Conjunction) -> Box:
        return self.roots.box(self.index.take_all(conjunction.sets))

    def put(self, form: int, conjunction: Conjunction, *, boolean: bool = False) -> None:
        self.roots.store.boolean[form] = boolean
        self.roots.add_row(2 * form, self.box(conjunction), self.index)
        self.held[form] = conjunction

    def drop(self, form: int) -> None:
        self.roots.drop_row(2 * form)
        del self.held[form]

    def covering(self, new: Conjunction) -> set[int]:
        return {form for form, held in self.held.items() if held.covers(new)}

    def covered(self, new: Conjunction) -> set[int]:
        return {form for form, held in self.held.items() if new.covers(held)}


@pytest.mark.parametrize("related_signatures", [1 << 20, 0])
def test_a_search_for_everything_finds_what_pairwise_comparison_finds(related_signatures: int) -> None:
    rng = random.Random(related_signatures)
    shelf = Shelf(related_signatures)
    for form in range(400):
        shelf.put(form, drawn(rng, "ab" if form % 2 else "abcd"))
        if form % 5 == 4:
            shelf.drop(rng.choice(list(shelf.held)))
        if form % 10 == 0:
            shelf.roots.tidy()
            new = drawn(rng)
            found = shelf.roots.search(shelf.box(new), shelf.index, BOTH, everything=True)
            assert sorted(found.candidates) == sorted(shelf.covering(new))
            assert sorted(found.hits) == sorted(shelf.covered(new))
            assert found.witness == -1


def test_a_search_finds_one_that_covers_or_all_that_are_covered() -> None:
    rng = random.Random(1)
    shelf = Shelf()
    for form in range(300):
        shelf.put(form, drawn(rng))
    for _ in range(60):
        new = drawn(rng)
        found = shelf.roots.search(shelf.box(new), shelf.index, BOTH)
        if found.witness >= 0:
            assert found.witness in shelf.covering(new)
        elif not found.hits:
            assert not shelf.covering(new)
        if found.witness < 0:
            assert set(found.hits) == shelf.covered(new)


def test_rows_survive_when_a_signature_is_divided_and_cells_are_packed() -> None:
    rng = random.Random(5)
    shelf = Shelf()
    for form in range(3_000):
        shelf.put(form, conjunction_from([("a", ValueSet.of((rng.randint(0, 60),))), ("b", ValueSet.of((form,)))]))
    assert (shelf.roots.store.signatures[:, root_kernels.PIVOT] >= 0).any()
    for form in range(0, 3_000, 2):
        shelf.drop(form)
    cells = shelf.roots.store.cells.copy()
    root_kernels.repack(shelf.roots.store, cells)
    shelf.roots.store = shelf.roots.store._replace(cells=cells)
    for value in range(60):
        new = conjunction_from([("a", ValueSet.of((value,)))])
        found = shelf.roots.search(shelf.box(new), shelf.index, COVERS)
        assert set(found.hits) == shelf.covered(new)


def test_the_search_stops_at_the_first_root_that_covers_as_in_figure_7() -> None:
    shelf = Shelf()
    new = conjunction_from([("a", ValueSet.between(2, 3))])
    shelf.put(0, conjunction_from([("a", ValueSet.between(1, 4))]))
    shelf.put(1, conjunction_from([("a", ValueSet.of((2,))), ("b", ValueSet.of((2,)))]))
    assert shelf.covered(new) == {1}
    assert shelf.roots.search(shelf.box(new), shelf.index, BOTH) == (0, [], [])


def test_right_hand_bits_are_not_asked_for_once_a_root_is_covered_as_in_figure_7() -> None:
    shelf = Shelf()
    new = conjunction_from([("a", ValueSet.between(2, 3)), ("b", ValueSet.of((1,)))])
    shelf.put(0, conjunction_from([("a", ValueSet.of((2,))), ("b", ValueSet.of((1,)))]))
    shelf.put(1, conjunction_from([("a", ValueSet.between(1, 4))]))
    assert shelf.roots.search(shelf.box(new), shelf.index, BOTH) == (-1, [0], [])
    assert shelf.roots.search(shelf.box(new), shelf.index, COVERED) == (1, [], [])


def test_what_a_boolean_form_answers_is_a_candidate_only() -> None:
    shelf = Shelf()
    new = conjunction_from([("a", ValueSet.of((2,)))])
    shelf.put(0, conjunction_from([("a", ValueSet.between(1, 4))]), boolean=True)
    assert shelf.roots.search(shelf.box(new), shelf.index, BOTH) == (-1, [], [0])
    wide = conjunction_from([("a", ValueSet.between(0, 9))])
    assert shelf.roots.search(shelf.box(wide), shelf.index, BOTH) == (-1, [], [])


def test_kernels_change_the_arrays_as_their_python_functions_do() -> None:
    rng = random.Random(9)
    shelf = Shelf()
    for form in range(200):
        shelf.put(form, drawn(rng))
    left = shelf.roots.store
    right = left._replace(**{name: getattr(left, name).copy() for name in left._fields})
    for form in range(0, 100, 3):
        root_kernels.drop_row(2 * form, left)
        root_kernels.drop_row.py_func(2 * form, right)
        root_kernels.put_under(form, 199, left)
        root_kernels.put_under.py_func(form, 199, right)
    for form in range(0, 100, 6):
        root_kernels.take_out(form, left)
        root_kernels.take_out.py_func(form, right)
    assert root_kernels.orphan(199, left).tolist() == root_kernels.orphan.py_func(199, right).tolist()
    for name in left._fields:
        assert (getattr(left, name) == getattr(right, name)).all(), name


def test_many_single_values_are_found_by_value_beside_sets_of_several() -> None:
    rng = random.Random(11)
    shelf = Shelf()

    def made(value: int) -> Conjunction:
        wide = ValueSet.between(value, value + rng.randint(1, 40))
        few = ValueSet.of((value, value + 1))
        first = rng.choice((wide, few)) if rng.random() < 0.1 else ValueSet.of((value,))
        names = [("a", first), ("b", ValueSet.between(0, rng.randint(0, 9)))]
        return conjunction_from(names + [("c", ValueSet.of((value % 7,)))] * (rng.random() < 0.3))

    for form in range(2_000):
        shelf.put(form, made(form))
        if form % 3 == 2:
            shelf.drop(rng.choice(list(shelf.held)))
        if form % 50 == 49:
            for new in (made(rng.randint(0, form)), made(rng.randint(0, form))):
                found = shelf.roots.search(shelf.box(new), shelf.index, BOTH, everything=True)
                assert sorted(found.candidates) == sorted(shelf.covering(new))
                assert sorted(found.hits) == sorted(shelf.covered(new))
    # However many values there are, a search by one goes through few rows: they are filed by it.
    assert (shelf.roots.store.signatures[: shelf.roots.signatures, root_kernels.PIVOT] == 0).all()
    assert (shelf.roots.store.signatures[: shelf.roots.signatures, root_kernels.POINTS] >= 0).all()
