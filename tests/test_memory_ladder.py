"""The real engine when memory runs out: it tries with less, keeps what was said, and goes on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from model_faults import Fault, raising
from tiny_llama import PROMPT, finished, reply, tiny_engine, tiny_model

from chatbot.engine.base import SamplingParams, TextDelta
from chatbot.engine.device_memory import Memory
from chatbot.engine.local import TransformersEngine
from chatbot.engine.memory import GIB, MIB
from chatbot.errors import OutOfMemoryError, SmallerPromptError

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory."),
    MemoryError(),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
]
SHORT = 64 * MIB + 500_000
"""Free bytes with which the tiny model's whole window does not fit."""
GREEDY = SamplingParams(max_tokens=40)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waiting for a second thread takes longer than the work of so small a model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    """The model; what was there before a test is not looked through at each collection.

    The engine collects at every step down, and all that other tests have imported takes long.
    """
    model = tiny_model()
    reply(tiny_engine(model))  # imports the rest
    gc.collect()
    gc.freeze()
    yield model
    gc.unfreeze()


def with_free_memory(engine: TransformersEngine, free: Callable[[], Memory]) -> TransformersEngine:
    """The same engine on a machine with so much memory."""
    assert engine._loaded is not None
    return TransformersEngine(engine._loaded, engine.tokenizer, free=free)


def tensors() -> int:
    """How many tensors there are, once all that nobody holds is gone."""
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("at_call", [1, 3])
def test_before_the_first_token_it_is_tried_again(
    model: Any, at_call: int, error: Exception
) -> None:
    engine = tiny_engine(model, piece_tokens=36)
    cold = reply(tiny_engine(model, piece_tokens=36))
    at = {"at_call": at_call} if at_call == 1 else {"at_call": 2}
    with Fault(model, action=raising(error), **at):
        last = reply(engine)
    assert last.token_ids == cold.token_ids
    assert last.usage.ladder == ("smaller_pieces",)
    assert [notice.code for notice in last.notices] == ["memory_smaller_pieces"]
    assert engine.info.details["memory_steps"] == {"smaller_pieces": 1}
    assert reply(engine).usage.ladder == ()


@pytest.mark.parametrize("error", ERRORS)
def test_after_it_the_reply_ends_and_is_kept(model: Any, error: Exception) -> None:
    engine = tiny_engine(model, piece_tokens=512)
    cold = reply(tiny_engine(model, piece_tokens=512))
    before = tensors()
    with Fault(model, 21, raising(error)):
        events = list(engine.generate(PROMPT, GREEDY, conversation_id="a"))
    last = finished(iter(events))
    assert last.finish == "memory"
    assert last.token_ids == cold.token_ids[:20]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == last.text
    assert [notice.code for notice in last.notices] == ["memory_stopped"]
    assert "planned to take" in last.notices[0].text
    del events
    assert tensors() == before
    assert reply(engine).token_ids == cold.token_ids


def test_the_steps_in_their_order(model: Any) -> None:
    engine = tiny_engine(model, piece_tokens=64)
    for name in ("other", "own"):
        list(engine.generate(PROMPT[:30], GREEDY, conversation_id=name))
    fault = Fault(model, 1, raising(MemoryError()), times=1000)
    with fault, pytest.raises(SmallerPromptError, match="Memory ran out after") as caught:
        list(engine.generate(PROMPT, GREEDY, conversation_id="own", ladder=()))
    steps = ("evict_idle", "drop_prefix", "smaller_pieces", "int8_cache")
    assert caught.value.ladder == steps
    assert fault.calls == len(steps) + 1
    assert engine.memory().kv_bytes == 0
    assert caught.value.__context__ is None  # it would hold the tensors of the reply
    again = finished(engine.generate(PROMPT, GREEDY, conversation_id="own", ladder=steps))
    assert again.usage.ladder == steps
    assert engine.memory().kv_by_conversation["own"] < 300 * 100  # kept in 8 bit


def test_the_own_prefix_outlives_the_first_step(model: Any) -> None:
    engine = tiny_engine(model, piece_tokens=64)
    for name in ("other", "own"):
        list(engine.generate(PROMPT[:30], GREEDY, conversation_id=name))
    with Fault(model, 1, raising(MemoryError())):
        last = finished(engine.generate(PROMPT, GREEDY, conversation_id="own"))
    assert last.usage.ladder == ("evict_idle",)
    assert last.usage.cached_tokens == 30
    assert list(engine.memory().kv_by_conversation) == ["own"]
    assert last.token_ids == reply(tiny_engine(model, piece_tokens=64)).token_ids


def test_nothing_helps(model: Any) -> None:
    engine = tiny_engine(model)
    before = tensors()
    with (
        Fault(model, 1, raising(MemoryError()), times=1000),
        pytest.raises(OutOfMemoryError, match=r"planned to take .* weights") as caught,
    ):
        reply(engine)
    assert not isinstance(caught.value, SmallerPromptError)
    assert caught.value.ladder[0] == "int8_cache"
    assert tensors() == before
    assert reply(engine).finish == "length"


def test_a_limit_that_is_near_counts_as_reached(model: Any) -> None:
    looks = 0

    def free() -> Memory:
        nonlocal looks
        looks += 1
        return Memory(GIB, GIB if looks <= 2 else MIB)

    engine = with_free_memory(tiny_engine(model), free)
    with pytest.raises(OutOfMemoryError, match="1 MiB were free"):
        reply(engine)


def test_a_growing_reply_stops_before_the_limit(model: Any) -> None:
    looks = 0

    def free() -> Memory:
        nonlocal looks
        looks += 1
        return Memory(GIB, GIB if looks <= 6 else MIB)

    engine = with_free_memory(tiny_engine(model), free)
    last = reply(engine)
    assert last.finish == "memory"
    assert 16 <= last.usage.completion_tokens < 40


def test_the_window_shrinks_with_free_memory_and_grows_again(model: Any) -> None:
    available = GIB

    def free() -> Memory:
        return Memory(GIB, available)

    engine = with_free_memory(tiny_engine(model), free)
    assert (engine.info.max_window_tokens, engine.info.full_window_tokens) == (512, 0)
    assert engine.status.message == "tiny is ready."
    available = SHORT
    info = engine.info
    assert info.max_window_tokens < 512 == info.full_window_tokens
    assert info.max_window_tokens % 64 == 0
    assert f"window is {info.max_window_tokens} of 512 tokens" in engine.status.message
    available = 80 * MIB  # enough, but with nothing to spare
    assert engine.info.max_window_tokens == info.max_window_tokens
    available = GIB
    assert engine.info.max_window_tokens == 512


def test_the_limit_of_a_container_is_seen(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chatbot.engine import device_memory

    monkeypatch.setattr(device_memory, "CGROUP", tmp_path)
    engine = tiny_engine(model)
    assert engine.info.full_window_tokens == 0
    (tmp_path / "memory.max").write_text(f"{GIB}\n")
    (tmp_path / "memory.stat").write_text("inactive_file 0\n")
    (tmp_path / "memory.current").write_text(f"{GIB - SHORT}\n")
    assert engine.info.full_window_tokens == 512
    (tmp_path / "memory.current").write_text(f"{GIB - 1 * MIB}\n")
    with pytest.raises(OutOfMemoryError):
        reply(engine)
