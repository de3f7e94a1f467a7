"""8-bit linear layers: near the float ones, the same for few and many rows, originals freed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from tiny_llama import tiny_model
from torch import nn

from chatbot.engine.int8_linear import Int8Embedding, Int8Linear, Int8Matrix, pack, pack_model
from chatbot.engine.memory import weights_bytes
from chatbot.engine.memory_meter import weights_in_memory
from chatbot.engine.model_figures import figures_of


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_each_weight_is_within_half_a_step_and_the_original_is_as_before() -> None:
    weight = random(300, 64)
    before = weight.clone()
    matrix = pack([weight[:100], weight[100:]])
    again = matrix.numbers * matrix.scales[:, None]
    largest = weight.abs().amax(-1, keepdim=True)
    assert ((again - weight).abs() <= largest * 0.501 / 127).all()
    assert torch.equal(weight, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_few_rows_many_rows_and_one_row_give_the_same(dtype: torch.dtype) -> None:
    matrix = pack([random(96, 64)])
    rows = random(5, 64, seed=1).to(dtype)
    rows[2] = 0
    rows[3] *= 1000
    wanted = rows.double() @ (matrix.numbers.double() * matrix.scales.double()[:, None]).T
    limit = rows.double().abs().amax(-1, keepdim=True)
    near = {torch.float32: 1e-3, torch.bfloat16: 4e-2}[dtype]
    for found in (matrix.times_few(rows), matrix.times_many(rows)):
        assert found.dtype == dtype
        assert ((found.double() - wanted).abs() <= near * limit + near * wanted.abs()).all()
    one = matrix.times_row(rows[3].float(), 0.5)
    assert ((one.double() - wanted[3] / 2).abs() <= 1e-3 * limit[3]).all()


def test_blocks_cover_every_output(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, rows = pack([random(50, 16)]), random(40, 16)
    whole = matrix.times_many(rows)
    monkeypatch.setattr("chatbot.engine.int8_linear.BLOCK_NUMBERS", 16 * 7)
    torch.testing.assert_close(matrix.times_many(rows), whole)


def test_rows_decide_which_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    for name in ("times_few", "times_many"):
        own = getattr(Int8Matrix, name)
        monkeypatch.setattr(
            Int8Matrix, name, lambda s, r, n=name, o=own: (taken.append(n), o(s, r))[1]
        )
    layer = Int8Linear(pack([random(8, 16)]), 0, 8)
    layer.matrix.few_rows = 3
    layer(random(1, 3, 16))
    layer(random(1, 4, 16))
    assert taken == ["times_few", "times_many"]


def test_a_layer_is_near_the_float_one_with_its_bias() -> None:
    linear = nn.Linear(64, 32)
    layer = Int8Linear(pack([linear.weight]), 0, 32, linear.bias)
    rows = random(2, 3, 64)
    wanted = linear(rows)
    near = torch.cosine_similarity(layer(rows).flatten(), wanted.flatten(), dim=0)
    assert layer(rows).shape == wanted.shape
    assert near > 0.9995


@pytest.mark.parametrize("tied", [False, True])
def test_a_packed_model_is_near_and_its_originals_are_gone(tied: bool) -> None:
    model = tied_model() if tied else tiny_model()
    ids = torch.tensor([[257, 70, 80, 90]])
    with torch.inference_mode():
        wanted = model(ids).logits[0, -1]
    originals = [weakref.ref(m.weight) for m in model.modules() if isinstance(m, nn.Linear)]
    originals.append(weakref.ref(model.model.embed_tokens.weight))
    pack_model(model, torch.float32)
    gc.collect()
    assert [ref() for ref in originals if ref() is not None] == []
    with torch.inference_mode():
        found = model(ids).logits[0, -1]
    assert torch.cosine_similarity(found, wanted, dim=0) > 0.995
    layer = model.model.layers[0]
    assert layer.self_attn.q_proj.shared is layer.self_attn.v_proj.shared
    assert isinstance(model.model.embed_tokens, Int8Embedding)
    assert isinstance(model.lm_head, Int8Linear)
    same = model.lm_head.numbers.data_ptr() == model.model.embed_tokens.numbers.data_ptr()
    assert same is tied


@pytest.mark.parametrize("tied", [False, True])
def test_the_plan_knows_the_bytes(tied: bool) -> None:
    model = tied_model() if tied else tiny_model()
    figures = figures_of(model.config.to_dict())
    pack_model(model, torch.float32)
    taken = weights_in_memory((*model.parameters(), *model.buffers()))
    # Norms are in 32 bit, of which a tiny model has many.
    assert abs(weights_bytes(figures, "int8", on_cuda=False) / taken - 1) < 0.02


def tied_model() -> Any:
    model = tiny_model()
    model.config.tie_word_embeddings = True
    model.lm_head.weight = model.model.embed_tokens.weight
    return model
