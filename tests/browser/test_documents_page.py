"""Documents in the browser: uploads, sources, archives, waiting for them, dropping them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import BrowserContext, expect

from retrieval.embed import ScriptedEmbedder, Vectors
from tests.browser.person import Site, person, until
from tests.file_maker import archive

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]

LAMPS = (
    "# Lamps of the coast\n\nThe lamp of Carrick was built in 1898 by Mary Ode.\n\n"
    "It is 32 metres high and shows <b>two</b> flashes.\n\n"
    + "\n\n".join(f"Note {n}: boats, fish and nets of the harbour." for n in range(30))
)


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
            ("both.zip", archive({"in/nets.md": "Nets are mended in May.", "bad.docx": b"none"})),
        )
        expect(tab.documents).to_have_count(3)
        expect(tab.documents.last).to_contain_text("nets.md")
        expect(tab.documents.first).to_contain_text("lamps <b>.md")
        expect(tab.documents.first.locator("input")).to_be_checked()
        errors = tab.page.locator("#documents .job.error")
        expect(errors).to_have_count(2)
        expect(errors.last).to_contain_text("bad.docx")
        errors.last.locator("button").click()
        error = errors.filter(has_text="bad.pdf")
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

        ticks = tab.documents.locator("input")
        ticks.nth(1).uncheck()
        ticks.first.uncheck()
        ticks.first.check()
        until(
            lambda: len(own.services.store.load(tab.conversation_id).document_ids) == 2,
            "the chat no longer uses it",
        )
        tab.documents.first.hover()
        tab.documents.first.locator("[data-act=remove]").click()
        tab.page.locator("dialog [data-confirm]").click()
        expect(tab.documents).to_have_count(2)
        # The rows moved up; the tick of the first one did not stay where it was.
        expect(ticks.first).not_to_be_checked()
        expect(ticks.last).to_be_checked()
        names = [document.name for document in own.services.library.documents()]
        assert names[0] == "편지.txt" and names[1].endswith("nets.md")
        incoming = own.settings.data_dir / "incoming"
        assert [path for path in incoming.rglob("*") if path.is_file()] == []
        assert not list((own.settings.data_dir / "gradio").glob("*"))
        tab.new_chat()
        expect(ticks.last).not_to_be_checked()
        expect(tab.page.locator("#documents .unused")).to_contain_text("none of your 2 documents")
        tab.upload(("boats.md", b"Boats are painted in April."))
        expect(ticks).to_have_count(3)
        expect(ticks.last).to_be_checked()
        expect(tab.page.locator(".unused")).to_have_count(0)
        tab.new_chat()
        tab.page.locator(".welcome .unused button").click()
        expect(ticks.first).to_be_checked()
        expect(ticks.last).to_be_checked()
        expect(tab.page.locator(".unused")).to_have_count(0)
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
    """BC-80."""
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
