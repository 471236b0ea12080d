"""What a report says about rules, and that what people look at in a notebook shows itself."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import covey
from covey.cli import main
from covey.relations.compaction import compact

RULES = {
    "cheap": "price < 10",
    "cheaper": "price < 5",
    "below ten": "NOT price >= 10",
    "never": "price < 1 AND price > 2",
    "always": "price IS NULL OR price IS NOT NULL",
    "misspelt": "prise < 5",
    "dear": "price > 1000",
}
EVENTS = [{"price": 1}, {"price": 7}, {"price": 50}]


def test_a_report_tells_all_that_is_odd() -> None:
    found = covey.report(RULES, EVENTS)
    assert found.contradictory == ["never"]
    assert found.always == ["always"]
    assert found.equal == [["cheap", "below ten"]]
    assert found.covered == {"cheaper": "cheap"}
    assert found.never_fired == ["never", "misspelt", "dear"]
    assert found.broadest == [("always", 3), ("cheap", 2), ("below ten", 2), ("cheaper", 1)]
    assert [one.message for one in found.cannot_fire] == ["no event has prise; did you mean price?"]
    assert "7 rules on 3 events" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["covered"] == [{"rule": "cheaper", "by": "cheap"}]


def test_without_events_rules_are_held_against_each_other() -> None:
    found = covey.report(pd.DataFrame({"id": list(RULES), "filter": list(RULES.values())}))
    assert (found.events, found.fired, found.cannot_fire) == (None, {}, [])
    assert found.covered == {"cheaper": "cheap"}
    assert covey.report(RULES, pd.DataFrame(EVENTS)).never_fired == ["never", "misspelt", "dear"]


def test_the_command_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, events, page = tmp_path / "rules.jsonl", tmp_path / "events.jsonl", tmp_path / "report.html"
    rules.write_text("".join(json.dumps({"id": id, "filter": text}) + "\n" for id, text in RULES.items()))
    events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    assert main(["report", str(rules), str(events), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == covey.report(RULES, EVENTS).to_dict()
    assert main(["report", str(rules), str(events)]) == 0
    assert capsys.readouterr().out.strip() == str(covey.report(RULES, EVENTS))
    assert main(["report", str(rules), str(events), "--html", str(page)]) == 0
    assert "did you mean price?" in page.read_text()


def test_compaction_tells_equal_covered_and_merged_apart() -> None:
    rules = {"a": "x < 10", "b": "x < 10.0", "c": "x < 5", "d": "x BETWEEN 10 AND 20", "e": "y = 1"}
    (merged, alone) = compact((id, covey.parse(text)) for id, text in rules.items()).entries
    assert dict(zip(merged.stands_for, merged.how, strict=True)) == {
        "a": "merged", "b": "equal", "c": "covered", "d": "merged",
    }  # fmt: skip
    assert (alone.stands_for, alone.how) == (("e",), ("itself",))


def test_a_notebook_shows_what_there_is() -> None:
    index = covey.Index()
    index.add_many({"<b>": "price < 10 AND name = '<i>'"})
    event = {"price": 5, "name": "<i>"}
    shown = [
        index,
        index.match_batch([event]),
        index.explain("<b>", event),
        index.filter("<b>"),
        covey.relate("price < 10", "price < 5"),
        covey.report(index, [event]),
    ]
    for one in shown:
        html = one._repr_html_()
        assert html.startswith("<")
        assert "<b>," not in html
        assert "<i>" not in html
    assert "&lt;b&gt;" in shown[0]._repr_html_()
    assert "&lt;b&gt;" in shown[1]._repr_html_()
