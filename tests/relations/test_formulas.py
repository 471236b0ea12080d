from __future__ import annotations

import random
from itertools import product

import pytest

from covey.relations.formulas import Formulas, Node
from covey.relations.steps import Steps, TooMuchWork


def random_formula(formulas: Formulas, rng: random.Random, attributes: int, depth: int) -> Node:
    if depth == 0 or rng.random() < 0.2:
        return formulas.literal(rng.randrange(attributes), rng.randrange(1, 7))
    parts = [random_formula(formulas, rng, attributes, depth - 1) for _ in range(rng.randrange(2, 5))]
    return formulas.all_of(parts) if rng.random() < 0.5 else formulas.any_of(parts)


def holds(formulas: Formulas, node: Node, cells: tuple[int, ...]) -> bool:
    kind, content = formulas._nodes[node]
    if kind == 0:
        return bool(cells[content[0]] & content[1])
    truths = (holds(formulas, part, cells) for part in content)
    return all(truths) if kind == 1 else any(truths)


@pytest.mark.parametrize("seed", range(40))
def test_a_formula_can_be_met_where_some_cells_meet_it(seed: int) -> None:
    rng = random.Random(seed)
    formulas = Formulas([7] * 5, Steps(1_000_000))
    node = random_formula(formulas, rng, 5, 3)
    found = formulas.solve(node)
    wanted = any(holds(formulas, node, cells) for cells in product((1, 2, 4), repeat=5))
    assert (found is not None) == wanted
    if found is not None:
        chosen = tuple((found.get(at, 7) & -found.get(at, 7)) for at in range(5))
        assert holds(formulas, node, chosen)


@pytest.mark.parametrize("seed", range(10))
def test_parts_are_grouped_so_that_no_two_groups_share_an_attribute(seed: int) -> None:
    rng = random.Random(seed)
    formulas = Formulas([3] * 30, Steps(1_000_000))
    pairs = [(rng.randrange(30), rng.randrange(30)) for _ in range(20)]
    parts = [
        formulas.any_of([formulas.literal(one, 1), formulas.literal(other, 1)]) for one, other in pairs if one != other
    ]
    groups = formulas._components(tuple(dict.fromkeys(parts)))
    names = [frozenset[int]().union(*(formulas._names(part) for part in group)) for group in groups]
    assert sorted(part for group in groups for part in group) == sorted(set(parts))
    assert sum(map(len, names)) == len(frozenset[int]().union(*names))
    for group in groups:
        reached = formulas._names(group[0])
        for _ in group:
            for part in group:
                if formulas._names(part) & reached:
                    reached |= formulas._names(part)
        assert all(formulas._names(part) <= reached for part in group)


def test_a_large_conjunction_takes_steps_though_its_nodes_are_few() -> None:
    steps = Steps(10)
    formulas = Formulas([3] * 1_000, steps)
    literals = [formulas.literal(at, 1) for at in range(1_000)]
    with pytest.raises(TooMuchWork):
        formulas.all_of(literals)
