"""The real engine when replies are stopped, abandoned or waiting for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_llama import PROMPT, finished, reply, tiny_engine, tiny_model

from chatbot.engine.base import Finished, SamplingParams, TextDelta
from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import new_cache
from chatbot.engine.local import TransformersEngine


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


@pytest.fixture
def engine(model: Any) -> TransformersEngine:
    return tiny_engine(model)


def test_stop_during_decoding_ends_within_two_tokens(engine: TransformersEngine) -> None:
    stop = threading.Event()
    after = 0
    for event in engine.generate(PROMPT, SamplingParams(max_tokens=300), stop=stop):
        if isinstance(event, TextDelta):
            after += stop.is_set()
            stop.set()
    assert isinstance(event, Finished)
    assert event.finish == "cancelled"
    assert after <= 2
    assert event.usage.completion_tokens <= 3


def test_stop_inside_a_piece_of_prefill(model: Any) -> None:
    engine = tiny_engine(model, piece_tokens=512)
    stop = threading.Event()
    hook = model.model.layers[0].register_forward_hook(lambda *_: stop.set())
    try:
        last = finished(engine.generate(PROMPT, SamplingParams(max_tokens=9), stop=stop))
    finally:
        hook.remove()
    assert (last.finish, last.text) == ("cancelled", "")
    assert last.usage.prefill_s > 0
    assert reply(engine).token_ids == reply(tiny_engine(model)).token_ids


def test_stop_before_anything(engine: TransformersEngine) -> None:
    stop = threading.Event()
    stop.set()
    last = finished(engine.generate(PROMPT, SamplingParams(max_tokens=40), stop=stop))
    assert (last.finish, last.token_ids) == ("cancelled", ())


def test_a_stopped_call_leaves_the_cache_as_before(model: Any) -> None:
    from chatbot.engine.decode import StopGate, Stopped

    gate = StopGate(model)
    reader = Reader(model, new_cache(model), ())
    reader.read(PROMPT[:20])
    calls = iter([False, True])
    gate.watch(lambda: next(calls))
    with pytest.raises(Stopped):
        reader.read(PROMPT[20:])
    gate.unwatch()
    assert [layer.get_seq_length() for layer in reader.cache.layers] == [20, 20]
    again = reader.read(PROMPT[20:])
    torch.testing.assert_close(
        again, model(torch.tensor([PROMPT])).logits[0, -1], atol=1e-2, rtol=0
    )


def test_a_token_read_by_our_own_step_is_stopped_between_layers(model: Any) -> None:
    from chatbot.engine.decode import StopGate, Stopped
    from chatbot.engine.llama_step import llama_step

    model.one_token = llama_step(model)
    try:
        gate = StopGate(model)
        reader = Reader(model, new_cache(model), ())
        reader.read(PROMPT[:20])
        calls = iter([False, True])
        gate.watch(lambda: next(calls))
        with pytest.raises(Stopped):
            reader.read(PROMPT[20:21])
        gate.unwatch()
        assert [layer.get_seq_length() for layer in reader.cache.layers] == [20, 20]
        again = reader.read(PROMPT[20:21])
    finally:
        del model.one_token
    right = model(torch.tensor([PROMPT[:21]])).logits[0, -1]
    torch.testing.assert_close(again, right, atol=1e-2, rtol=0)


def test_closing_the_engine_ends_a_reply_and_waits_for_no_abandoned_one(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatbot.engine.local.CLOSE_WAIT_S", 0.2)
    engine = tiny_engine(model)
    abandoned = engine.generate(PROMPT, SamplingParams(max_tokens=300))
    next(abandoned)
    engine.close()
    assert engine.status.state == "failed"
    assert finished(abandoned).finish == "cancelled"


def test_closing_the_engine_stops_a_reply_that_is_read() -> None:
    engine = tiny_engine(tiny_model())
    began, ends = threading.Event(), []

    def read() -> None:
        for event in engine.generate(PROMPT, SamplingParams(max_tokens=400)):
            began.set()
            time.sleep(0.02)
            if isinstance(event, Finished):
                ends.append(event)

    thread = threading.Thread(target=read)
    thread.start()
    assert began.wait(60)
    engine.close()
    thread.join(60)
    assert [end.finish for end in ends] == ["cancelled"]


@pytest.mark.parametrize("events_taken", [0, 1, 8])
def test_closing_the_iterator_frees_the_engine(
    engine: TransformersEngine, events_taken: int
) -> None:
    events = engine.generate(PROMPT, SamplingParams(max_tokens=300))
    for _ in range(events_taken):
        next(events)
    events.close()  # type: ignore[attr-defined]
    assert reply(engine).finish == "length"


def test_replies_wait_for_each_other_in_order(model: Any) -> None:
    engine = tiny_engine(model)
    order: list[int] = []
    holder = engine.generate(PROMPT, SamplingParams(max_tokens=300))
    next(holder)
    threads = []
    for number in range(4):
        thread = threading.Thread(target=lambda n=number: (reply(engine), order.append(n)))  # type: ignore[misc]
        thread.start()
        threads.append(thread)
        time.sleep(0.1)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    started = time.monotonic()
    last = finished(engine.generate(PROMPT, SamplingParams(max_tokens=40), stop=stop))
    assert last.finish == "cancelled"
    assert time.monotonic() - started < 3.0
    assert order == []
    holder.close()  # type: ignore[attr-defined]
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3]
