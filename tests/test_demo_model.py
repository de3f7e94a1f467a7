"""The real demo model: answers, ends by itself, and stops quickly."""

from __future__ import annotations

import threading
import time

import pytest

from chatbot.engine.base import Engine, SamplingParams


@pytest.mark.model
def test_demo_answers_and_ends_by_itself(demo_engine: Engine) -> None:
    form = demo_engine.tokenizer.chat_format
    system = demo_engine.tokenizer.encode("You are a helpful assistant.")
    question = demo_engine.tokenizer.encode(
        "What is the capital of France? Answer in one sentence."
    )
    prompt = form.begin + system + form.after_system + question + form.end
    last = list(demo_engine.generate(prompt, SamplingParams(max_tokens=60)))[-1]
    assert "Paris" in last.text
    assert last.finish == "stop"
    assert not form.stop_ids & set(last.token_ids)
    assert "<|" not in last.text


@pytest.mark.model
def test_stop_in_a_long_prefill_of_the_demo_is_quick(demo_engine: Engine) -> None:
    form = demo_engine.tokenizer.chat_format
    prompt = form.begin + demo_engine.tokenizer.encode("word " * 6000)[:6000] + form.end
    stop = threading.Event()
    set_at: list[float] = []
    timer = threading.Timer(0.5, lambda: (set_at.append(time.monotonic()), stop.set()))
    timer.start()
    last = list(demo_engine.generate(prompt, SamplingParams(max_tokens=5), stop=stop))[-1]
    assert last.finish == "cancelled"
    assert time.monotonic() - set_at[0] < 3.0  # the whole prompt takes ten times as long
