"""Dropping the middle of a cache, so that one reply can go on; knows only tensors.

What stays is moved to the positions that it then has, so that no position is ever beyond those
that the model was trained for (attention sinks and a recent window: Xiao et al., Efficient
Streaming Language Models with Attention Sinks, arXiv 2309.17453).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from chatbot.engine.kv_layer import PlainLayer

Rotate = Callable[[torch.Tensor], torch.Tensor]
_GROWING = ("dynamic", "longrope")
"""Kinds of positions whose frequencies change with the length, so that none can be undone."""


def can_drop_middle(model: Any, cache: Any) -> bool:
    """Whether the positions of this model's cached keys can be changed."""
    decoder = model.get_decoder()
    kind = getattr(getattr(decoder, "rotary_emb", None), "rope_type", "")
    return (
        hasattr(_module_of(decoder), "apply_rotary_pos_emb")
        and hasattr(getattr(decoder, "rotary_emb", None), "inv_freq")
        and kind not in _GROWING
        and all(isinstance(layer, PlainLayer) for layer in cache.layers)
    )


@torch.inference_mode()
def drop_middle(model: Any, cache: Any, start: int, end: int) -> None:
    """Drop the tokens from `start` up to `end` and move those behind them back to `start`.

    Layers of few bits pack what is left anew, so the cache is no longer that of any prompt. One
    layer is unpacked at a time. See `can_drop_middle` for the models that this is right for.
    """
    rotate = rotation(model, start - end)
    for layer in cache.layers:
        keys, values = layer.contents(model.dtype)
        keys = torch.cat((keys[:, :, :start], rotate(keys[:, :, end:])), dim=2)
        values = torch.cat((values[:, :, :start], values[:, :, end:]), dim=2)
        replace_all(layer, keys, values)


def replace_all(layer: PlainLayer, keys: torch.Tensor, values: torch.Tensor) -> None:
    """Let a layer hold these keys and values, shape (1, heads, tokens, width), alone."""
    layer.reset()
    layer.update(keys, values)


def rotation(model: Any, shift: int) -> Rotate:
    """Turns keys of shape (1, heads, tokens, width) on by `shift` positions, which may be < 0.

    Rotations add up: a key at position p turned by -d is the same key at position p - d. The
    model's own function turns, so its way of pairing numbers is kept. In 32 bit, to lose little.
    """
    decoder = model.get_decoder()
    turn = _module_of(decoder).apply_rotary_pos_emb
    embedding = decoder.rotary_emb
    positions = torch.tensor([[shift]], device=model.device)
    cos, sin = embedding(torch.zeros(1, dtype=torch.float32, device=model.device), positions)
    # The factor that some models put on cosine and sine is in the keys already.
    scaling = float(getattr(embedding, "attention_scaling", 1.0))
    cos, sin = cos / scaling, sin / scaling

    def rotate(keys: torch.Tensor) -> torch.Tensor:
        as_float = keys.float()
        turned: torch.Tensor = turn(as_float, as_float, cos, sin)[1]
        return turned.to(keys.dtype)

    return rotate


def _module_of(decoder: Any) -> Any:
    return sys.modules[type(decoder).__module__]
