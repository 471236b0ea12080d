from __future__ import annotations

import random
from typing import Any

import pytest

from covey import CoveyError, DuplicateIdError, UnknownIdError, parse
from covey.filters import SEMANTICS, Semantics
from covey.relations.merging import Change, Merger, MergerTable, MergingPolicy
from tests.relations.merging.worlds import DEFAULTS, events, subscription


def filled(*texts: str, **options: Any) -> MergerTable[str]:
    """S1, S2, ... in a table."""
    table: MergerTable[str] = MergerTable(**options)
    for number, text in enumerate(texts, 1):
        table.add(f"S{number}", parse(text))
    return table


def shown(table: MergerTable[str]) -> dict[str, tuple[str, ...]]:
    return {str(entry.filter): entry.parts for entry in table}


def test_figure_9a_two_subscriptions_become_a_merger() -> None:
    table = filled("x < 5", "x > 3 AND x < 9")
    change = table.merge()
    assert [str(entry.filter) for entry in change.added] == ["x < 9"]
    assert [entry.parts for entry in change.removed] == [("S1",), ("S2",)]
    assert shown(table) == {"x < 9": ("S1", "S2")}


def test_figure_9b_a_merger_without_one_of_its_parts_is_cancelled_and_the_rest_recovered() -> None:
    table = filled("x < 5", "x > 3 AND x < 9")
    table.merge()
    change = table.remove("S1")
    assert [str(entry.filter) for entry in change.removed] == ["x < 9"]
    assert change.added == (Merger(parse("x > 3 AND x < 9"), ("S2",), True, 0.0),)
    assert list(table) == list(change.added)


def test_figure_9c_a_subscription_that_covers_a_merger_takes_its_place() -> None:
    table = filled("x < 5", "x > 3 AND x < 9")
    table.merge()
    change = table.add("S4", parse("x < 20"))
    assert [str(entry.filter) for entry in change.removed] == ["x < 9"]
    assert shown(table) == {"x < 20": ("S4", "S1", "S2")}
    table.remove("S4")
    assert shown(table) == {"x < 5": ("S1",), "x > 3 AND x < 9": ("S2",)}


def test_an_entry_that_is_one_of_its_parts_stays_when_another_part_goes() -> None:
    table = filled("x < 5", "x < 9")
    table.merge()
    change = table.remove("S1")
    assert shown(table) == {"x < 9": ("S2",)}
    assert [entry.filter for entry in change.added] == [entry.filter for entry in change.removed]


def test_a_subscription_that_covers_no_merger_stands_on_its_own() -> None:
    table = filled("x < 5", "x > 3 AND x < 9")
    table.merge()
    assert not table.add("S3", parse("x < 8")).removed
    assert len(table) == 2
    assert table.entry("S1").parts == ("S1", "S2")
    assert table.entry("S3").parts == ("S3",)


def test_merging_again_without_changes_changes_nothing() -> None:
    table = filled("x < 5", "x > 3 AND x < 9", "y = 1")
    table.merge()
    assert table.merge() == Change()


def test_ids_are_added_once_and_known_when_removed() -> None:
    table = filled("x < 5")
    with pytest.raises(DuplicateIdError, match="S1"):
        table.add("S1", parse("x < 6"))
    with pytest.raises(UnknownIdError, match="S7"):
        table.remove("S7")


def test_a_table_for_advertisements_takes_no_threshold() -> None:
    with pytest.raises(CoveyError, match="perfect"):
        MergerTable(perfect_only=True, imt=0.1)
    assert MergerTable(perfect_only=True).imt == 0


def test_the_policy_is_asked_with_what_came_since_the_last_merging() -> None:
    table = filled("x < 5", "x > 3 AND x < 9", policy=MergingPolicy(at_arrivals=2))
    assert table.due(1.0)
    table.merge(1.0)
    assert not table.due(2.0)
    table.remove("S1")
    table.add("S3", parse("y = 1"))
    assert table.due(3.0)


def test_the_group_size_is_that_of_entries_with_the_same_attributes() -> None:
    table = filled("x < 5", "x > 30", "y = 1", policy=MergingPolicy(at_group_size=1.5))
    assert table.group_size() == 1.5
    assert table.due(0.0)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("imt", [0.0, 0.2])
def test_entries_match_what_their_parts_do_through_additions_removals_and_mergings(
    semantics: Semantics, imt: float
) -> None:
    rng = random.Random(11)
    worlds = events(3, 40)
    table: MergerTable[int] = MergerTable(imt=imt, semantics=semantics, defaults=DEFAULTS)
    living: dict[int, Any] = {}
    for step in range(100):
        roll = rng.random()
        if roll < 0.7 or not living:
            living[step] = subscription(rng)
            change = table.add(step, living[step])
        elif roll < 0.95:
            id = rng.choice(list(living))
            del living[id]
            change = table.remove(id)
        else:
            change = table.merge()
        assert not set(change.added) & set(change.removed)
        if step % 25 == 0:
            check(table, living, worlds, semantics)
    check(table, living, worlds, semantics)


def check(table: MergerTable[int], living: dict[int, Any], worlds: list[dict[str, Any]], semantics: Semantics) -> None:
    assert table.subscriptions == living
    assert sorted(part for entry in table for part in entry.parts) == sorted(living)
    assert all(part in table.entry(part).parts for part in living)
    for event in worlds:
        met = {id for id, one in living.items() if one.matches(event, semantics=semantics, defaults=DEFAULTS)}
        for entry in table:
            found = entry.filter.matches(event, semantics=semantics, defaults=DEFAULTS)
            wanted = not met.isdisjoint(entry.parts)
            assert found or not wanted
            assert found == wanted or not entry.perfect
