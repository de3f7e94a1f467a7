"""Keeping of a long prompt what its end attends to: the right tokens, the right positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_llama import START_ID, finished, tiny_engine, tiny_model

from chatbot.engine.base import SamplingParams
from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_policy import LEAST_ROOM_TOKENS, SINK_TOKENS, CachePolicy
from chatbot.engine.kv_snap import (
    OBSERVED_TOKENS,
    POOLED_TOKENS,
    SnapReader,
    _votes,
    can_observe,
    important,
    observed_queries,
)
from chatbot.engine.kv_store import PrefixStore
from chatbot.engine.llama_step import llama_step
from chatbot.engine.memory import CacheKind

PROMPT = (START_ID, *(60 + (7 * n) % 180 for n in range(299)))
KEEP = 100


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


def snap(model: Any, keep_tokens: int, kind: CacheKind = "16bit") -> SnapReader:
    return SnapReader(model, new_cache(model, kind), (), limit_tokens=512, keep_tokens=keep_tokens)


def last_logits(reader: Reader, ids: tuple[int, ...]) -> torch.Tensor:
    *_, (_, logits) = reader.prefill(ids, piece_tokens=64)
    return logits


def test_the_votes_are_the_models_own_attention(model: Any) -> None:
    model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            weights = model(torch.tensor([PROMPT]), output_attentions=True).attentions
    finally:
        model.set_attn_implementation("sdpa")
    reader = Reader(model, new_cache(model), ())
    reader.read(PROMPT[:-OBSERVED_TOKENS])
    with observed_queries(model) as queries:
        reader.read(PROMPT[-OBSERVED_TOKENS:])
    for layer, asked, theirs in zip(reader.cache.layers, queries, weights, strict=True):
        votes = _votes(asked, layer.contents(torch.float32)[0])
        summed = theirs[:, :, -OBSERVED_TOKENS:].sum(2).reshape(1, 2, 2, -1).sum(2)
        torch.testing.assert_close(votes, summed, atol=0.005, rtol=0.01)


def test_the_best_attended_stay_with_their_neighbours() -> None:
    width, tokens, voters = 8, 200, OBSERVED_TOKENS
    keys = torch.zeros(1, 2, tokens, width)
    keys[0, 0, 90] = keys[0, 1, 120] = 5.0  # each head has its own
    queries = torch.ones(1, 4, voters, width)
    chosen = important(queries, keys, SINK_TOKENS + POOLED_TOKENS + voters)
    assert chosen.shape == (1, 2, SINK_TOKENS + POOLED_TOKENS + voters)
    near = POOLED_TOKENS // 2
    for head, place in enumerate((90, 120)):
        expected = [
            *range(SINK_TOKENS),
            *range(place - near, place + near + 1),
            *range(tokens - voters, tokens),
        ]
        assert chosen[0, head].tolist() == expected


@pytest.mark.parametrize("kind", ["16bit", "int8"])
def test_short_prompts_are_kept_whole(model: Any, kind: CacheKind) -> None:
    ours, plain = snap(model, 300, kind), Reader(model, new_cache(model, kind), ())
    assert torch.equal(last_logits(ours, PROMPT), last_logits(plain, PROMPT))
    assert ours.held_ids == PROMPT
    assert ours.notices() == ()


@pytest.mark.parametrize("kind", ["16bit", "int8"])
def test_what_is_kept_goes_on_behind_the_prompt(model: Any, kind: CacheKind) -> None:
    ours, plain = snap(model, KEEP, kind), Reader(model, new_cache(model, kind), ())
    torch.testing.assert_close(
        last_logits(ours, PROMPT), last_logits(plain, PROMPT), atol=1e-4, rtol=1e-4
    )
    assert ours.cache.get_seq_length() == KEEP
    assert 2 * cache_bytes(ours.cache) < cache_bytes(plain.cache)
    assert ours.held_ids is None
    assert ours.dropped_tokens == len(PROMPT) - KEEP
    assert [n.code for n in ours.notices()] == ["memory_prompt_evicted"]
    # The new key of the first layer depends on its token and its position alone.
    ours.read((77,))
    plain.read((77,))
    mine, whole = (r.cache.layers[0].contents(torch.float32)[0][:, :, -1] for r in (ours, plain))
    torch.testing.assert_close(mine, whole, atol=1e-4, rtol=1e-4)


def test_leaving_out_what_nobody_attends_to_changes_nothing(model: Any) -> None:
    """All but the unattended tokens are kept, so the next logits are nearly those of all."""
    ours, plain = snap(model, len(PROMPT) - 40), Reader(model, new_cache(model), ())
    last_logits(ours, PROMPT), last_logits(plain, PROMPT)
    random = torch.randperm(len(PROMPT) - 40 - OBSERVED_TOKENS).sort().values
    worse = Reader(model, new_cache(model), ())
    last_logits(worse, PROMPT)
    for layer in worse.cache.layers:
        keys, values = layer.contents(torch.float32)
        kept = torch.cat((random + 40, torch.arange(len(PROMPT) - OBSERVED_TOKENS, len(PROMPT))))
        layer.reset()
        layer.update(keys[:, :, kept], values[:, :, kept])
    worse.dropped_tokens = 40
    theirs = plain.read((77,))
    assert (ours.read((77,)) - theirs).norm() < (worse.read((77,)) - theirs).norm()


def test_a_reply_under_the_policy(model: Any) -> None:
    policy = CachePolicy(in_prompt="snapkv", prompt_keep_tokens=KEEP)
    store = PrefixStore(
        lambda: new_cache(model), bound_bytes=1 << 22, bytes_per_token=512, policy=policy
    )
    engine, cold = tiny_engine(model, store=store), tiny_engine(model)
    params = SamplingParams(max_tokens=6)
    made = finished(engine.generate(PROMPT, params, conversation_id="a"))
    assert made.usage.evicted_tokens == len(PROMPT) - KEEP
    assert [n.code for n in made.notices] == ["memory_prompt_evicted"]
    assert store.figures().by_conversation == {}
    again = finished(engine.generate(PROMPT, params, conversation_id="a"))
    assert (again.usage.cached_tokens, again.token_ids) == (0, made.token_ids)
    short = finished(engine.generate(PROMPT[:90], params, conversation_id="a"))
    assert short.token_ids == finished(cold.generate(PROMPT[:90], params)).token_ids
    assert list(store.figures().by_conversation) == ["a"]
    assert not any(layer.self_attn._forward_pre_hooks for layer in model.model.layers)


def test_reading_ahead_leaves_nothing_out(model: Any) -> None:
    """A prompt read ahead without a reply stays what the next prompt can begin with."""
    policy = CachePolicy(in_prompt="snapkv", prompt_keep_tokens=KEEP)
    store = PrefixStore(
        lambda: new_cache(model), bound_bytes=1 << 22, bytes_per_token=512, policy=policy
    )
    engine = tiny_engine(model, store=store)
    finished(engine.generate(PROMPT, SamplingParams(max_tokens=1), conversation_id="a"))
    longer = (*PROMPT, 70, 71)
    made = finished(engine.generate(longer, SamplingParams(max_tokens=4), conversation_id="a"))
    assert made.usage.cached_tokens == len(longer) - OBSERVED_TOKENS
    assert made.usage.evicted_tokens == len(longer) - KEEP


@pytest.mark.parametrize("steps", [False, True])
def test_all_vote_also_where_the_prompt_was_in_the_cache(steps: bool) -> None:
    """Read ahead or asked again, a prompt keeps what it keeps after a fresh start."""
    model = tiny_model()
    if steps:
        model.one_token = llama_step(model)
    policy = CachePolicy(in_prompt="snapkv", prompt_keep_tokens=KEEP)
    store = PrefixStore(
        lambda: new_cache(model), bound_bytes=1 << 22, bytes_per_token=512, policy=policy
    )
    engine = tiny_engine(model, store=store)
    params = SamplingParams(max_tokens=20)
    cold = finished(engine.generate(PROMPT, params))
    finished(engine.generate(PROMPT, SamplingParams(max_tokens=1), conversation_id="a"))
    made = finished(engine.generate(PROMPT, params, conversation_id="a"))
    assert made.usage.cached_tokens == len(PROMPT) - OBSERVED_TOKENS
    assert made.token_ids == cold.token_ids


def test_a_long_reply_stays_at_positions_of_the_window(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out of the prompt makes room in the cache, but no more positions."""
    policy = CachePolicy(in_prompt="snapkv", prompt_keep_tokens=KEEP)
    window = len(PROMPT) + LEAST_ROOM_TOKENS
    store = PrefixStore(
        lambda: new_cache(model),
        bound_bytes=1 << 22,
        bytes_per_token=512,
        policy=policy,
        window_tokens=window,
    )
    engine = tiny_engine(model, store=store, window_tokens=window)
    engine._info = replace(engine.info, replies_outgrow=True)
    positions = []
    read = Reader.read

    def watched(self: Reader, token_ids: Sequence[int]) -> torch.Tensor:
        logits = read(self, token_ids)
        positions.append(self._position)
        return logits

    monkeypatch.setattr(Reader, "read", watched)
    monkeypatch.setattr(engine, "_stop_ids", frozenset())
    made = finished(engine.generate(PROMPT, SamplingParams(max_tokens=150)))
    assert len(made.token_ids) == 150
    assert max(positions) == window
    assert [n.code for n in made.notices] == ["memory_prompt_evicted", "memory_evicted_in_reply"]


def test_other_layouts_are_read_whole(model: Any) -> None:
    reader = snap(model, KEEP)
    attention = model.model.layers[1].self_attn
    width = attention.head_dim
    del attention.head_dim
    try:
        assert not can_observe(model, reader.cache)
    finally:
        attention.head_dim = width
    assert can_observe(model, reader.cache)


def test_what_is_lost_of_a_text(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from chatbot.commands import bench_long_prompts as bench

    monkeypatch.setattr(bench, "PROMPT_TOKENS", 300)
    monkeypatch.setattr(bench, "FOLLOWING_TOKENS", 16)
    monkeypatch.setattr(bench, "KEPT_SHARES", (1.0, 0.5))
    ids = [60 + (n * n) % 180 for n in range(1200)]
    found = bench.long_prompts(model, ids, 128)
    assert list(found) == ["whole", "snapkv 100%", "snapkv 50%", "sink 100%", "sink 50%"]
    for name in ("whole", "snapkv 100%"):
        assert found[name]["top1_agreement"] == 1
        assert abs(found[name]["perplexity_change"]) < 1e-3
    for name in ("snapkv 50%", "sink 50%"):
        assert 0.35 < found[name]["bytes_ratio"] < 0.65
        assert found[name]["perplexity_change"] != 0
    assert len(list(bench._stretches(ids))) == 3
    assert [len(part) for part in next(bench._stretches(range(100)))] == [84, 16]
