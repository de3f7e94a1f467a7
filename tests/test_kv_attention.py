"""Packed attention: the library's numbers, chosen only where it is right and faster."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_llama import START_ID, tiny_engine, tiny_model
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from chatbot.engine import kv_attention
from chatbot.engine.base import Finished, SamplingParams
from chatbot.engine.kv_attention import NAME, best_attention, packed_attention, use_attention

PROMPT = (START_ID, *range(60, 190))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def timed(packed_s: float) -> Any:
    """The real outputs with made-up times: the library's takes 1 s."""

    def run(attention: Any, *arguments: Any) -> tuple[torch.Tensor, float]:
        return attention(*arguments)[0], packed_s if attention is packed_attention else 1.0

    return run


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("groups", [1, 3, 4])
@pytest.mark.parametrize("rows", [1, 5])
def test_same_numbers_as_the_library(dtype: torch.dtype, groups: int, rows: int) -> None:
    module = SimpleNamespace(num_key_value_groups=groups, is_causal=True)
    random = torch.Generator().manual_seed(groups)
    query = torch.randn(1, 2 * groups, rows, 16, generator=random).to(dtype)
    keys, values = torch.randn(2, 1, 2, 33, 16, generator=random).to(dtype)
    mask = None
    if rows > 1:
        mask = torch.ones(rows, 33, dtype=torch.bool).tril(33 - rows)[None, None]
    theirs, _ = sdpa_attention_forward(module, query, keys, values, mask, scaling=0.25)
    ours, _ = packed_attention(module, query, keys, values, mask, scaling=0.25)
    limit = kv_attention.TOLERANCE[dtype]
    assert ours.shape == theirs.shape == (1, rows, 2 * groups, 16)
    torch.testing.assert_close(ours, theirs, atol=limit, rtol=limit)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_same_replies(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    monkeypatch.setattr(kv_attention, "_timed", timed(0.5))
    replies = []
    for packed in (False, True):
        model = tiny_model(dtype=dtype)
        if packed:
            assert best_attention(model) == NAME
            use_attention(model, NAME)
        *_, last = tiny_engine(model).generate(PROMPT, SamplingParams(max_tokens=40))
        assert isinstance(last, Finished)
        replies.append(last.token_ids)
    assert replies[0] == replies[1]


def test_slower_or_wrong_attention_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_attention, "_timed", timed(1.5))
    assert best_attention(tiny_model()) == "sdpa"

    def wrong(attention: Any, *arguments: Any) -> tuple[torch.Tensor, float]:
        output, seconds = timed(0.5)(attention, *arguments)
        return output * (1.1 if attention is packed_attention else 1), seconds

    monkeypatch.setattr(kv_attention, "_timed", wrong)
    assert best_attention(tiny_model()) == "sdpa"


def test_each_head_with_keys_of_its_own_needs_no_packing() -> None:
    model = tiny_model()
    model.config.num_key_value_heads = model.config.num_attention_heads
    assert best_attention(model) == "sdpa"
