"""An index takes filters of every dialect, keeps them as SQL, and says of each bad row what is wrong."""

import pytest

import covey
from covey.errors import FilterError, LimitError
from covey.limits import Limits
from covey.matching import AddManyError

CHEAP = '{"attribute": "price", "<": 10}'
DEAR = '{"attribute": "price", ">": 100}'


def test_a_filter_of_another_dialect_is_kept_as_sql() -> None:
    index = covey.Index()
    index.add("cheap", CHEAP, dialect="json")
    index.add("dear", "price > 100")
    assert index.text("cheap") == "price < 10"
    assert index.match({"price": 5}) == ["cheap"]
    index.replace("cheap", DEAR, dialect="json")
    assert sorted(index.match({"price": 500})) == ["cheap", "dear"]


def test_an_index_has_a_dialect_of_its_own() -> None:
    index = covey.Index(dialect="json")
    index.add("cheap", CHEAP)
    assert index.add_many([("dear", DEAR), ("built", covey.attr("price") == 7)]).added == 2
    index.add("plain", "price = 7", dialect="sql")
    assert sorted(index.match({"price": 7})) == ["built", "cheap", "plain"]


@pytest.mark.parametrize("count", [1, 40])
def test_bad_rows_of_another_dialect_are_all_found(count: int) -> None:
    rows = [(f"good {number}", CHEAP) for number in range(count)]
    rows.insert(1, ("bad", "{"))
    index = covey.Index()
    with pytest.raises(AddManyError) as error:
        index.add_many(rows, dialect="json")
    assert [(bad.row, bad.id) for bad in error.value.errors] == [(1, "bad")]
    assert len(index) == 0
    report = index.add_many(rows, dialect="json", on_error="collect")
    assert report.added == count
    assert "not JSON" in str(report.errors[0].error)


def test_what_prints_larger_than_the_limit_is_refused_at_once() -> None:
    index = covey.Index(limits=Limits(text_length=64))
    with pytest.raises(LimitError, match="as SQL"):
        index.add("long", '{"attribute":"a","=":"' + "'" * 40 + '"}', dialect="json")


def test_an_unknown_dialect_is_named_with_those_that_there_are() -> None:
    for use in (
        lambda: covey.Index(dialect="latin"),
        lambda: covey.Index().add("a", "b", dialect="latin"),
        lambda: covey.Index().add_many([], dialect="latin"),
    ):
        with pytest.raises(FilterError, match=r"'latin' is not known; use one of sql, json"):
            use()
