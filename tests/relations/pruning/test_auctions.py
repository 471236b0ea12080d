"""The book auctions that pruning is measured on."""

from __future__ import annotations

from covey import parse
from covey.history import EventSample
from covey.lab.workloads.auctions import CATEGORIES, generate
from covey.relations.pruning import Pruner

AUCTIONS = generate(400, 2_000, seed=3)


def test_a_seed_gives_one_workload() -> None:
    again, other = generate(400, 2_000, seed=3), generate(400, 2_000, seed=4)
    assert again.subscriptions == AUCTIONS.subscriptions != other.subscriptions
    assert again.events.equals(AUCTIONS.events)


def test_the_three_classes_are_there_and_name_what_events_have() -> None:
    assert set(AUCTIONS.classes) == {1, 2, 3}
    keys = {1: "title", 2: "author", 3: "category"}
    for (_, condition), number in zip(AUCTIONS.subscriptions, AUCTIONS.classes.tolist(), strict=True):
        assert keys[number] in condition.attributes() <= set(AUCTIONS.events.column_names)


def test_the_texts_are_the_filters() -> None:
    assert [(id, parse(text)) for id, text in AUCTIONS.texts()] == AUCTIONS.subscriptions


def test_a_title_has_one_author_and_one_category() -> None:
    rows = AUCTIONS.events.select(["title", "author", "category"]).to_pylist()
    written = {(row["title"], row["author"], row["category"]) for row in rows}
    assert len(written) == len({row["title"] for row in rows}) > 100
    assert {row["category"] for row in rows} == set(CATEGORIES)


def test_half_of_all_network_prunings_hardly_degrade_the_auctions() -> None:
    pruner = Pruner(AUCTIONS.subscriptions, EventSample(AUCTIONS.events))
    pruner.prune(pruner.total_possible // 2)
    assert pruner.mean_degradation < 0.01
    half = pruner.mean_degradation
    pruner.prune()
    assert pruner.mean_degradation > 10 * half
