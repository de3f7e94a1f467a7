"""Live figures of memory: what is counted where, peaks that are seen, and none without a model."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from tiny_llama import PROMPT, finished, tiny_engine, tiny_model

from chatbot.engine.base import SamplingParams
from chatbot.engine.lazy import LazyEngine
from chatbot.engine.memory_meter import weights_in_memory
from chatbot.engine.process_memory import process_bytes, process_peak_bytes, reset_peak
from chatbot.engine.scripted import ScriptedEngine
from chatbot.errors import ModelError

GREEDY = SamplingParams(max_tokens=12)
MIB = 1 << 20


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


def test_a_reply_tells_what_it_took(model: Any) -> None:
    engine = tiny_engine(model)
    for name in ("a", "b"):
        last = finished(engine.generate(PROMPT, GREEDY, conversation_id=name))
    memory = last.usage.memory
    assert memory is not None
    assert memory.weights_bytes == sum(p.nbytes for p in model.parameters()) + sum(
        b.nbytes for b in model.buffers()
    )
    assert list(memory.kv_by_conversation) == ["a", "b"]
    assert sum(memory.kv_by_conversation.values()) == memory.kv_bytes <= memory.kv_bound_bytes
    assert 0 < memory.process_bytes <= memory.process_peak_bytes
    assert (memory.device_allocated_bytes, memory.device_total_bytes) == (0, 0)
    engine.forget("a")
    assert list(engine.memory().kv_by_conversation) == ["b"]


def test_the_peak_of_the_work_is_seen_though_it_is_gone(model: Any) -> None:
    if not reset_peak():
        pytest.skip("this system does not let a process start its peak anew")
    engine = tiny_engine(model)

    def work(*_: Any) -> None:
        torch.ones(96 * MIB, dtype=torch.uint8).add_(1)

    hook = model.model.layers[0].register_forward_hook(work)
    try:
        memory = finished(engine.generate(PROMPT, GREEDY)).usage.memory
    finally:
        hook.remove()
    assert memory is not None
    assert memory.activations_peak_bytes > 80 * MIB
    assert memory.process_peak_bytes > memory.process_bytes + 60 * MIB
    after = finished(engine.generate(PROMPT, GREEDY)).usage.memory
    assert after is not None and after.activations_peak_bytes < 60 * MIB


def test_the_peak_starts_anew() -> None:
    if not reset_peak():
        pytest.skip("this system does not let a process start its peak anew")
    block = bytearray(64 * MIB)
    del block
    high = process_peak_bytes()
    assert high >= process_bytes()
    reset_peak()
    assert process_peak_bytes() <= high - 32 * MIB


def test_shared_weights_count_once() -> None:
    first = torch.zeros(100)
    assert weights_in_memory([first, first.view(10, 10), torch.zeros(50)]) == 600


def test_an_engine_that_is_still_loading_knows_the_process_alone() -> None:
    def fail(handle: object) -> ScriptedEngine:
        raise ModelError("There is no such model.")

    engine = LazyEngine(fail)
    engine.wait(5)
    assert engine.memory().process_bytes > 0 == engine.memory().kv_bytes
    ready = LazyEngine(lambda handle: ScriptedEngine(["Hello."]))
    ready.wait(5)
    list(ready.generate((5, 6, 7), GREEDY, conversation_id="a"))
    assert list(ready.memory().kv_by_conversation) == ["a"]
    ready.close()
    engine.close()


THREADS = """
from threading import Thread
from chatbot.engine.process_memory import give_back_freed, process_bytes, share_one_arena
if {shared}:
    share_one_arena()
bytearray(30 << 20)  # from now on the C library keeps more of what is freed
before = process_bytes()
for _ in range(4):
    thread = Thread(target=lambda: [bytearray(60_000) for _ in range(400)])
    thread.start()
    thread.join()
give_back_freed()
print(process_bytes() - before)
"""


def kept_by_threads(*, shared: bool) -> int:
    code = THREADS.format(shared=shared)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(child.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_what_threads_freed_goes_back_to_the_machine() -> None:
    apart = kept_by_threads(shared=False)
    if apart < 4 * MIB:
        pytest.skip("this C library keeps nothing of what threads freed")
    assert kept_by_threads(shared=True) < apart / 4
