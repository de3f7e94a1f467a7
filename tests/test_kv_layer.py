"""Cutting a cache back: one meaning at every edge, equal to a cold run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_llama import tiny_model

from chatbot.engine.decode import Reader
from chatbot.engine.kv_layer import cache_bytes, new_cache, truncate
from chatbot.engine.kv_policy import capacity_tokens

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
    torch.testing.assert_close(warm, cold, atol=1e-4, rtol=1e-4)
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
    assert cache_bytes(filled(model, IDS)) == 2 * 2 * 2 * 16 * capacity_tokens(len(IDS)) * 4
