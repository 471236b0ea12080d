"""A browser, and pages that fail a test for whatever the browser complains about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.console import network

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE_MILLISECONDS = 20_000
"""A busy machine is no failure."""

Open = Callable[..., Page]


# Not for the session: while it is there a loop runs in this thread, and other tests run loops of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium; apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, network.Broker]]:
    with network.line(tmp_path_factory.mktemp("brokers")) as brokers:
        yield brokers


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures are put for people to look at."""
    path = Path(os.environ.get("COVEY_SCREENSHOTS", "build/screenshots"))
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens pages, and checks at the end that nothing went wrong in any of them."""
    complaints: list[str] = []
    contexts = []

    def open_one(address: str, *, phone: bool = False, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport=PHONE if phone else WIDE, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = context.new_page()
        host = urlsplit(address).netloc
        page.on("console", lambda message: complaints.append(f"console: {message.type} {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda one: urlsplit(one.url).netloc == host or complaints.append(f"elsewhere: {one.url}"))
        page.on("response", lambda one: one.status < 400 or complaints.append(f"{one.status}: {one.url}"))
        # A question that the page took back itself is no failure.
        page.on("requestfailed", lambda one: one.failure == "net::ERR_ABORTED" or complaints.append(f"no: {one.url}"))
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []
