"""Attention of one new token to a long cache, for heads that share keys; knows only tensors.

On a CPU the library's kernel for grouped queries takes several times as long as the same numbers
laid out so that a plain kernel can read each key once for all heads of its group.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from chatbot.engine.kv_cache import new_layer
from chatbot.engine.kv_layer import PlainLayer
from chatbot.engine.memory import CACHES, CacheKind

NAME = "packed_decode"
DIRECT_MODELS = ("llama", "mistral", "qwen2", "qwen3")
TRIAL_TOKENS = 1024
TRIALS = 5
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3}


def packed_attention(
    module: Any,
    query: torch.Tensor,
    key: Any,
    value: Any,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """As the library's, with query (1, heads, 1, width) and key (1, key heads, tokens, width).

    Everything but one token without a mask is left to the library. A cache layer in place of keys
    and values is asked directly.
    """
    if isinstance(key, PlainLayer):
        grouped = query[0, :, 0].view(key.rows[0].held.shape[1], -1, query.shape[-1])
        scaling = options.get("scaling") or query.shape[-1] ** -0.5
        return key.attend(grouped, scaling).reshape(1, 1, query.shape[1], -1), None
    groups = getattr(module, "num_key_value_groups", 1)
    batch, heads, rows, width = query.shape
    plain = options.get("position_bias") is None and options.get("softcap") is None
    if rows > 1 or groups == 1 or attention_mask is not None or not plain:
        found: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return found
    packed = query.reshape(batch, heads // groups, groups, width)
    output = torch.nn.functional.scaled_dot_product_attention(
        packed, key, value, scale=options.get("scaling")
    )
    return output.reshape(batch, 1, heads, value.shape[-1]), None


def best_attention(model: Any, direct: tuple[CacheKind, ...] = ()) -> str:
    """The name of packed attention where it is right and faster, or else the one in use.

    With `direct` kinds of cache, which it alone can ask, it is taken anyway.
    """
    name = str(model.config._attn_implementation)
    if name == "sdpa" and model.device.type == "cpu" and (direct or _is_better(model)):
        return NAME
    return name


def use_attention(model: Any, name: str) -> None:
    """Let the model use an attention by its name, which may be that of packed attention."""
    if name == NAME:
        AttentionInterface.register(NAME, packed_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
    if name != model.config._attn_implementation:
        model.set_attn_implementation(name)


@torch.inference_mode()
def direct_kinds(model: Any) -> tuple[CacheKind, ...]:
    """The kinds of cache that are read faster as they are stored than unpacked first.

    None for models whose attention is not that of Llama and its like, which take what a layer
    gives to the attention function as it is.
    """
    config = model.config.get_text_config(decoder=True)
    if model.device.type != "cpu" or config.model_type not in DIRECT_MODELS:
        return ()
    random = torch.Generator().manual_seed(0)
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    states = torch.randn(2, 1, key_heads, TRIAL_TOKENS, width, generator=random)
    query = torch.randn(key_heads, heads // key_heads, width, generator=random)
    return tuple(kind for kind in CACHES if _is_direct(kind, states, query.to(model.dtype)))


def _is_direct(kind: CacheKind, states: torch.Tensor, query: torch.Tensor) -> bool:
    layer = new_layer(kind)
    layer.append(*states.to(query.dtype))
    unpacked, unpacked_s = _timed(_asked, layer, query)
    layer.direct = True
    direct, direct_s = _timed(_asked, layer, query)
    # It takes less memory too, so a tie is its.
    return direct_s < 1.1 * unpacked_s and torch.allclose(direct, unpacked, atol=1e-2, rtol=1e-2)


def _asked(layer: PlainLayer, query: torch.Tensor) -> tuple[torch.Tensor, None]:
    return layer.attend(query, query.shape[-1] ** -0.5), None


@torch.inference_mode()
def _is_better(model: Any) -> bool:
    """Measured once with random numbers of the model's shapes; some hundredths of a second."""
    config = model.config.get_text_config(decoder=True)
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    if heads == key_heads or heads % key_heads or model.dtype not in TOLERANCE:
        return False
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    random = torch.Generator().manual_seed(0)

    def numbers(n_heads: int, tokens: int) -> torch.Tensor:
        return torch.randn(1, n_heads, tokens, width, generator=random).to(model.dtype)

    module = SimpleNamespace(num_key_value_groups=heads // key_heads, is_causal=True)
    states = (
        numbers(heads, 1),
        numbers(key_heads, TRIAL_TOKENS),
        numbers(key_heads, TRIAL_TOKENS),
        None,
    )
    theirs, their_s = _timed(sdpa_attention_forward, module, *states)
    ours, our_s = _timed(packed_attention, module, *states)
    limit = TOLERANCE[model.dtype]
    return our_s < their_s and torch.allclose(ours, theirs, atol=limit, rtol=limit)


def _timed(attention: Any, *arguments: Any) -> tuple[torch.Tensor, float]:
    """The output, and the shortest of some runs in seconds of this process."""
    seconds = []
    for _ in range(TRIALS):
        started = time.process_time()
        output, _ = attention(*arguments)
        seconds.append(time.process_time() - started)
    return output, min(seconds)
