"""Both ways to arrays give the same function, and shared nodes stay shared."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oxidd.bdd import BDDManager
from tests.examples import examples

from covey.diagrams import flatten, walk

VARIABLES = 5


def function(manager, draw):
    built = manager.var(draw(st.integers(0, VARIABLES - 1)))
    for _ in range(draw(st.integers(0, 6))):
        other = manager.var(draw(st.integers(0, VARIABLES - 1)))
        match draw(st.sampled_from("&|^~")):
            case "&":
                built = built & other
            case "|":
                built = built | other
            case "^":
                built = built ^ other
            case _:
                built = ~built
    return built


def value(flat, root, assignment):
    while root > 1:
        child = flat.high if assignment[flat.variable[root]] else flat.low
        root = child[root]
    return bool(root)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_arrays_compute_the_same_functions(data):
    manager = BDDManager(1 << 12, 1 << 10, 1)
    manager.add_vars(VARIABLES)
    manager.set_var_order(data.draw(st.permutations(range(VARIABLES))))
    functions = [function(manager, data.draw) for _ in range(data.draw(st.integers(1, 4)))]
    flat = flatten(manager, functions)
    singles = [walk(each) for each in functions]
    for assignment in product((False, True), repeat=VARIABLES):
        wanted = [each.eval(enumerate(assignment)) for each in functions]
        assert [value(flat, root, assignment) for root in flat.roots] == wanted
        assert [value(single, single.roots[0], assignment) for single in singles] == wanted
    for each, single in zip(functions, singles, strict=True):
        # oxidd counts the terminals that are reached.
        assert single.node_count in (each.node_count() - 1, each.node_count() - 2)


@pytest.mark.parametrize("which", ["true", "false"])
def test_constants_are_the_terminals(which):
    manager = BDDManager(1 << 8, 1 << 8, 1)
    manager.add_vars(1)
    constant = getattr(manager, which)()
    for flat in (flatten(manager, [constant]), walk(constant)):
        assert flat.node_count == 0
        assert flat.roots.tolist() == [int(which == "true")]


def test_equal_functions_have_the_same_root():
    manager = BDDManager(1 << 8, 1 << 8, 1)
    manager.add_vars(3)
    x, y, z = (manager.var(at) for at in range(3))
    flat = flatten(manager, [x & (y | z), ~x & (y | z), y | z, x & (z | y)])
    assert flat.node_count == 4
    assert flat.roots[0] == flat.roots[3]
    assert flat.supports() == [{0, 1, 2}, {0, 1, 2}, {1, 2}, {0, 1, 2}]
    assert np.all(flat.low[:2] == [0, 1])


def test_no_function_at_all():
    manager = BDDManager(1 << 8, 1 << 8, 1)
    assert flatten(manager, []).node_count == 0
