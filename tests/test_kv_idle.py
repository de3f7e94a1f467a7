"""Caches of chats that are not in use: made smaller or moved before any is dropped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_llama import START_ID, finished, tiny_engine, tiny_model, token_bytes

from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_choice import store_for
from chatbot.engine.kv_idle import AsTheyAre, Elsewhere, IdleForm, InEightBit
from chatbot.engine.kv_layer import Int8Layer, PlainLayer, Rows
from chatbot.engine.kv_policy import CachePolicy
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.local import TransformersEngine
from chatbot.engine.memory import CacheKind

BYTES_PER_TOKEN = token_bytes(tiny_model())
INT8_BYTES = token_bytes(tiny_model(), "int8")
SYSTEM = (START_ID, *range(60, 90))


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


def engine_with(
    model: Any, idle: IdleForm, *, tokens: int = 4096, kind: CacheKind = "16bit"
) -> tuple[TransformersEngine, PrefixStore]:
    store = PrefixStore(
        lambda: new_cache(model, kind),
        bound_bytes=tokens * BYTES_PER_TOKEN,
        bytes_per_token=BYTES_PER_TOKEN if kind == "16bit" else INT8_BYTES,
        idle=idle,
    )
    return tiny_engine(model, store=store, cache=kind), store


def reply(engine: TransformersEngine, ids: tuple[int, ...], name: str | None) -> Finished:
    return finished(engine.generate(ids, SamplingParams(max_tokens=8), conversation_id=name))


class Far(Elsewhere):
    """The way to another memory, without one: counts the bytes that go there and back."""

    def __init__(self) -> None:
        super().__init__("cpu", "cpu")
        self.ways: list[tuple[str, int]] = []

    def rest(self, cache: Any) -> Any:
        self.ways.append(("away", cache_bytes(cache)))
        return super().rest(cache)

    def wake(self, cache: Any) -> None:
        self.ways.append(("home", cache_bytes(cache)))
        super().wake(cache)


def test_resting_in_8_bit_and_back(model: Any) -> None:
    engine, store = engine_with(model, InEightBit(torch.float32))
    reply(engine, SYSTEM, "a")
    assert store.figures().by_conversation == {"a": 64 * BYTES_PER_TOKEN}
    reply(engine, SYSTEM, None)  # nobody else's chat, and no pressure
    assert type(store._kept["a"].cache.layers[0]) is PlainLayer
    assert store._kept["a"].is_exact
    reply(engine, SYSTEM, "b")
    figures = store.figures()
    assert figures.by_conversation == {"a": 64 * INT8_BYTES, "b": 64 * BYTES_PER_TOKEN}
    assert figures.total_bytes == sum(figures.by_conversation.values())
    assert type(store._kept["a"].cache.layers[0]) is Int8Layer
    assert not store._kept["a"].is_exact
    back = reply(engine, (*SYSTEM, 70, 71), "a")
    assert back.usage.cached_tokens == len(SYSTEM)  # cut while it rested, then woken
    assert type(store._kept["a"].cache.layers[0]) is PlainLayer
    assert not store._kept["a"].is_exact  # once in 8 bit, never again that of a fresh start
    assert store._kept["b"].is_exact is False
    assert reply(engine, (200, 201, 202), "a").usage.cached_tokens == 0
    assert store._kept["a"].is_exact


def test_a_cache_from_8_bit_is_near_the_cold_one(model: Any) -> None:
    engine, store = engine_with(model, InEightBit(torch.float32))
    reply(engine, SYSTEM, "a")
    reply(engine, SYSTEM, "b")
    with store.lend("a", (*SYSTEM, 70), total_tokens=64) as lease:
        reader = lease.reader(model)
        warm = reader.read((70,))
        assert not lease.is_exact
    with torch.inference_mode():
        cold = model(torch.tensor([(*SYSTEM, 70)])).logits[0, -1]
    assert torch.cosine_similarity(warm, cold, dim=0) > 0.999
    assert not torch.equal(warm, cold)


def test_smaller_ones_stay_where_larger_ones_would_go(model: Any) -> None:
    """Five chats of 64 tokens in room for four: in 8 bit all of them stay."""
    plain, plain_store = engine_with(model, AsTheyAre(), tokens=256)
    small, small_store = engine_with(model, InEightBit(torch.float32), tokens=256)
    for name in "abcde":
        reply(plain, SYSTEM, name)
        reply(small, SYSTEM, name)
        assert small_store.figures().total_bytes <= 256 * BYTES_PER_TOKEN
    assert list(plain_store.figures().by_conversation) == ["b", "c", "d", "e"]
    assert list(small_store.figures().by_conversation) == list("abcde")
    assert small_store.figures().evicted == 0
    reply(small, (*SYSTEM, *range(100, 230)), "f")  # 192 tokens: now some must go, oldest first
    figures = small_store.figures()
    assert list(figures.by_conversation) == list("bcdef")[-len(figures.by_conversation) :]
    assert figures.total_bytes <= figures.bound_bytes


def test_pressure_makes_the_oldest_rest_also_without_another_chat(model: Any) -> None:
    engine, store = engine_with(model, InEightBit(torch.float32), tokens=128)
    reply(engine, SYSTEM, "a")
    with store.lend(None, SYSTEM, total_tokens=100):
        assert store.figures().by_conversation == {}  # no room even in 8 bit
    reply(engine, SYSTEM, "a")
    engine, store = engine_with(model, InEightBit(torch.float32), tokens=168)
    reply(engine, SYSTEM, "a")
    with store.lend(None, SYSTEM, total_tokens=100):
        assert store.figures().by_conversation == {"a": 64 * INT8_BYTES}


def test_what_is_in_8_bit_already_stays_as_it_is(model: Any) -> None:
    engine, store = engine_with(model, InEightBit(torch.float32), kind="int8")
    cold = tiny_engine(model, cache="int8")
    reply(engine, SYSTEM, "a")
    reply(engine, SYSTEM, "b")
    assert store._kept["a"].is_exact
    again = reply(engine, (*SYSTEM, 70), "a")
    assert again.token_ids == reply(cold, (*SYSTEM, 70), None).token_ids


def test_moved_caches_are_counted_apart_and_come_back_the_same(model: Any) -> None:
    way = Far()
    engine, store = engine_with(model, way, tokens=128)
    cold = tiny_engine(model)
    chance = random.Random(3)
    ids = dict.fromkeys("abc", SYSTEM)
    for _ in range(15):
        name = chance.choice("abc")
        ids[name] += (chance.randrange(60, 250),)
        made = reply(engine, ids[name], name)
        assert made.token_ids == reply(cold, ids[name], None).token_ids
        figures = store.figures()
        assert figures.total_bytes <= figures.bound_bytes
        assert figures.moved_bytes <= figures.bound_bytes
        assert figures.kept_bytes + figures.moved_bytes == sum(figures.by_conversation.values())
        assert figures.kept_bytes == figures.by_conversation[name]
    assert {what for what, _ in way.ways} == {"away", "home"}
    assert set(store.figures().by_conversation) == set("abc")
    for name in "defg":  # the other memory has its bound as well
        reply(engine, SYSTEM, name)
    figures = store.figures()
    assert figures.moved_bytes <= 128 * BYTES_PER_TOKEN
    assert list(figures.by_conversation)[-1] == "g"


def test_rows_go_to_another_device(model: Any) -> None:
    rows = Rows(torch.zeros(1, 2, 3, 4))
    rows.append(torch.ones(1, 2, 3, 4))
    rows.move(torch.device("meta"))
    assert rows.held.device.type == "meta"
    assert rows.tokens == 3


def test_the_librarys_layers_stay_as_they_are() -> None:
    from types import SimpleNamespace

    from transformers import MistralConfig

    config = MistralConfig(num_hidden_layers=2, sliding_window=8)
    cache = new_cache(SimpleNamespace(config=config))
    for form in (AsTheyAre(), InEightBit(torch.float32), Elsewhere("cpu")):
        assert not form.rest(cache).is_changed


def test_the_setting_chooses(model: Any) -> None:
    from dataclasses import replace

    def form(idle: Any, device: str = "cpu") -> IdleForm:
        loaded = tiny_engine(model)._loaded
        assert loaded is not None
        store = store_for(replace(loaded, cache_policy=CachePolicy(idle=idle)))
        assert isinstance(store, PrefixStore)
        return store._idle

    assert isinstance(form("keep"), AsTheyAre)
    assert isinstance(form("int8"), InEightBit)
    assert isinstance(form("cpu"), AsTheyAre)  # it is there already


def test_a_cache_that_comes_back_takes_no_more_than_its_loan() -> None:
    """However much room it had: little of it may be used again, and the bound has no more."""
    away, model = Far(), tiny_model()
    engine, store = engine_with(model, away, tokens=640)
    long = (*SYSTEM, *(n % 200 for n in range(300)))
    reply(engine, long, "a")
    reply(engine, SYSTEM, "b")
    assert store.figures().moved_bytes
    with store.lend("a", long[:250], total_tokens=251):
        (lease,) = store._lent
        assert lease.reused_tokens == 249
        assert cache_bytes(lease.cache) <= lease.reserved_bytes < 6 * 64 * BYTES_PER_TOKEN
        figures = store.figures()
        assert figures.total_bytes <= figures.bound_bytes


def test_moved_rows_leave_unused_room_behind() -> None:
    rows = Rows(torch.zeros(1, 2, 1, 4))
    rows.append(torch.ones(1, 2, 70, 4), room_tokens=640)
    held = rows.held.clone()
    rows.move(torch.device("cpu"))
    assert rows.n_bytes == 128 * 2 * 4 * 4
    assert torch.equal(rows.held, held)
