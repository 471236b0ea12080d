"""docs/design.md speaks of rooms and files that are there, and of all rooms."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "design.md"
SOURCE = ROOT / "src" / "covey"


def test_the_rooms_are_those_of_the_source() -> None:
    rooms = next(block.text for block in blocks(PAGE) if block.text.startswith("src/covey/"))
    listed = set(re.findall(r"^  (\w+)/ ", rooms, re.MULTILINE))
    assert listed == {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"`([\w/]+\.py)`", PAGE.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not any(SOURCE.rglob(name.rpartition("/")[2]))] == []
