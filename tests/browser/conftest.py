"""One server and one browser for all browser tests; every test must leave both clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from tests.browser.person import CHROMIUM, FLAGS, Person, Site, fresh

Tab = Callable[..., Person]
USUAL: dict[str, object] = {"locale": "en-US", "viewport": {"width": 1280, "height": 860}}
# Other tests run beside these, on two cores: what is slow then is no fault of the page.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium (apt-get install chromium-headless-shell fonts-nanum)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The page over the scripted engine."""
    running = Site(tmp_path_factory.mktemp("site"))
    yield running
    running.close()


class Pool:
    """Browser windows that are used again: a fresh one reads all scripts of the page anew.

    Notes what a window did wrong: errors on its pages, and hosts that it asked.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._made: dict[str, list[BrowserContext]] = {}
        self._lent: list[BrowserContext] = []
        self._kept: Page | None = None
        self.errors: list[str] = []
        self.hosts: set[str] = set()

    def lend(self, **options: object) -> BrowserContext:
        """A window that nobody else has; two of them are as two browsers."""
        options = {**USUAL, **options}
        same = self._made.setdefault(repr(sorted(options.items())), [])
        window = next((w for w in same if w not in self._lent), None)
        if window is None:
            window = self._open(options)
            same.append(window)
        window.set_default_timeout(20_000)
        self._lent.append(window)
        return window

    def tab(self, url: str) -> Person:
        """A tab in English on a desktop with a new chat: the one of the test before, if it can be
        made as new, since opening the page takes longer than most tests."""
        if self._kept is not None:
            try:
                return fresh(Person(self._kept), url)
            except (Error, AssertionError):
                self._kept.context.close()
        window = self._open(USUAL)
        window.set_default_timeout(20_000)
        self._kept = window.new_page()
        return Person(self._kept).open(url)

    def take_back(self) -> None:
        """Let no window keep anything of the test."""
        for window in self._lent:
            for page in window.pages:
                if page.url.startswith("http"):
                    page.evaluate("localStorage.clear()")
                page.close()
            window.clear_cookies()
            window.clear_permissions()
        self._lent.clear()
        self.errors.clear()
        self.hosts.clear()

    def _open(self, options: dict[str, object]) -> BrowserContext:
        made = self._browser.new_context(**options)  # type: ignore[arg-type]
        made.on("weberror", lambda error: self.errors.append(str(error.error)))
        made.on("request", lambda request: self._asked(request.url))
        return made

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss"):
            self.hosts.add(parts.hostname or "")


@pytest.fixture(scope="package")
def pool(browser: Browser) -> Pool:
    return Pool(browser)


@pytest.fixture
def windows(pool: Pool) -> Iterator[Callable[..., BrowserContext]]:
    """Opens browser windows; afterwards none may have met an error or left the machine."""
    yield pool.lend
    errors, hosts = list(pool.errors), set(pool.hosts)
    pool.take_back()
    assert errors == []
    assert hosts <= {"127.0.0.1"}


@pytest.fixture
def tab(windows: Callable[..., BrowserContext], pool: Pool, site: Site) -> Person:
    """One tab with a new chat, in English, on a desktop."""
    return pool.tab(site.url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For a server of a test's own."""
    return tmp_path / "own"
