"""The pages build as a site, strictly, and it asks nothing of the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import PAGES, ROOT

EMBEDDED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="(?:https?:)?//[^"]*"[^>]*>')
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return target


def test_every_page_of_docs_is_in_the_site(site: Path) -> None:
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {path.stem for path in site.glob("*.html")}


def test_every_page_of_docs_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == set(re.findall(r"[\w-]+\.md", listed))


def test_a_reader_of_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        loaded = EMBEDDED.findall(page.read_text(encoding="utf-8"))
        assert not [tag for tag in loaded if 'rel="canonical"' not in tag], page.name


def test_nothing_that_only_the_tests_must_know_is_shown(site: Path) -> None:
    for page in site.glob("*.html"):
        shown = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        titles = re.findall(r'class="filename">([^<]*)<', shown)
        assert all(re.fullmatch(r"[\w-]+(\.[\w-]+)+", title) for title in titles), f"{page.name}: {titles}"
        assert "not run:" not in shown, page.name


def test_the_site_can_be_searched_without_a_server_elsewhere(site: Path) -> None:
    assert (site / "search" / "search_index.json").is_file()
    assert yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["theme"]["font"] is False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path = target.partition("#")[0]
        if path and "://" not in path:
            assert (page.parent / path).exists(), f"{page.name}: {target}"
