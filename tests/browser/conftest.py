"""One server and one browser for all browser tests; every test must leave both clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.person import CHROMIUM, FLAGS, Person, Site, person

Tab = Callable[..., Person]
# Other tests run beside these, on two cores: what is slow then is no fault of the page.
expect.set_options(timeout=15_000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium at {CHROMIUM} (apt-get install chromium fonts-nanum)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=str(CHROMIUM), headless=True, args=FLAGS
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The page over the scripted engine."""
    running = Site(tmp_path_factory.mktemp("site"))
    yield running
    running.close()


class Watch:
    """What a browser window did wrong: errors on its pages, and hosts that it asked."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.hosts: set[str] = set()

    def context(self, browser: Browser, **options: object) -> BrowserContext:
        settings = {"locale": "en-US", "viewport": {"width": 1280, "height": 860}, **options}
        made = browser.new_context(**settings)  # type: ignore[arg-type]
        made.set_default_timeout(10_000)
        made.on("weberror", lambda error: self.errors.append(str(error.error)))
        made.on("request", lambda request: self._asked(request.url))
        return made

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss"):
            self.hosts.add(parts.hostname or "")


@pytest.fixture
def windows(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Opens browser windows; afterwards none may have met an error or left the machine."""
    watch = Watch()
    opened: list[BrowserContext] = []

    def window(**options: object) -> BrowserContext:
        opened.append(watch.context(browser, **options))
        return opened[-1]

    yield window
    for context in opened:
        context.close()
    assert watch.errors == []
    assert watch.hosts <= {"127.0.0.1"}


@pytest.fixture
def tab(windows: Callable[..., BrowserContext], site: Site) -> Person:
    """One tab with a new chat, in English, on a desktop."""
    return person(windows(), site.url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For a server of a test's own."""
    return tmp_path / "own"
