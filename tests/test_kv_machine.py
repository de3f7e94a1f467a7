"""Whatever happens in whatever order, no chat gets anything of another, and the bound holds."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tiny_llama import START_ID, finished, tiny_engine, tiny_model, token_bytes

from chatbot.engine.base import SamplingParams, TextDelta
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_idle import AsTheyAre, Elsewhere, IdleForm
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.local import TransformersEngine
from chatbot.errors import EngineError

SYSTEM = (START_ID, *range(60, 80))
NAMES = st.sampled_from("abcd")
WORDS = st.lists(st.integers(90, 240), min_size=1, max_size=25)
MODEL = tiny_model()
BYTES_PER_TOKEN = token_bytes(MODEL)
PARAMS = SamplingParams(max_tokens=5)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Fault:
    """Lets the nth call of the model from now fail."""

    def __init__(self) -> None:
        self.calls_left = 0
        MODEL.register_forward_hook(self._run)

    def _run(self, module: Any, arguments: Any, output: Any) -> Any:
        self.calls_left -= 1
        if self.calls_left == 0:
            raise RuntimeError("kernel fault")
        return output


FAULT = Fault()


def checksum(cache: Any) -> str:
    parts = (
        rows.held.contiguous().view(torch.uint8).numpy().tobytes()
        for layer in cache.layers
        for rows in layer.rows
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()


class Chats(RuleBasedStateMachine):
    """Four chats at one engine; every reply is compared with that of an engine that keeps none."""

    @initialize(
        idle=st.sampled_from([AsTheyAre(), Elsewhere("cpu")]), steps=st.sampled_from([4, 6, 20])
    )
    def begin(self, idle: IdleForm, steps: int) -> None:
        self.store = PrefixStore(
            lambda: new_cache(MODEL),
            bound_bytes=steps * 64 * BYTES_PER_TOKEN,
            bytes_per_token=BYTES_PER_TOKEN,
            idle=idle,
        )
        self.engine = tiny_engine(MODEL, store=self.store, piece_tokens=16)
        self.cold = tiny_engine(MODEL, piece_tokens=16)
        self.ids = dict.fromkeys("abcd", SYSTEM)

    def prompt(self, name: str, words: list[int]) -> tuple[int, ...]:
        ids = (*self.ids[name], *words)
        # As a fold does: the front is replaced before the window is full.
        self.ids[name] = ids if len(ids) < 180 else (*SYSTEM, *ids[-30:])
        return self.ids[name]

    @rule(name=NAMES, words=WORDS)
    def ask(self, name: str, words: list[int]) -> None:
        prompt = self.prompt(name, words)
        untouched = self.others(name)
        made = finished(self.engine.generate(prompt, PARAMS, conversation_id=name))
        assert made.token_ids == finished(self.cold.generate(prompt, PARAMS)).token_ids
        kept = self.store._kept[name]
        assert kept.token_ids == (*prompt, *made.token_ids)[: len(kept.token_ids)]
        assert made.usage.cached_tokens < len(prompt)
        now = self.others(name)
        assert all(untouched[other] == now[other] for other in now)
        self.ids[name] += made.token_ids

    @rule(name=NAMES, words=WORDS)
    def fold(self, name: str, words: list[int]) -> None:
        self.ids[name] = (*SYSTEM, *self.ids[name][-12:])
        self.ask(name, words)

    @rule(name=NAMES, words=WORDS, after=st.integers(1, 7), closes=st.booleans())
    def stop(self, name: str, words: list[int], after: int, closes: bool) -> None:
        stop = threading.Event()
        prompt = self.prompt(name, words)
        events = self.engine.generate(prompt, PARAMS, conversation_id=name, stop=stop)
        for count, _ in enumerate(events, 1):
            if count == after:
                stop.set()
                if closes:
                    events.close()  # type: ignore[attr-defined]
                    break

    @rule(name=NAMES, words=WORDS, call=st.integers(1, 6))
    def fail(self, name: str, words: list[int], call: int) -> None:
        FAULT.calls_left = call
        try:
            finished(self.engine.generate(self.prompt(name, words), PARAMS, conversation_id=name))
        except EngineError:
            assert name not in self.store._kept
        finally:
            FAULT.calls_left = 0

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.engine.forget(name)
        assert name not in self.store._kept

    @rule(name=NAMES, words=WORDS)
    def forget_while_it_runs(self, name: str, words: list[int]) -> None:
        for event in self.engine.generate(self.prompt(name, words), PARAMS, conversation_id=name):
            if isinstance(event, TextDelta):
                self.engine.forget(name)
        assert name not in self.store._kept

    @rule(words=WORDS)
    def read_for_nobody(self, words: list[int]) -> None:
        before = self.others("")
        prompt = (*SYSTEM, *words)
        made = finished(self.engine.generate(prompt, PARAMS))
        assert made.usage.cached_tokens == 0
        now = self.others("")
        assert all(before[name] == now[name] for name in now)

    @rule()
    def clear(self) -> None:
        self.store.clear()

    def others(self, name: str) -> dict[str, str]:
        return {n: checksum(k.cache) for n, k in self.store._kept.items() if n != name}

    @invariant()
    def books_are_right(self) -> None:
        if not hasattr(self, "store"):
            return
        figures = self.store.figures()
        assert figures.lent_bytes == 0
        assert figures.total_bytes <= figures.bound_bytes
        assert figures.moved_bytes <= figures.bound_bytes
        for name, kept in self.store._kept.items():
            assert len(kept.token_ids) == kept.cache.get_seq_length()
            assert figures.by_conversation[name] == kept.n_bytes == cache_bytes(kept.cache)
            # Each chat's words are its own, so its kept ids are the front of what it said.
            assert kept.token_ids[: len(SYSTEM)] == SYSTEM[: len(kept.token_ids)]


TestChats = Chats.TestCase
TestChats.settings = settings(
    max_examples=20, stateful_step_count=16, deadline=None, derandomize=True, database=None
)


def test_the_machine_sees_a_cache_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: with the caches of two chats exchanged, it fails."""
    machine = Chats()
    machine.begin(AsTheyAre(), 20)
    machine.ask("a", [100, 101])
    machine.ask("b", [200, 201])
    kept = machine.store._kept
    kept["a"], kept["b"] = (
        type(kept["a"])(kept["b"].cache, kept["a"].token_ids, kept["b"].n_bytes),
        type(kept["b"])(kept["a"].cache, kept["b"].token_ids, kept["a"].n_bytes),
    )
    with pytest.raises(AssertionError):
        for word in range(110, 130):
            machine.ask("a", [word])
    assert isinstance(machine.engine, TransformersEngine)
