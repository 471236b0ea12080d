"""The four semantics on the paper's own examples (Campailla et al., section 4), on missing attributes, and each
operator's truth."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.errors import CoveyError
from covey.events import UNDEFINED, Attribute, Schema, parse_xml
from covey.filters import (
    FALSE,
    SEMANTICS,
    TRUE,
    UNKNOWN,
    And,
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    Filter,
    In,
    Is,
    IsNull,
    Like,
    Not,
    Or,
    RLike,
    StartsWith,
    SubstringOf,
    attr,
    matches,
)
from covey.filters.semantics import Semantics, attribute_value, check_semantics, truth

SALES = Schema({"company": "string", "product": "string", "price": "double"})
M1 = parse_xml(
    """
<company> IBM </company>
<product> PC AT, 20 Mhz, 256 KB RAM
</product>
<price> 5000 </price>
""",
    SALES,
)
M2 = parse_xml("<company> Future Inc. </company>\n<product> 100 GHz Super PC </product>", SALES)
EXAMPLE_4 = (
    attr("company").is_in(["IBM", "Dell", "Siemens"])
    & attr("product").contains("PC")
    & attr("product").contains("1000Mhz")
    & (attr("price") <= 1000)
)


def three_valued(condition: Filter, event: dict[str, Any]) -> bool | None:
    return truth(condition, lambda name: attribute_value(event, name), three_valued=True)


def matching_semantics(condition: Filter, event: dict[str, Any], defaults: dict[str, Any] | None = None) -> set[str]:
    return {one for one in SEMANTICS if matches(condition, event, semantics=one, defaults=defaults)}


def test_example_3_reads_a_total_and_a_partial_message() -> None:
    assert M1 == {"company": "IBM", "product": "PC AT, 20 Mhz, 256 KB RAM", "price": 5000}
    assert M2 == {"company": "Future Inc.", "product": "100 GHz Super PC"}


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"company": "IBM", "product": "PC, 1000Mhz", "price": 1000}, True),
        ({"company": "Siemens", "product": "1000Mhz PC", "price": 999.99}, True),
        ({"company": "IBM", "product": "PC, 1000Mhz", "price": 1000.01}, False),
        ({"company": "HP", "product": "PC, 1000Mhz", "price": 900}, False),
        ({"company": "Dell", "product": "PC, 900Mhz", "price": 900}, False),
        (M1, False),
        (M2, False),
    ],
)
def test_example_4_matches_cheap_1000_mhz_pcs_of_three_makers(
    semantics: Semantics, event: dict[str, Any], wanted: bool
) -> None:
    assert matches(EXAMPLE_4, event, semantics=semantics) is wanted


def test_example_5_alice_and_bob_get_every_priced_message_and_no_other() -> None:
    joined = (attr("price") < 1000) | (attr("price") > 500)
    for semantics in SEMANTICS:
        assert all(matches(joined, {"price": price}, semantics=semantics) for price in (0, 500, 750, 1000, 5000))
    assert matching_semantics(joined, M2) == set()
    tautology = (attr("price") < 1000) | ~(attr("price") < 1000)
    assert matching_semantics(tautology, M2) == {"simple", "default"}


def test_example_6_defaults_stand_for_missing_attributes() -> None:
    schema = Schema({"company": Attribute("string", default=""), "price": Attribute("double", default=-1)})
    defaults = schema.defaults
    assert defaults == {"company": "", "price": -1}
    assert matches(attr("company") == "", {}, semantics="default", defaults=defaults)
    assert matches(attr("price") < 0, M2, semantics="default", defaults=defaults)
    assert not matches(attr("price") < 0, M1, semantics="default", defaults=defaults)
    assert not matches(attr("price") < 0, M2, semantics="simple", defaults=defaults)


def test_a_default_of_undefined_makes_existence_testable() -> None:
    schema = Schema({"price": Attribute("double", default=UNDEFINED)})
    for event, wanted in ((M1, True), (M2, False)):
        assert matches(attr("price").exists(), event, semantics="default", defaults=schema.defaults) is wanted
    filled = Schema({"price": Attribute("double", default=-1)}).defaults
    assert matches(attr("price").exists(), M2, semantics="default", defaults=filled)


NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -0.0, math.nan, math.inf])
TEXTS = st.sampled_from(["", "a", "ab", "b"])
TOTAL_MESSAGES = st.fixed_dictionaries({"n": NUMBERS, "m": NUMBERS, "s": TEXTS, "l": st.lists(NUMBERS, max_size=2)})
NUMERIC = st.sampled_from(["n", "m"])
PREDICATES = st.one_of(
    st.builds(Compare, NUMERIC, st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]), NUMBERS),
    st.builds(Compare, st.just("s"), st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]), TEXTS),
    st.builds(Between, NUMERIC, NUMBERS, NUMBERS),
    st.builds(In, NUMERIC, st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)),
    st.builds(Like, st.just("s"), st.sampled_from(["%", "a%", "_", "%b", ""])),
    st.builds(RLike, st.just("s"), st.sampled_from(["^a", "b$", "."])),
    st.builds(StartsWith, st.just("s"), TEXTS),
    st.builds(EndsWith, st.just("s"), TEXTS),
    st.builds(Contains, st.just("s"), TEXTS),
    st.builds(SubstringOf, st.just("s"), TEXTS),
    st.builds(ArrayContains, st.just("l"), NUMBERS),
    st.builds(IsNull, st.sampled_from(["n", "m", "s", "l"])),
    st.sampled_from([TRUE, FALSE]),
)
FILTERS = st.recursive(
    PREDICATES,
    lambda parts: st.one_of(
        st.builds(Not, parts),
        st.builds(Is, parts, st.sampled_from([True, False, None])),
        st.lists(parts, min_size=2, max_size=3).map(lambda listed: And(tuple(listed))),
        st.lists(parts, min_size=2, max_size=3).map(lambda listed: Or(tuple(listed))),
    ),
    max_leaves=8,
)


@given(FILTERS, TOTAL_MESSAGES)
def test_proposition_7_over_total_messages_all_semantics_agree(condition: Filter, event: dict[str, Any]) -> None:
    assert matching_semantics(condition, event, {"n": 0, "s": "a"}) in (set(), set(SEMANTICS))


@given(FILTERS, TOTAL_MESSAGES, st.sets(st.sampled_from(["n", "m", "s", "l"])))
def test_default_semantics_is_simple_semantics_on_the_default_extension(
    condition: Filter, event: dict[str, Any], missing: set[str]
) -> None:
    defaults = {"n": 0, "s": "a"}
    partial = {name: value for name, value in event.items() if name not in missing}
    assert matches(condition, partial, semantics="default", defaults=defaults) == matches(
        condition, {**defaults, **partial}, semantics="simple"
    )


@given(FILTERS, TOTAL_MESSAGES, st.sets(st.sampled_from(["n", "m", "s", "l"])))
def test_strict_semantics_is_adequacy_and_truth(condition: Filter, event: dict[str, Any], missing: set[str]) -> None:
    partial = {name: value for name, value in event.items() if name not in missing}
    adequate = not condition.attributes() & missing
    assert matches(condition, partial, semantics="strict") == (adequate and matches(condition, event))


MISSING = [
    (attr("a") == 5, set()),
    (attr("a") < 5, set()),
    (attr("a") != 5, {"simple", "default"}),
    (~(attr("a") == 5), {"simple", "default"}),
    (~attr("a").is_in([5]), {"simple", "default"}),
    (~attr("a").between(1, 5), {"simple", "default"}),
    (~attr("a").like("x%"), {"simple", "default"}),
    (attr("a").is_null(), {"sql", "simple", "default"}),
    (attr("a").exists(), set()),
    (attr("a").null_safe_equals(5), set()),
    (~attr("a").null_safe_equals(5), {"sql", "simple", "default"}),
    (attr("a").null_safe_equals(None), {"sql", "simple", "default"}),
    ((attr("a") == 5) | (attr("b") == 1), {"sql", "simple", "default"}),
    ((attr("a") != 5) & (attr("b") == 1), {"simple", "default"}),
    (Is(attr("a") == 5, None), {"sql"}),
    (Is(attr("a") == 5, False), {"simple", "default"}),
    (Not(Is(attr("a") == 5, True)), {"sql", "simple", "default"}),
    (attr("b") == 1, {"sql", "simple", "strict", "default"}),
    (UNKNOWN, set()),
    (Not(UNKNOWN), {"simple", "strict", "default"}),
    (TRUE, {"sql", "simple", "strict", "default"}),
]


@pytest.mark.parametrize("case", MISSING, ids=range(len(MISSING)))
@pytest.mark.parametrize("event", [{"b": 1}, {"b": 1, "a": None}, {"b": 1, "a": {"c": 5}}])
def test_what_a_missing_attribute_means(case: tuple[Filter, set[str]], event: dict[str, Any]) -> None:
    condition, wanted = case
    assert matching_semantics(condition, event) == wanted


@pytest.mark.parametrize(
    ("condition", "event", "wanted"),
    [
        (attr("a") == 5, {"a": "5"}, None),
        (attr("a") < 5, {"a": True}, None),
        (attr("a") == 1, {"a": [1]}, None),
        (attr("a").like("%"), {"a": 5}, None),
        (attr("a").null_safe_equals(5), {"a": "5"}, False),
        (attr("a").has(5), {"a": 5}, None),
        (attr("a").is_null(), {"a": "5"}, False),
    ],
)
def test_a_value_of_another_kind_counts_as_missing_for_that_test(
    condition: Filter, event: dict[str, Any], wanted: bool | None
) -> None:
    assert three_valued(condition, event) is wanted


DAY = datetime(2024, 1, 1, tzinfo=UTC)
BERLIN = timezone(timedelta(hours=1))
OPERATORS = [
    (attr("a").exists(), {"a": 0}, True),
    (attr("a").exists(), {"a": ""}, True),
    (attr("a").exists(), {"a": []}, True),
    (attr("a") == 5, {"a": 5.0}, True),
    (attr("a") == 2**53 + 1, {"a": float(2**53)}, False),
    (attr("a") > 2**53, {"a": 2**53 + 1}, True),
    (attr("a") == math.nan, {"a": math.nan}, True),
    (attr("a") > math.inf, {"a": math.nan}, True),
    (attr("a") == 0.0, {"a": -0.0}, True),
    (attr("a") < math.inf, {"a": 10**400}, True),
    (attr("a") == DAY, {"a": datetime(2024, 1, 1, 1, tzinfo=BERLIN)}, True),
    (attr("a") == DAY, {"a": datetime(2024, 1, 1)}, True),
    (attr("a") < "b", {"a": "a\U0001f600"}, True),
    (attr("a") > "\uffff", {"a": "\U00010000"}, True),
    (attr("a").between(1, 3), {"a": 1}, True),
    (attr("a").between(1, 3), {"a": 3}, True),
    (attr("a").between(3, 1), {"a": 2}, False),
    (attr("a").between(None, 3), {"a": 4}, False),
    (attr("a").between(None, 3), {"a": 3}, None),
    (~attr("a").between(1, 3), {"a": 4}, True),
    (attr("a").is_in([1, 2]), {"a": 2.0}, True),
    (attr("a").is_in([1, None]), {"a": 1}, True),
    (attr("a").is_in([1, None]), {"a": 2}, None),
    (~attr("a").is_in([1, 2]), {"a": 3}, True),
    (~attr("a").is_in([1, None]), {"a": 3}, None),
    (attr("a").like("a_c%"), {"a": "abcd"}, True),
    (attr("a").like("a_c"), {"a": "a\nc"}, True),
    (attr("a").like("_"), {"a": "\U0001f600"}, True),
    (attr("a").like("%\\%"), {"a": "100%"}, True),
    (attr("a").like("%!%", "!"), {"a": "100"}, False),
    (attr("a").like("A%"), {"a": "abc"}, False),
    (attr("a").rlike("b+"), {"a": "abbc"}, True),
    (attr("a").rlike("^b"), {"a": "abbc"}, False),
    (attr("a").startswith("ab"), {"a": "abc"}, True),
    (attr("a").endswith("bc"), {"a": "abc"}, True),
    (attr("a").contains(""), {"a": ""}, True),
    (attr("a").contains("bc"), {"a": "abcd"}, True),
    (attr("a").substring_of("abcd"), {"a": "bc"}, True),
    (attr("a").substring_of("bc"), {"a": "abcd"}, False),
    (attr("a").has(1), {"a": [1.0, 2]}, True),
    (attr("a").has(1), {"a": [2, None]}, None),
    (attr("a").has(1), {"a": ["1"]}, False),
    (attr("a").has(1), {"a": []}, False),
    (attr("at.x").between(0, 10) & attr("at.y").between(0, 5), {"at": {"x": 10, "y": 0}}, True),
    (attr("at.x").between(0, 10) & attr("at.y").between(0, 5), {"at": {"x": 10, "y": 5.1}}, False),
]


@pytest.mark.parametrize("case", OPERATORS, ids=range(len(OPERATORS)))
def test_operators(case: tuple[Filter, dict[str, Any], bool | None]) -> None:
    condition, event, wanted = case
    assert three_valued(condition, event) is wanted
    assert matches(condition, event) is (wanted is True)


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"a": {"b": {"c": 1}}}, 1),
        ({"a.b.c": 1, "a": {"b": {"c": 2}}}, 1),
        ({"a": {"b.c": 1, "b": {"c": 2}}}, 1),
        ({"a.b": {"c": 1}}, 1),
        ({"a": {"b": None}, "a.b": {"c": 1}}, 1),
        ({"a.b.c": None, "a": {"b": {"c": 2}}}, 2),
        ({"a.b.c": {}, "a": {"b": {"c": 2}}}, 2),
        ({"a": 1}, None),
        ({"a": {"b": 1}}, None),
        ({}, None),
    ],
)
def test_dotted_names_reach_into_records_and_literal_keys_win(event: dict[str, Any], wanted: int | None) -> None:
    assert attribute_value(event, "a.b.c") == wanted


def test_unknown_semantics_are_refused_with_the_list() -> None:
    with pytest.raises(CoveyError, match="sql, simple, strict, default"):
        check_semantics("lazy")
    with pytest.raises(CoveyError, match="not known"):
        matches(TRUE, {}, semantics="lazy")  # type: ignore[arg-type]
