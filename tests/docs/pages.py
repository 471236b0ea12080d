"""The pages, and their fenced blocks. A block's first line says what becomes of it:

    ```python                     run, in one process a page, from top to bottom
    ```sh                         run line by line, in one shell a page
    ```console                    the same after `$ `; the lines below a command are what it must print
    ```text                       shown, not run
    ```toml title="a.toml"        a file for the blocks below; read by what reads such a file (also json, jsonl, csv, …)
    ```sql                        a filter

What readers needn't know stands in a comment on the line above a block, which no reader is shown:

    <!-- prints -->               the text below is what the Python block above must print
    <!-- not run: why -->         only the syntax is checked; `test_pages.py` lists all of these

In what is printed, `...` stands for anything on its line, and alone on a line for any lines.
"""

from __future__ import annotations

import re
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN: Final = "not run: "
PRINTS: Final = "prints"

_NOTE: Final = re.compile(r"^<!-- (?!(drawn|made) (from|until) )(?P<note>.+) -->$")
"""A comment about the block below it, unlike those around what `tools/docs` makes."""
_FENCE: Final = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?$')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is that of its first line, from 1, and `note` the comment above it."""

    page: str
    line: int
    language: str
    title: str
    note: str
    text: str

    @property
    def is_run(self) -> bool:
        return not self.note.startswith(NOT_RUN)

    @property
    def file_name(self) -> str | None:
        """The file that the block is, if its title names one."""
        return self.title if re.fullmatch(r"[\w-]+(\.[\w-]+)+", self.title) else None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, from top to bottom."""
    found: list[Block] = []
    start: tuple[int, str, str, str] | None = None
    inside: list[str] = []
    note = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if start is not None:
            if line == "```":
                found.append(Block(page.name, *start, "".join(f"{one}\n" for one in inside)))
                start, inside = None, []
            else:
                inside.append(line)
            continue
        if not line.lstrip().startswith("```"):
            assert not note, f"{page.name}:{number}: a block must follow <!-- {note} -->"
            comment = _NOTE.match(line)
            note = comment["note"] if comment is not None else ""
            continue
        fence = _FENCE.match(line)
        assert fence is not None, f'{page.name}:{number}: write ```language or ```language title="…", not {line!r}'
        start, note = (number + 1, fence["language"], fence["title"] or "", note), ""
    assert start is None, f"{page.name}: the block at line {start[0]} has no end"
    return found


def unit_of(block: Block) -> ConfigParser:
    """A block that is a unit of systemd, which reads a line that ends in a backslash and the next as one."""
    unit = ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(re.sub(r"\\\n\s*", " ", block.text))
    return unit
