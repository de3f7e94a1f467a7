"""Texts in the browser: markup, code, Korean input, long pastes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.person import HTML, Person, Site, person

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]


def test_text_from_people_and_models_is_literal_and_copied_as_it_was(
    windows: Windows, site: Site
) -> None:
    """BC-34; titles and citations are in the tests of the lists and of sources."""
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
