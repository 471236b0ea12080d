"""The tables of a page."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

Row: TypeAlias = dict[str, str]


def tables(page: Path) -> list[list[Row]]:
    """All tables, each as its rows by the names of the columns."""
    found: list[list[Row]] = []
    names: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            names = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not names:
            names = cells
            found.append([])
        elif set(line) - set("|-: "):
            found[-1].append(dict(zip(names, cells, strict=True)))
    return [rows for rows in found if rows]
