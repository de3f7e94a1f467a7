"""Whole caches: made for a model, cut, counted and fitted; knows nothing of who keeps them."""

from __future__ import annotations

from typing import Any

from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from chatbot.engine.kv_layer import Int4Layer, Int8Layer, PlainLayer
from chatbot.engine.memory import CacheKind
from chatbot.errors import ModelError

_LAYERS: dict[CacheKind, type[PlainLayer]] = {
    "16bit": PlainLayer,
    "int8": Int8Layer,
    "int4": Int4Layer,
}


def new_layer(kind: CacheKind) -> PlainLayer:
    """An empty layer of a kind."""
    return _LAYERS[kind]()


def new_cache(model: Any, kind: CacheKind = "16bit") -> Any:
    """An empty cache for a model.

    Models with layers of other kinds (sliding windows) get the library's cache. Raises ModelError
    when those are to be stored in another way than the library's.
    """
    library = DynamicCache(config=model.config)
    if all(type(layer) is DynamicLayer for layer in library.layers):
        layers = [new_layer(kind) for _ in library.layers]
        for layer in layers:
            layer.direct = kind in getattr(model, "direct_caches", ())
        return Cache(layers=layers)
    if kind != "16bit":
        message = f"This model's cache cannot be kept in {kind}; choose --kv-cache-dtype 16bit."
        raise ModelError(message)
    return library


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


def reserve(cache: Any, tokens: int) -> None:
    """Let storage that must grow have room for so many tokens at once."""
    for layer in cache.layers:
        if isinstance(layer, PlainLayer):
            layer.room_tokens = tokens


def fit(cache: Any) -> None:
    """Give back room for more tokens than are held, one layer after the other."""
    for layer in cache.layers:
        for rows in layer.rows if isinstance(layer, PlainLayer) else ():
            rows.fit()


def cache_bytes(cache: Any) -> int:
    """Bytes that a cache takes in memory, in all layers, room for more tokens included."""
    return sum(_layer_bytes(layer) for layer in cache.layers)


def _layer_bytes(layer: Any) -> int:
    if isinstance(layer, PlainLayer):
        return sum(rows.n_bytes for rows in layer.rows)
    if not layer.is_initialized:
        return 0
    # A view keeps all of its storage alive.
    return sum(part.untyped_storage().nbytes() for part in (layer.keys, layer.values))
