"""`covey match RULES events.xml`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from covey.cli.run import main


def test_xml_files_are_matched_and_what_is_not_simple_is_left_out_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, events = tmp_path / "rules.jsonl", tmp_path / "events.xml"
    rules.write_text('{"id": "dear", "filter": "price > 100 AND by.name = \'Ann\'"}\n')
    events.write_text(
        "<sale><price>500</price><by><name>Ann</name></by></sale>\n"
        "<!DOCTYPE a><price>500</price>\n"
        "<price>600</price><by><name>Ann</name></by>\n"
    )
    assert main(["match", str(rules), str(events), "--on-error", "skip"]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["event"] for line in told.out.splitlines()] == [0, 2]
    assert "events.xml line 2: a DOCTYPE is not accepted in an event" in told.err


def test_rules_are_not_written_in_xml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.xml"
    rules.write_text("<id>a</id>")
    assert main(["match", str(rules), str(rules)]) != 0
    assert "can't tell its format from its name" in capsys.readouterr().err


def test_the_other_commands_take_xml_as_events_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, events, lines = tmp_path / "rules.jsonl", tmp_path / "events.xml", tmp_path / "events.txt"
    texts = {"dear": "price > 100", "nowhere": "prise = 5"}
    rules.write_text("".join(json.dumps({"id": id, "filter": text}) + "\n" for id, text in texts.items()))
    events.write_text("<sale><price>500</price><at>here</at></sale>\n" * 12)
    lines.write_text("<sale><price>1.5</price></sale>\n")

    def told(*arguments: object) -> str:
        capsys.readouterr()
        assert main([str(one) for one in arguments]) == 0
        return capsys.readouterr().out

    assert "no event has prise; did you mean price?" in told("check", rules, events)
    assert json.loads(told("report", rules, events, "--json"))["fired"][0] == {"rule": "dear", "events": 12}
    assert json.loads(told("schema", events)) == {"price": "int", "at": "string"}
    assert json.loads(told("schema", lines, "--format", "xml")) == {"price": "double"}
    out = tmp_path / "smaller.jsonl"
    told("compact", rules, "-o", out, "--events", lines, "--events-format", "xml", "--imt", "0.5")
    assert out.exists()
