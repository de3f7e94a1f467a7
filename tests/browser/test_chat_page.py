"""Chatting in the browser: send, stream, stop, retry, busy, failures."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.ui.desk import Desk, Tab
from chatbot.ui.screen import Screen, Updates
from tests.browser.long_chat import long_chat
from tests.browser.person import Person, Site, until

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


SEND_COMES = """() => new Promise((seen) => new MutationObserver((_, observer) => {
  if (document.querySelector('#msg .submit-button')) { observer.disconnect(); seen(); }
}).observe(document.querySelector('#msg'), { childList: true, subtree: true }))"""


def test_stop_comes_back_where_a_page_drawn_before_the_reply_arrives_after_its_start(
    tab: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, is_drawn, is_sent = Screen.whole, threading.Event(), threading.Event()

    def late(screen: Screen, shown: Tab, session: str) -> Updates:
        update = whole(screen, shown, session)
        if not shown.conversation_id:
            is_drawn.set()
            assert is_sent.wait(30)
        return update

    monkeypatch.setattr(Screen, "whole", late)
    tab.page.locator("#new-chat button").click()
    until(is_drawn.is_set, "the new chat is drawn")
    tab.write("Tell me, script:slow")
    expect(tab.stop_button).to_be_visible()
    tab.page.evaluate(f"() => {{ window.sendComes = ({SEND_COMES})() }}")
    is_sent.set()
    tab.page.evaluate("() => window.sendComes")
    expect(tab.stop_button).to_be_visible(timeout=10_000)
    expect(tab.page).to_have_url(re.compile("c="))
    tab.page.keyboard.press("Escape")
    expect(tab.feet).to_have_count(1, timeout=10_000)
    expect(tab.feet).to_contain_text("Stopped.")


def test_a_question_comes_into_view_wherever_one_had_scrolled_to(tab: Person, site: Site) -> None:
    tab.open(f"{site.url}?c={long_chat(site, 'scrolled', 9)}")
    expect(tab.questions).to_have_count(9)
    expect(tab.questions.last).to_be_in_viewport()
    tab.page.locator("#chat [role=log]").hover()
    tab.page.mouse.wheel(0, -5000)
    expect(tab.questions.last).not_to_be_in_viewport()
    tab.write("Where is it? script:slow")
    expect(tab.questions).to_have_count(10)
    expect(tab.questions.last).to_be_in_viewport()
    tab.page.keyboard.press("Escape")
    expect(tab.send_button).to_be_visible()


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
    """BC-33, together with closing the tab."""
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


def test_what_is_typed_while_the_question_is_on_its_way_stays_in_the_box(
    tab: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, is_typed = Desk.begin, threading.Event()

    def late(desk: Desk, session: str, shown: Tab, make: Callable[[], str]) -> Tab:
        assert is_typed.wait(30)
        return begin(desk, session, shown, make)

    monkeypatch.setattr(Desk, "begin", late)
    tab.write("Tell me")
    tab.box.press_sequentially(" and")
    is_typed.set()
    expect(tab.feet).to_have_count(1)
    expect(tab.box).to_have_value(" and")
    expect(tab.questions).to_have_text(["Tell me"])


def test_of_two_chats_that_were_opened_at_once_the_last_one_stays(
    tab: Person, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (long_chat(site, name, 1) for name in ("opened1", "opened2"))
    whole, is_last = Screen.whole, threading.Event()

    def late(screen: Screen, shown: Tab, session: str) -> Updates:
        update = whole(screen, shown, session)
        if shown.conversation_id == first:
            assert is_last.wait(30)
        return update

    monkeypatch.setattr(Screen, "whole", late)
    for chat in (first, second):
        tab.page.evaluate("(id) => localchat.act('open', { id })", chat)
    title = tab.page.locator("#top h1")
    expect(title).to_contain_text(second)
    is_last.set()
    expect(title).to_contain_text(first)
    expect(title).to_contain_text(second)
    expect(tab.page).to_have_url(re.compile(f"c={second}$"))


def test_an_unsent_message_is_there_again_after_the_page_was_loaded_again(tab: Person) -> None:
    tab.box.fill("Not sent yet")
    tab.page.reload()
    expect(tab.box).to_have_value("Not sent yet")
