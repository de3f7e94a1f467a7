"""Another model is chosen on the page: its cost, its progress, its failure, and who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from chatbot.engine.base import Engine
from chatbot.engine.cache_folder import Progress
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.switching import SwitchingEngine
from chatbot.errors import ModelError
from chatbot.saved_settings import read_saved
from chatbot.settings import Settings
from tests.browser.person import Person, Site, person, until

pytestmark = pytest.mark.browser
Windows = Callable[..., BrowserContext]


class Models:
    """Models by name that are got and loaded when the test lets them."""

    def __init__(self) -> None:
        self.got, self.loaded = threading.Event(), threading.Event()
        self.loaded.set()

    def engine(self) -> Engine:
        return SwitchingEngine(Settings(), load=self._load, prepare=self._prepare)

    def _prepare(self, settings: Settings, progress: Progress) -> None:
        progress("Downloading it, once.", 0.3)
        assert self.got.wait(60)
        if settings.model == "nowhere":
            raise ModelError("There is no model folder or file nowhere; check the path.")

    def _load(self, settings: Settings) -> Engine:
        def load(handle: LoadHandle) -> Engine:
            handle("Reading the weights.", 0.6)
            assert self.loaded.wait(60)
            if settings.model == "broken":
                raise ModelError("The weights of 'broken' are damaged.")
            return ScriptedEngine(lambda *_: f"I am {settings.model}.", name=settings.model)

        return LazyEngine(load)


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def own(folder: Path, models: Models) -> Iterator[Site]:
    site = Site(folder, engine=models.engine)
    yield site
    models.got.set()
    models.loaded.set()
    site.close()


def choose(tab: Person, name: str) -> None:
    model = tab.page.locator("#settings [data-name=model] input")
    model.fill(name)
    model.press("Tab")
    expect(tab.page.locator("#settings .load")).to_contain_text("Changed: Model")
    tab.page.locator("#load-model").click()


def test_another_model_takes_over_without_a_restart(
    windows: Windows, own: Site, models: Models
) -> None:
    tab = person(windows(), own.url)
    tab.ask("Who are you?")
    expect(tab.last_reply()).to_have_text("I am demo.")
    tab.page.locator("#side-foot [data-act=options]").click()
    choose(tab, "better/model")
    status = tab.page.locator("#status")
    expect(status).to_contain_text("Getting better/model: Downloading it, once. 30 %")
    expect(status).to_contain_text("the model before it answers")
    tab.ask("And now?")
    expect(tab.last_reply()).to_have_text("I am demo.")
    models.loaded.clear()
    models.got.set()
    expect(status).to_contain_text("Loading better/model: Reading the weights. 60 %")
    tab.write("Are you there?")
    expect(tab.page.locator("#chat .pending")).to_contain_text("Waiting for the model")
    models.loaded.set()
    expect(tab.last_reply()).to_have_text("I am better/model.")
    expect(tab.page.locator("#top .chip")).to_have_text("model")
    expect(tab.page.locator("#status .status")).to_have_count(0)
    expect(tab.page.locator("#settings .load")).to_have_count(0)
    assert own.services.chat.settings.model == "better/model"
    assert read_saved(own.settings.data_dir)["model"] == "better/model"


@pytest.mark.parametrize("name", ["nowhere", "broken"])
def test_a_model_that_fails_leaves_the_old_one(
    windows: Windows, own: Site, models: Models, name: str
) -> None:
    tab = person(windows(locale="ko-KR" if name == "nowhere" else "en-US"), own.url)
    tab.page.locator("#side-foot [data-act=options]").click()
    models.got.set()
    model = tab.page.locator("#settings [data-name=model] input")
    model.fill(name)
    model.press("Tab")
    tab.page.locator("#load-model").click()
    told = tab.page.locator("#status .failed")
    expect(told).to_contain_text(
        "nowhere 모델 폴더나 파일이 없습니다" if name == "nowhere" else "'broken' are damaged"
    )
    expect(tab.page.locator("#settings .load .refused")).to_be_visible()
    expect(model).to_have_value("demo")
    until(lambda: read_saved(own.settings.data_dir)["model"] == "demo", "the old one is saved")
    tab.ask("Who are you?")
    expect(tab.last_reply()).to_have_text("I am demo.")
    told.locator("button").click()
    expect(told).to_have_count(0)
