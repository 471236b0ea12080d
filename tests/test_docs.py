"""What the README and the pages of docs/ show in Python runs as it stands; so do the examples."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a page, with the lines at which they start."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start(1)), found[1])
        for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


_RUNNER = """
import json, sys
namespace = {"__name__": "__main__"}
for line, block in json.load(sys.stdin):
    exec(compile("\\n" * line + block, sys.argv[1], "exec"), namespace)
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    """In a process of its own, as a reader would: Spark reads relative paths where its JVM was started."""
    found = blocks(page)
    if not found:
        return
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER, page.name],
        cwd=tmp_path, input=json.dumps(found), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_readme_shows_python() -> None:
    assert blocks(ROOT / "README.md")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("example", ["stock_quotes.py", "meta_auctions.py"])
@pytest.mark.xdist_group("the ports of the examples' brokers")
def test_an_example_of_the_network_runs(example: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / "network" / "brokers.py"), example]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "listens on" in done.stdout
