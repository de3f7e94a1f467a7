"""What a chat makes of the caches: reading ahead gives way, and replies may be long."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_llama import END_ID, ByteTokenizer, finished, tiny_engine, tiny_model

from chatbot.chat import Chat, TurnDone
from chatbot.engine.base import EngineEvent, Finished, SamplingParams
from chatbot.engine.local import TransformersEngine
from chatbot.settings import Settings
from chatbot.store import Store

PIECE_TOKENS = 16


class Watched(TransformersEngine):
    """Remembers the prompts and the last event of every call."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.calls: list[tuple[tuple[int, ...], SamplingParams, EngineEvent]] = []

    def generate(
        self, prompt_ids: Sequence[int], params: SamplingParams, **options: Any
    ) -> Iterator[EngineEvent]:
        for event in super().generate(prompt_ids, params, **options):
            yield event
        self.calls.append((tuple(prompt_ids), params, event))


@pytest.fixture
def engine() -> Iterator[Watched]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = tiny_model(window_tokens=1024)
    loaded = tiny_engine(model, window_tokens=1024, piece_tokens=PIECE_TOKENS)._loaded
    yield Watched(loaded, ByteTokenizer())
    torch.set_num_threads(threads)


def without_end(module: Any, arguments: Any, output: Any) -> Any:
    output.logits[..., END_ID] = -1e9
    return output


def ask(chat: Chat, conversation_id: str, text: str) -> TurnDone:
    *_, done = chat.reply(conversation_id, text)
    assert isinstance(done, TurnDone)
    assert done.turn.finish in ("stop", "length")
    return done


def test_a_question_interrupts_reading_ahead(engine: Watched, tmp_path: Path) -> None:
    store = Store(tmp_path / "chats.db")
    settings = Settings(
        data_dir=tmp_path, window_tokens=1024, reply_tokens=16, system_prompt="Be brief."
    )
    chat = Chat(settings=settings, store=store, engine=engine)
    conversation_id = store.create_conversation().id
    ask(chat, conversation_id, "What is in the first room of the old house by the lake?")
    assert chat.wait_for_folds(20)

    # As after a fold: nothing of the next prompt has been read.
    engine.forget(conversation_id)
    began, asked, calls = threading.Event(), threading.Event(), []

    def wait(module: Any, arguments: Any) -> None:
        if threading.current_thread().name == "folding":
            calls.append(module)
            if len(calls) == 3:
                began.set()
                asked.wait(20)

    hook = engine._loaded.model.model.layers[0].register_forward_pre_hook(wait)  # type: ignore[union-attr]
    chat._folding.schedule(conversation_id)
    assert began.wait(20)
    threading.Timer(0.2, asked.set).start()
    done = ask(chat, conversation_id, "And in the second?")
    hook.remove()

    prompt, params, last = engine.calls[-2]
    assert params.max_tokens == 1
    assert isinstance(last, Finished)
    assert last.finish == "cancelled"
    assert len(prompt) > 3 * PIECE_TOKENS
    assert len(calls) == 3  # nothing was read after the question had come
    assert done.turn.usage is not None
    assert done.turn.usage.cached_tokens == 2 * PIECE_TOKENS  # what was read before is used
    prompt, params, last = engine.calls[-1]
    assert isinstance(last, Finished)
    cold = finished(tiny_engine(tiny_model(window_tokens=1024), window_tokens=1024).generate(
        prompt, params
    ))  # fmt: skip
    assert last.token_ids[:8] == cold.token_ids[:8]
    chat.wait_for_folds(20)
    chat.close()
    store.close()


def test_a_reply_may_be_longer_than_the_window_reserves_room_for(
    engine: Watched, tmp_path: Path
) -> None:
    """Half of the window is reserved; asked for more, it goes on without its oldest tokens."""
    never = tiny_model(window_tokens=1024)
    never.register_forward_hook(without_end)
    loaded = tiny_engine(never, window_tokens=256, piece_tokens=64)._loaded
    store = Store(tmp_path / "chats.db")
    settings = Settings(
        data_dir=tmp_path, window_tokens=256, reply_tokens=400, system_prompt="Be brief."
    )
    chat = Chat(settings=settings, store=store, engine=TransformersEngine(loaded, ByteTokenizer()))
    conversation_id = store.create_conversation().id
    done = ask(chat, conversation_id, "What is in the first room of the old house by the lake?")
    usage = done.turn.usage
    assert usage is not None
    assert (done.turn.finish, usage.completion_tokens) == ("length", 400)
    assert usage.evicted_tokens > 400 - 256
    assert [notice.code for notice in done.turn.notices] == ["memory_evicted_in_reply"]
    stored = store.load(conversation_id).turns[-1]
    assert stored.usage is not None
    assert stored.usage.evicted_tokens == usage.evicted_tokens
    chat.wait_for_folds(20)
    again = ask(chat, conversation_id, "And in the second?")
    assert again.turn.usage is not None
    chat.close()
    store.close()
