"""What mergers have spent of the threshold travels in their keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.language import parse
from covey.relations.merging import MergerTable, MergingPolicy, Uniform, merge_table
from covey.routing import MergingOptions
from covey.routing.spent_degrees import spent_of, with_spent, without_spent
from covey.simulation.traffic import Network, line

SQUARE = Uniform({"x": (0, 99), "y": (0, 99)})
FLAT, HIGH = parse("x < 100 AND y < 50"), parse("x < 40 AND y < 60")
"""Of their hull, 60 x 10 of 100 x 60, a tenth, is in neither."""


@given(st.text(), st.floats(0, 1))
def test_a_key_says_what_was_spent_rounded_up(key: str, spent: float) -> None:
    told = with_spent(without_spent(key)[0], spent)
    assert spent - 1e-8 <= spent_of(told) <= spent + 0.001
    assert with_spent(*without_spent(told)) == told


def test_a_key_of_somebody_who_claims_too_much_is_all_spent() -> None:
    assert spent_of("0f~9999") == 1.0
    assert without_spent("0f~") == ("0f~", 0.0)
    assert without_spent("0f~12345") == ("0f~12345", 0.0)


def test_what_is_spent_counts_in_what_becomes_of_it() -> None:
    entries = [("flat", FLAT), ("high", HIGH)]
    (merger,) = merge_table(entries, imt=0.12, chances=SQUARE)
    assert 0.08 < merger.degree < 0.12
    assert len(merge_table(entries, imt=0.12, chances=SQUARE, spent={"flat": 0.1})) == 2
    (again,) = merge_table(entries, imt=0.25, chances=SQUARE, spent={"flat": 0.1})
    assert 0.05 < again.degree - merger.degree < 0.1, "a tenth of five sixths"


def test_a_perfect_union_is_made_whatever_its_parts_have_spent_and_says_so() -> None:
    halves = [("left", parse("x < 50")), ("right", parse("x >= 50 AND x < 70"))]
    (merger,) = merge_table(halves, chances=SQUARE, spent={"left": 0.2, "right": 0.9})
    assert merger.perfect
    assert 0.3 < merger.degree < 0.5, "two fifths, by their sizes"


def test_of_two_equal_mergers_the_lesser_degree_counts() -> None:
    both = [("one", FLAT), ("other", FLAT)]
    (merger,) = merge_table(both, chances=SQUARE, spent={"one": 0.3, "other": 0.1})
    assert merger.degree == 0.1
    (merger,) = merge_table([*both, ("own", FLAT)], chances=SQUARE, spent={"one": 0.3, "other": 0.1})
    assert merger.degree == 0.0


def test_a_table_gives_back_what_parts_had_spent() -> None:
    table: MergerTable[str] = MergerTable(imt=0.5, chances=SQUARE, spent=spent_of)
    table.add("a~100", FLAT)
    table.add("b", HIGH)
    (merger,) = table.merge().added
    assert merger.degree > 0.15
    (recovered,) = table.remove("b").added
    assert (recovered.filter, recovered.degree) == (FLAT, 0.1)


def test_a_merger_crosses_a_line_with_what_it_has_spent_and_comes_back_as_its_parts() -> None:
    options = MergingOptions(0.12, MergingPolicy(at_arrivals=1))
    network = Network(line(3), strategy="merging", merging=options, chances=SQUARE)
    network.join("ann", "b1")
    network.subscribe("ann", {"s": FLAT, "t": HIGH})
    held = {name: network.brokers[name].links[peer].inward.subscriptions.holding.entries
            for name, peer in (("b2", "b1"), ("b3", "b2"))}  # fmt: skip
    assert held["b2"] == held["b3"]
    (key,) = held["b3"]
    assert 0.08 < spent_of(key) <= 0.12
    network.unsubscribe("ann", ["t"])
    assert [(str(told), spent_of(key)) for key, told in held["b3"].items()] == [(str(FLAT), 0.0)]


def test_with_advertisements_only_what_is_advertised_counts_as_in_vain() -> None:
    told = []
    for advertisement in ("x < 40 OR y < 50", "x >= 0"):
        network = Network(
            line(2), strategy="merging", advertisements=True, merging=MergingOptions(0.05, MergingPolicy(every=60.0)),
            chances=SQUARE,
        )  # fmt: skip
        network.join("shop", "b2")
        network.advertise("shop", {"a": advertisement})
        network.join("ann", "b1")
        network.subscribe("ann", {"s": FLAT, "t": HIGH})
        network.wait(61.0)
        told.append(len(network.brokers["b2"].links["b1"].inward.subscriptions.holding))
        network.publish("shop", [{"x": 10, "y": 55}, {"x": 90, "y": 10}, {"x": 30, "y": 70}])
        assert network.traffic().deliveries == 2
    assert told == [1, 2]
