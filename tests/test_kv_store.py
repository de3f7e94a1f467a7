"""Caches kept from turn to turn: every reply equals a cold run, and the bound is never passed."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_llama import START_ID, tiny_engine, tiny_model

from chatbot.engine.base import Finished, Prefilled, SamplingParams, TextDelta
from chatbot.engine.device_memory import Memory
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.local import TransformersEngine
from chatbot.engine.memory import CacheKind
from chatbot.engine.memory_watch import MARGIN_BYTES
from chatbot.errors import EngineError

BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 2
SYSTEM = (START_ID, *range(60, 90))


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


def store_of(engine: TransformersEngine) -> PrefixStore:
    assert isinstance(engine._store, PrefixStore)
    return engine._store


def bounded(engine: TransformersEngine) -> None:
    figures = store_of(engine).figures()
    assert figures.total_bytes <= figures.bound_bytes


def reply(
    engine: TransformersEngine, prompt: tuple[int, ...], name: str | None, max_tokens: int = 12
) -> Finished:
    params = SamplingParams(max_tokens=max_tokens)
    events = []
    for event in engine.generate(prompt, params, conversation_id=name):
        bounded(engine)
        events.append(event)
    assert isinstance(events[-1], Finished)
    return events[-1]


class Conversation:
    """A growing prompt, as a chat makes it: front, turns, question."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._random = random.Random(seed)
        self.ids: tuple[int, ...] = SYSTEM

    def ask(self) -> tuple[int, ...]:
        self.ids += tuple(self._random.choices(range(60, 250), k=self._random.randint(3, 25)))
        return self.ids

    def fold(self) -> None:
        """The front is replaced, as when old turns become a summary."""
        self.ids = SYSTEM + self.ids[-20:]


@pytest.mark.parametrize("kind", ["16bit", "int8"])
def test_interleaved_conversations_equal_cold_runs(model: Any, kind: CacheKind) -> None:
    """With caches of one window, of two and of eight, all of which are asked the same."""
    window_bytes = 512 * (BYTES_PER_TOKEN if kind == "16bit" else 2 * 2 * 2 * (16 + 2))
    engines = [
        tiny_engine(model, kv_cache_bytes=windows * window_bytes, cache=kind)
        for windows in (1, 2, 8)
    ]
    cold = tiny_engine(model, cache=kind)
    talks = [Conversation(name, seed) for seed, name in enumerate("abc")]
    order = random.Random(7)
    shared = [0, 0, 0]
    for step in range(24):
        talk = order.choice(talks)
        if step % 9 == 8:
            talk.fold()
        prompt = talk.ask()
        wanted = reply(cold, prompt, None, max_tokens=6).token_ids
        for place, engine in enumerate(engines):
            warm = reply(engine, prompt, talk.name, max_tokens=6)
            assert warm.token_ids == wanted
            shared[place] += warm.usage.cached_tokens
        talk.ids += wanted
    assert store_of(cold).figures().by_conversation == {}
    assert min(shared) > 500, shared


def test_only_the_new_part_is_read(model: Any) -> None:
    engine = tiny_engine(model)
    first = reply(engine, SYSTEM, "a")
    assert first.usage.cached_tokens == 0
    held = SYSTEM + first.token_ids
    events = list(
        engine.generate((*held, 70, 71), SamplingParams(max_tokens=1), conversation_id="a")
    )
    # All but the last token of the reply, which was never read.
    assert events[0] == Prefilled(len(held) + 2, len(held) + 2, len(held) - 1)
    again = reply(engine, (*held, 70, 71), "a")
    assert again.usage.cached_tokens == len(held) + 1  # all but the last
    assert reply(engine, SYSTEM, "b").usage.cached_tokens == 0


@pytest.mark.parametrize("where", ["prefill", "reply", "closed", "before"])
def test_stopped_replies_leave_a_right_cache(model: Any, where: str) -> None:
    engine, cold = tiny_engine(model, piece_tokens=16), tiny_engine(model)
    prompt = SYSTEM + tuple(range(100, 180))
    stop = threading.Event()
    if where == "before":
        stop.set()
    events = engine.generate(prompt, SamplingParams(max_tokens=40), conversation_id="a", stop=stop)
    for count, event in enumerate(events):
        if where == "prefill" and count == 2:
            stop.set()
        if where in ("reply", "closed") and isinstance(event, TextDelta) and count > 9:
            stop.set()
            if where == "closed":
                events.close()  # type: ignore[attr-defined]
                break
    for other in (prompt[:90], prompt, (*prompt, 99)):
        assert reply(engine, other, "a").token_ids == reply(cold, other, None).token_ids
    assert store_of(engine).figures().lent_bytes == 0


@pytest.mark.parametrize("where, cached", [("prefill", 48), ("reply", 89), ("closed", 89)])
def test_what_was_read_before_a_stop_is_used_again(model: Any, where: str, cached: int) -> None:
    engine = tiny_engine(model, piece_tokens=16)
    prompt = SYSTEM + tuple(range(100, 180))
    stop = threading.Event()
    events = engine.generate(prompt, SamplingParams(max_tokens=9), conversation_id="a", stop=stop)
    for event in events:
        done = event.done_tokens if isinstance(event, Prefilled) else len(prompt)
        if done >= (48 if where == "prefill" else len(prompt)):
            if where == "closed":
                events.close()  # type: ignore[attr-defined]
                break
            stop.set()
    assert reply(engine, prompt[:90], "a").usage.cached_tokens == cached


def test_poisoned_caches_are_dropped(model: Any) -> None:
    engine = tiny_engine(model)
    reply(engine, SYSTEM, "a")
    reply(engine, SYSTEM, "b")

    def poison(module: Any, arguments: Any, output: Any) -> Any:
        output.logits[:] = float("nan")
        return output

    hook = model.register_forward_hook(poison)
    with pytest.raises(EngineError):
        reply(engine, (*SYSTEM, 70, 71), "a")
    hook.remove()
    assert list(store_of(engine).figures().by_conversation) == ["b"]
    assert reply(engine, (*SYSTEM, 70, 71), "a").usage.cached_tokens == 0


def test_least_recently_used_go_first_and_bytes_are_exact(model: Any) -> None:
    engine = tiny_engine(model, window_tokens=128, kv_cache_bytes=256 * BYTES_PER_TOKEN)
    for name in "abc":  # 31 and 12 tokens each: one step of 64
        reply(engine, SYSTEM, name)
    reply(engine, (*SYSTEM, 70), "a")
    figures = store_of(engine).figures()
    assert list(figures.by_conversation) == ["b", "c", "a"]
    assert set(figures.by_conversation.values()) == {64 * BYTES_PER_TOKEN}
    for name, kept in store_of(engine)._kept.items():
        assert figures.by_conversation[name] == cache_bytes(kept.cache)
        assert len(kept.token_ids) == kept.cache.get_seq_length()
    reply(engine, SYSTEM + tuple(range(100, 160)), "d", max_tokens=30)  # two steps
    figures = store_of(engine).figures()
    assert list(figures.by_conversation) == ["c", "a", "d"]
    assert figures.evicted == 1
    assert figures.total_bytes == 256 * BYTES_PER_TOKEN == figures.bound_bytes
    assert engine.info.details["kv_bytes_by_conversation"] == figures.by_conversation


def test_a_bound_below_the_window_shrinks_the_window_of_a_store(model: Any) -> None:
    store = PrefixStore(
        lambda: new_cache(model), bound_bytes=64 * BYTES_PER_TOKEN, bytes_per_token=BYTES_PER_TOKEN
    )
    with store.lend(None, (1,), total_tokens=64) as lease:
        assert lease.reserved_bytes == 64 * BYTES_PER_TOKEN
        with (
            pytest.raises(EngineError, match="the bound is"),
            store.lend("b", (1,), total_tokens=1),
        ):
            pass
    with store.lend("b", (1,), total_tokens=64):
        pass
    with pytest.raises(EngineError), store.lend("b", (1,), total_tokens=65):
        pass
    assert store.figures().lent_bytes == 0


def test_a_lent_cache_is_pinned(model: Any) -> None:
    store = PrefixStore(
        lambda: new_cache(model), bound_bytes=128 * BYTES_PER_TOKEN, bytes_per_token=BYTES_PER_TOKEN
    )
    for name in "ab":
        with store.lend(name, (1, 2), total_tokens=2) as lease:
            model(torch.tensor([[1, 2]]), cache=lease.cache, use_cache=True)
            lease.keep((1, 2))
    with store.lend("a", (1, 2, 3), total_tokens=64) as mine:
        assert mine.reused_tokens == 2
        with store.lend("c", (1, 2), total_tokens=64):
            assert store.figures().by_conversation == {}  # b had to go, a could not
        assert mine.cache.get_seq_length() == 2
        mine.keep((1, 2))
    assert list(store.figures().by_conversation) == ["a"]


def test_forgetting_reaches_a_cache_on_loan(model: Any) -> None:
    engine = tiny_engine(model)
    events = engine.generate(SYSTEM, SamplingParams(max_tokens=5), conversation_id="a")
    next(events)
    engine.forget("a")
    list(events)
    assert store_of(engine).figures().by_conversation == {}
    reply(engine, SYSTEM, "a")
    engine.forget("a")
    engine.forget("never there")
    assert store_of(engine).figures().total_bytes == 0


def checksum(cache: Any) -> str:
    parts = (
        rows.held.contiguous().numpy().tobytes() for layer in cache.layers for rows in layer.rows
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_a_kept_prefix_is_not_changed_by_other_chats(model: Any) -> None:
    """As in MemOS #2301, where a stored prefix grew with each chat that used it."""
    engine = tiny_engine(model)
    reply(engine, SYSTEM, "a")
    kept = store_of(engine)._kept["a"].cache
    before, length = checksum(kept), kept.get_seq_length()
    for turn in range(3):
        reply(engine, (*SYSTEM, 200 + turn, 201), "b")
        assert (checksum(kept), kept.get_seq_length()) == (before, length)
    reply(engine, (*SYSTEM, 203), "a")
    for layer in store_of(engine)._kept["b"].cache.layers:
        for rows in layer.rows:
            assert all(
                rows._storage.data_ptr() != mine._storage.data_ptr()
                for other in store_of(engine)._kept["a"].cache.layers
                for mine in other.rows
            )


def test_threads_and_errors_never_mix_conversations(model: Any) -> None:
    """Six threads, a bound for two of them, with stops, faults and deletions in between."""
    engine = tiny_engine(model, kv_cache_bytes=1024 * BYTES_PER_TOKEN)
    made: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    faults = threading.local()

    def fail(module: Any, arguments: Any, output: Any) -> Any:
        if getattr(faults, "now", False):
            raise RuntimeError("kernel fault")
        return output

    def talk(seed: int) -> None:
        chance, mine = random.Random(seed), Conversation(f"chat {seed % 4}", seed)
        for _ in range(8):
            prompt = mine.ask()
            what = chance.choice(["reply", "reply", "stop", "fault", "forget"])
            stop = threading.Event()
            faults.now = what == "fault"
            try:
                params = SamplingParams(max_tokens=6)
                for event in engine.generate(prompt, params, conversation_id=mine.name, stop=stop):
                    if what == "stop" and isinstance(event, TextDelta):
                        stop.set()
            except EngineError:
                continue
            if what == "forget":
                engine.forget(mine.name)
            assert isinstance(event, Finished)
            if event.finish != "cancelled":
                made.append((prompt, event.token_ids))

    hook = model.register_forward_hook(fail)
    threads = [threading.Thread(target=talk, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    hook.remove()
    assert len(made) > 20
    assert store_of(engine).figures().lent_bytes == 0
    bounded(engine)
    cold = tiny_engine(model)
    for prompt, token_ids in made:
        assert reply(cold, prompt, None, max_tokens=6).token_ids == token_ids


def test_the_window_is_what_one_cache_may_hold(model: Any) -> None:
    """A full window, reached in prefill, in the reply and by turns, takes its exact bytes."""
    engine = tiny_engine(model, window_tokens=128, kv_cache_bytes=128 * BYTES_PER_TOKEN)
    prompt = SYSTEM + tuple(range(100, 100 + 96))
    for length in (127, 100, 64, 20):
        last = reply(engine, prompt[:length], "a", max_tokens=128 - length)
        assert last.usage.completion_tokens == 128 - length or last.finish == "stop"
    assert store_of(engine).figures().kept_bytes <= 128 * BYTES_PER_TOKEN


def test_the_chat_in_use_keeps_its_room_and_idle_ones_give_it_back(model: Any) -> None:
    """So that memory is the same from the first turn on, also when a fold shortens the prompt."""
    engine = tiny_engine(model)
    long, short = (START_ID, *range(200)), (START_ID, *range(40))

    def taken(name: str) -> int:
        return engine.memory().kv_by_conversation[name]

    whole_window = engine.info.max_window_tokens * BYTES_PER_TOKEN
    for ids in (short, long, short):
        reply(engine, ids, "a")
        assert taken("a") == whole_window
    reply(engine, short, "b")
    assert taken("a") < taken("b") == whole_window


def test_unused_room_of_idle_chats_goes_before_any_cache(model: Any) -> None:
    long, short = (START_ID, *range(200)), (START_ID, *range(40))
    bound = (256 + 64) * BYTES_PER_TOKEN
    engine = tiny_engine(model, kv_cache_bytes=bound)
    reply(engine, short, "b")
    reply(engine, long, "a")
    reply(engine, short, "a")
    assert engine.memory().kv_by_conversation.keys() == {"a", "b"}
    reply(engine, short, "c")
    assert engine.memory().kv_by_conversation.keys() == {"a", "b", "c"}


def test_a_chat_takes_only_what_it_needs_where_memory_is_short(model: Any) -> None:
    engine = tiny_engine(model)
    window_tokens = engine.info.max_window_tokens
    free_bytes = MARGIN_BYTES + engine._watch.window_bytes(window_tokens) - 1
    engine._watch._free = lambda: Memory(2 * free_bytes, free_bytes)
    reply(engine, (START_ID, *range(40)), "a")
    whole_window = window_tokens * BYTES_PER_TOKEN
    assert 0 < engine.memory().kv_by_conversation["a"] < whole_window
