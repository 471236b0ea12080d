"""Verdicts follow from checks with bounds, compared in whole parts, over settings."""

from __future__ import annotations

import json

import pytest

from covey.lab.verdicts import Check, Setting, as_plain, because, from_plain, near, ours, ranges, true, word


def setting(name: str, *numbers: float | None) -> Setting:
    return Setting(name, tuple(Check(f"number {at}", "1", one, 0.9, 1.1, "") for at, one in enumerate(numbers)))


GOOD, BAD = setting("good", 1.0, 0.9), setting("bad", 1.0, 2.0)


def test_a_difference_that_only_rounding_makes_is_none() -> None:
    found = 0.9 - 0.75
    assert found > 0.15
    assert Check("bend", "0", found, None, 0.15).holds
    assert near("bend", 0.75, 0.9, 0.15).holds
    assert not near("bend", 0.75, 0.9001, 0.15).holds


@pytest.mark.parametrize(
    ("low", "high", "held"),
    [(None, None, True), (0.5, None, True), (0.51, None, False), (None, 0.5, True), (None, 0.49, False)],
)
def test_bounds_are_included(low: float | None, high: float | None, held: bool) -> None:
    assert Check("share", "a half", 0.5, low, high).holds is held


def test_what_was_not_to_be_had_fails() -> None:
    assert not Check("crossing", "43%", None).holds
    assert Check("crossing", "43%", None).found() == "crossing nowhere"


def test_the_word_follows_from_all_settings() -> None:
    assert word((GOOD, setting("too", 1.1)), True) == "holds"
    assert word((GOOD, BAD), True) == "holds in this range"
    assert word((BAD, GOOD), True) == "holds in this range"
    assert word((BAD,), True) == "does not hold"
    assert word((GOOD,), False) == "can't tell"
    assert word((), True) == "can't tell"


def test_a_verdict_says_what_it_rests_on() -> None:
    assert because((BAD,), True) == "number 1 2, where 0.90 to 1.10 would count"
    assert because((BAD, GOOD), True) == "with good; not with bad"
    assert because((GOOD,), True) == ""
    unordered = Setting("one", (true("network least", False),))
    assert because((unordered,), True) == "not: network least"


def test_numbers_are_one_line_and_so_is_their_range() -> None:
    shares = [Setting(str(at), (Check("saved", "53%", at / 10), true("ordered", at > 1))) for at in (1, 2, 3)]
    assert ours(shares) == "saved 10%; not: ordered"
    assert ranges(shares) == "saved 10% to 30%; ordered in 2 of 3"
    assert ranges(shares[:1]) == ""


def test_a_setting_may_lack_a_number_of_the_first() -> None:
    assert ranges((setting("all", 1.0, 2.0), setting("one", 0.5))) == "number 0 0.50 to 1; number 1 2 to 2"


def test_settings_survive_json() -> None:
    both = (GOOD, BAD)
    assert from_plain(json.loads(json.dumps(as_plain(both)))) == both
