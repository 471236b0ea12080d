"""The kernels do what the definition does: the same prunings, in the same order, with the same estimates."""

from __future__ import annotations

import pytest

from covey.filters import SEMANTICS, Semantics
from covey.kernels.pruning import GRID
from covey.relations.pruning import DIMENSIONS, Dimension, Pruner
from tests.relations.pruning.plain import Counted, PlainPruner, possible
from tests.relations.pruning.worlds import events, subscriptions

CHANCES = Counted(events(1, 32))


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("seed", range(2))
def test_prunings_come_in_the_order_of_the_definition(dimension: Dimension, semantics: Semantics, seed: int) -> None:
    filters = subscriptions(seed, 16)
    chances = CHANCES
    plain = PlainPruner(filters, chances, dimension, semantics)
    pruner = Pruner(filters, chances, dimension, semantics)
    expected = plain.prune()
    found = [(one.id, one.removed, one.degradation * GRID, one.throughput, one.bytes) for one in pruner.prune()]
    assert found == expected
    assert len(found) > 20
    left = {id: pruner.filter(id) for id, _ in filters}
    pruned = {one[0] for one in expected}
    assert left == {
        id: tree if id in pruned else original for (id, original), tree in zip(filters, plain.trees, strict=True)
    }


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_pruning_in_pieces_is_pruning_at_once(dimension: Dimension) -> None:
    filters, chances = subscriptions(7, 60), CHANCES
    at_once, in_pieces = Pruner(filters, chances, dimension), Pruner(filters, chances, dimension)
    steps = list(at_once.prune())
    pieces = []
    while in_pieces.remaining:
        pieces += in_pieces.prune(7)
    assert pieces == steps


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_sizes_are_those_of_the_filters_after_every_pruning(dimension: Dimension, semantics: Semantics) -> None:
    filters, chances = subscriptions(3, 6), CHANCES
    plain = PlainPruner(filters, chances, dimension, semantics)
    pruner = Pruner(filters, chances, dimension, semantics)
    while True:
        estimator = plain._estimator
        assert pruner.bytes == sum(map(estimator.size, plain.trees))
        assert pruner.remaining == sum(map(possible, plain.trees))
        degradations = [estimator.degradation(*pair) for pair in zip(plain.originals, plain.trees, strict=True)]
        assert pruner.mean_degradation == pytest.approx(sum(degradations) / GRID / 6, abs=1e-12)
        for id, tree in zip(plain.ids, plain.trees, strict=True):
            assert pruner.selectivity(id) == pytest.approx(estimator.selectivity(tree), abs=1e-12)
        if not plain.prune(1):
            break
        assert len(pruner.prune(1)) == 1
    assert not pruner.prune(1)
