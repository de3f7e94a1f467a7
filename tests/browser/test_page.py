"""The page around the chat: lists, documents, languages, phone, memory of older turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.messages import Conversation, Message, RollingSummary, Turn
from retrieval.embed import ScriptedEmbedder, Vectors
from tests.browser.person import Person, Site, person, until

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]

LAMPS = (
    "# Lamps of the coast\n\nThe lamp of Carrick was built in 1898 by Mary Ode.\n\n"
    "It is 32 metres high and shows <b>two</b> flashes.\n\n"
    + "\n\n".join(f"Note {n}: boats, fish and nets of the harbour." for n in range(30))
)
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


def test_documents_are_uploaded_asked_about_with_sources_and_removed(
    windows: Windows, folder: Path
) -> None:
    own = Site(folder)
    try:
        tab = person(windows(), own.url)
        tab.upload(
            ("lamps <b>.md", LAMPS.encode()),
            ("bad.pdf", b"not a pdf at all"),
            ("편지.txt", "안녕하세요. 등대는 높다.".encode()),
        )
        expect(tab.documents).to_have_count(2)
        expect(tab.documents.first).to_contain_text("lamps <b>.md")
        expect(tab.documents.first.locator("input")).to_be_checked()
        error = tab.page.locator("#documents .job.error")
        expect(error).to_contain_text("bad.pdf")
        assert error.locator("[role=alert]").inner_text().endswith(".")
        error.locator("button").click()
        expect(error).to_have_count(0)

        tab.ask("When was the lamp of Carrick built?")
        sources = tab.page.locator("#chat .sources")
        expect(sources).to_contain_text("The lamp of Carrick was built in 1898 by Mary Ode.")
        expect(sources.locator(".label").first).to_be_visible()
        expect(sources.locator(".document").first).to_have_text("lamps <b>.md")
        expect(tab.page.locator("#chat .notice")).to_contain_text("whole")
        expect(tab.last_reply().locator("mark.unsupported")).to_have_text("It also sings at night.")
        expect(tab.page.locator("#chat .trace > summary")).to_contain_text("passage")
        tab.page.locator("#chat .trace > summary").click()
        piece = tab.page.locator("#chat .piece[data-kind=passage]").first
        piece.locator("summary").click()
        expect(piece.locator("pre")).to_contain_text("shows <b>two</b> flashes")

        tab.documents.first.locator("input").uncheck()
        until(
            lambda: len(own.services.store.load(tab.conversation_id).document_ids) == 1,
            "the chat no longer uses it",
        )
        tab.documents.first.hover()
        tab.documents.first.locator("[data-act=remove]").click()
        tab.page.locator("dialog [data-confirm]").click()
        expect(tab.documents).to_have_count(1)
        assert [d.name for d in own.services.library.documents()] == ["편지.txt"]
        incoming = own.settings.data_dir / "incoming"
        assert [path for path in incoming.rglob("*") if path.is_file()] == []
        assert not list((own.settings.data_dir / "gradio").glob("*"))
        tab.new_chat()
        expect(tab.documents.first.locator("input")).not_to_be_checked()
    finally:
        own.close()


class HeldEmbedder(ScriptedEmbedder):
    """Embeds no document before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = Event()

    def embed_documents(self, texts: list[str]) -> Vectors:
        assert self.go.wait(120)
        return super().embed_documents(texts)


def test_a_question_waits_for_the_file_that_came_with_it(windows: Windows, folder: Path) -> None:
    embedder = HeldEmbedder()
    own = Site(folder, embedder=embedder)
    try:
        tab = person(windows(), own.url)
        tab.upload(("lamps.md", LAMPS.encode()))
        expect(tab.page.locator("#documents .job")).to_contain_text("lamps.md")
        tab.write("When was the lamp of Carrick built?")
        expect(tab.page.locator(".pending")).to_contain_text("Still reading lamps.md")
        embedder.go.set()
        expect(tab.feet).to_have_count(1)
        expect(tab.page.locator("#chat .sources")).to_contain_text("built in 1898")
    finally:
        embedder.go.set()
        own.close()


def test_files_can_be_dropped_and_too_large_ones_are_refused(
    windows: Windows, folder: Path
) -> None:
    own = Site(folder, max_upload_mb=1)
    try:
        tab = person(windows(), own.url)
        data = tab.page.evaluate_handle(
            """() => { const files = new DataTransfer();
            files.items.add(new File(['The lamp is red.'], 'red.txt'));
            files.items.add(new File([new Uint8Array(1200000)], 'huge.txt')); return files; }"""
        )
        tab.page.dispatch_event("#main", "drop", {"dataTransfer": data})
        expect(tab.documents).to_have_count(1)
        expect(tab.page.locator("#documents .job.error")).to_contain_text("larger than 1 MiB")
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
    tab.page.locator("#language").select_option("en")
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
