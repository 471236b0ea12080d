"""Each kernel equals a plain Python twin that follows the papers' figures line by line."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from covey.diagrams import FlatDiagram, pack, sort_by_level, unpack
from covey.diagrams.flat import NO_VARIABLE
from covey.kernels.diagrams import cache_groups, eval_bdd, mv_eval_bdd, sweep, sweep_groups

VARIABLES = 7


@st.composite
def diagrams(draw: st.DrawFn) -> FlatDiagram:
    """A random ordered diagram with several roots."""
    level = np.array(draw(st.permutations(range(VARIABLES))), dtype=np.int64)
    variable, low, high = [int(NO_VARIABLE)] * 2, [0, 1], [0, 1]
    for _ in range(draw(st.integers(0, 30))):
        at = draw(st.integers(0, VARIABLES - 1))
        below = [n for n in range(len(variable)) if n < 2 or level[variable[n]] > level[at]]
        variable.append(at)
        low.append(draw(st.sampled_from(below)))
        high.append(draw(st.sampled_from(below)))
    roots = draw(st.lists(st.integers(0, len(variable) - 1), min_size=1, max_size=10))
    arrays = (np.array(part, dtype=np.uint32) for part in (variable, low, high, roots))
    return sort_by_level(*arrays, level)


def truth_arrays(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), min_size=VARIABLES, max_size=VARIABLES)


def plain_eval(diagram: FlatDiagram, truths: list[int]) -> list[int]:
    """Figure 3 of Campailla et al."""
    value: list[int] = []
    for node in range(len(diagram.variable)):
        if node < 2:
            value.append(node)
        else:
            child = diagram.high if truths[diagram.variable[node]] == 1 else diagram.low
            value.append(value[child[node]])
    return value


def plain_mv_eval(diagram: FlatDiagram, truths: list[int]) -> list[int]:
    """Figure 5 of Campailla et al., with 2 for star."""
    value: list[int] = []
    for node in range(len(diagram.variable)):
        if node < 2:
            value.append(node)
            continue
        truth = truths[diagram.variable[node]]
        low, high = value[diagram.low[node]], value[diagram.high[node]]
        star = 2 in (truth, low, high)
        value.append(2 if star else high if truth else low)
    return value


@settings(max_examples=examples(200), deadline=None)
@given(diagrams(), truth_arrays(2))
def test_eval_bdd_equals_figure_3(diagram, truths):
    value = np.full(len(diagram.variable), 9, dtype=np.uint8)
    eval_bdd(*diagram.runs(), diagram.low, diagram.high, np.array(truths, dtype=np.uint8), value)
    assert value.tolist() == plain_eval(diagram, truths)


@settings(max_examples=examples(200), deadline=None)
@given(diagrams(), truth_arrays(2))
def test_mv_eval_bdd_equals_figure_5(diagram, truths):
    value = np.full(len(diagram.variable), 9, dtype=np.uint8)
    mv_eval_bdd(*diagram.runs(), diagram.low, diagram.high, np.array(truths, dtype=np.uint8), value)
    assert value.tolist() == plain_mv_eval(diagram, truths)


@settings(max_examples=examples(100), deadline=None)
@given(diagrams(), st.lists(truth_arrays(1), min_size=1, max_size=130), st.integers(1, 40))
def test_sweeps_equal_evaluation_one_by_one(diagram, batch, most_nodes):
    bits = pack(np.array(batch, dtype=np.bool_).T)
    wanted = np.array([plain_eval(diagram, truths) for truths in batch]).T
    rows = np.empty((len(diagram.variable), bits.shape[1]), dtype=np.uint64)
    sweep(diagram.variable, diagram.low, diagram.high, bits, rows)
    assert np.array_equal(unpack(rows, len(batch)), wanted)
    order = np.argsort(diagram.roots).astype(np.uint32)
    groups = cache_groups(diagram.variable, diagram.low, diagram.high, diagram.roots, order, most_nodes)
    result = np.empty((len(diagram.roots), bits.shape[1]), dtype=np.uint64)
    sweep_groups(*groups, bits, rows, result)
    assert np.array_equal(unpack(result, len(batch)), wanted[diagram.roots])


@settings(max_examples=examples(100), deadline=None)
@given(diagrams(), st.integers(3, 40))
def test_groups_keep_to_their_size_and_hold_each_root_once(diagram, most_nodes):
    order = np.arange(len(diagram.roots), dtype=np.uint32)
    node_start, _, low, high, root_start, root_node, number = cache_groups(
        diagram.variable, diagram.low, diagram.high, diagram.roots, order, most_nodes
    )
    assert sorted(number.tolist()) == list(range(len(diagram.roots)))
    for group in range(len(node_start) - 1):
        size = int(node_start[group + 1] - node_start[group])
        members = slice(root_start[group], root_start[group + 1])
        assert size <= most_nodes or len(root_node[members]) == 1
        inside = slice(node_start[group], node_start[group + 1])
        assert (low[inside] < size).all()
        assert (high[inside] < size).all()
        assert (low[inside][2:] < np.arange(2, size)).all()


@settings(max_examples=examples(100), deadline=None)
@given(diagrams())
def test_nodes_of_one_variable_are_neighbours_and_children_come_first(diagram):
    starts, variables = diagram.runs()
    assert len(set(variables.tolist())) == len(variables)
    inner = np.arange(2, len(diagram.variable))
    assert (diagram.low[2:] < inner).all()
    assert (diagram.high[2:] < inner).all()
    covered = [n for s, e in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True) for n in range(s, e)]
    assert covered == inner.tolist()
