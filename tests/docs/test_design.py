"""docs/design.md speaks of rooms and files that are there, and of all rooms."""

from __future__ import annotations

import re

from tools.docs import link_states

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
    there = {path.name for path in (*SOURCE.rglob("*.py"), *ROOT.glob("*.py"))}
    assert [name for name in named if name.rpartition("/")[2] not in there] == []


def test_the_states_of_a_link_are_drawn_from_their_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == link_states.page(), "run make docs"
