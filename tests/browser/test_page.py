"""The page around the chat: lists, documents, languages, phone, memory of older turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.messages import Conversation, Message, RollingSummary, Turn
from tests.browser.person import Person, Site, person, until

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}


def test_chats_are_listed_opened_renamed_and_deleted_after_a_question(
    windows: Windows, folder: Path
) -> None:
    own = Site(folder)
    try:
        tab = person(windows(), own.url)
        tab.ask("The first <b>chat</b>")
        tab.new_chat().ask("The second chat")
        expect(tab.chats).to_have_count(2)
        expect(tab.chats.first).to_contain_text("The second chat")
        tab.chats.last.locator(".t").click()
        expect(tab.questions).to_have_text(["The first <b>chat</b>"])
        shown = tab.chats.last.get_attribute("data-id")
        until(lambda: tab.conversation_id == shown, "the address follows")

        tab.chats.last.hover()
        tab.chats.last.locator("[data-act=rename]").click()
        dialog = tab.page.locator("dialog")
        dialog.locator("input").fill("Renamed <i>")
        dialog.locator("input").press("Enter")
        expect(tab.page.locator("#top h1")).to_have_text("Renamed <i>")
        renamed = tab.chats.filter(has_text="Renamed <i>")
        expect(renamed).to_have_count(1)

        renamed.hover()
        renamed.locator("[data-act=delete]").click()
        expect(dialog).to_contain_text("cannot be undone")
        dialog.locator("button").first.click()
        expect(tab.chats).to_have_count(2)
        renamed.hover()
        renamed.locator("[data-act=delete]").click()
        dialog.locator("[data-confirm]").click()
        expect(tab.chats).to_have_count(1)
        expect(tab.page.locator(".welcome")).to_be_visible()
        until(lambda: tab.conversation_id == "", "the address forgets the chat")

        tab.page.goto(own.url + "?c=not-there")
        expect(tab.toasts).to_contain_text("does not exist")
        expect(tab.page.locator(".welcome")).to_be_visible()
    finally:
        own.close()


def test_korean_browsers_get_korean_and_the_language_is_switched_live(
    windows: Windows, site: Site
) -> None:
    context = windows(locale="ko-KR")
    tab = person(context, site.url)
    expect(tab.page.locator(".welcome h2")).to_have_text("무엇이 궁금하신가요?")
    assert tab.page.evaluate("document.documentElement.lang") == "ko"
    expect(tab.box).to_have_attribute("aria-label", "메시지")
    tab.ask("안녕하세요? script:plain")
    expect(tab.page.locator("#chat .trace > summary")).to_contain_text("프롬프트")
    # The library would say "bot's message", with the markup of the reply, in every language.
    expect(tab.replies.first).to_have_attribute("aria-label", "답변: A plain reply.")
    expect(tab.questions).to_have_attribute("aria-label", "내 질문: 안녕하세요? script:plain")
    expect(tab.page.locator("""#chat [aria-label*="'s message"]""")).to_have_count(0)
    expect(tab.page.locator("#chat [role=log]")).to_have_attribute("aria-label", "대화 내용")
    tab.page.locator("#language").select_option("en")
    expect(tab.replies.first).to_have_attribute("aria-label", "Reply: A plain reply.")
    expect(tab.page.locator("#chat .trace > summary")).to_contain_text("Prompt")
    expect(tab.page.locator("#new-chat")).to_contain_text("New chat")
    expect(tab.questions).to_have_count(1)
    tab.page.reload()
    expect(tab.page.locator("#new-chat")).to_contain_text("New chat")
    expect(tab.questions).to_have_count(1)


@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
def test_a_phone_shows_everything_without_overflow(
    windows: Windows, site: Site, locale: str
) -> None:
    tab = person(windows(locale=locale, **PHONE), site.url)
    page = tab.page
    expect(page.locator("#side")).to_be_hidden()
    tab.ask("script:html " + "x" * 300)
    tab.write("script:code")
    expect(tab.feet).to_have_count(2)
    page.locator("#chat .trace > summary").last.click()
    expect(page.locator("#chat .piece").first).to_be_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    wide = page.evaluate(
        "[...document.querySelectorAll('#main *')].filter(e => !e.closest('pre, table') && "
        "e.getBoundingClientRect().right > 391).map(e => e.outerHTML.slice(0, 90))"
    )
    assert wide == []
    assert tab.box.bounding_box()["y"] + tab.box.bounding_box()["height"] < 844  # type: ignore[index]
    tab.feet.last.locator("[data-act=edit]").tap()
    dialog = page.locator("dialog[open]").bounding_box()
    assert dialog and dialog["x"] > 0 and dialog["x"] + dialog["width"] < 390
    page.keyboard.press("Escape")
    page.locator("#top [data-act=menu]").tap()
    expect(page.locator("#side")).to_be_visible()
    page.locator("#new-chat button").tap()
    expect(page.locator("#side")).to_be_hidden()
    page.locator("#top [data-act=panel]").tap()
    expect(page.locator("#panel")).to_be_visible()


def test_the_fold_line_and_the_summary_can_be_read(tab: Person, site: Site) -> None:
    turns = tuple(
        Turn(
            f"f{n}", (Message(f"fu{n}", "user", f"Q {n}"),), (Message(f"fa{n}", "assistant", "A"),)
        )
        for n in range(45)
    )
    made = site.services.store.import_conversation(Conversation("folded", "Long", turns))
    summary = RollingSummary("They spoke of <boats>.", 40, 12, origin="extractive")
    assert site.services.store.save_summary(made.id, summary)
    tab.page.goto(f"{site.url}?c={made.id}")
    fold = tab.page.locator("#chat .foldline")
    expect(fold).to_contain_text("oldest 40 turns")
    fold.locator("summary").click()
    expect(fold.locator(".verbatim")).to_have_text("They spoke of <boats>.")
    expect(tab.page.locator("#summary")).to_contain_text("They spoke of <boats>.")
    expect(tab.questions).to_have_count(35)
    tab.page.locator("[data-act=earlier]").click()
    expect(tab.questions).to_have_count(45)


def test_small_things_suggestions_theme_export_and_keys(tab: Person) -> None:
    page = tab.page
    idea = page.locator(".idea").first
    text = idea.inner_text()
    idea.click()
    expect(tab.box).to_have_value(text)
    tab.box.press("Shift+Enter")
    tab.box.press_sequentially("more script:html")
    tab.box.press("Enter")
    expect(tab.feet).to_have_count(1)
    expect(tab.questions).to_have_count(1)
    with page.expect_download() as download:
        page.locator("#export").click()
    saved = Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename.endswith(".md")
    assert text + "\nmore script:html" in saved and "<style>*{display:none}</style>" in saved
    dark = page.evaluate("document.body.classList.contains('dark')")
    page.locator("#side-foot [data-act=theme]").click()
    assert page.evaluate("document.body.classList.contains('dark')") is not dark
    page.reload()
    expect(tab.feet).to_have_count(1)
    assert page.evaluate("document.body.classList.contains('dark')") is not dark
    page.keyboard.press("Control+Shift+O")
    expect(page.locator(".welcome")).to_be_visible()
    for name in (
        "chat", "msg", "new-chat", "conversations", "documents", "upload", "context", "meter",
        "summary", "facts", "memory", "settings", "language", "export",
    ):  # fmt: skip
        expect(page.locator(f"#{name}")).to_have_count(1)
