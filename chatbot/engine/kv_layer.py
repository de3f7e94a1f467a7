"""What can be done to a key/value cache, with one meaning; knows nothing of who keeps it."""

from __future__ import annotations

from typing import Any


def truncate(cache: Any, keep_tokens: int) -> None:
    """Drop all but the first `keep_tokens` tokens of a cache, each layer by its own length.

    Layers may differ when a model call was stopped halfway. Nothing happens to a layer that is
    not longer. Raises ValueError for a negative number, and RuntimeError for a layer that cannot
    be cut back any more (a sliding window that has moved on).

    The library's `crop` takes a negative number of tokens to drop; older versions took the
    length to keep. Only this function may call it.
    """
    if keep_tokens < 0:
        message = f"cannot keep {keep_tokens} tokens"
        raise ValueError(message)
    for layer in cache.layers:
        extra_tokens = layer.get_seq_length() - keep_tokens
        if extra_tokens > 0:
            layer.crop(-extra_tokens)


def cache_bytes(cache: Any) -> int:
    """Bytes of the keys and values that a cache holds, in all layers."""
    total = 0
    for layer in cache.layers:
        if layer.is_initialized:
            total += sum(part.numel() * part.element_size() for part in (layer.keys, layer.values))
    return total
