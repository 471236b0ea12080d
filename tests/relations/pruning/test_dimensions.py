"""The three estimates and their tie-breaks, on examples worked by hand."""

from __future__ import annotations

import pytest

from covey import CoveyError, parse
from covey.relations.pruning import Dimension, Pruner
from tests.relations.pruning.plain import Given


def pruner(dimension: Dimension, chances: dict[str, float], **texts: str) -> Pruner:
    return Pruner([(id, parse(text)) for id, text in texts.items()], Given(chances), dimension)


def steps(of: Pruner) -> list[tuple[str, str]]:
    return [(one.id, str(one.removed)) for one in of.prune()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", (0.25, 0.25, 0.25)),
        ("a = 1 AND b = 2", (0.0, 0.1875, 0.25)),
        ("b = 2 AND c = 3", (0.625, 0.65625, 0.75)),
        ("a = 1 OR b = 2", (0.75, 0.8125, 1.0)),
        ("a = 1 OR d = 4", (0.25, 0.34375, 0.375)),
        ("c = 3 AND (a = 1 OR d = 4)", (0.125, 0.30078125, 0.375)),
        ("NOT (a = 1 OR d = 4)", (0.625, 0.65625, 0.75)),
    ],
)
def test_selectivities_are_combined_by_the_formulas(text: str, expected: tuple[float, float, float]) -> None:
    chances = {"a = 1": 0.25, "b = 2": 0.75, "c = 3": 0.875, "d = 4": 0.125, "NOT a = 1": 0.75, "NOT d = 4": 0.875}
    assert pruner("network", chances, s=text).selectivity("s") == expected


def test_network_prunes_the_least_selective_part_first_and_degrades_against_the_original() -> None:
    # min of three at 7/8 is 5/8, of two 6/8, of one 7/8. Against the step before it would be 1/8 twice.
    chances = {"a = 1": 0.875, "b = 2": 0.875, "c = 3": 0.875}
    found = pruner("network", chances, s="a = 1 AND b = 2 AND c = 3").prune()
    assert [one.degradation for one in found] == [0.125, 0.25]
    # Removing b leaves a: min grows from 0 to 1/8. Removing a would leave 3/4.
    found = pruner("network", {"a = 1": 0.125, "b = 2": 0.75}, s="a = 1 AND b = 2").prune()
    assert [(str(one.removed), one.degradation) for one in found] == [("b = 2", 0.125)]


def test_memory_saves_most_bytes_first_but_nothing_that_has_a_pruning_inside() -> None:
    text = "a = 1 AND (b = 2 OR (c = 3 AND dddd = 4))"
    found = pruner("memory", {}, s=text).prune()
    # 'dddd = 4', ' AND ' and a diagram node; then '(b = 2 OR c = 3)', ' AND ' and two nodes.
    expected = [("dddd = 4", 8 + 5 + 16), ("b = 2 OR c = 3", 16 + 5 + 32)]
    assert [(str(one.removed), one.bytes) for one in found] == expected


def test_memory_counts_an_atom_for_each_value_of_a_list() -> None:
    found = pruner("memory", {}, s="a IN (1, 2, 3) AND b = 2").prune()
    assert [(str(one.removed), one.bytes) for one in found] == [("a IN (1, 2, 3)", 14 + 5 + 48)]


def test_throughput_keeps_the_least_number_of_fulfilled_predicates_against_the_original() -> None:
    # pmin is 1 + 1 + min(1, 2) = 3: inside the second alternative nothing is lost, outside one each time.
    found = pruner("throughput", {}, s="a = 1 AND b = 2 AND (c = 3 OR (d = 4 AND e = 5))").prune()
    assert [one.throughput for one in found] == [0, -1, -2]
    assert str(found[0].removed) == "d = 4"


def test_ties_of_network_are_broken_by_throughput_then_memory() -> None:
    certain = {"b = 2": 1.0, "d = 4": 1.0, "ee = 5": 1.0}
    subscriptions = {
        "loses one": "a = 1 AND b = 2",
        "loses none": "a = 1 AND (c = 3 OR (d = 4 AND f = 6))",
        "loses none, saves more": "a = 1 AND (c = 3 OR (ee = 5 AND f = 6))",
    }
    found = steps(pruner("network", certain, **subscriptions))
    assert found[:3] == [("loses none, saves more", "ee = 5"), ("loses none", "d = 4"), ("loses one", "b = 2")]


def test_ties_of_memory_are_broken_by_network_then_throughput() -> None:
    chances = {"b = 2": 0.9, "c = 3": 1.0, "d = 4": 1.0}
    subscriptions = {
        "degrades": "a = 1 AND b = 2",
        "loses one": "a = 1 AND c = 3",
        "loses none": "a = 1 OR (a = 1 AND d = 4)",
    }
    found = steps(pruner("memory", chances, **subscriptions))
    assert found == [("loses none", "d = 4"), ("loses one", "c = 3"), ("degrades", "b = 2")]


def test_ties_of_throughput_are_broken_by_network_then_memory() -> None:
    chances = {"b = 2": 0.9, "c = 3": 1.0, "dd = 4": 1.0}
    subscriptions = {"degrades": "a = 1 AND b = 2", "short": "a = 1 AND c = 3", "long": "a = 1 AND dd = 4"}
    found = steps(pruner("throughput", chances, **subscriptions))
    assert found == [("long", "dd = 4"), ("short", "c = 3"), ("degrades", "b = 2")]


def test_what_is_equal_in_all_goes_in_the_order_of_registration() -> None:
    found = steps(pruner("network", {}, x="a = 1 AND b = 2", y="c = 3 AND d = 4"))
    assert found == [("x", "a = 1"), ("y", "c = 3")]


def test_an_unknown_dimension_is_an_error_that_lists_them() -> None:
    with pytest.raises(CoveyError, match="network, memory, throughput"):
        Pruner([], Given({}), "speed")  # type: ignore[arg-type]
