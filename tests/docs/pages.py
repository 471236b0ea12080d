"""The pages, and their fenced blocks. A block's first line says what becomes of it:

    ```python                     run, in one process a page, from top to bottom
    ```sh                         run line by line, in one shell a page
    ```console                    the same after `$ `; the lines below a command are what it must print
    ```text                       shown, not run
    ```text title="prints"        what the Python block above must print
    ```toml title="a.toml"        a file for the blocks below; read by what reads such a file (also json, jsonl, csv, …)
    ```sql                        a filter
    ```sh title="not run: why"    only its syntax is checked; `test_pages.py` lists all of these

In what is printed, `...` stands for anything on its line, and alone on a line for any lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN: Final = "not run: "
PRINTS: Final = "prints"

_FENCE: Final = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?$')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is that of its first line, from 1."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def is_run(self) -> bool:
        return not self.title.startswith(NOT_RUN)

    @property
    def file_name(self) -> str | None:
        """The file that the block is, if its title names one."""
        return self.title if re.fullmatch(r"[\w-]+(\.[\w-]+)+", self.title) else None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, from top to bottom."""
    found: list[Block] = []
    start: tuple[int, str, str] | None = None
    inside: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if start is not None:
            if line == "```":
                found.append(Block(page.name, *start, "".join(f"{one}\n" for one in inside)))
                start, inside = None, []
            else:
                inside.append(line)
            continue
        if not line.lstrip().startswith("```"):
            continue
        fence = _FENCE.match(line)
        assert fence is not None, f'{page.name}:{number}: write ```language or ```language title="…", not {line!r}'
        start = number + 1, fence["language"], fence["title"] or ""
    assert start is None, f"{page.name}: the block at line {start[0]} has no end"
    return found
