"""`covey explain`, `covey index`, the demo's market and `covey --version`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import covey as library
from covey.cli import main
from covey.cli.stocks import market, quotes, wishes
from tests.cli.conftest import MATCHES, Outcome, lines

Run = Callable[..., Outcome]
EVENT = '{"price": 5, "company": "Dell"}'


def test_explain_tells_which_tests_hold(covey: Run) -> None:
    done = covey("explain", "price < 10 AND company = 'IBM'", EVENT)
    assert done.code == 0
    assert "does not match" in done.out
    assert "price < 10" in done.out
    assert "company = 'IBM'" in done.out


def test_options_may_stand_anywhere_in_explain(covey: Run) -> None:
    assert '"matched": false' in covey("explain", "NOT x = 1", "--json", "{}").out
    assert '"matched": true' in covey("explain", "--json", "NOT x = 1", "--semantics", "simple", "{}").out


def test_explain_finds_a_subscription_in_a_file(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    index = tmp_path / "s.covey"
    assert covey("index", "build", subscriptions, "-o", index).code == 0
    for file in (subscriptions, index):
        found = covey("explain", "--subscriptions", file, "--id", "cheap", "--json", EVENT)
        assert json.loads(found.out)["matched"] is True
        assert "'ghost'" in covey("explain", "--subscriptions", file, "--id", "ghost", EVENT).err


def test_explain_reads_the_event_from_standard_input(covey: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(EVENT.encode())
    assert covey("explain", "price = 5", "-", "--json").rows[0]["matched"] is True


def test_explain_puts_a_caret_under_a_mistake(covey: Run) -> None:
    done = covey("explain", "price => 5", EVENT)
    assert done.code == 1
    assert done.err == "covey: => is not an operator; did you mean >=?\n  price => 5\n        ^\n"


@pytest.mark.parametrize(
    "arguments",
    [["price = 5"], ["price = 5", "[]"], ["price = 5", ""], ["--id", "x", EVENT], ["--subscriptions", "x", EVENT]],
)
def test_explain_says_what_it_lacks(covey: Run, arguments: list[str]) -> None:
    done = covey("explain", *arguments)
    assert (done.code, done.err.count("\n")) == (1, 1)


def test_a_saved_index_matches_as_its_subscriptions_do(
    covey: Run, subscriptions: Path, events: Path, tmp_path: Path
) -> None:
    index = tmp_path / "s.covey"
    done = covey("index", "build", subscriptions, "-o", index)
    assert f"{index}: 4 subscriptions in" in done.out
    assert covey("match", index, events).rows == MATCHES
    assert covey("match", index, events, "--semantics", "simple").code == 1
    assert covey("index", "stats", index, "--json").rows[0]["subscriptions"] == 4
    assert covey("index", "stats", index).out.split()[:2] == ["subscriptions", "4"]


def test_an_index_keeps_its_semantics_and_schema(covey: Run, events: Path, tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", [{"id": "s", "filter": "NOT price > 100"}])
    assert covey("index", "build", path, "-o", tmp_path / "s.covey", "--semantics", "simple").code == 0
    assert [row["event"] for row in covey("match", tmp_path / "s.covey", events).rows] == [0, 2, 3]


def test_build_reports_bad_rows_and_saves_all_or_what_is_good(covey: Run, tmp_path: Path) -> None:
    path, index = lines(tmp_path / "s.jsonl", [{"id": "a", "filter": "x = 1"}, {"id": "b"}]), tmp_path / "s.covey"
    assert covey("index", "build", path, "-o", index).code == 1
    assert not index.exists()
    done = covey("index", "build", path, "-o", index, "--on-error", "skip")
    assert "1 subscriptions in" in done.out
    assert done.err.splitlines()[-1] == "covey: left out 1 subscription"
    assert len(library.Index.open(index)) == 1


def test_build_refuses_names_that_match_would_not_know(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    assert "ends in .covey" in covey("index", "build", subscriptions, "-o", tmp_path / "s.idx").err


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"covey {library.__version__}\n"


def test_the_demos_market_is_decided_by_its_seed_and_matches_as_defined() -> None:
    stocks = market(3)
    assert wishes(stocks, 50, 3) == wishes(market(3), 50, 3) != wishes(market(4), 50, 4)
    texts, stream = wishes(stocks, 300, 3), quotes(stocks, 200, 3)
    index = library.Index()
    index.add_many(texts)
    expected = [[name for name, text in texts if library.parse(text).matches(event)] for event in stream.to_pylist()]
    assert index.match_batch(stream).lists().to_pylist() == expected
    assert any(expected)
