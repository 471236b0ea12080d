from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.random_worlds import event_of, filter_of

import covey
from covey.diagrams import SharedDiagram
from covey.filters import SEMANTICS, Semantics
from covey.history import EventProfile, EventSample, Profile, SubscriptionProfile


def quotes(count: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    price = np.round(rng.gamma(2, 50, count), 2)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "symbol": [f"S{n}" for n in rng.zipf(1.5, count) % 500],
            "price": pa.array(price, mask=rng.random(count) < 0.1),
            "cents": pa.array((price * 100).astype(np.int64)),
            "halted": rng.random(count) < 0.05,
            "time": [start + timedelta(seconds=int(second)) for second in rng.integers(0, 86_400, count)],
        }
    )


NAMES = ["symbol", "price", "cents", "halted", "time"]


def test_chances_on_a_sample_are_the_fractions_that_the_interpreter_counts() -> None:
    rng = random.Random(3)
    filters, events = [filter_of(rng) for _ in range(200)], [event_of(rng) for _ in range(150)]
    for semantics in SEMANTICS:
        expected = [sum(one.matches(event, semantics=semantics) for event in events) / 150 for one in filters]
        assert EventSample(events).chances(filters, semantics).tolist() == pytest.approx(expected)


def test_an_empty_sample_gives_no_chance() -> None:
    assert EventSample([]).chances([covey.parse("a = 1"), covey.parse("TRUE")]).tolist() == [0.0, 0.0]


def test_a_sketch_counts_presence_exactly_and_ranks_within_its_error() -> None:
    events = quotes(50_000)
    profile = EventProfile.of(events, NAMES)
    price = events["price"].drop_null().to_numpy()
    sketch = profile.sketches["price"]
    assert sketch.present == len(price)
    for value in np.quantile(price, [0.01, 0.3, 0.9]):
        assert sketch.below(value, inclusive=True) / len(price) == pytest.approx((price <= value).mean(), abs=0.005)
    assert (sketch.quantile(0), sketch.quantile(1)) == (price.min(), price.max())
    counts = Counter(events["symbol"].to_pylist())
    assert dict(profile.sketches["symbol"].frequent_strings(3)) == dict(counts.most_common(3))
    assert profile.sketches["symbol"].distinct == pytest.approx(len(counts), rel=0.05)
    assert profile.sketches["halted"].truths[1] == sum(events["halted"].to_pylist())


def test_nan_and_infinities_and_huge_integers_have_their_place() -> None:
    events = [{"x": value} for value in (float("nan"), float("inf"), float("-inf"), 1, 10**300, 2**70, None)]
    sketch = EventProfile.of(events, ["x"]).sketches["x"]
    assert (sketch.present, sketch.numbers, sketch.nans) == (6, 6, 1)
    assert sketch.below(1, inclusive=True) == 2
    assert (sketch.quantile(0), sketch.quantile(1)) == (float("-inf"), float("inf"))


def test_merged_profiles_know_what_one_profile_of_all_events_knows() -> None:
    events = quotes(60_000)
    whole = EventProfile.of(events, NAMES)
    parts = [EventProfile.of(events.slice(first, 20_000), NAMES, seed=first) for first in (0, 20_000, 40_000)]
    merged = parts[0].merged(parts[1]).merged(parts[2])
    assert merged.count == 60_000
    assert merged.sample.num_rows == whole.sample.num_rows == 16_384
    for name in NAMES:
        assert merged.sketches[name].present == whole.sketches[name].present
    assert merged.sketches["price"].quantile(0.5) == pytest.approx(whole.sketches["price"].quantile(0.5), rel=0.02)
    assert parts[0].sketches["price"].present < 20_000  # merging changed none of its parts


def test_a_merged_sample_is_uniform_over_both_sets() -> None:
    large = EventProfile.of([{"set": "large"}] * 90_000, ["set"], seed=1)
    small = EventProfile.of([{"set": "small"}] * 10_000, ["set"], seed=2)
    counts = Counter(small.merged(large).sample["set"].to_pylist())
    assert counts["small"] / 16_384 == pytest.approx(0.1, abs=0.01)


def test_an_attribute_that_changes_its_type_is_refused_by_name() -> None:
    left, right = EventProfile.of([{"a": 1}], ["a"]), EventProfile.of([{"a": "x"}], ["a"])
    with pytest.raises(covey.CoveyError, match="attribute 'a' is int64 in one profile"):
        left.merged(right)
    with pytest.raises(covey.CoveyError, match="attribute 'a' holds int and string"):
        EventProfile.of([{"a": 1}, {"a": "x"}], ["a"])
    number = EventProfile.of([{"a": 1.5}], ["a"]).merged(left)
    assert number.sample["a"].to_pylist() == [1.5, 1.0]


def test_lists_nested_records_and_absent_attributes_are_profiled() -> None:
    events = [{"tags": ["a", None], "at": {"x": 1}}, {"tags": [], "at": {"x": None}}, {}]
    profile = Profile.of(events, attributes=["tags", "at.x", "nowhere"])
    assert profile.events is not None
    present = {name: sketch.present for name, sketch in profile.events.sketches.items()}
    assert present == {"tags": 2, "at.x": 1, "nowhere": 0}
    asked = [covey.parse("array_contains(tags, 'a')"), covey.parse("at.x = 1"), covey.parse("nowhere IS NULL")]
    assert profile.chances(asked).tolist() == pytest.approx([1 / 3, 1 / 3, 1])


def test_what_the_sample_can_tell_is_counted_on_it() -> None:
    events = quotes(16_384)
    filters = [covey.parse(text) for text in ("price < 50 AND halted = FALSE", "symbol = 'S1' OR price > 200")]
    profile = Profile.of(events, filters)
    assert profile.chances(filters).tolist() == pytest.approx(EventSample(events).chances(filters).tolist())


def test_what_is_too_rare_for_the_sample_comes_from_the_sketches() -> None:
    rng = np.random.default_rng(5)
    events = pa.table({"user": [f"u{n}" for n in rng.integers(0, 100_000, 200_000)], "amount": rng.random(200_000)})
    asked = [covey.parse(text) for text in ("user = 'u77'", "user = 'u77' AND amount < 0.5", "amount < 0.0001")]
    chances = Profile.of(events, asked).chances(asked)
    assert chances[0] == pytest.approx(1e-5, rel=0.3)
    assert chances[1] == pytest.approx(5e-6, rel=0.3)
    assert 0 <= chances[2] < 0.003


def refused(events: list[dict[str, Any]], name: str) -> bool:
    try:
        EventProfile.of(events, [name])
    except covey.CoveyError:
        return True
    return False


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_chances_lie_between_0_and_1(semantics: Semantics) -> None:
    rng = random.Random(7)
    filters, events = [filter_of(rng) for _ in range(300)], [event_of(rng) for _ in range(40)]
    plain = [name for name in ("i", "j", "d", "s", "t", "b", "w", "r.x", "r.y.z") if not refused(events, name)]
    assert len(plain) > 3
    chances = Profile.of(events, attributes=plain).chances(filters, semantics)
    assert np.all((chances >= 0) & (chances <= 1))


@given(st.lists(st.sampled_from(["a = 1", "a = 1 AND b < 3", "b < 3 OR c = 'x'", "NOT c = 'x'", "TRUE"]), max_size=30))
def test_subscriptions_are_counted_by_attributes_combinations_and_predicates(texts: list[str]) -> None:
    filters = [covey.parse(text) for text in texts]
    half = len(filters) // 2
    whole = SubscriptionProfile.of(filters)
    merged = SubscriptionProfile.of(filters[:half]).merged(SubscriptionProfile.of(filters[half:]))
    for profile in (whole, merged, SubscriptionProfile.from_json(merged.to_json())):
        assert profile.count == len(texts)
        assert profile.attributes == Counter(name for one in filters for name in one.attributes())
        assert profile.combinations == Counter(tuple(sorted(one.attributes())) for one in filters)
        predicates = Counter(
            text for one in texts for text in ("a = 1", "b < 3", "c = 'x'") if text in one
        )  # fmt: skip
        assert {str(one): count for one, count in profile.popular()} == dict(predicates)


def test_combinations_stay_bounded_and_keep_the_frequent_ones() -> None:
    filters = [covey.parse(f"a{n} = 1 AND b{n % 90} = 2") for n in range(9_000)]
    profile = SubscriptionProfile.of([covey.parse("x = 1")] * 50 + filters)
    assert len(profile.combinations) <= 4_096
    assert profile.combinations[("x",)] == 50


def test_the_learned_order_from_a_profile_is_that_of_the_filters_themselves() -> None:
    filters = [covey.parse(f"common = {n % 2} AND rare = {n} AND middle = {n % 10}") for n in range(300)]
    history = Profile.of(subscriptions=filters).history()
    learned, own = SharedDiagram(), SharedDiagram()
    learned.add_many(enumerate(filters), order="learned", history=history)
    own.add_many(enumerate(filters), order="learned")
    assert learned.node_count() == own.node_count()


def test_statistics_of_a_profile_serve_an_index() -> None:
    events = quotes(20_000)
    filters = [covey.parse(f"symbol = 'S{n}' AND price < {n}") for n in range(200)]
    index = covey.Index(statistics=Profile.of(events, filters).statistics())
    index.add_many((str(at), one) for at, one in enumerate(filters))
    plain = covey.Index()
    plain.add_many((str(at), one) for at, one in enumerate(filters))
    assert index.match_batch(events).to_pylist() == plain.match_batch(events).to_pylist()


def test_dependence_is_0_for_independent_and_1_for_determined_attributes() -> None:
    rng = np.random.default_rng(2)
    x = rng.random(20_000)
    events = pa.table({"x": x, "same": -x, "other": rng.random(20_000), "side": np.where(x < 0.5, "low", "high")})
    profile = Profile.of(events, attributes=["x", "same", "other", "side"])
    assert profile.dependence("x", "same") > 0.9
    assert profile.dependence("x", "side") > 0.9
    assert profile.dependence("x", "other") < 0.01
    assert profile.dependence("side", "x") == pytest.approx(profile.dependence("x", "side"))


@pytest.mark.parametrize("distinct", [2, 10, 40, 500])
def test_a_number_and_a_string_that_determine_each_other_depend_wholly(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    number = rng.integers(0, distinct, 20_000)
    other = rng.integers(0, distinct, 20_000)
    name = [f"name {one * 7919 % distinct}" for one in number]
    shuffled = rng.permutation(distinct)[number].astype(np.float64)
    events = pa.table({"number": number, "name": name, "other": other, "shuffled": shuffled})
    profile = Profile.of(events, attributes=["number", "name", "other", "shuffled"])
    assert profile.dependence("number", "name") > 0.95
    assert profile.dependence("name", "number") > 0.95
    assert profile.dependence("number", "shuffled") > 0.95
    assert profile.dependence("name", "other") < 0.05
    assert profile.dependence("number", "other") < 0.05


def test_columns_of_values_that_occur_once_are_not_called_dependent() -> None:
    rng = np.random.default_rng(4)
    events = pa.table({"x": rng.random(5_000), "name": [f"n{one}" for one in rng.permutation(5_000)]})
    assert Profile.of(events, attributes=["x", "name"]).dependence("x", "name") < 0.05


def test_a_saved_profile_is_the_same_when_opened(tmp_path: Path) -> None:
    filters = [covey.parse("symbol = 'S1' AND price < 10"), covey.parse("halted = TRUE")]
    profile = Profile.of(quotes(30_000), filters).merged(Profile.of(quotes(10, 2), filters[:1]))
    profile.save(tmp_path / "p.profile")
    opened = Profile.open(tmp_path / "p.profile")
    assert opened.summary() == profile.summary()
    assert opened.version == 2
    assert opened.chances(filters).tolist() == profile.chances(filters).tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["p.profile"]
    again = opened.merged(profile)
    assert again.events is not None
    assert again.events.count == 60_020


def test_a_profile_of_subscriptions_alone_says_that_it_knows_no_events(tmp_path: Path) -> None:
    Profile.of(subscriptions=[covey.parse("a = 1")]).save(tmp_path / "p")
    opened = Profile.open(tmp_path / "p")
    assert "1 subscriptions" in opened.summary()
    with pytest.raises(covey.CoveyError, match="seen no events"):
        opened.chances([covey.parse("a = 1")])


def test_damaged_and_foreign_files_are_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "p"
    Profile.of([{"a": 1}], attributes=["a"]).save(path)
    kept = path.read_bytes()
    for damaged, message in (
        (kept[: len(kept) // 2], "damaged"),
        (kept[:200] + bytes([kept[200] ^ 1]) + kept[201:], "damaged"),
        (b"not a profile", "not a covey profile"),
        (b"", "not a covey profile"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(covey.CoveyError, match=message):
            Profile.open(path)
    with pytest.raises(covey.CoveyError, match="No such file"):
        Profile.open(tmp_path / "nowhere")
    with pytest.raises(covey.CoveyError, match="No such file"):
        Profile.of(attributes=[]).save(tmp_path / "no" / "directory")


def test_a_summary_tells_of_values_missing_rates_and_popular_predicates() -> None:
    filters = [covey.parse("symbol = 'S1' AND price < 50")] * 3 + [covey.parse("halted = TRUE")]
    text = Profile.of(quotes(5_000), filters).summary()
    assert "5,000 events" in text
    assert "missing in" in text
    assert "75.0% ask for price, symbol" in text
    assert "3  symbol = 'S1'  (met by" in text
