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
