"""One token by our own step: the library's logits, cache and replies; and who gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_llama import PROMPT, reply, tiny_engine, tiny_model

from chatbot.engine.decode import Reader
from chatbot.engine.int8_linear import pack_model
from chatbot.engine.kernels import Kernels, use_kernels
from chatbot.engine.kv_attention import NAME
from chatbot.engine.kv_cache import new_cache
from chatbot.engine.llama_step import llama_step
from chatbot.engine.memory import CacheKind, PlanRequest, make_plan
from chatbot.engine.model_figures import figures_of
from chatbot.engine.models import ModelFiles
from chatbot.engine.read_weights import read_weights

KINDS: tuple[CacheKind, ...] = ("16bit", "int8", "int4")
ALL_DIRECT = Kernels(NAME, KINDS, few_rows=32)


def stepping(model: Any, kernels: Kernels = ALL_DIRECT) -> Any:
    use_kernels(model, kernels)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_logits_are_the_librarys(kind: CacheKind, packed: bool, dtype: str) -> None:
    model = tiny_model(dtype=dtype)
    if packed:
        pack_model(model, getattr(torch, dtype))
    theirs = Reader(model, new_cache(model, kind), ())
    wanted = [theirs.read(PROMPT), *(theirs.read((token,)) for token in range(60, 100))]
    stepping(model)
    ours = Reader(model, new_cache(model, kind), ())
    found = [ours.read(PROMPT), *(ours.read((token,)) for token in range(60, 100))]
    assert ours.cache.get_seq_length() == theirs.cache.get_seq_length() == len(PROMPT) + 40
    assert ours.held_ids == theirs.held_ids
    least = 0.999 if dtype == "float32" else 0.99
    for mine, right in zip(found, wanted, strict=True):
        assert torch.cosine_similarity(mine.float(), right.float(), dim=0) > least


def test_weights_packed_to_4_bit_are_given_numbers_they_take(tmp_path: Path) -> None:
    """Their own type is that of the packed bytes; a row cast to it is no row any more."""
    model = tiny_model()
    model.save_pretrained(tmp_path)
    plan = make_plan(figures_of(model.config.to_dict()), 1 << 30, PlanRequest(weights="int4"))
    packed = read_weights(ModelFiles("tiny", "folder", tmp_path), plan)
    assert packed.model.layers[0].mlp.down_proj.weight.dtype == torch.uint8
    theirs, cache = Reader(packed, new_cache(packed), ()), new_cache(packed)
    theirs.read(PROMPT)
    Reader(packed, cache, ()).read(PROMPT)
    step = llama_step(packed)
    assert step is not None
    found, wanted = step(60, cache, len(PROMPT)), theirs.read((60,)).float()
    assert torch.cosine_similarity(found, wanted, dim=0) > 0.99


def test_in_32_bit_nothing_but_rounding_differs() -> None:
    model = tiny_model()
    theirs, cache = Reader(model, new_cache(model), ()), new_cache(model)
    theirs.read(PROMPT)
    Reader(model, cache, ()).read(PROMPT)
    step = llama_step(model)
    assert step is not None
    for place, token in enumerate((60, 99, 130)):
        found, wanted = step(token, cache, len(PROMPT) + place), theirs.read((token,))
        torch.testing.assert_close(found, wanted, atol=1e-2, rtol=0)
        assert int(found.argmax()) == int(wanted.argmax())


def test_whole_replies_are_the_same() -> None:
    plain = reply(tiny_engine(tiny_model())).token_ids
    assert reply(tiny_engine(stepping(tiny_model()))).token_ids == plain


def test_a_position_behind_the_cache_is_used() -> None:
    """As after tokens were left out: the next token's position is not the length of the cache."""
    model = tiny_model()
    step = llama_step(model)
    assert step is not None
    caches = [new_cache(model) for _ in range(2)]
    for cache in caches:
        Reader(model, cache, ()).read(PROMPT)
    near, far = step(60, caches[0], len(PROMPT)), step(60, caches[1], len(PROMPT) + 100)
    assert not torch.allclose(near, far, atol=1e-2)


def test_other_models_have_no_step() -> None:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=258,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_implementation="sdpa",
    )
    model: Any = Qwen2ForCausalLM(config).eval()
    assert llama_step(model) is None
    biased = tiny_model()
    biased.config.attention_bias = True
    assert llama_step(biased) is None
    # Their caches are asked directly all the same, by the attention function.
    plain = Reader(model, new_cache(model, "int8"), ())
    wanted = [plain.read(PROMPT), plain.read((60,)), plain.read((61,))]
    use_kernels(model, ALL_DIRECT)
    direct = Reader(model, new_cache(model, "int8"), ())
    assert all(layer.direct for layer in direct.cache.layers)
    found = [direct.read(PROMPT), direct.read((60,)), direct.read((61,))]
    for right, mine in zip(wanted, found, strict=True):
        torch.testing.assert_close(mine, right, atol=1e-2, rtol=0)
