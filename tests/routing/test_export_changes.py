"""What an export says of its changes: how far they were told, also where turns were taken back."""

from __future__ import annotations

import random

import pytest

from covey.routing import undo
from covey.routing.config import BrokerConfig
from covey.routing.exports import LEAST_STALE, Export, subscription_export
from covey.routing.known_filters import KnownFilters


def told_by_definition(export: Export) -> int:
    return min((*export._news.values(), *export._gone.values()), default=export.changed + 1) - 1


@pytest.mark.parametrize("seed", range(10))
def test_all_changes_below_the_first_that_waits_were_told(seed: int) -> None:
    chance = random.Random(seed)
    known = KnownFilters()
    export = subscription_export(BrokerConfig("a", strategy="identity"), known)
    for _ in range(300):
        undo.begin()
        keys = [f"c:x\n{chance.randrange(40)}" for _ in range(chance.randrange(6))]
        added = {key: known.parse(f"x = {chance.randrange(30)}") for key in keys if chance.random() < 0.6}
        export.change(added, [key for key in keys if key not in added], 0.0)
        if chance.random() < 0.3:
            export.changes(chance.choice([None, 1, 3]))
        assert export.told == told_by_definition(export)
        if chance.random() < 0.3:
            undo.roll_back()
        undo.end()
        assert export.told == told_by_definition(export)
        assert len(export._touches) <= 2 * len(export.touched()) + LEAST_STALE
