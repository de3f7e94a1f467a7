"""What a person sees of the chat's memory in the browser, and does to it; versions, sources."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.long_chat import long_chat
from tests.browser.person import Person, Site, person, until

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]
PAGES = "The first page is about boats.\fThe lamp of Carrick was built in 1898 by <b>Mary</b> Ode."


def show(tab: Person, name: str) -> None:
    tab.page.locator(f"#panel-tabs [data-tab={name}]").click()


def test_summary_and_facts_are_seen_edited_pinned_and_deleted(tab: Person, site: Site) -> None:
    chat = long_chat(site, "hands", 45)
    store = site.services.store
    tab.open(f"{site.url}?c={chat}")
    show(tab, "memory")
    summary, facts = tab.page.locator("#summary"), tab.page.locator("#facts .fact")
    expect(summary).to_contain_text("They spoke of boats.")
    expect(summary.locator(".tag").first).to_have_text("by the model")
    expect(summary.locator(".warn")).to_contain_text("invented, not in the turns: Bob")
    summary.locator(".decisions > summary").click()
    expect(summary.locator(".decision")).to_contain_text("refused")
    expect(facts).to_have_count(2)
    expect(facts.first).to_contain_text("The dog is <Rex>.")
    expect(facts.last).to_contain_text("before: We meet on 14 March.")

    dialog = tab.page.locator("dialog")
    tab.page.locator("[data-act=summary-edit]").click()
    expect(dialog.locator("textarea")).to_have_value("They spoke of boats.")
    dialog.locator("textarea").fill("They spoke of <ships>.")
    dialog.locator("[data-confirm]").click()
    expect(summary).to_contain_text("They spoke of <ships>.")
    expect(summary.locator(".tag").first).to_have_text("edited by you")
    facts.last.locator("[data-act=fact-pin]").click()
    expect(tab.page.locator("#facts .fact.pinned")).to_contain_text("21 March")
    facts.first.locator("[data-act=fact-edit]").click()
    dialog.locator("textarea").fill("The dog is Max.")
    dialog.locator("textarea").press("Control+Enter")
    expect(facts.first).to_contain_text("The dog is Max.")
    tab.page.locator("[data-act=fact-add]").click()
    dialog.locator("textarea").fill("My desk is green.")
    dialog.locator("[data-confirm]").click()
    expect(facts).to_have_count(3)
    facts.nth(1).locator("[data-act=fact-delete]").click()
    dialog.locator("[data-confirm]").click()
    expect(facts).to_have_count(2)
    kept = store.load(chat).summary
    assert kept and kept.origin == "edited" and kept.deleted == ("f2",)
    assert [fact.text for fact in kept.facts] == ["The dog is Max.", "My desk is green."]

    facts.first.locator("[data-act=goto]").click()
    expect(tab.page.locator(f'#chat .foot[data-turn="{chat}2"]')).to_be_in_viewport()
    expect(tab.questions).to_have_count(45)
    tab.page.locator(f'#chat .foot[data-turn="{chat}2"] [data-act=forget]').click()
    expect(dialog).to_contain_text("cannot be undone")
    dialog.locator("[data-confirm]").click()
    expect(tab.questions).to_have_count(44)
    expect(tab.page.locator("#chat")).not_to_contain_text("Question 2?")
    assert all(turn.id != f"{chat}2" for turn in store.load(chat).turns)


def test_an_edited_question_cuts_what_follows_and_its_versions_come_back(
    tab: Person, site: Site
) -> None:
    for text in ("one script:plain", "two script:plain", "three script:plain"):
        tab.ask(text)
    tab.feet.nth(1).locator("[data-act=edit]").click()
    dialog = tab.page.locator("dialog")
    expect(dialog).to_contain_text("1 later turn is cut off")
    expect(dialog.locator("textarea")).to_have_value("two script:plain")
    dialog.locator("textarea").fill("other script:code")
    dialog.locator("[data-confirm]").click()
    expect(tab.questions).to_have_text(["one script:plain", "other script:code"])
    expect(tab.last_reply()).to_contain_text("Code:")
    expect(tab.feet.last.locator(".versions")).to_contain_text("2/2")
    tab.feet.last.locator("[data-act=version]").first.click()
    expect(tab.questions).to_have_text(
        ["one script:plain", "two script:plain", "three script:plain"]
    )
    expect(tab.feet.nth(1).locator(".versions")).to_contain_text("1/2")
    assert len(site.services.store.load(tab.conversation_id).turns) == 3
    tab.feet.nth(1).locator("[data-act=version]").last.click()
    expect(tab.questions).to_have_count(2)


def test_a_source_opens_its_page_with_the_words_marked(windows: Windows, folder: Path) -> None:
    own = Site(folder)
    try:
        tab = person(windows(), own.url)
        tab.upload(("lamps.md", PAGES.replace("\f", "\n\n").encode()))
        expect(tab.documents).to_have_count(1)
        tab.ask("When was the lamp of Carrick built?")
        tab.page.locator("#chat .sources [data-act=source]").first.click()
        opened = tab.page.locator("dialog .page-text")
        expect(opened).to_contain_text("The first page is about boats.")
        expect(opened).to_contain_text("<b>Mary</b>")
        expect(opened.locator("mark.quoted")).to_contain_text(
            "The lamp of Carrick was built in 1898"
        )
        tab.page.keyboard.press("Escape")
        expect(tab.page.locator("dialog")).to_have_count(0)
    finally:
        own.close()


def test_chats_are_searched_while_composing_pinned_saved_and_brought_back(
    windows: Windows, folder: Path, tmp_path: Path
) -> None:
    own = Site(folder)
    try:
        tab = person(windows(), own.url)
        tab.ask("등대는 언제 세워졌어?")
        tab.new_chat().ask("About boats and nets")
        expect(tab.chats).to_have_count(2)
        search = tab.page.locator("#search")
        tab.page.keyboard.press("Control+k")
        expect(search).to_be_focused()
        devtools = tab.page.context.new_cdp_session(tab.page)
        composed = {"text": "등대", "selectionStart": 2, "selectionEnd": 2}
        devtools.send("Input.imeSetComposition", composed)
        expect(tab.chats).to_have_count(1)
        expect(tab.chats).to_contain_text("등대는")
        devtools.send("Input.insertText", {"text": "등대"})
        search.fill("no such words")
        expect(tab.page.locator("#conversations .none")).to_contain_text("No chat has these words")
        search.fill("")
        expect(tab.chats).to_have_count(2)
        tab.chats.last.hover()
        tab.chats.last.locator("[data-act=pin]").click()
        expect(tab.chats.first).to_contain_text("등대는")
        expect(tab.page.locator("#conversations .pinned")).to_have_count(1)

        saved: dict[str, Path] = {}
        for form, button in (("md", "#export"), ("json", "#export-json")):
            with tab.page.expect_download() as download:
                tab.page.locator(button).click()
            saved[form] = tmp_path / download.value.suggested_filename
            download.value.save_as(saved[form])
        assert json.loads(saved["json"].read_text("utf-8"))["messages"][0]["role"] == "user"
        bad = tmp_path / "bad.json"
        bad.write_text("{", "utf-8")
        tab.page.locator("#import-files").set_input_files([*saved.values(), bad])
        expect(tab.chats).to_have_count(4)
        expect(tab.toasts).to_contain_text("bad.json")
        expect(tab.questions).to_have_text(["About boats and nets"])
        expect(tab.last_reply()).to_have_text("A plain reply.")
    finally:
        own.close()


def test_the_machine_is_drawn_and_a_test_case_is_made(tab: Person) -> None:
    tab.ask("one").ask("two")
    show(tab, "machine")
    memory = tab.page.locator("#memory")
    expect(memory.locator("dl")).to_contain_text("scripted")
    expect(memory.locator(".mem-bars .m-kv")).to_contain_text("KV cache")
    # The largest caches are listed; those of other tests may be larger than this chat's.
    expect(memory.locator(".mem-chats li").first).to_contain_text("KiB")
    expect(memory.locator(".timeline")).to_have_attribute("aria-label", re.compile("last 2 turns"))
    live = memory.locator("#memory-live")
    live.evaluate("e => { e.innerHTML = ''; }")
    expect(live.locator(".m-process")).to_be_visible()
    show(tab, "prompt")
    with tab.page.expect_download() as download:
        tab.page.locator("#make-case").click()
    case = Path(download.value.path()).read_text("utf-8")
    assert download.value.suggested_filename.endswith(".yaml") and "user: one" in case


def test_settings_say_their_cost_and_refuse_what_cannot_be(windows: Windows, folder: Path) -> None:
    own = Site(folder)
    try:
        tab = person(windows(), own.url)
        tab.page.locator("[data-act=options]").click()
        settings = tab.page.locator("#settings")
        temperature = settings.locator("[data-name=temperature] input")
        expect(settings.locator(".option").first).to_contain_text("model to be loaded again")
        temperature.fill("7")
        temperature.press("Tab")
        expect(settings.locator(".refused")).to_have_text("Must be from 0 to 2.")
        expect(temperature).to_have_value("7")
        assert own.services.chat.settings.temperature == 0
        temperature.fill("0.6")
        temperature.press("Tab")
        expect(settings.locator(".refused")).to_have_count(0)
        until(lambda: own.services.chat.settings.temperature == 0.6, "it is used at once")
        model = settings.locator("[data-name=model] input")
        model.fill("some/other")
        model.press("Tab")
        expect(settings.locator(".option[data-name=model]")).to_contain_text("after a restart")
        settings.locator("[data-act=preset]").select_option(label="Brief")
        expect(tab.page).to_have_url(re.compile(r"\?c="))
        stored = own.services.store.load(tab.conversation_id)
        assert stored.system_text and "three sentences" in stored.system_text
        tab.ask("hello")
        trace = own.services.store.load_trace(own.services.store.load(stored.id).turns[0].id)
        assert trace and "three sentences" in trace.segments[0].text
    finally:
        own.close()


def test_the_meter_counts_the_draft_before_it_is_sent_and_warns(tab: Person, site: Site) -> None:
    tab.ask("A first question about boats")
    meter = tab.page.locator("#meter")
    tab.box.fill("Now a longer draft with some more words in it")
    expect(meter).to_contain_text("With your text:")
    shown = re.search(r"With your text: ([\d,]+) of", meter.inner_text())
    trace = site.services.chat.context(tab.conversation_id, tab.box.input_value())
    assert shown and int(shown[1].replace(",", "")) == trace.prompt_tokens
    tab.box.fill("word " * 6000)
    expect(meter).to_contain_text("more than fits")
    tab.box.fill("")
    expect(meter).to_contain_text("Last prompt")
    tab.page.keyboard.press("Control+/")
    expect(tab.page.locator("dialog .keys-list")).to_contain_text("Search chats")
    tab.page.locator("dialog [data-confirm]").click()
