"""Several replies at once on one model: each as if it were alone, and no more than fit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_llama import PROMPT, START_ID, finished, reply, tiny_engine, tiny_model

from chatbot.engine.base import Finished, SamplingParams, TextDelta
from chatbot.engine.fair_lock import FairLock
from chatbot.engine.kv_policy import cache_bound
from chatbot.engine.loading import checked_plan
from chatbot.engine.local import TransformersEngine
from chatbot.engine.memory import GIB, PlanRequest, make_plan
from chatbot.engine.model_figures import figures_of
from chatbot.engine.plan_text import format_plan
from chatbot.engine.planning import plan_command
from chatbot.errors import SettingsError
from chatbot.settings import Settings

PROMPTS = tuple((START_ID, *(PROMPT[n : n + 30])) for n in range(1, 7))
GREEDY = SamplingParams(max_tokens=40)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waiting for a second thread takes longer than the work of so small a model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


def engine_for(model: Any, replies: int) -> TransformersEngine:
    engine = tiny_engine(model)
    assert engine._loaded is not None
    loaded = replace(engine._loaded, replies_at_once=replies)
    return TransformersEngine(loaded, engine.tokenizer)


def test_each_reply_is_that_of_a_cold_run(model: Any) -> None:
    cold = [reply(tiny_engine(model), prompt).token_ids for prompt in PROMPTS]
    engine = engine_for(model, 3)
    for _ in range(2):  # the second time each finds its own cache
        with ThreadPoolExecutor(len(PROMPTS)) as pool:
            replies = pool.map(
                lambda n: (
                    finished(engine.generate(PROMPTS[n], GREEDY, conversation_id=str(n))).token_ids
                ),
                range(len(PROMPTS)),
            )
            assert list(replies) == cold


def test_two_replies_take_turns_token_by_token(model: Any) -> None:
    engine = engine_for(model, 2)
    cold = [reply(tiny_engine(model), prompt).token_ids for prompt in PROMPTS[:2]]
    both = [engine.generate(prompt, GREEDY) for prompt in PROMPTS[:2]]
    ends: dict[int, Finished] = {}
    while len(ends) < 2:
        for n, events in enumerate(both):
            event = next(events, None)
            if isinstance(event, Finished):
                ends[n] = event
    assert [ends[n].token_ids for n in range(2)] == cold


def test_a_stop_stops_its_own_reply_only(model: Any) -> None:
    engine = engine_for(model, 2)
    stop = threading.Event()
    stopped = engine.generate(PROMPT, SamplingParams(max_tokens=300), stop=stop)
    while not isinstance(next(stopped), TextDelta):
        pass
    stop.set()
    assert reply(engine).token_ids == reply(tiny_engine(model)).token_ids
    assert finished(stopped).finish == "cancelled"


def test_no_more_than_there_are_places(model: Any) -> None:
    engine = engine_for(model, 2)
    running = [engine.generate(PROMPT, SamplingParams(max_tokens=300)) for _ in range(2)]
    for events in running:
        next(events)
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    third = finished(engine.generate(PROMPT, GREEDY, stop=stop))
    assert (third.finish, third.token_ids) == ("cancelled", ())
    running[0].close()  # type: ignore[attr-defined]
    assert reply(engine).finish == "length"


def test_whoever_wants_to_be_alone_waits_for_all_and_holds_up_the_rest() -> None:
    lock = FairLock(2)
    inside = [lock.acquire(), lock.acquire()]
    order: list[str] = []
    entered = threading.Event()

    def alone() -> None:
        with lock.held(alone=True):
            order.append("alone")

    def later() -> None:
        entered.wait(5)
        with lock.held():
            order.append("later")

    threads = [threading.Thread(target=alone), threading.Thread(target=later)]
    for thread in threads:
        thread.start()
    while len(lock._queue) < 3:
        pass
    entered.set()
    for ticket in inside:
        assert order == []
        assert ticket is not None
        lock.release(ticket)
    for thread in threads:
        thread.join(5)
    assert order == ["alone", "later"]


def test_the_plan_counts_a_window_for_each(model: Any) -> None:
    figures = figures_of(model.config.to_dict())
    one = make_plan(figures, GIB, PlanRequest(window_tokens=512))
    three = make_plan(figures, GIB, PlanRequest(window_tokens=512, replies_at_once=3))
    assert three.kv_bytes == 3 * one.kv_bytes
    assert three.total_bytes - one.total_bytes == 2 * one.kv_bytes
    bound = cache_bound(three, 0, three.kv_bytes_per_token)
    assert bound.n_bytes >= 3 * 512 * three.kv_bytes_per_token
    given = cache_bound(three, 3 * 256 * three.kv_bytes_per_token, three.kv_bytes_per_token)
    assert given.window_tokens == 256
    with pytest.raises(SettingsError, match="for each reply"):
        cache_bound(three, 3 * 63 * three.kv_bytes_per_token, three.kv_bytes_per_token)


def test_more_than_fit_are_refused_at_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chatbot.engine import loading
    from chatbot.engine.device_memory import Memory

    monkeypatch.setattr(loading, "device_memory", lambda on_cuda: Memory(2 * GIB, 2 * GIB))
    settings = Settings(cache_dir=tmp_path, device="cpu", kv_cache_dtype="16bit")
    figures = figures_of({**plan_config(), "max_position_embeddings": 8192})
    assert checked_plan(settings, figures).replies_at_once == 1
    many = settings.model_copy(update={"max_concurrent_replies": 64})
    with pytest.raises(SettingsError, match=r"64 replies at once, .* choose --max-concurrent"):
        checked_plan(many, figures)
    short = many.model_copy(update={"window_tokens": 64})
    assert checked_plan(short, figures).replies_at_once == 64


def test_the_plan_on_the_command_line_says_how_many_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    settings = Settings(
        model="meta-llama/Meta-Llama-3-8B-Instruct", cache_dir=tmp_path, max_concurrent_replies=64
    )
    report = plan_command(settings, "12GiB")
    shown = format_plan(report)
    assert report["chosen"]["max_concurrent_replies"] == 64
    assert "64 replies at once" in shown and "--max-concurrent-replies " in report["advice"][0]


def plan_config() -> dict[str, Any]:
    from chatbot.engine.known_models import KNOWN_CONFIGS

    return dict(KNOWN_CONFIGS["demo"])
