"""The way past a model that cannot be loaded, and who is logged in."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from chatbot.engine.base import Engine, EngineStatus
from chatbot.engine.lazy import LazyEngine, LoadHandle
from chatbot.engine.scripted import ScriptedEngine
from chatbot.engine.switching import SwitchingEngine
from chatbot.errors import ModelError
from chatbot.saved_settings import read_saved, save
from chatbot.settings import Settings
from chatbot.ui import panel
from chatbot.ui.status_html import status_html
from tests.browser.person import Site
from tests.ui.client import trigger


def load(settings: Settings) -> Engine:
    def loaded(handle: LoadHandle) -> Engine:
        if settings.model == "broken":
            raise ModelError("The weights of 'broken' are damaged.")
        return ScriptedEngine(lambda *_: "Hello.", name=settings.model)

    return LazyEngine(loaded)


def broken() -> Engine:
    return SwitchingEngine(Settings(model="broken"), load=load, prepare=lambda *_: None)


def test_a_chosen_model_that_cannot_be_loaded_gives_way_to_the_demo_model(tmp_path: Path) -> None:
    site = Site(tmp_path, engine=broken, model="broken")
    data_dir = site.settings.data_dir
    save(data_dir, {"model": "broken"})
    try:
        with httpx.Client(base_url=site.url, timeout=10, trust_env=False) as client:
            client.get("/")
            assert trigger(client, "act", {"act": "use-demo"})[-1]["success"]
        end = time.monotonic() + 60
        while site.services.engine.status.state != "ready" and time.monotonic() < end:
            time.sleep(0.05)
        assert site.services.engine.info.model == "demo"
        assert read_saved(data_dir)["model"] == "demo"
    finally:
        site.close()


@pytest.mark.parametrize(("language", "words"), [("en", "Use the demo model"), ("ko", "데모 모델")])
def test_the_strip_says_where_the_model_comes_from_and_the_way_past_it(
    language: str, words: str
) -> None:
    failed = EngineStatus("failed", "It is not there.")
    shown = status_html(language, failed, to_demo=True, is_saved=True)
    assert 'data-act="use-demo"' in shown and words in shown
    assert shown.count("<span>") == 3
    assert "use-demo" not in status_html("en", failed)
    assert "use-demo" not in status_html("en", EngineStatus("loading", "x"), to_demo=True)


@pytest.mark.parametrize(("language", "words"), [("en", "looked for again"), ("ko", "다시 찾고")])
def test_the_strip_says_that_a_server_is_looked_for_again(language: str, words: str) -> None:
    away = EngineStatus("failed", "No server answers.", again=True)
    assert words in status_html(language, away)
    assert words not in status_html(language, EngineStatus("failed", "No server answers."))


def test_the_foot_names_who_is_logged_in() -> None:
    assert "Logged in as anna" in panel.foot_html("en", "anna")
    assert "logout" in panel.foot_html("ko", "anna") and "logout" not in panel.foot_html("ko")
