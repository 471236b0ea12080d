"""Parts of the page that commands of their own measure: each kept as Markdown, put behind the engines' tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "sections"
PAGE = ROOT / "docs" / "benchmarks.md"
ORDER = (
    "sigma",
    "bytes",
    "spark",
    "kafka",
    "cluster",
    "history",
    "covering",
    "merging",
    "subsumption",
    "pruning",
    "compaction",
    "strategies",
    "broker",
)


def write(name: str, title: str, command: list[str], text: str) -> None:
    """Keep a section and put it into the page."""
    KEPT.mkdir(exist_ok=True)
    shown = " ".join(command)
    (KEPT / f"{name}.md").write_text(f"## {title}\n\nMade by `{shown}`.\n\n{text.strip()}\n")
    from benchmarks import report

    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    report.render(results, PAGE)


def kept() -> list[str]:
    """The sections that were measured, in the page's order."""
    paths = [KEPT / f"{name}.md" for name in ORDER]
    return [re.sub(r"\n+\Z", "\n", path.read_text()) for path in paths if path.exists()]
