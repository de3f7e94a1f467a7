"""Several tabs, closed tabs, a restarted server, and a model that loads or fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.engine.base import EngineInfo
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from tests.browser.person import Person, Site, person, script, until
from tests.conftest import ROOT

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]


# The page looks for a program that has ended every one and a half seconds; nobody waits for that.
IMPATIENT = """(() => {
  const usual = window.setTimeout;
  window.setTimeout = (run, ms, ...given) => usual(run, ms === 1500 ? 150 : ms, ...given);
})()"""


def impatient(context: BrowserContext, url: str) -> Person:
    """A new tab that looks again at once when the program has gone."""
    page = context.new_page()
    page.add_init_script(IMPATIENT)
    return Person(page).open(url)


@pytest.fixture(scope="module", autouse=True)
def to_be_killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A server as a process of its own, and its folder. Its interpreter imports the program while
    the first tests run."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.browser.scripted_server", str(folder), "0"]
    given = {**os.environ, "HOME": str(folder)}
    with subprocess.Popen(
        command, cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, folder
        finally:
            process.kill()


def test_two_tabs_keep_their_own_chat_and_wait_in_a_visible_line(
    windows: Windows, site: Site
) -> None:
    context = windows()
    first, second = person(context, site.url), person(context, site.url)
    first.write("first script:slow")
    expect(first.last_reply()).to_contain_text("word1")
    second.write("second")
    expect(second.page.locator(".pending")).to_contain_text("1 reply comes first")
    first.page.keyboard.press("Escape")
    expect(second.feet).to_have_count(1)
    expect(first.questions).to_have_text(["first script:slow"])
    expect(second.questions).to_have_text(["second"])
    assert first.conversation_id != second.conversation_id
    first.page.reload()
    expect(first.questions).to_have_text(["first script:slow"])


def test_a_reply_goes_on_while_another_chat_is_open_and_in_a_second_tab(
    windows: Windows, site: Site
) -> None:
    context = windows()
    tab = person(context, site.url)
    tab.write("script:slow")
    expect(tab.last_reply()).to_contain_text("word2")
    address = tab.page.url
    tab.new_chat()
    expect(tab.send_button).to_be_visible()
    expect(tab.page.locator("#conversations .running")).to_have_count(1)
    expect(tab.page.locator(".welcome")).to_be_visible()
    other = person(context, address)
    grown = other.last_reply().inner_text()
    until(lambda: len(other.last_reply().inner_text()) > len(grown), "the second tab follows")
    tab.page.locator("#conversations .item .t", has_text="script:slow").first.click()
    expect(tab.stop_button).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(tab.feet.last).to_contain_text("Stopped.")
    expect(other.feet.last).to_contain_text("Stopped.")


def test_a_long_reply_blocks_no_upload_stop_or_list_of_another_tab(
    windows: Windows, folder: Path
) -> None:
    """BC-79: everything but the reply itself has its own lane."""
    own = Site(folder)
    try:
        first, second = windows(), windows()
        tabs = [person(context, own.url) for context in (first, second, second)]
        tabs[0].write("first script:stall")
        expect(tabs[0].last_reply()).to_contain_text("word3")
        for number, tab in enumerate(tabs[1:], start=1):
            tab.upload((f"lamps {number}.md", b"The lamp of Carrick was built in 1898."))
            expect(tab.documents).to_have_count(number)
            tab.write(f"question {number} script:plain")
            waiting = "1 reply comes first" if number == 1 else "2 replies come first"
            expect(tab.page.locator("#chat .pending")).to_contain_text(waiting)
        tabs[2].page.keyboard.press("Escape")
        expect(tabs[2].send_button).to_be_visible()
        expect(tabs[2].feet.last).to_contain_text("Stopped.")
        tabs[0].page.keyboard.press("Escape")
        expect(tabs[1].feet).to_have_count(1)
        expect(tabs[1].last_reply()).to_have_text("A plain reply.")
    finally:
        own.close()


def test_many_tabs_of_one_browser_leave_each_other_their_connections(
    windows: Windows, site: Site
) -> None:
    """A browser opens six connections to a host at most, for all its tabs together."""
    context = windows()
    pages = [context.new_page() for _ in range(7)]
    for page in pages:
        page.goto(site.url, wait_until="commit")
    for page in pages:
        expect(page.locator("#language")).to_have_count(1)
    tabs = [Person(page) for page in pages[:4]]
    for tab in tabs:
        tab.write("script:stall")
    for tab in tabs:
        expect(tab.stop_button).to_be_visible()
        tab.stop_button.click()
        expect(tab.feet.last).to_contain_text("Stopped.")


@pytest.mark.parametrize("wish", ["slow", "stall"])
def test_closing_the_tab_stops_the_reply_and_keeps_it(
    windows: Windows, site: Site, wish: str
) -> None:
    tab = person(windows(), site.url)
    tab.write(f"script:{wish}")
    expect(tab.last_reply()).to_contain_text("word2")
    chat = tab.conversation_id
    tab.page.close()
    store = site.services.store
    until(lambda: store.load(chat).turns[0].finish == "cancelled", "the reply ends")
    assert "word2" in store.load(chat).turns[0].reply
    assert not site.services.chat.is_running(chat)


def test_a_server_killed_in_mid_reply_comes_back_with_the_question_and_retry(
    windows: Windows, to_be_killed: tuple[subprocess.Popen[str], Path]
) -> None:
    process, folder = to_be_killed
    assert process.stdout
    url = process.stdout.readline().strip()
    tab = impatient(windows(), url)
    tab.ask("Before script:plain")
    tab.write("Cut off script:slow")
    expect(tab.last_reply()).to_contain_text("word3")
    process.kill()
    process.wait()
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    own = Site(folder, port=port)
    try:
        # The page comes back by itself, in the same chat.
        expect(tab.feet.last).to_contain_text("The program ended", timeout=60_000)
        expect(tab.questions).to_have_text(["Before script:plain", "Cut off script:slow"])
        expect(tab.send_button).to_be_visible()
        tab.page.locator("[data-act=retry]").click()
        expect(tab.last_reply()).to_contain_text("word3")
        tab.page.keyboard.press("Escape")
        expect(tab.feet.last).to_contain_text("Stopped.")
        expect(tab.questions).to_have_count(2)
    finally:
        own.close()


def test_the_page_is_there_while_the_model_loads(windows: Windows, folder: Path) -> None:
    class DemoEngine(ScriptedEngine):
        @property
        def info(self) -> EngineInfo:
            return EngineInfo("small", 4096, is_demo=True)

    handles: list[LoadHandle] = []
    loading: list[LazyEngine] = []

    def load(handle: LoadHandle) -> DemoEngine:
        handles.append(handle)
        handle.offer_tokenizer(ScriptedEngine().tokenizer)
        handle("Reading weights.", 0.4)
        until(lambda: bool(done), "the test lets the model in", 30.0)
        return DemoEngine(script)

    def engine() -> LazyEngine:
        loading.append(LazyEngine(load))
        return loading[-1]

    done: list[bool] = []
    own = Site(folder, engine=engine)
    try:
        tab = person(windows(), own.url)
        expect(tab.page.locator("#status")).to_contain_text("The model is loading 40 %")
        expect(tab.page.locator("#status")).to_contain_text("Reading weights.")
        tab.write("asked early")
        expect(tab.page.locator(".pending")).to_contain_text("Waiting for the model")
        done.append(True)
        expect(tab.feet).to_have_count(1)
        expect(tab.page.locator("#top .badge")).to_have_text("demo")
        expect(tab.page.locator("#status .status")).to_have_count(0)
        tab.new_chat()
        expect(tab.page.locator(".demo-note")).to_contain_text("small English demo model")
        expect(tab.page.locator(".demo-note code")).to_contain_text("--model")
    finally:
        done.append(True)
        own.close()


def test_a_model_that_cannot_be_loaded_is_told_and_the_question_stays(
    windows: Windows, folder: Path
) -> None:
    def load(handle: LoadHandle) -> ScriptedEngine:
        from chatbot.errors import ModelError

        raise ModelError("There is no model 'nowhere/none'; check its name.")

    own = Site(folder, engine=lambda: LazyEngine(load))
    try:
        tab = person(windows(), own.url)
        expect(tab.page.locator("#status")).to_contain_text("There is no model 'nowhere/none'")
        tab.write("hello?")
        expect(tab.toasts).to_contain_text("There is no model")
        expect(tab.box).to_have_value("hello?")
        expect(tab.send_button).to_be_visible()
    finally:
        own.close()


def test_a_program_that_ends_in_a_reply_says_so_and_the_page_comes_back_with_everything(
    windows: Windows, folder: Path
) -> None:
    own = Site(folder)
    try:
        tab = person(windows(locale="ko-KR"), own.url)
        tab.ask("remember me")
        tab.write("script:stall")
        expect(tab.last_reply()).to_contain_text("word2")
        tab.box.fill("A draft")
        with own.away():
            expect(tab.page.locator("#ended")).to_contain_text("프로그램이 종료되었거나")
            expect(tab.stop_button).to_be_hidden()
            # The library looks for the program too, every two seconds, and would tell of it.
            tab.page.wait_for_timeout(2_300)
            expect(tab.page.locator(".toast-body").filter(visible=True)).to_have_count(0)
        expect(tab.page.locator("#ended")).to_have_count(0)
        expect(tab.questions).to_have_text(["remember me", "script:stall"])
        expect(tab.last_reply()).to_contain_text("word2")
        expect(tab.chats).to_have_count(1)
        expect(tab.send_button).to_be_visible()
        expect(tab.box).to_have_value("A draft")
        address = tab.page.url
        tab.ask("and go on script:plain")
        tab.page.goto("about:blank")
        tab.open(address)
        expect(tab.chats).to_have_count(1)
        expect(tab.questions).to_have_text(
            ["remember me", "script:stall", "and go on script:plain"]
        )
    finally:
        own.close()
