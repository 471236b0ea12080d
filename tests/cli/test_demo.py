"""`covey demo` with the library alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from covey.errors import CoveyError
from tests.cli.conftest import Outcome

Run = Callable[..., Outcome]
SMALL = ("demo", "--traders", 2000, "--quotes", 3000)
PARTS = ("2,000 traders", "3,000 quotes", "subscriptions/s", "quotes/s", "matches:", "does not match:")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_library_alone_shows_matches_and_their_reasons(covey: Run, tmp_path: Path) -> None:
    done = covey(*SMALL, "--no-spark")
    assert (done.code, done.err) == (0, "")
    for part in PARTS:
        assert part in done.out
    assert "Spark" not in done.out
    assert list(tmp_path.iterdir()) == []


def test_without_pyspark_the_demo_says_what_to_install_and_goes_on(covey: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.cli.demo.spark_is_installed", lambda: False)
    done = covey(*SMALL)
    assert (done.code, done.err) == (0, "")
    assert "Without Spark: PySpark is not installed; run: pip install 'covey[spark]'" in done.out
    for part in PARTS:
        assert part in done.out


def test_without_java_the_demo_says_so_and_goes_on(covey: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise CoveyError("Spark needs Java")

    monkeypatch.setattr("covey.spark.session.find_java", none)
    done = covey(*SMALL)
    assert (done.code, done.err) == (0, "")
    assert "Without Spark: Spark needs Java" in done.out
    assert "quotes/s" in done.out


@pytest.mark.parametrize("option", ["--traders", "--quotes", "--seed"])
def test_numbers_of_the_demo_are_checked(covey: Run, option: str) -> None:
    done = covey("demo", option, "-1")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)


def test_a_page_that_cannot_be_written_is_an_error_before_any_work(covey: Run, tmp_path: Path) -> None:
    done = covey("demo", "-o", tmp_path / "no" / "page.html")
    assert (done.code, done.out) == (1, "")
    assert "the directory that it would be in doesn't exist" in done.err
