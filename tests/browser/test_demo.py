"""The page with the embedded demo model for real: a PDF, its source, Stop, twenty turns, a fold."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui.server import Handle, launch
from tests.browser.person import Person, person
from tests.conftest import MODEL_CACHE
from tests.file_maker import pdf

pytestmark = [pytest.mark.browser, pytest.mark.model]
Windows = Callable[..., BrowserContext]
MINUTES = pdf(
    [
        ["Minutes of the harbour board", "The board met in the old customs house."],
        ["The lighthouse of Carrick was built in 1898.", "Nets and ropes were spoken of."],
    ]
)
SAID = (
    "My name is Ada, from Porto.",
    "I go to Lisbon on 14 March.",
    "My budget is 450 euros.",
    "What should I pack?",
)
PATIENCE_MS = 300_000
"""For one reply or fold of the real model, on a slow machine that has other work, too."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Handle, Services]]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("demo"),
        cache_dir=MODEL_CACHE,
        port=0,
        window_tokens=1024,
        reply_tokens=24,
        summary_tokens=96,
    )
    services = build_services(settings)
    handle = launch(services)
    yield handle, services
    handle.close()
    services.close()


@pytest.fixture
def tab(opened: tuple[Handle, Services], windows: Windows) -> Person:
    context = windows()
    context.set_default_timeout(PATIENCE_MS)
    made = person(context, opened[0].url)
    expect(made.page.locator("#top .badge")).to_have_text("demo", timeout=PATIENCE_MS)
    return made


def click_s(tab: Person) -> float:
    """Seconds that a page action takes which does nothing but draw."""
    times = []
    for _ in range(3):
        began = time.monotonic()
        tab.new_chat()
        times.append(time.monotonic() - began)
    return min(times)


def stop_s(tab: Person, number: int) -> float:
    """Seconds from the key to the page that shows that a reply has stopped."""
    tab.write(f"Write a very long story about a boat and a storm. ({number})")
    expect(tab.replies).to_have_count(number + 1, timeout=PATIENCE_MS)  # not the reply before
    # What a reply waits for stands in its place; stopped then, the question is taken back.
    expect(tab.page.locator("#chat .pending")).to_have_count(0, timeout=PATIENCE_MS)
    expect(tab.last_reply()).to_have_text(re.compile(r"\w+ \w+ \w+"), timeout=PATIENCE_MS)
    expect(tab.stop_button).to_be_visible()
    began = time.monotonic()
    tab.page.keyboard.press("Escape")
    expect(tab.send_button).to_be_visible()
    stopped_s = time.monotonic() - began
    expect(tab.feet).to_have_count(number + 1)
    expect(tab.feet.last).to_contain_text("Stopped.")
    return stopped_s


def test_the_demo_model_answers_from_a_pdf_whose_page_is_shown(tab: Person) -> None:
    expect(tab.page.locator(".demo-note")).to_contain_text("small English demo model")
    tab.upload(("minutes.pdf", MINUTES))
    expect(tab.documents).to_have_count(1, timeout=PATIENCE_MS)
    tab.write("When was the lighthouse of Carrick built?")
    expect(tab.feet).to_have_count(1, timeout=PATIENCE_MS)
    best = tab.page.locator("#chat .sources .best blockquote")
    expect(best).to_contain_text("The lighthouse of Carrick was built in 1898.")
    tab.page.locator("#chat .sources [data-act=source]").first.click()
    dialog = tab.page.locator("dialog")
    expect(dialog.locator(".where")).to_contain_text("minutes.pdf")
    expect(dialog.locator(".where")).to_contain_text("page 2")
    expect(dialog.locator("mark.quoted")).to_contain_text("built in 1898")
    picture = dialog.locator(".page-picture img")
    expect(picture).to_be_visible(timeout=PATIENCE_MS)
    assert picture.evaluate("e => e.naturalWidth") > 300
    assert "page 2 of minutes.pdf" in (picture.get_attribute("alt") or "").lower()


def test_stop_takes_effect_within_half_a_second(
    tab: Person, opened: tuple[Handle, Services]
) -> None:
    chat = opened[1].chat
    usual = chat.settings
    chat.change_settings(usual.model_copy(update={"reply_tokens": 400}))
    try:
        base_s = click_s(tab)
        # The least of three: other programs may hold up one of them.
        stopped_s = min(stop_s(tab, number) for number in range(3))
        print(f"stopped after {stopped_s:.2f} s; a new chat takes {base_s:.2f} s")
        # Half a second; on a slow or busy machine as long as a few other actions.
        assert stopped_s < max(0.5, 5 * base_s)
    finally:
        chat.change_settings(usual)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_turns_with_a_fold(tab: Person, opened: tuple[Handle, Services]) -> None:
    """A question stops a fold, and a summary that is refused is only tried again at the next
    turn: so this person reads each reply while the program folds, until there is a summary."""
    chat = opened[1].chat
    usual = chat.settings
    # So short that the first turns are folded early, and that no prompt takes long to read.
    short = {"window_tokens": 384, "reply_tokens": 4, "summary_tokens": 40}
    chat.change_settings(usual.model_copy(update=short))
    try:
        for number in range(20):
            tab.write(f"{SAID[number % len(SAID)]} (message {number + 1})")
            expect(tab.feet).to_have_count(number + 1, timeout=PATIENCE_MS)
            expect(tab.send_button).to_be_visible(timeout=PATIENCE_MS)
            if opened[1].store.load(tab.conversation_id).summary is None:
                assert chat.wait_for_folds(PATIENCE_MS / 1000)
        assert chat.wait_for_folds(PATIENCE_MS / 1000)
    finally:
        chat.change_settings(usual)
    expect(tab.page.locator("#chat .foldline")).to_have_count(1, timeout=PATIENCE_MS)
    expect(tab.questions).to_have_count(20)
    conversation = opened[1].store.load(tab.conversation_id)
    assert all(turn.finish in ("stop", "length") for turn in conversation.turns)
    assert conversation.summary and conversation.summary.covers > 0
    tab.page.locator("#panel-tabs [data-tab=memory]").click()
    expect(tab.page.locator("#summary-text")).to_have_text(conversation.summary.text)
