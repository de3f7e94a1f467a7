"""One token through a plain Llama: the library's computation with fewer steps around it.

Knows the modules of a model and the layers of a cache; knows nothing of who reads what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from chatbot.engine.int8_linear import Int8Linear
from chatbot.engine.kv_layer import PlainLayer

Times = Callable[[torch.Tensor, float], torch.Tensor]
"""A row (inputs,) in 32 bit and a factor, to (outputs,) in 32 bit."""


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: torch.Tensor
    epsilon: float

    def split(self, row: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The normed row as one that is not yet divided by its length, and the factor for it."""
        mean = float(row.dot(row)) / row.shape[0]
        return row * self.weight, (mean + self.epsilon) ** -0.5


@dataclass(frozen=True, slots=True)
class _Block:
    before_attention: _Norm
    queries_keys_values: Times
    attention_out: Times
    before_feed_forward: _Norm
    gate_up: Times
    down: Times
    scaling: float


class LlamaStep:
    """See the module. Made by `llama_step`; the cache's layers must be of our own kinds.

    `before_layer` is called before each layer and may raise; the layers then hold different
    numbers of tokens, and whoever called cuts them.
    """

    def __init__(self, model: Any) -> None:
        decoder, config = model.model, model.config
        self._embed = decoder.embed_tokens
        self._rotary = decoder.rotary_emb
        self._blocks = [_block(layer) for layer in decoder.layers]
        self._last = _norm(decoder.norm)
        self._head = _times(model.lm_head)
        self._heads = config.num_attention_heads
        self._key_heads = config.num_key_value_heads
        self._width = decoder.layers[0].self_attn.head_dim
        self._feed = config.intermediate_size
        self.before_layer: Callable[[], None] | None = None

    @torch.inference_mode()
    def __call__(self, token_id: int, cache: Any, position: int) -> torch.Tensor:
        """Read a token into the cache; logits of shape (vocabulary,) after it, in 32 bit."""
        row = self._embed(torch.tensor([token_id]))[0].float()
        cos, sin = self._rotation(position)
        ask = self.before_layer
        for block, layer in zip(self._blocks, cache.layers, strict=True):
            if ask is not None:
                ask()
            normed, factor = block.before_attention.split(row)
            projected = block.queries_keys_values(normed, factor)
            found = self._attention(block, layer, projected, cos, sin)
            row += block.attention_out(found, 1.0)
            normed, factor = block.before_feed_forward.split(row)
            gate, up = block.gate_up(normed, factor).view(2, self._feed)
            row += block.down(torch.nn.functional.silu(gate).mul_(up), 1.0)
        return self._head(*self._last.split(row))

    def _rotation(self, position: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines, and sines with the sign that the turned half of a row has: (width,) each."""
        cos, sin = self._rotary(torch.zeros(1), torch.tensor([[position]]))
        cos, sin = cos[0, 0].float(), sin[0, 0].float()
        half = self._width // 2
        return cos, torch.cat((-sin[:half], sin[half:]))

    def _attention(
        self,
        block: _Block,
        layer: PlainLayer,
        projected: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
    ) -> torch.Tensor:
        rows = projected.view(-1, self._width)
        turned = self._heads + self._key_heads
        queries_keys = rows[:turned]
        queries_keys = torch.addcmul(
            queries_keys * cos, queries_keys.roll(self._width // 2, -1), sin
        )
        layer.append(queries_keys[self._heads :][None, :, None], rows[turned:][None, :, None])
        queries = queries_keys[: self._heads].view(self._key_heads, -1, self._width)
        return layer.attend(queries, block.scaling).reshape(-1)


def llama_step(model: Any) -> LlamaStep | None:
    """The step for a model; None for any that is not a plain Llama on a CPU."""
    from transformers import LlamaForCausalLM

    config = model.config
    plain = (
        type(model) is LlamaForCausalLM
        and model.device.type == "cpu"
        and config.hidden_act == "silu"
        and not config.attention_bias
        and not config.mlp_bias
    )
    return LlamaStep(model) if plain else None


def can_step(cache: Any) -> bool:
    """Whether all layers of a cache can be asked directly."""
    return all(isinstance(layer, PlainLayer) for layer in cache.layers)


def _block(layer: Any) -> _Block:
    attention, feed = layer.self_attn, layer.mlp
    return _Block(
        before_attention=_norm(layer.input_layernorm),
        queries_keys_values=_times(attention.q_proj, attention.k_proj, attention.v_proj),
        attention_out=_times(attention.o_proj),
        before_feed_forward=_norm(layer.post_attention_layernorm),
        gate_up=_times(feed.gate_proj, feed.up_proj),
        down=_times(feed.down_proj),
        scaling=attention.scaling,
    )


def _norm(module: Any) -> _Norm:
    return _Norm(module.weight.detach().float(), module.variance_epsilon)


def _times(*modules: Any) -> Times:
    """The products of layers that are given the same row, one behind the other."""
    first = modules[0]
    if isinstance(first, Int8Linear) and all(m.shared is first.shared for m in modules):
        return first.shared.times_row

    def times(row: torch.Tensor, factor: float) -> torch.Tensor:
        rows = (row * factor)[None].to(_dtype_of(first))
        return torch.cat([module(rows)[0] for module in modules]).float()

    return times


def _dtype_of(module: Any) -> torch.dtype:
    """What a layer is to be given; packed weights, of whole numbers, take 32 bit as well."""
    weight = getattr(module, "weight", None)
    return weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
