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

NAME = "packed_decode"
TRIAL_TOKENS = 1024
TRIALS = 5
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3}


def packed_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """As the library's, with query (1, heads, 1, width) and key (1, key heads, tokens, width).

    Everything but one token without a mask is left to the library.
    """
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


def choose_attention(model: Any) -> str:
    """Let the model use packed attention where it is right and faster; the name in use."""
    name = str(model.config._attn_implementation)
    if name == "sdpa" and model.device.type == "cpu" and _is_better(model):
        AttentionInterface.register(NAME, packed_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        model.set_attn_implementation(NAME)
        return NAME
    return name


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
