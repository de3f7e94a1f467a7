"""The lists beside the chat and the dialog that they open, as a browser lays them out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.person import Person, Site, person

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]
LAMPS = "# Lamps\n\nThe lamp of Carrick was built in 1898 by Mary Ode."


def test_full_lists_stay_in_their_own_areas(windows: Windows, folder: Path) -> None:
    own = Site(folder)
    try:
        for number in range(12):
            own.services.store.create_conversation(f"Chat number {number}")
        tab = person(windows(), own.url)
        tab.upload(*((f"lamps {number}.md", LAMPS.encode()) for number in range(4)))
        expect(tab.documents).to_have_count(4)
        tab.upload(*((f"broken {number}.pdf", b"none") for number in range(4)))
        expect(tab.page.locator("#documents .error")).to_have_count(4)
        for area in (
            "new-chat",
            "conversations",
            "documents-title",
            "documents",
            "upload",
            "side-foot",
        ):
            expect(tab.page.locator(f"#{area}")).to_be_in_viewport(ratio=1)
        for area in ("#conversations", "#documents"):
            size = "e => [e.clientHeight, e.scrollHeight, getComputedStyle(e).overflowY]"
            height, content, overflow = tab.page.locator(area).evaluate(size)
            assert 84 <= height < content and overflow == "auto", area
    finally:
        own.close()


def test_the_dialog_has_the_font_of_the_page(tab: Person) -> None:
    tab.ask("To be deleted")
    tab.chats.first.hover()
    tab.chats.first.locator("[data-act=delete]").click()
    font = "e => getComputedStyle(e).fontFamily"
    page = tab.page.locator("#top h1").evaluate(font)
    for part in ("h2", "p", "button.danger"):
        assert tab.page.locator(f"dialog {part}").evaluate(font) == page
    tab.page.locator("dialog [data-confirm]").click()


def test_a_chat_without_a_question_is_listed_only_while_it_is_open(
    windows: Windows, folder: Path
) -> None:
    own = Site(folder)
    try:
        own.services.store.create_conversation()
        tab = person(windows(), own.url)
        expect(tab.chats).to_have_count(0)
        tab.upload(("lamps.md", LAMPS.encode()))
        expect(tab.chats).to_have_count(1)
        tab.new_chat()
        expect(tab.chats).to_have_count(0)
    finally:
        own.close()
