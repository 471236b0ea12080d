"""`covey spark profile`: what is saved is the profile of all rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import covey as library
from covey.history import Profile
from tests.cli.conftest import EVENTS, SUBSCRIPTIONS, Outcome, lines
from tests.spark.conftest import spark  # noqa: F401

pytestmark = pytest.mark.usefixtures("spark")

Run = Callable[..., Outcome]


def test_a_profile_is_saved_shown_and_merged(covey: Run, subscriptions: Path, events: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.profile"
    done = covey("spark", "profile", events, subscriptions, "-o", path)
    assert (done.code, done.err) == (0, "")
    saved = Profile.open(path)
    assert done.out == saved.summary() + "\n"
    assert saved.events is not None
    assert (saved.events.count, saved.subscriptions.count) == (len(EVENTS), len(SUBSCRIPTIONS))
    cheap = library.parse("price < 10")
    assert (
        saved.chances([cheap]).tolist()
        == Profile.of(EVENTS, [library.parse(text) for _, text in SUBSCRIPTIONS]).chances([cheap]).tolist()
    )

    more = lines(tmp_path / "more.jsonl", [{"price": 9, "colour": "red"}])
    done = covey("spark", "profile", more, "--merge", path, "-o", path)
    assert done.code == 0
    merged = Profile.open(path)
    assert merged.events is not None
    assert (merged.events.count, merged.subscriptions.count) == (len(EVENTS) + 1, len(SUBSCRIPTIONS))
    assert "colour: not in the previous profile" in done.err
    assert done.err.count("\n") == 1


def test_mistakes_are_one_line(covey: Run, subscriptions: Path, events: Path, tmp_path: Path) -> None:
    flawed = lines(tmp_path / "flawed.jsonl", [{"id": "a", "filter": "price =>"}])
    for arguments in (
        [events, flawed, "-o", tmp_path / "p"],
        [events, subscriptions, "-o", tmp_path / "no" / "p"],
        [events, subscriptions, "-o", tmp_path / "p", "--merge", tmp_path / "nope"],
        [tmp_path / "nope.csv", subscriptions, "-o", tmp_path / "p"],
        [events, subscriptions],
    ):
        done = covey("spark", "profile", *arguments)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert not (tmp_path / "p").exists()
