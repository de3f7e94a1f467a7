"""The real demo model: answers, ends by itself, and stops quickly."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from conftest import MODEL_CACHE

from chatbot.engine import embedded
from chatbot.engine.base import SamplingParams
from chatbot.engine.cache_folder import is_intact
from chatbot.settings import Settings


@pytest.fixture(scope="module")
def demo() -> Any:
    from chatbot.engine.local import load_engine

    folder = MODEL_CACHE / "models" / embedded.DEMO_FOLDER
    if not is_intact(folder, embedded.DEMO_RECIPE):
        pytest.skip("the demo model is not in the cache; run 'make setup' once")

    class Report:
        def __call__(self, message: str, progress: float | None = None) -> None: ...

        def offer_tokenizer(self, tokenizer: object) -> None: ...

    return load_engine(Settings(cache_dir=MODEL_CACHE, device="cpu"), Report())


@pytest.mark.model
def test_demo_answers_and_ends_by_itself(demo: Any) -> None:
    form = demo.tokenizer.chat_format
    system = demo.tokenizer.encode("You are a helpful assistant.")
    question = demo.tokenizer.encode("What is the capital of France? Answer in one sentence.")
    prompt = form.begin + system + form.after_system + question + form.end
    last = list(demo.generate(prompt, SamplingParams(max_tokens=60)))[-1]
    assert "Paris" in last.text
    assert last.finish == "stop"
    assert not form.stop_ids & set(last.token_ids)
    assert "<|" not in last.text


@pytest.mark.model
def test_stop_in_a_long_prefill_of_the_demo_is_quick(demo: Any) -> None:
    form = demo.tokenizer.chat_format
    prompt = form.begin + demo.tokenizer.encode("word " * 6000)[:6000] + form.end
    stop = threading.Event()
    set_at: list[float] = []
    timer = threading.Timer(0.5, lambda: (set_at.append(time.monotonic()), stop.set()))
    timer.start()
    last = list(demo.generate(prompt, SamplingParams(max_tokens=5), stop=stop))[-1]
    assert last.finish == "cancelled"
    assert time.monotonic() - set_at[0] < 1.0
