"""Cutting a cache back: one meaning at every edge, equal to a cold run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_llama import tiny_model

from chatbot.engine.decode import Reader
from chatbot.engine.kv_cache import cache_bytes, fit, new_cache, truncate
from chatbot.engine.kv_layer import Int4Layer, Int8Layer, PlainLayer, dequantize, quantize
from chatbot.engine.kv_policy import capacity_tokens
from chatbot.engine.memory import CacheKind
from chatbot.errors import ModelError

IDS = tuple(range(40, 43))


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


def filled(model: Any, ids: tuple[int, ...]) -> Any:
    cache = new_cache(model)
    if ids:
        Reader(model, cache, ()).read(ids)
    return cache


@pytest.mark.parametrize("keep", [0, 1, 2, 3, 4, 100])
def test_truncated_cache_goes_on_like_a_cold_one(model: Any, keep: int) -> None:
    cache = filled(model, IDS)
    truncate(cache, keep)
    kept = IDS[:keep]
    assert cache.get_seq_length() == len(kept)
    assert {layer.get_seq_length() for layer in cache.layers} == {len(kept)}
    more = (90, 91, 92, 93)
    warm = Reader(model, cache, kept).read(more)
    cold = Reader(model, new_cache(model), ()).read((*kept, *more))
    torch.testing.assert_close(warm, cold, atol=1e-2, rtol=0)
    assert int(warm.argmax()) == int(cold.argmax())


def test_layers_of_different_length_are_made_equal(model: Any) -> None:
    cache = filled(model, IDS)
    cache.layers[1].crop(-1)
    truncate(cache, 2)
    assert [layer.get_seq_length() for layer in cache.layers] == [2, 2]


def test_negative_length_and_empty_cache(model: Any) -> None:
    with pytest.raises(ValueError, match="-1"):
        truncate(filled(model, IDS), -1)
    empty = new_cache(model)
    truncate(empty, 0)
    assert cache_bytes(empty) == 0
    assert cache_bytes(filled(model, IDS)) == 2 * 2 * 2 * 16 * capacity_tokens(len(IDS)) * 2


def random_states(tokens: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return torch.randn(1, 2, tokens, 16, generator=generator).to(dtype)


@pytest.mark.parametrize("kind", ["16bit", "int8", "int4"])
@pytest.mark.parametrize("keep", [0, 1, 10, 30, 40, 48, 50])
def test_rolled_back_cache_of_each_kind_goes_on_like_a_fresh_one(
    model: Any, kind: CacheKind, keep: int
) -> None:
    """As in transformers #45510, where a roll-back left old tokens in the quantised part."""
    ids = tuple(range(40, 90))
    cache = new_cache(model, kind)
    reader = Reader(model, cache, ())
    for token in ids:
        reader.read((token,))
    truncate(cache, keep)
    assert {layer.get_seq_length() for layer in cache.layers} == {keep}
    more = (100, 101, 102)
    warm = Reader(model, cache, ids[:keep]).read(more)
    cold = Reader(model, new_cache(model, kind), ()).read((*ids[:keep], *more))
    torch.testing.assert_close(warm, cold, atol=1e-2, rtol=0)


@pytest.mark.parametrize("layer_type", [PlainLayer, Int8Layer, Int4Layer])
def test_layers_only_append(layer_type: type[PlainLayer]) -> None:
    layer = layer_type()
    layer.update(random_states(70), random_states(70))
    before = [rows.held.clone() for rows in layer.rows]
    for _ in range(130):  # over two steps of growth
        layer.update(100 * random_states(1), random_states(1))
    layer.crop(-130)
    assert layer.get_seq_length() == 70
    assert all(torch.equal(rows.held, old) for rows, old in zip(layer.rows, before, strict=True))
    layer.reset()
    assert layer.get_seq_length() == 0
    assert not layer.is_initialized


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_8_bit_numbers_are_near_and_of_exact_size(dtype: torch.dtype) -> None:
    states = random_states(100, dtype)
    states[0, 0, 3] = 0
    states[0, 1, 4, 7] = 200.0
    numbers, scales = quantize(states)
    again = dequantize(numbers, scales, dtype)
    assert again.dtype == dtype
    assert torch.equal(again[0, 0, 3], states[0, 0, 3])
    largest = states.abs().amax(-1, keepdim=True).float()
    noise = {torch.float32: 0, torch.bfloat16: 2**-8, torch.float16: 2**-11}[dtype]
    # Half a step, twice the rounding of the type, and the scale's own at the largest number.
    assert ((again.float() - states.float()).abs() <= largest * (0.505 / 127 + 2 * noise)).all()
    layer = Int8Layer()
    layer.update(states[:, :, :64], states[:, :, :64])
    assert sum(rows.n_bytes for rows in layer.rows) == 2 * 2 * 64 * (16 + 2)


def test_unused_room_is_kept_until_it_is_given_back(model: Any) -> None:
    cache = filled(model, tuple(range(200)))
    full = cache_bytes(cache)
    truncate(cache, 10)
    assert cache_bytes(cache) == full
    held = [layer.rows[0].held.clone() for layer in cache.layers]
    fit(cache)
    assert cache_bytes(cache) == full // 4
    assert all(torch.equal(a, b.rows[0].held) for a, b in zip(held, cache.layers, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["16bit", "int8", "int4"])
def test_three_turns_in_each_type_stay_near_the_plain_cache(dtype: str, kind: CacheKind) -> None:
    """As in kvpress #27: another type came back on the second question.

    The lengths of the turns cross a step of growth, from just below and just above it.
    """
    model = tiny_model(dtype=dtype)
    for first in (63, 64, 65):
        reader = Reader(model, new_cache(model, kind), ())
        plain = Reader(model, new_cache(model), ())
        for turn, length in enumerate((first, 9, 64)):
            ids = tuple(60 + (turn + n) % 150 for n in range(length))
            ours, theirs = reader.read(ids), plain.read(ids)
            assert ours.dtype == theirs.dtype
            near = torch.cosine_similarity(ours.float(), theirs.float(), dim=0)
            assert near > (0.85 if kind == "int4" else 0.995)


def test_other_kinds_of_layers_are_the_librarys(model: Any) -> None:
    from types import SimpleNamespace

    from transformers import MistralConfig

    config = MistralConfig(num_hidden_layers=2, sliding_window=8)
    sliding = SimpleNamespace(config=config)
    assert not any(isinstance(layer, PlainLayer) for layer in new_cache(sliding).layers)
    with pytest.raises(ModelError, match="kv-cache-dtype 16bit"):
        new_cache(sliding, "int8")
