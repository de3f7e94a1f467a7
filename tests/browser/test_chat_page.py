"""Chatting in the browser: send, stream, stop, retry, busy, failures, several tabs, restart."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.engine.base import EngineInfo
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from tests.browser.person import HTML, Person, Site, person, script, until

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]


def test_a_reply_streams_and_shows_what_went_into_its_prompt(tab: Person, site: Site) -> None:
    expect(tab.page).to_have_title("Local Llama Chat")
    tab.write("Tell me, script:slow")
    expect(tab.questions).to_have_text(["Tell me, script:slow"])
    expect(tab.stop_button).to_be_visible()
    expect(tab.send_button).to_have_count(0)
    expect(tab.box).to_have_value("")
    expect(tab.last_reply()).to_contain_text("word3")
    first = len(tab.last_reply().inner_text())
    until(lambda: len(tab.last_reply().inner_text()) > first, "the reply grows")
    tab.box.fill("typing goes on")
    tab.page.keyboard.press("Escape")
    expect(tab.send_button).to_be_visible()
    expect(tab.box).to_have_value("typing goes on")
    expect(tab.chats.first).to_contain_text("Tell me")
    expect(tab.page.locator("#top h1")).to_contain_text("Tell me")

    line = tab.page.locator("#chat .trace > summary")
    shown = re.search(r"Prompt ([\d,]+) of [\d,]+ tokens", line.inner_text())
    assert shown
    line.click()
    pieces = tab.page.locator("#chat .trace .pieces:not(.left-out) .piece")
    expect(pieces.first).to_contain_text("System")
    tokens = [int(re.sub(r"\D", "", text)) for text in pieces.locator(".n").all_inner_texts()]
    assert sum(tokens) == int(shown[1].replace(",", ""))
    pieces.last.locator("summary").click()
    expect(pieces.last.locator("pre")).to_have_text("Tell me, script:slow")
    tab.box.fill("")
    expect(tab.page.locator("#meter")).to_contain_text(shown[1])
    trace = site.services.store.load_trace(
        site.services.store.load(tab.conversation_id).turns[0].id
    )
    assert trace and sum(tokens) == trace.prompt_tokens


def test_updates_come_at_most_ten_times_a_second(tab: Person) -> None:
    tab.page.evaluate(
        """() => { window.texts = new Set(); new MutationObserver(() => {
        const found = document.querySelectorAll('#chat [data-testid=bot] .message-content');
        if (found.length) texts.add(found[found.length - 1].innerText);
        }).observe(document.querySelector('#chat'), {childList: true, subtree: true,
        characterData: true}); window.began = performance.now(); }"""
    )
    tab.ask("script:brief")
    expect(tab.last_reply()).to_contain_text("word39")
    count, seconds = tab.page.evaluate("[texts.size, (performance.now() - began) / 1000]")
    assert 3 <= count <= 10 * seconds + 3


def test_escape_stops_and_what_was_there_is_kept_and_can_be_retried(
    tab: Person, site: Site
) -> None:
    tab.write("script:slow")
    expect(tab.last_reply()).to_contain_text("word5")
    tab.page.keyboard.press("Escape")
    expect(tab.send_button).to_be_visible()
    expect(tab.feet.last).to_contain_text("Stopped.")
    expect(tab.last_reply()).to_contain_text("word5")
    kept = site.services.store.load(tab.conversation_id).turns[0]
    assert kept.finish == "cancelled" and "word5" in kept.reply

    tab.page.locator("[data-act=retry]").click()
    expect(tab.stop_button).to_be_visible()
    expect(tab.questions).to_have_count(1)
    expect(tab.last_reply()).to_contain_text("word2")
    tab.stop_button.click()
    expect(tab.send_button).to_be_visible()
    again = site.services.store.load(tab.conversation_id).turns
    assert len(again) == 1 and again[0].id != kept.id


def test_enter_while_busy_keeps_the_text_and_says_so(tab: Person) -> None:
    tab.write("script:slow")
    expect(tab.last_reply()).to_contain_text("word2")
    tab.write("too early script:plain")
    expect(tab.toasts).to_contain_text("still being written")
    expect(tab.box).to_have_value("too early script:plain")
    expect(tab.questions).to_have_count(1)
    tab.page.keyboard.press("Escape")
    expect(tab.send_button).to_be_visible()
    tab.box.press("Enter")
    expect(tab.questions).to_have_count(2)
    expect(tab.feet).to_have_count(2)


@pytest.mark.parametrize(("wish", "kept"), [("fail", ""), ("half", "word3")])
def test_a_failing_reply_is_told_kept_and_gives_send_back(
    tab: Person, wish: str, kept: str
) -> None:
    tab.write(f"script:{wish}")
    expect(tab.page.locator("#chat .finish.bad")).to_be_visible()
    expect(tab.send_button).to_be_visible()
    if wish == "fail":
        expect(tab.page.locator("#chat .finish")).to_contain_text("engine broke <b>down</b>.")
    else:
        expect(tab.last_reply()).to_contain_text(kept)
    expect(tab.page.locator(".toast-body")).to_have_count(0)
    turn = tab.feet.last.get_attribute("data-turn") or ""
    tab.page.locator("[data-act=retry]").click()
    expect(tab.feet.last).not_to_have_attribute("data-turn", turn)
    expect(tab.page.locator("#chat .finish.bad")).to_be_visible()
    expect(tab.send_button).to_be_visible()
    tab.ask("and now? script:plain")
    expect(tab.last_reply()).to_be_visible()


def test_text_from_people_and_models_is_literal_and_copied_as_it_was(
    windows: Windows, site: Site
) -> None:
    context = windows()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = person(context, site.url)
    question = "# <name> *a* List<int> <style>*{display:none}</style> script:html\n    indented"
    tab.ask(question)
    expect(tab.questions.last).to_contain_text("# <name> *a* List<int> <style>*{display:none}")
    shown = tab.last_reply()
    expect(shown).to_contain_text("Words in <name> and List<int>. <style>*{display:none}</style>")
    expect(shown).to_contain_text('<img src=x onerror="window.hacked=1">')
    expect(shown.locator("code")).to_have_text("a<b>")
    expect(tab.page.locator("#chat .prose img")).to_have_count(0)
    assert tab.page.evaluate("window.hacked") is None
    tab.page.locator("[data-act=copy]").click()
    expect(tab.page.locator("[data-act=copy].done")).to_be_visible()
    assert tab.page.evaluate("navigator.clipboard.readText()") == HTML


def test_code_keeps_its_indentation(tab: Person) -> None:
    tab.ask("script:code")
    code = tab.last_reply().locator("pre code")
    # Markdown shows a tab as four spaces; eight or none would be someone else's doing.
    lines = ["    if x:", "        return", "    tabbed()"]
    assert code.inner_text().split("\n")[1:4] == lines


def test_a_composing_korean_word_is_sent_once_and_whole(tab: Person) -> None:
    tab.box.focus()
    devtools = tab.page.context.new_cdp_session(tab.page)
    devtools.send("Input.imeSetComposition", {"text": "둘", "selectionStart": 1, "selectionEnd": 1})
    enter = {"type": "rawKeyDown", "windowsVirtualKeyCode": 229, "key": "Enter", "code": "Enter"}
    devtools.send("Input.dispatchKeyEvent", enter)
    expect(tab.questions).to_have_count(0)
    devtools.send("Input.insertText", {"text": "둘째"})
    tab.box.press("Enter")
    expect(tab.questions).to_have_text(["둘째"])
    expect(tab.feet).to_have_count(1)


def test_a_paste_of_5000_characters_is_sent_whole(windows: Windows, site: Site) -> None:
    context = windows()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = person(context, site.url)
    text = ("긴 글 with <tags> & more. " * 220)[:5000].strip()
    tab.page.evaluate("text => navigator.clipboard.writeText(text)", text)
    tab.box.focus()
    tab.page.keyboard.press("Control+V")
    expect(tab.box).to_have_value(text)
    tab.box.press("Enter")
    expect(tab.feet).to_have_count(1)
    assert site.services.store.load(tab.conversation_id).turns[0].question == text


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


def test_a_restart_of_the_server_loses_nothing(windows: Windows, folder: Path) -> None:
    own = Site(folder)
    try:
        tab = person(windows(), own.url)
        tab.ask("remember me")
        address = tab.page.url
        tab.page.goto("about:blank")
        own.restart()
        tab.open(address)
        expect(tab.questions).to_have_text(["remember me"])
        expect(tab.chats).to_have_count(1)
        tab.ask("and go on")
        expect(tab.questions).to_have_text(["remember me", "and go on"])
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
