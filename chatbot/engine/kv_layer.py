"""Layers of a key/value cache, and what can be done to them; knows nothing of who keeps them.

A layer only ever appends and cuts its end off, so what was stored stays bit for bit the same.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from chatbot.engine.kv_policy import capacity_tokens
from chatbot.engine.memory import CacheKind
from chatbot.errors import ModelError


class Rows:
    """A tensor (1, heads, tokens, width) in storage that grows by whole steps.

    The library's layers copy themselves whole for each new token instead: with the demo model at
    2,000 tokens in 32 bit, 92 MB a token.
    """

    def __init__(self, like: torch.Tensor) -> None:
        self._storage = like.new_empty((*like.shape[:2], 0, like.shape[3]))
        self.tokens = 0

    @property
    def held(self) -> torch.Tensor:
        """What was appended and not cut off; a view that the next append may leave behind."""
        return self._storage[:, :, : self.tokens]

    @property
    def n_bytes(self) -> int:
        """Bytes of the storage, used or not."""
        return self._storage.untyped_storage().nbytes()

    def append(self, new: torch.Tensor) -> None:
        """Add the rows of `new`, of shape (1, heads, new tokens, width)."""
        end = self.tokens + new.shape[2]
        if end > self._storage.shape[2]:
            self._resize(end)
        self._storage[:, :, self.tokens : end] = new
        self.tokens = end

    def cut(self, keep_tokens: int) -> None:
        """Drop all rows behind the first `keep_tokens`, and storage that is mostly unused."""
        self.tokens = min(self.tokens, keep_tokens)
        if 2 * capacity_tokens(self.tokens) <= self._storage.shape[2]:
            self._resize(self.tokens)

    def move(self, device: torch.device) -> None:
        """Hold the same in the memory of another device."""
        self._storage = self._storage.to(device)

    def _resize(self, tokens: int) -> None:
        batch, heads, _, width = self._storage.shape
        larger = self._storage.new_empty((batch, heads, capacity_tokens(tokens), width))
        larger[:, :, : self.tokens] = self.held
        self._storage = larger


class PlainLayer(DynamicLayer):
    """Keys and values as the model computes them."""

    rows: tuple[Rows, ...] = ()

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Make room of the kind that the first keys and values need."""
        self.rows = tuple(Rows(part) for part in self._stored(key_states, value_states))
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append, and return all keys and values in the type of `key_states`."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        for rows, part in zip(self.rows, self._stored(key_states, value_states), strict=True):
            rows.append(part)
        return self._restored(key_states.dtype)

    def contents(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values in `dtype`, each (1, heads, tokens, width); not for an empty one."""
        return self._restored(dtype)

    def get_seq_length(self) -> int:
        """How many tokens are held."""
        return self.rows[0].tokens if self.rows else 0

    def crop(self, tokens_to_remove: int) -> None:
        """Drop the last -`tokens_to_remove` tokens; the number is negative, as in the library."""
        keep_tokens = max(0, self.get_seq_length() + tokens_to_remove)
        for rows in self.rows:
            rows.cut(keep_tokens)

    def reset(self) -> None:
        """Hold nothing."""
        self.rows = ()
        self.is_initialized = False

    def _stored(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return keys, values

    def _restored(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.rows
        return keys.held, values.held


class Int8Layer(PlainLayer):
    """Keys and values in 8 bit with a 16-bit scale for each head and token."""

    def _stored(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*quantize(keys), *quantize(values))

    def _restored(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        keys, key_scales, values, value_scales = (rows.held for rows in self.rows)
        return dequantize(keys, key_scales, dtype), dequantize(values, value_scales, dtype)


_LAYERS: dict[CacheKind, type[PlainLayer]] = {"16bit": PlainLayer, "int8": Int8Layer}


def new_cache(model: Any, kind: CacheKind = "16bit") -> Any:
    """An empty cache for a model.

    Models with layers of other kinds (sliding windows) get the library's cache. Raises ModelError
    when those are to be stored in another way than the library's.
    """
    library = DynamicCache(config=model.config)
    if all(type(layer) is DynamicLayer for layer in library.layers):
        return Cache(layers=[_LAYERS[kind]() for _ in library.layers])
    if kind != "16bit":
        message = f"This model's cache cannot be kept in {kind}; choose --kv-cache-dtype 16bit."
        raise ModelError(message)
    return library


def quantize(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """8-bit numbers and a scale of shape (..., 1) for each last row: symmetric, by its largest.

    The numbers are taken against the scale as it is stored, so its rounding costs nothing.
    """
    scale_type = states.dtype if states.element_size() == 2 else torch.float16
    largest = states.abs().amax(dim=-1, keepdim=True).float() / 127
    scales = largest.clamp(max=torch.finfo(scale_type).max).to(scale_type)
    divisors = torch.where(scales == 0, 1, scales.float())
    return (states.float() / divisors).round_().clamp_(-127, 127).to(torch.int8), scales


def dequantize(
    numbers: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """The states again, in `dtype`."""
    return numbers.to(dtype).mul_(scales.to(dtype))


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
    """Bytes that a cache takes in memory, in all layers, room for more tokens included."""
    return sum(_layer_bytes(layer) for layer in cache.layers)


def _layer_bytes(layer: Any) -> int:
    if isinstance(layer, PlainLayer):
        return sum(rows.n_bytes for rows in layer.rows)
    if not layer.is_initialized:
        return 0
    # A view keeps all of its storage alive.
    return sum(part.untyped_storage().nbytes() for part in (layer.keys, layer.values))
