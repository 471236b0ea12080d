"""Code on the site's pages fits its column: a reader scrolls downwards only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.console.conftest import WIDE, browser  # noqa: F401
from tests.docs.pages import ROOT
from tests.docs.test_site import site  # noqa: F401

pytestmark = pytest.mark.xdist_group("site")

PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
TOO_WIDE = """() => [...document.querySelectorAll("article pre, article pre > code")]
    .filter(block => block.scrollWidth > block.clientWidth)
    .map(block => block.innerText.split("\\n").reduce((a, b) => a.length >= b.length ? a : b))"""
"""The longest lines of the blocks that don't fit."""


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that doesn't log."""

    def log_message(self, format: str, *given: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:  # noqa: F811
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", PAGES)
def test_code_fits_its_column(browser: Browser, address: str, name: str) -> None:  # noqa: F811
    page = browser.new_page(viewport=WIDE)
    try:
        page.goto(f"{address}/{name}.html")
        assert page.locator("article").count() == 1
        assert page.evaluate(TOO_WIDE) == []
    finally:
        page.close()
