"""The real engine when it fails, runs out of memory or is asked for too much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from model_faults import Fault, raising, with_logit
from tiny_llama import PROMPT, START_ID, finished, reply, tiny_engine, tiny_model

from chatbot.engine.base import SamplingParams
from chatbot.engine.kv_cache import new_cache
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.local import TransformersEngine
from chatbot.errors import EngineError, InputError


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


@pytest.mark.parametrize("where", ["prefill", "reply", "third turn"])
def test_window_is_kept(model: Any, where: str) -> None:
    engine = tiny_engine(model, window_tokens=96)
    prompts = {"prefill": 95, "reply": 60, "third turn": 80}
    prompt = (START_ID, *([65, 66, 67] * 40)[: prompts[where] - 1])
    room = 96 - len(prompt)
    if where == "third turn":
        reply(engine, prompt[:20], max_tokens=8)
        reply(engine, prompt[:50], max_tokens=8)
    for max_tokens in {max(1, room - 1), room}:
        last = reply(engine, prompt, max_tokens=max_tokens)
        assert last.usage.completion_tokens == max_tokens or last.finish == "stop"
    with pytest.raises(InputError, match="window of 96 by 1"):
        reply(engine, prompt, max_tokens=room + 1)
    assert reply(engine, prompt[:10], max_tokens=5).finish in ("length", "stop")


@pytest.mark.parametrize("prompt, params", [((), {}), (PROMPT, {"max_tokens": 0})])
def test_empty_requests_are_refused(
    engine: TransformersEngine, prompt: tuple[int, ...], params: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        reply(engine, prompt, **params)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("at_call", [1, 6])
def test_broken_logits_fail_one_reply_only(
    model: Any, value: float, temperature: float, at_call: int
) -> None:
    engine = tiny_engine(model, piece_tokens=512)
    with (
        Fault(model, at_call, with_logit(value)),
        pytest.raises(EngineError, match="no numbers"),
    ):
        # A drawn end token must not come before the fault.
        reply(engine, temperature=temperature, min_tokens=at_call)
    assert reply(engine).finish == "length"


def test_any_other_failure_is_a_sentence(model: Any) -> None:
    engine = tiny_engine(model)
    with (
        Fault(model, 2, raising(RuntimeError("kernel image\ntrace"))),
        pytest.raises(EngineError, match=r"failed during the reply \(kernel image\)"),
    ):
        reply(engine)
    assert reply(engine).finish == "length"


def keeping(model: Any) -> PrefixStore:
    return PrefixStore(lambda: new_cache(model), bound_bytes=1 << 24, bytes_per_token=512)


def test_store_gets_exactly_what_the_cache_holds(model: Any) -> None:
    store = keeping(model)
    engine = tiny_engine(model, store=store)
    events = engine.generate(PROMPT, SamplingParams(max_tokens=9), conversation_id="a")
    made = finished(events)
    kept = store._kept["a"]
    assert kept.token_ids == (*PROMPT, *made.token_ids[:-1])
    assert kept.cache.get_seq_length() == len(kept.token_ids)
    with Fault(model, 6, with_logit(float("nan"))), pytest.raises(EngineError):
        list(engine.generate(PROMPT, SamplingParams(max_tokens=40), conversation_id="a"))
    assert "a" not in store._kept


def test_closed_engine_says_so(engine: TransformersEngine) -> None:
    engine.close()
    engine.close()
    assert engine.status.state == "failed"
    with pytest.raises(EngineError, match="closed"):
        reply(engine)
