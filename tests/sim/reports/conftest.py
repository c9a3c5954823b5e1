"""A headless Chromium for tests of pages."""

from __future__ import annotations

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def chromium():
    """The browser; the test is skipped where there is none."""
    path = next((found for found in map(shutil.which, NAMES) if found), None)
    if path is None:
        pytest.skip("no Chromium here (Debian and Ubuntu: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """A function that opens a file as a page of 1400 x 1000. Errors and requests of the page fail the test."""
    faults: list[str] = []
    pages = []

    def opened(path, **options):
        page = chromium.new_page(viewport={"width": 1400, "height": 1000}, **options)
        page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: request.url == path.as_uri() or faults.append(f"request of {request.url}"))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert faults == []
