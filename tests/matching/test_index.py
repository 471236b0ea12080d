"""What an index promises: changes are whole, errors change nothing, order is that of adding."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from tests.random_worlds import event_of, filter_of

import covey
from covey.matching import index as index_module


def ids_of(index: covey.Index, event: dict[str, object]) -> list[str]:
    single = index.match(event)
    assert index.match_batch([event]).to_pylist() == [single]
    return single


def test_the_public_surface_of_the_readme_works() -> None:
    index = covey.Index(semantics="sql")
    index.add("s1", "price < 1500 AND company = 'IBM'")
    index.add_many([("s2", "price < 500")])
    index.remove("s1")
    assert index.match({"price": 100, "company": "IBM"}) == ["s2"]
    matches = index.match_batch(pa.table({"price": [100, 900]}))
    assert len(matches) == 1
    assert matches.pairs().to_pydict() == {"event": [0], "subscription": ["s2"]}
    assert matches.lists().to_pylist() == [["s2"], []]
    assert matches.counts().tolist() == [1, 0]


def test_matches_come_in_the_order_of_adding() -> None:
    index = covey.Index()
    names = [f"n{number}" for number in random.Random(1).sample(range(1000), 300)]
    index.add_many((name, "x > 0") for name in names[:100])
    for name in names[100:]:
        index.add(name, f"x > 0 AND y != {len(name)}")
    assert ids_of(index, {"x": 1, "y": 99}) == names
    assert list(index.ids()) == names


def test_pairs_by_segment_are_those_of_the_table() -> None:
    rng = random.Random(3)
    index = covey.Index()
    for first in (0, 80, 90):
        index.add_many([(str(first + at), str(filter_of(rng))) for at in range(70 if first != 80 else 9)])
    events = [event_of(rng) for _ in range(200)]
    for some in (events, events[:1], []):
        matches = index.match_batch(some, threads=1)
        found = [
            (at, segment.id_list[ordinal])
            for segment, places, ordinals in matches.by_segment()
            for at, ordinal in zip(places.tolist(), ordinals.tolist(), strict=True)
        ]
        pairs = matches.pairs()
        wanted = list(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True))
        assert sorted(found, key=lambda pair: pair[0]) == wanted
    assert len(index.match_batch(events)) > 0


def test_an_index_without_subscriptions_matches_nothing() -> None:
    assert ids_of(covey.Index(), {"x": 1}) == []
    assert covey.Index().match_batch([]).to_pylist() == []
    assert len(covey.Index().match_batch(pa.table({"x": [1, 2]}))) == 0


def test_a_batch_without_events_has_no_matches() -> None:
    index = covey.Index()
    index.add("a", "x = 1")
    assert index.match_batch(pa.table({"x": pa.array([], pa.int64())})).to_pylist() == []


def test_constants_match_everything_or_nothing() -> None:
    index = covey.Index()
    index.add_many([("all", "TRUE"), ("none", "FALSE"), ("unknown", "NULL = 1"), ("not", "NOT FALSE")])
    assert ids_of(index, {}) == ["all", "not"]


def test_a_duplicate_id_is_an_error_and_changes_nothing() -> None:
    index = covey.Index()
    index.add("a", "x = 1")
    with pytest.raises(covey.DuplicateIdError, match="'a'"):
        index.add("a", "x = 2")
    assert ids_of(index, {"x": 1}) == ["a"]
    assert ids_of(index, {"x": 2}) == []


@pytest.mark.parametrize("call", ["remove", "filter", "text"])
def test_an_unknown_id_is_an_error(call: str) -> None:
    with pytest.raises(covey.UnknownIdError, match="'nobody' is not in the index"):
        getattr(covey.Index(), call)("nobody")


def test_replacing_an_unknown_id_is_an_error_and_adds_nothing() -> None:
    index = covey.Index()
    with pytest.raises(covey.UnknownIdError):
        index.replace("a", "x = 1")
    assert len(index) == 0


@pytest.mark.parametrize("bad", ["x <", "", "x = 'a", "frobnicate(x, 1)", "x = 1 AND AND y = 2"])
def test_a_filter_that_cannot_be_parsed_changes_nothing(bad: str) -> None:
    index = covey.Index()
    index.add("a", "x = 1")
    with pytest.raises(covey.FilterSyntaxError):
        index.add("b", bad)
    with pytest.raises(covey.FilterSyntaxError):
        index.replace("a", bad)
    assert len(index) == 1
    assert ids_of(index, {"x": 1}) == ["a"]


@pytest.mark.parametrize(
    ("limits", "text", "named"),
    [
        (covey.Limits(text_length=10), "x = 1 AND y = 2", "text_length"),
        (covey.Limits(tokens=5), "x = 1 AND y = 2", "tokens"),
        (covey.Limits(depth=3), "((((x = 1))))", "depth"),
        (covey.Limits(set_values=2), "x IN (1, 2, 3)", "set_values"),
        (covey.Limits(diagram_nodes=6), "x = 1 OR y = 2 OR z = 3 OR w = 4", "diagram_nodes"),
        (covey.Limits(diagram_nodes=64), "((((((x = 1 OR y = 2) IS UNKNOWN) IS UNKNOWN OR z = 3) IS UNKNOWN)"
         " IS UNKNOWN OR w = 1) IS UNKNOWN OR v = 1) IS UNKNOWN", "diagram_nodes"),
    ],
)  # fmt: skip
def test_an_oversized_filter_names_the_limit(limits: covey.Limits, text: str, named: str) -> None:
    index = covey.Index(limits=limits)
    with pytest.raises(covey.LimitError, match=named):
        index.add("a", text)
    report = index.add_many([("a", text), ("b", "x = 7")], on_error="collect")
    assert report.added == 1
    assert [(bad.row, bad.id) for bad in report.errors] == [(0, "a")]
    assert named in str(report.errors[0].error)
    assert ids_of(index, {"x": 7}) == ["b"]


@pytest.mark.parametrize("bad", [None, True, "", b"a", 1.5])
def test_an_id_is_text_that_is_not_empty_or_an_integer(bad: object) -> None:
    with pytest.raises(covey.CoveyError, match="id"):
        covey.Index().add(bad, "x = 1")  # type: ignore[arg-type]


def test_add_many_reports_every_bad_row_and_adds_nothing_when_asked_to_raise() -> None:
    index = covey.Index()
    index.add("old", "x = 1")
    rows = [("a", "x = 1"), ("b", "x ="), ("a", "x = 2"), ("old", "x = 3"), ("c", "x = 4"), ("d", "y LIKE 'a\\'")]
    with pytest.raises(covey.AddManyError) as caught:
        index.add_many(rows)
    assert [(bad.row, bad.id) for bad in caught.value.errors] == [(1, "b"), (2, "a"), (3, "old"), (5, "d")]
    assert list(index.ids()) == ["old"]


def test_add_many_adds_the_good_rows_when_asked_to_collect() -> None:
    index = covey.Index()
    index.add("old", "x = 1")
    rows = [("a", "x = 1"), ("b", "x ="), ("a", "x = 2"), ("old", "x = 3"), ("c", "x = 4")]
    report = index.add_many(rows, on_error="collect")
    assert report.added == 2
    assert [(bad.row, bad.id) for bad in report.errors] == [(1, "b"), (2, "a"), (3, "old")]
    assert list(index.ids()) == ["old", "a", "c"]


def test_a_schema_refuses_a_constant_of_the_wrong_type() -> None:
    index = covey.Index(schema=covey.Schema({"price": "double", "company": "string"}))
    with pytest.raises(covey.FilterTypeError, match="price"):
        index.add("a", "price = 'IBM'")
    report = index.add_many([("a", "price = 'IBM'"), ("b", "price > 3")], on_error="collect")
    assert [bad.id for bad in report.errors] == ["a"]
    assert ids_of(index, {"price": 4}) == ["b"]


def test_types_match_their_subtypes() -> None:
    schema = covey.Schema(
        {"type": "string", "price": "double"}, type_attribute="type", subtypes={"StockQuote": "Quote", "Quote": "Event"}
    )
    index = covey.Index(schema=schema)
    index.add("quotes", "type = 'Quote' AND price > 1")
    index.add_many([("stocks", "type = 'StockQuote'"), ("others", "type != 'Quote'")])
    assert ids_of(index, {"type": "StockQuote", "price": 2}) == ["quotes", "stocks"]
    assert ids_of(index, {"type": "Quote", "price": 2}) == ["quotes"]
    assert ids_of(index, {"type": "Event", "price": 2}) == ["others"]


def test_a_mandatory_attribute_that_is_missing_is_an_error() -> None:
    schema = covey.Schema({"price": covey.Attribute("double", mandatory=True)})
    index = covey.Index(schema=schema, semantics="simple")
    index.add("a", "price > 1")
    with pytest.raises(covey.EventError, match="price"):
        index.match({"x": 1})
    with pytest.raises(covey.EventError, match=r"event 1.*price"):
        index.match_batch([{"price": 2}, {"x": 1}])


def test_defaults_come_from_the_schema() -> None:
    schema = covey.Schema(
        {"price": covey.Attribute("double", default=-1.0), "name": covey.Attribute("string", default="")}
    )
    index = covey.Index(schema=schema, semantics="default")
    index.add_many(
        [("low", "price < 0"), ("empty", "name LIKE ''"), ("prefix", "startswith(name, '')"), ("x", "x IS NULL")]
    )
    assert ids_of(index, {}) == ["low", "empty", "prefix", "x"]
    assert ids_of(index, {"price": 3, "name": "a", "x": 0}) == ["prefix"]


def test_an_event_that_is_not_a_mapping_is_an_error() -> None:
    index = covey.Index()
    index.add("a", "x = 1")
    with pytest.raises(covey.EventError):
        index.match([("x", 1)])  # type: ignore[arg-type]


def test_many_changes_leave_what_a_plain_dictionary_would_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds, removals and replacements through many sealings and merges, small and in the background."""
    monkeypatch.setattr(index_module, "_HEAD", 8)
    monkeypatch.setattr(index_module, "_BACKGROUND", 40)
    rng = random.Random(3)
    index, model = covey.Index(), dict[str, covey.Filter]()
    for step in range(600):
        roll = rng.random()
        if roll < 0.55 or not model:
            model[f"s{step}"] = filter_of(rng, 2)
            index.add(f"s{step}", model[f"s{step}"])
        elif roll < 0.75:
            gone = rng.choice(list(model))
            del model[gone]
            index.remove(gone)
        elif roll < 0.9:
            changed = rng.choice(list(model))
            del model[changed]
            model[changed] = filter_of(rng, 2)
            index.replace(changed, model[changed])
        else:
            fresh = {f"m{step}-{k}": filter_of(rng, 2) for k in range(rng.randint(1, 30))}
            model.update(fresh)
            index.add_many(fresh.items())
        if step % 20 == 0:
            event = event_of(rng)
            assert sorted(index.match(event)) == sorted(id for id, one in model.items() if one.matches(event))
            assert len(index) == len(model)
    index.wait()
    assert sorted(index.ids()) == sorted(model)
    assert all(index.filter(id) == one for id, one in model.items())
    index.compact()
    batch = [event_of(rng) for _ in range(30)]
    expected = [sorted(id for id, one in model.items() if one.matches(event)) for event in batch]
    assert [sorted(found) for found in index.match_batch(batch).to_pylist()] == expected
    assert index.stats().segments == 1
    assert index.stats().subscriptions == len(model)


def test_orders_and_statistics_change_no_answer() -> None:
    rng = random.Random(5)
    conditions = {f"s{number}": filter_of(rng) for number in range(80)}
    batch = [event_of(rng) for _ in range(80)]
    expected = [[id for id, one in conditions.items() if one.matches(event)] for event in batch]
    for order in index_module.ORDERS:
        index = covey.Index(order=order, statistics=covey.Statistics(batch[:40]))
        index.add_many(conditions.items())
        assert index.match_batch(batch, threads=2).to_pylist() == expected
    with pytest.raises(covey.CoveyError, match="alphabetic"):
        covey.Index(order="alphabetic")


def test_statistics_choose_the_rarer_key() -> None:
    """Without them the guess is by the constants alone; the sample says that one equality is true half the time."""
    rows = [(f"s{number}", f"common = {number % 2} AND rare = {number % 10}") for number in range(500)]
    sample = [{"common": number % 2, "rare": number % 100} for number in range(1000)]
    informed = covey.Index(statistics=covey.Statistics(sample))
    informed.add_many(rows)
    (sealed,) = informed._state.sealed
    keys = {sealed.segment.names[key] for key in sealed.segment.tables.keys[:, 0] if key >= 0}
    assert keys == {"rare"}


def test_explain_names_what_held_and_what_did_not() -> None:
    index = covey.Index()
    index.add("s", "price < 10 AND (company = 'IBM' OR NOT volume > 5)")
    miss = index.explain("s", {"price": 12, "company": "Dell"})
    assert not miss.matched
    assert "price < 10 is false" in miss.reason
    assert "✗ price < 10   — price is 12" in str(miss)
    assert "? NOT volume > 5   — volume is missing" in str(miss)
    hit = index.explain("s", {"price": 1, "company": "IBM"})
    assert hit.matched
    assert hit.to_dict()["steps"][0]["truth"] is True
    with pytest.raises(covey.UnknownIdError):
        index.explain("nobody", {})


def test_stats_count_what_is_there() -> None:
    index = covey.Index()
    index.add_many([("a", "x = 1 AND y < 5"), ("b", "x = 1"), ("c", "z LIKE '%q%'")])
    stats = index.stats()
    assert (stats.subscriptions, stats.attributes, stats.segments) == (3, 3, 1)
    assert stats.to_dict()["entries"] == 3
    assert stats.bytes > 0


def test_threads_must_be_positive() -> None:
    index = covey.Index()
    with pytest.raises(covey.CoveyError, match="threads"):
        index.match_batch([{}], threads=0)


def test_subscriptions_that_wait_are_compiled_once_enough_events_came_and_match_the_same() -> None:
    rng = random.Random(11)
    conditions = {f"s{number}": filter_of(rng) for number in range(40)}
    index = covey.Index()
    for id, condition in conditions.items():
        index.add(id, condition)
    for _ in range(40):
        event = event_of(rng)
        assert index.match(event) == [id for id, one in conditions.items() if one.matches(event)]
    assert index._state.compiled.head is not None
    assert index.stats().segments == 0
    index.add("late", "TRUE")
    assert index.match({})[-1] == "late"


def test_check_refuses_what_add_would_refuse() -> None:
    condition = "a = 1"
    for number in range(20):
        condition = f"(({condition}) AND d{number} < 3) IS UNKNOWN"
    index = covey.Index()
    with pytest.raises(covey.LimitError, match="diagram_nodes"):
        index.check(condition)
    assert index.check("a = 1") == covey.parse("a = 1")


def test_many_are_removed_as_one_change() -> None:
    index = covey.Index()
    index.add_many((f"s{number}", f"x = {number % 3}") for number in range(500))
    index.add("head", "x = 1")
    index.remove_many([f"s{number}" for number in range(0, 500, 2)] + ["head"])
    assert sorted(index.match({"x": 1})) == sorted(f"s{number}" for number in range(1, 500, 2) if number % 3 == 1)
    with pytest.raises(covey.CoveyError, match="s0"):
        index.remove_many(["s1", "s0"])
    assert "s1" in index


def test_what_is_prepared_and_added_later_is_as_if_it_had_been_added_at_once() -> None:
    rng = random.Random(11)
    rows = [(str(number), str(filter_of(rng))) for number in range(700)]
    plain, index = covey.Index(), covey.Index()
    plain.add_many(rows)
    few = index.prepare(rows[:40], [covey.parse(text) for _, text in rows[:40]])
    index.add(*rows[-1])
    many = index.prepare_later(rows[40:-1], [covey.parse(text) for _, text in rows[40:-1]]).result()
    assert len(index) == 1
    index.add_prepared(few)
    index.add_prepared(many)
    for event in (event_of(rng) for _ in range(50)):
        assert sorted(index.match(event)) == sorted(plain.match(event))
    with pytest.raises(covey.DuplicateIdError):
        index.add_prepared(few)
    with pytest.raises(covey.AddManyError):
        index.prepare([("bad", "x = ")])
    assert len(index) == 700
