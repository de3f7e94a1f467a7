"""A reply that outgrows its cache goes on to its end, within its bound and trained positions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_llama import END_ID, START_ID, finished, tiny_engine, tiny_model, token_bytes

from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_policy import SINK_TOKENS, CachePolicy, tokens_to_drop, tokens_to_reserve
from chatbot.engine.kv_sink import can_drop_middle, drop_middle, rotation
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.memory import CacheKind
from chatbot.errors import EngineError, InputError

BYTES_PER_TOKEN = token_bytes(tiny_model())
PROMPT = (START_ID, *range(60, 120))


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    """One that never ends a reply by itself."""
    model = tiny_model()

    def go_on(module: Any, arguments: Any, output: Any) -> Any:
        output.logits[..., END_ID] = -1e9
        return output

    model.register_forward_hook(go_on)
    return model


def filled(model: Any, ids: tuple[int, ...], kind: CacheKind = "16bit") -> Any:
    cache = new_cache(model, kind)
    Reader(model, cache, ()).read(ids)
    return cache


def small_store(model: Any, tokens: int, **options: Any) -> PrefixStore:
    return PrefixStore(
        lambda: new_cache(model),
        bound_bytes=tokens * BYTES_PER_TOKEN,
        bytes_per_token=BYTES_PER_TOKEN,
        **options,
    )


class Positions:
    """Remembers the largest position that the model was asked for."""

    def __init__(self, model: Any) -> None:
        self.largest = 0
        self._hook = model.model.rotary_emb.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, module: Any, arguments: Any, options: Any) -> None:
        found = options["position_ids"] if "position_ids" in options else arguments[1]
        self.largest = max(self.largest, int(found.max()))

    def __enter__(self) -> Positions:
        return self

    def __exit__(self, *details: object) -> None:
        self._hook.remove()


@pytest.mark.parametrize("kind", ["default", "llama3", "yarn"])
@pytest.mark.parametrize("shift", [-37, -1, 5])
def test_turning_a_key_is_the_key_at_the_other_position(kind: str, shift: int) -> None:
    model = tiny_model()
    if kind != "default":
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

        more = {"low_freq_factor": 1.0, "high_freq_factor": 4.0} if kind == "llama3" else {}
        model.config.rope_parameters = {
            "rope_type": kind,
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 128,
            **more,
        }
        model.model.rotary_emb = LlamaRotaryEmbedding(model.config)
    ids = tuple(range(60, 110))
    # Keys of the first layer depend on nothing but their own token and position.
    there = filled(model, ids).layers[0].contents(torch.float32)[0]
    cache = new_cache(model)
    reader = Reader(model, cache, ())
    reader._position = max(0, shift)  # read as if so many tokens stood before
    reader.read(ids[max(0, -shift) :])
    here = cache.layers[0].contents(torch.float32)[0]
    moved = rotation(model, shift)(there[:, :, max(0, -shift) :])
    torch.testing.assert_close(moved, here, atol=0.01, rtol=0.01)


@pytest.mark.parametrize("kind", ["16bit", "int8"])
def test_what_stays_is_where_it_then_stands(model: Any, kind: CacheKind) -> None:
    cache = filled(model, PROMPT, kind)
    before = [layer.contents(torch.float32) for layer in cache.layers]
    drop_middle(model, cache, 4, 24)
    stays = (*PROMPT[:4], *PROMPT[24:])
    assert cache.get_seq_length() == len(stays)
    tolerance = 0.01 if kind == "16bit" else 0.04
    fresh = filled(model, stays).layers[0].contents(torch.float32)
    kept = cache.layers[0].contents(torch.float32)
    for ours, theirs in zip(kept, fresh, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)
    for layer, (_, values) in zip(cache.layers, before, strict=True):
        now = layer.contents(torch.float32)[1]
        same = torch.cat((values[:, :, :4], values[:, :, 24:]), dim=2)
        torch.testing.assert_close(now, same, atol=tolerance / 2, rtol=tolerance / 2)


def test_a_reply_goes_on_in_a_full_cache(model: Any) -> None:
    store = small_store(model, 128)
    engine, cold = tiny_engine(model, store=store), tiny_engine(model)
    params = SamplingParams(max_tokens=300)
    sizes = []
    with Positions(model) as positions:
        events = []
        for event in engine.generate(PROMPT, params, conversation_id="a"):
            events.append(event)
            sizes.append(store.figures().total_bytes)
    made = events[-1]
    assert made.finish == "length"
    assert made.usage.completion_tokens == 300
    assert positions.largest < 128
    assert max(sizes) == 128 * BYTES_PER_TOKEN
    # All 360 tokens that were read, less the 128 at most that are left.
    assert made.usage.evicted_tokens >= 360 - 128
    assert [n.code for n in made.notices] == ["memory_evicted_in_reply"]
    assert made.notices[0].values == {"tokens": made.usage.evicted_tokens}
    whole = finished(cold.generate(PROMPT, params))
    assert whole.usage.evicted_tokens == 0 == len(whole.notices)
    room = 128 - len(PROMPT)
    assert made.token_ids[:room] == whole.token_ids[:room]
    # The cache is that of no prompt, so the next turn begins afresh, and rightly.
    assert store.figures().by_conversation == {}
    again = (*PROMPT, *made.token_ids[:2], 70)
    next_one = finished(engine.generate(again, SamplingParams(max_tokens=20), conversation_id="a"))
    assert next_one.usage.cached_tokens == 0
    assert (
        next_one.token_ids
        == finished(cold.generate(again, SamplingParams(max_tokens=20))).token_ids
    )


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_a_reply_goes_on_in_caches_of_few_bits(model: Any, kind: CacheKind) -> None:
    per_token = token_bytes(model, kind)
    store = PrefixStore(
        lambda: new_cache(model, kind), bound_bytes=128 * per_token, bytes_per_token=per_token
    )
    engine = tiny_engine(model, store=store, cache=kind)
    events = []
    for event in engine.generate(PROMPT, SamplingParams(max_tokens=150)):
        assert store.figures().total_bytes <= 128 * per_token
        events.append(event)
    made = events[-1]
    assert isinstance(made, Finished)
    assert (made.finish, made.usage.completion_tokens) == ("length", 150)
    assert made.usage.evicted_tokens > 0


def test_a_reply_may_be_longer_than_the_window(model: Any) -> None:
    engine = tiny_engine(model, window_tokens=150)
    with Positions(model) as positions:
        made = finished(engine.generate(PROMPT, SamplingParams(max_tokens=200)))
    assert made.usage.completion_tokens == 200
    assert 120 < positions.largest < 150
    with pytest.raises(InputError, match="window of 150"):
        list(engine.generate((*PROMPT, *PROMPT), SamplingParams(max_tokens=60)))


def test_it_can_be_forbidden(model: Any) -> None:
    store = small_store(model, 128, policy=CachePolicy(in_reply="none"))
    engine = tiny_engine(model, store=store)
    with pytest.raises(EngineError, match="raise kv_cache_bytes"):
        list(engine.generate(PROMPT, SamplingParams(max_tokens=300)))
    assert finished(engine.generate(PROMPT, SamplingParams(max_tokens=60))).finish == "length"


def test_a_prompt_is_never_cut_for_it(model: Any) -> None:
    """The reply may lose sight of the prompt's oldest tokens; reading the prompt never does."""
    engine = tiny_engine(model, store=small_store(model, 64))
    with pytest.raises(EngineError, match="raise kv_cache_bytes"):
        list(engine.generate(PROMPT, SamplingParams(max_tokens=60)))


def test_stopped_after_dropping(model: Any) -> None:
    store = small_store(model, 128)
    engine = tiny_engine(model, store=store)
    stop = threading.Event()
    events = engine.generate(PROMPT, SamplingParams(max_tokens=300), conversation_id="a", stop=stop)
    for count, _ in enumerate(events):
        if count == 120:
            stop.set()
    assert store.figures().by_conversation == {}
    assert store.figures().lent_bytes == 0


def test_two_replies_at_once_share_the_bound(model: Any) -> None:
    store = small_store(model, 256)
    with (
        store.lend("a", PROMPT, total_tokens=120) as first,
        store.lend("b", PROMPT, total_tokens=400) as second,
    ):
        assert (first.limit_tokens, second.limit_tokens) == (120, 128)
        reader = second.reader(model)
        list(reader.prefill(PROMPT, piece_tokens=16))
        for _ in range(200):
            reader.read((70,))
            assert cache_bytes(second.cache) <= 128 * BYTES_PER_TOKEN
        assert reader.held_ids is None


def test_models_whose_positions_cannot_be_changed_say_so(model: Any) -> None:
    store = small_store(model, 128)
    model.model.rotary_emb.rope_type = "dynamic"
    try:
        assert not can_drop_middle(model, new_cache(model))
        with (
            store.lend("a", PROMPT, total_tokens=400) as lease,
            pytest.raises(EngineError, match="cannot be shortened"),
        ):
            lease.reader(model)
        with store.lend("a", PROMPT, total_tokens=100) as lease:
            lease.reader(model)
    finally:
        model.model.rotary_emb.rope_type = "default"
    assert can_drop_middle(model, new_cache(model))


def test_how_much_goes_at_once() -> None:
    assert tokens_to_drop(100, 1, 128) == 0
    assert tokens_to_drop(127, 1, 128) == 0
    assert tokens_to_drop(128, 1, 128) == 32
    assert tokens_to_drop(128, 60, 128) == 60
    assert tokens_to_drop(10, 500, 128) == 10 - SINK_TOKENS
    assert tokens_to_drop(2, 500, 128) == 0


def test_how_much_a_loan_may_hold() -> None:
    def limit(prompt: int, total: int, room: int, window: int = 1000) -> int:
        return tokens_to_reserve(prompt, total, room_tokens=room, window_tokens=window)

    assert limit(50, 100, 128) == 100
    assert limit(50, 100, 127) == 0  # 64 whole steps would leave the reply 14 tokens
    assert limit(50, 500, 200) == 192
    assert limit(150, 500, 200) == 0
    assert limit(50, 500, 512, window=300) == 300
    assert limit(250, 500, 512, window=300) == 0
    assert limit(250, 300, 512, window=300) == 300
