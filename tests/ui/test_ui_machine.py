"""The machine and the settings as HTML."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from chatbot.engine.base import EngineInfo, EngineStatus
from chatbot.messages import (
    MemoryFigures,
    Usage,
)
from chatbot.saved_settings import read_saved, save
from chatbot.settings import Settings, load_settings
from chatbot.ui.machine_html import Machine, live_html, machine_html, size_text
from chatbot.ui.options_html import LIVE, NAMES, Form, cost_of, options_html
from chatbot.ui.rows import messages
from chatbot.ui.view import Part
from tests.ui.samples import dated_turn as turn
from tests.ui.samples import text_of


def test_the_machine_shows_shares_speed_timeline_and_ladder() -> None:
    figures = MemoryFigures(
        weights_bytes=500 << 20, kv_bytes=20 << 20, kv_bound_bytes=100 << 20,
        kv_by_conversation={"c": 15 << 20, "stranger": 5 << 20}, process_bytes=1 << 30,
    )  # fmt: skip
    usage = Usage(100, 50, 40, 0.25, 2.0, memory=figures)
    turns = [turn(1, usage=usage), turn(2, usage=replace(usage, ladder=("evict_idle",)))]
    machine = Machine(EngineStatus("ready"), EngineInfo("m", 2048), 2048, figures)
    html = machine_html("en", machine, turns, {"c": "Mine"})
    text = text_of(html)
    assert "20.0 tokens/s" in text and "0.25 s" in text and "20.0 MiB of 100 MiB" in text
    assert "Mine 15.0 MiB" in text and "stranger" not in text, "a chat of nobody has no name here"
    assert html.count("<polygon") == 3 and "last 2 turns" in text
    assert "turn 2: Memory ran short, so the caches of other chats were dropped" in text
    assert max(float(w) for w in re.findall(r"width:([\d.]+)%", html)) <= 100
    assert live_html("en", None, {}) == ""


@pytest.mark.parametrize(
    ("size", "text"), [(1 << 30, "1.00 GiB"), (3 << 20, "3.0 MiB"), (2048, "2 KiB")]
)
def test_sizes_read_well(size: int, text: str) -> None:
    assert size_text(size) == text


def test_rows_of_the_chat_stay_small() -> None:
    """An update walks through every value of every row."""
    made = messages([Part("user", "q"), Part("assistant", "<p>x</p>", is_html=True)])
    assert made[1].content[0].value == "<p>x</p>" and made[0].content[0].text == "q"
    leaves = json.dumps(made[1].model_dump()).count(":")
    assert leaves < 25


def test_every_setting_on_the_page_exists_and_says_what_it_costs() -> None:
    assert set(NAMES) <= set(Settings.model_fields) and set(NAMES) >= LIVE
    assert (cost_of("temperature"), cost_of("model"), cost_of("embedding_model")) == (
        "now", "reload", "reembed",
    )  # fmt: skip
    html = options_html("en", Form(Settings(), {"model": "other"}, {"top_p": "9"}, "Be brief."))
    for name in NAMES:
        assert f'data-name="{name}"' in html
    assert "saved; takes effect" in html and "Must be from 0 to 1." in html and "Be brief." in html
    now = {name for name in NAMES if cost_of(name) == "restart"}
    assert now == {"max_concurrent_replies"} and {"summary", "summary_tokens"} <= LIVE
    assert html.count("after a restart") == 3 and html.count("from the next summary") == 2
    shared = options_html("en", Form(Settings(), names=tuple(LIVE)))
    assert 'data-name="model"' not in shared and 'data-name="threads"' not in shared


def test_saved_settings_count_least_and_nonsense_does_not(tmp_path: Path) -> None:
    save(tmp_path, {"temperature": 0.7, "top_k": 9, "gone": 1})
    loaded = load_settings({"data_dir": str(tmp_path), "top_k": "5"}, environ={})
    assert (loaded.temperature, loaded.top_k) == (0.7, 5)
    (tmp_path / "page-settings.json").write_text("{")
    assert read_saved(tmp_path) == {}
    assert load_settings({"data_dir": str(tmp_path)}, environ={}).temperature == 0
