"""The page with the embedded demo model for real: a document, its source, and Stop."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.services import Services, build_services
from chatbot.settings import Settings
from chatbot.ui.server import Handle, launch
from tests.browser.person import person
from tests.conftest import MODEL_CACHE

pytestmark = [pytest.mark.browser, pytest.mark.model]
NOTE = (
    "Minutes of the harbour board.\n\nThe lighthouse of Carrick was built in 1898.\n\n"
    "The board met in the old customs house and spoke about nets, ropes and paint."
)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Handle, Services]]:
    settings = Settings(data_dir=tmp_path, cache_dir=MODEL_CACHE, port=0, reply_tokens=200)
    services = build_services(settings)
    handle = launch(services)
    yield handle, services
    handle.close()
    services.close()


def test_the_demo_model_answers_from_a_document_and_stops(
    opened: tuple[Handle, Services], windows: Callable[..., BrowserContext]
) -> None:
    handle, services = opened
    context = windows()
    context.set_default_timeout(60_000)
    tab = person(context, handle.url)
    expect(tab.page.locator("#top .badge")).to_have_text("demo", timeout=60_000)
    expect(tab.page.locator(".demo-note")).to_contain_text("small English demo model")
    tab.upload(("minutes.txt", NOTE.encode()))
    expect(tab.documents).to_have_count(1, timeout=60_000)
    tab.write("When was the lighthouse of Carrick built?")
    expect(tab.feet).to_have_count(1, timeout=90_000)
    best = tab.page.locator("#chat .sources .best blockquote")
    expect(best).to_have_text("The lighthouse of Carrick was built in 1898.")
    expect(tab.page.locator("#chat .sources .document").first).to_have_text("minutes.txt")

    tab.new_chat().write("Write a very long story about a boat and a storm.")
    expect(tab.last_reply()).to_have_text(re.compile(r"\w+ \w+ \w+"), timeout=60_000)
    began = time.monotonic()
    tab.page.keyboard.press("Escape")
    expect(tab.send_button).to_be_visible()
    assert time.monotonic() - began < 2.0
    expect(tab.feet.last).to_contain_text("Stopped.")
    services.chat.wait_for_folds(30)
