"""Cases of comparable systems about caches and memory, over a whole chat and a tiny model."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from model_faults import Fault, raising
from tiny_llama import ByteTokenizer, finished, tiny_engine, tiny_model

from chatbot.chat import Chat, TurnDone
from chatbot.commands.bench_watch import WatchedEngine
from chatbot.engine.base import SamplingParams
from chatbot.engine.local import TransformersEngine
from chatbot.messages import Turn
from chatbot.settings import Settings
from chatbot.store import Store

GREEDY = SamplingParams(temperature=0.0)
PAIRS = {index: pair for index, pair in enumerate((b"an", b"zi", b"th", b"er", b"  "), start=1)}


class PairTokenizer(ByteTokenizer):
    """Joins some letters to one token, which the model never does of itself."""

    name = "pairs"

    def encode(self, text: str) -> tuple[int, ...]:
        data = text.encode()
        for index, pair in PAIRS.items():
            data = data.replace(pair, bytes([index]))
        return tuple(data)

    def decode(self, token_ids: Any) -> str:
        parts = (PAIRS.get(i, bytes([i])) for i in token_ids if i < 256)
        return b"".join(parts).decode(errors="replace")


class Rig:
    def __init__(self, folder: Path, model: Any) -> None:
        loaded = tiny_engine(model, window_tokens=1024, piece_tokens=64)._loaded
        assert loaded is not None
        self.cold = TransformersEngine(loaded, PairTokenizer())
        self.engine = WatchedEngine(TransformersEngine(loaded, PairTokenizer()))
        settings = Settings(
            data_dir=folder,
            window_tokens=1024,
            reply_tokens=40,
            summary="off",
            system_prompt="Be brief.",
            embedding_model="none",
        )
        self.store = Store(folder / "chats.db")
        self.chat = Chat(settings=settings, store=self.store, engine=self.engine)
        self.id = self.store.create_conversation().id

    def ask(self, text: str) -> Turn:
        *_, last = self.chat.reply(self.id, text, sampling=GREEDY)
        assert isinstance(last, TurnDone)
        return last.turn


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> Iterator[None]:
    """When memory ends, garbage is collected, which takes long in a process of many tests."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model(window_tokens=1024)


@pytest.fixture
def rig(tmp_path: Path, model: Any) -> Iterator[Rig]:
    made = Rig(tmp_path, model)
    yield made
    made.chat.close()
    made.store.close()


@pytest.mark.parametrize("odd", ["Hanzi", "  the other  ", "\nthe weather\n"])
def test_a_reply_in_unusual_tokens_is_reused_as_it_is(rig: Rig, model: Any, odd: str) -> None:
    forced = iter(odd.encode())

    def force(output: Any) -> Any:
        token = next(forced, 256)
        output.logits[:] = -10.0
        output.logits[..., token] = 10.0
        return output

    # The model is made to say it letter by letter.
    with Fault(model, 2, force, times=len(odd) + 1):
        turn = rig.ask("What is it?")
    rig.chat.wait_for_folds()
    said = bytes(turn.reply_token_ids)
    assert said.endswith(odd.encode()), "the fault did not come in the right place"
    assert rig.engine.tokenizer.encode(turn.reply) != turn.reply_token_ids
    prompt = rig.engine.prompt_ids
    second = rig.ask("And then?")
    assert second.usage is not None
    held = (*prompt, *turn.reply_token_ids)
    assert rig.engine.prompt_ids[: len(held)] == held
    assert second.usage.cached_tokens >= len(held)
    cold = finished(rig.cold.generate(rig.engine.prompt_ids, SamplingParams(max_tokens=40)))
    assert second.reply_token_ids == cold.token_ids


@pytest.mark.parametrize("at_call", [1, 3])
def test_out_of_memory_neither_hangs_nor_spoils_the_next_turn(
    rig: Rig, model: Any, at_call: int
) -> None:
    rig.ask("Hello")
    rig.chat.wait_for_folds()
    started_s = time.process_time()  # of this process, since others may hold up the machine
    error = torch.OutOfMemoryError("CUDA out of memory.")
    with Fault(model, at_call, raising(error), times=1000):
        turn = rig.ask("What is it?")
        rig.chat.wait_for_folds()
    assert time.process_time() - started_s < 30  # threads of other tests count, too
    assert turn.finish == "memory"
    assert bool(turn.reply) == (at_call > 1)
    assert not rig.chat.is_running(rig.id)
    assert rig.engine.memory().kv_bytes == 0
    after = rig.ask("And now?")
    assert after.finish in ("stop", "length")
    cold = finished(rig.cold.generate(rig.engine.prompt_ids, SamplingParams(max_tokens=40)))
    assert after.reply_token_ids == cold.token_ids
