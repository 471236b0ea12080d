from __future__ import annotations

import random
from functools import cache

import pytest

import covey.routing.covering_stage as covering_stage
from covey.filters import Filter
from covey.language import parse
from covey.relations.exact import covers
from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Nominal, Number, Space
from covey.routing.config import SubsumptionOptions
from covey.routing.covering_stage import Covering
from covey.routing.known_filters import KnownFilters
from covey.routing.merging_stage import Merging
from covey.routing.stages import Change, Distinct, Stage, through
from covey.routing.subsumption_stage import Subsumption
from covey.simulation.fixpoint import WORLD
from covey.simulation.scenarios import KINDS, random_filter

SPACE = Space([Nominal("k", list(KINDS)), Number("p")])


@cache
def meaning(condition: Filter) -> int:
    return sum(1 << at for at, event in enumerate(WORLD) if condition.matches(event))


def together(filters: list[Filter]) -> int:
    bits = 0
    for one in filters:
        bits |= meaning(one)
    return bits


def stages(name: str) -> list[Stage]:
    known = KnownFilters()
    distinct = Distinct(lambda _, condition: known.normal(condition))
    match name:
        case "identity":
            return [distinct]
        case "covering":
            return [distinct, Covering(known)]
        case "subsumption":
            return [distinct, Covering(known), Subsumption(known, SubsumptionOptions(SPACE))]
        case "approximate":
            return [distinct, Subsumption(known, SubsumptionOptions(SPACE, approximate=True, k=1, rebuild_after=3))]
        case _:
            return [distinct, Covering(known), Merging(known, MergingPolicy(at_arrivals=2)), Covering(known)]


class Table:
    """A pipeline, with its input and output kept beside it."""

    def __init__(self, name: str) -> None:
        self.stages = stages(name)
        self.inputs: dict[str, Filter] = {}
        self.outputs: dict[str, Filter] = {}

    def change(self, change: Change, now: float) -> None:
        for key in change.removed:
            del self.inputs[key]
        self.inputs.update(change.added)
        self.apply(through(self.stages, change, now))
        for at, stage in enumerate(self.stages):
            late = stage.catch_up(now)
            if late is not None:
                self.apply(through(self.stages[at + 1 :], late, now))

    def apply(self, change: Change) -> None:
        for key in change.removed:
            assert key in self.outputs, "an entry goes that never came"
            del self.outputs[key]
        self.outputs.update(change.added)


def random_change(rng: random.Random, table: Table, number: int) -> Change:
    change = Change()
    for key in rng.sample(sorted(table.inputs), min(len(table.inputs), rng.randint(0, 2))):
        change.remove(key)
    for at in range(rng.randint(0, 3)):
        change.add(f"{number}.{at}", parse(random_filter(rng)))
    return change


@pytest.mark.parametrize("few", [64, 4])
@pytest.mark.parametrize("name", ["identity", "covering", "subsumption", "approximate", "merging"])
@pytest.mark.parametrize("seed", range(6))
def test_what_comes_out_means_what_goes_in_after_any_changes(
    name: str, few: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covering_stage, "PAIRWISE", few)
    rng = random.Random(f"{name} {seed}")
    table = Table(name)
    for number in range(40):
        table.change(random_change(rng, table, number), float(number))
        inputs, outputs = list(table.inputs.values()), list(table.outputs.values())
        assert together(inputs) == together(outputs)
        if name == "covering":
            pairs = [(one, other) for one in outputs for other in outputs if one is not other]
            assert not any(covers(other, one) for one, other in pairs)


def test_an_entry_is_told_again_only_if_it_is_another() -> None:
    known = KnownFilters()
    stage = Distinct(lambda _, condition: known.normal(condition))
    first = stage.change(Change({"x": parse("p < 5"), "y": parse("5 > p")}), 0.0)
    assert len(first.added) == 1
    assert not stage.change(Change({"z": parse("p < 5")}, {"x"}), 0.0)
    assert not stage.change(Change({}, {"y"}), 0.0)
    assert stage.change(Change({}, {"z"}), 0.0).removed == set(first.added)


def test_a_merger_is_cancelled_when_a_part_goes_and_the_rest_comes_back() -> None:
    table = Table("merging")
    table.change(Change({"1": parse("p BETWEEN 0 AND 5"), "2": parse("p BETWEEN 5 AND 9")}), 1.0)
    assert [str(one) for one in table.outputs.values()] == ["p BETWEEN 0 AND 9"]
    table.change(Change({}, {"1"}), 2.0)
    assert [str(one) for one in table.outputs.values()] == ["p BETWEEN 5 AND 9"]


def test_a_merger_is_cancelled_when_a_new_filter_covers_it() -> None:
    table = Table("merging")
    table.change(Change({"1": parse("p BETWEEN 0 AND 5"), "2": parse("p BETWEEN 5 AND 9")}), 1.0)
    table.change(Change({"3": parse("p < 100")}), 2.0)
    assert [str(one) for one in table.outputs.values()] == ["p < 100"]
    table.change(Change({}, {"3"}), 3.0)
    assert together(list(table.outputs.values())) == meaning(parse("p BETWEEN 0 AND 9"))
