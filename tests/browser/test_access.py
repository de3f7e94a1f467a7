"""Whether everybody can use the page: axe-core's rules, and the keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from chatbot.users import add_user
from tests.browser.long_chat import long_chat
from tests.browser.person import Person, Site, until
from tests.browser.test_memory_page import show
from tests.conftest import ROOT

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]
AXE = ROOT / ".venv" / "axe" / "axe.min.js"
# Without fetching files once more, which no rule needs that is on and may find something serious.
RUN = """place => axe.run(place || document, {resultTypes: ['violations'], preload: false})
.then(found => found.violations.filter(v => ['serious', 'critical'].includes(v.impact))
.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 160) + ' | ' + n.failureSummary)]))"""

STILL = """() => document.getAnimations().every(
a => a.playState !== 'running' || a.effect.getTiming().iterations === Infinity)"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core."""
    if not AXE.exists():
        pytest.skip("needs axe-core (scripts/axe.sh fetches it with npm)")
    return AXE.read_text("utf-8")


def faults(page: Page, axe: str, place: str = "") -> list[Any]:
    """What is serious or worse on the page as it is, or in a part of it."""
    page.wait_for_function(STILL)
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found: list[Any] = page.evaluate(RUN, place)
    return found


@pytest.mark.parametrize(("locale", "scheme"), [("en-US", "light"), ("ko-KR", "dark")])
def test_axe_finds_nothing_serious(
    windows: Windows, site: Site, axe: str, locale: str, scheme: Literal["light", "dark"]
) -> None:
    chat = long_chat(site, f"axe{scheme}", 9)
    page = windows(locale=locale).new_page()
    # By the page, since a window of its own would read all scripts anew.
    page.emulate_media(color_scheme=scheme)
    tab = Person(page).open(site.url)
    is_dark = tab.page.evaluate("document.body.classList.contains('dark')")
    assert is_dark is (scheme == "dark")
    assert faults(tab.page, axe) == []
    tab.open(f"{site.url}?c={chat}")
    expect(tab.feet).to_have_count(9)
    tab.ask("script:code")
    tab.page.locator("#chat .trace > summary").last.click()
    expect(tab.page.locator("#chat .piece").first).to_be_visible()
    for name in ("prompt", "memory", "machine", "settings"):
        show(tab, name)
        # Nothing but the panel is another one then.
        assert faults(tab.page, axe, "" if name == "prompt" else "#panel") == [], name
    tab.feet.last.locator("[data-act=edit]").click()
    expect(tab.page.locator("dialog textarea")).to_be_focused()
    assert faults(tab.page, axe) == []


def test_the_keyboard_alone_is_enough(tab: Person) -> None:
    page = tab.page
    tab.ask("one")
    page.keyboard.press("Shift+Escape")
    expect(tab.box).to_be_focused()
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.dataset.act || document.activeElement.id"))
    wanted = {"new", "search", "pick", "language", "keys", "copy", "retry", "edit", "forget", "tab"}
    assert wanted <= seen
    page.locator("#panel-tabs [data-tab=prompt]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#facts")).to_be_visible()
    expect(page.locator("#panel-tabs [data-tab=memory]")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def log_in(page: Page, name: str, password: str) -> None:
    page.locator("[name=name]").fill(name)
    page.locator("[name=password]").fill(password)
    page.locator("button").click()
    expect(page.locator("#language")).to_have_count(1)


def keep_a_draft_over_a_login(anna: Person, users: Path) -> None:
    """Her password is changed while she writes."""
    expect(anna.send_button).to_be_visible()
    anna.box.fill("half a thought")
    add_user(users, "anna", "another password")
    # The draft may have been counted by now, and the dialog then lies over the tabs already.
    anna.page.locator("#panel-tabs [data-tab=machine]").dispatch_event("click")
    expect(anna.page.locator("dialog")).to_contain_text("Please log in again")
    anna.page.locator("dialog [data-confirm]").click()
    log_in(anna.page, "anna", "another password")
    expect(anna.box).to_have_value("half a thought")
    expect(anna.questions).to_have_count(2)
    expect(anna.toasts).to_have_count(0)


def test_two_people_log_in_and_see_only_their_own(windows: Windows, folder: Path) -> None:
    for name in ("anna", "bora"):
        add_user(folder / "users.txt", name, "a long password")
    own = Site(folder, auth=folder / "users.txt")
    try:
        tabs = {}
        for name in ("anna", "bora"):
            page = windows(locale="ko-KR" if name == "bora" else "en-US").new_page()
            page.goto(own.url)
            page.locator("[name=name]").fill(name)
            page.locator("[name=password]").fill("a wrong one")
            page.locator("button").click()
            expect(page.locator("[role=alert]")).to_be_visible()
            log_in(page, name, "a long password")
            tabs[name] = Person(page)
        tabs["anna"].ask("The key lies under the stone script:plain")
        expect(tabs["bora"].chats).to_have_count(0)
        tabs["bora"].page.goto(tabs["anna"].page.url)
        expect(tabs["bora"].toasts).to_be_visible()
        shown = "getComputedStyle(document.querySelector('.toast-title'), '::before').content"
        until(lambda: tabs["bora"].page.evaluate(shown) == '"알림"', "the note says so in Korean")
        expect(tabs["bora"].page.locator("body")).not_to_contain_text("under the stone")
        tabs["anna"].write("more script:slow")
        expect(tabs["anna"].last_reply()).to_contain_text("word1")
        tabs["bora"].write("mine script:plain")
        expect(tabs["bora"].page.locator(".pending")).to_contain_text("1개")
        tabs["anna"].page.keyboard.press("Escape")
        expect(tabs["bora"].feet).to_have_count(1)
        keep_a_draft_over_a_login(tabs["anna"], folder / "users.txt")
        tabs["bora"].page.locator("#side-foot form button").click()
        expect(tabs["bora"].page.locator("[name=password]")).to_be_visible()
    finally:
        own.close()
