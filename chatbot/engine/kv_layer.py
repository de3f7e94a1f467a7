"""Layers of a key/value cache; knows nothing of models and of who keeps them.

A layer only ever appends and cuts its end off, so what was stored stays bit for bit the same.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import DynamicLayer

from chatbot.engine.kv_pack import (
    dequantize,
    mixing,
    pack_bits,
    quantize,
    times_rows,
    unpack_bits,
    weighted_rows,
)
from chatbot.engine.kv_rows import Rows
from chatbot.engine.memory import KEY_BITS, VALUE_BITS


class PlainLayer(DynamicLayer):
    """Keys and values in 16 bit, those of a model in 32 bit too."""

    rows: tuple[Rows, ...] = ()
    room_tokens = 0
    """The tokens that it will hold before long; see `reserve`."""
    direct = False
    """Whether `attend` reads what is stored as it is, which is faster on some processors.

    Then it is also asked in place of being unpacked when one token is read; see `update`.
    """

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Make room of the kind that the first keys and values need."""
        self.rows = tuple(Rows(part) for part in self._stored(key_states, value_states))
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Append, and return all keys and values in the type of `key_states`.

        A `direct` layer returns itself in place of both when it was given one token: then the
        attention calls `attend`, and nothing is unpacked.
        """
        self.append(key_states, value_states)
        if self.direct and key_states.shape[2] == 1:
            return self, self
        return self._restored(key_states.dtype)

    def append(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Add keys and values of shape (1, heads, new tokens, width)."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        for rows, part in zip(self.rows, self._stored(key_states, value_states), strict=True):
            rows.append(part, self.room_tokens)

    def attend(self, query: torch.Tensor, scaling: float) -> torch.Tensor:
        """What one token finds: query (key heads, group, width) to the same shape, in its type."""
        if self.direct:
            return self._found(query, scaling)
        return _attend(query, scaling, *self._restored(query.dtype))

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

    def _found(self, query: torch.Tensor, scaling: float) -> torch.Tensor:
        return _attend(query, scaling, *(rows.held for rows in self.rows))

    def _stored(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return _sixteen_bit(keys), _sixteen_bit(values)

    def _restored(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.rows
        return keys.held.to(dtype), values.held.to(dtype)


class Int8Layer(PlainLayer):
    """Keys and values in 8 bit with a 16-bit scale for each head and token."""

    def _found(self, query: torch.Tensor, scaling: float) -> torch.Tensor:
        # The scales are put on the scores and on their weights, so nothing is unpacked.
        keys, key_scales, values, value_scales = (rows.held[0] for rows in self.rows)
        return _attend_packed(query, scaling, (keys, key_scales), (values, value_scales))

    def _stored(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if keys.shape != values.shape:
            return (*quantize(keys), *quantize(values))
        numbers, scales = quantize(torch.cat((keys, values)))  # at once: one token is little work
        return numbers[:1], scales[:1], numbers[1:], scales[1:]

    def _restored(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        keys, key_scales, values, value_scales = (rows.held for rows in self.rows)
        return dequantize(keys, key_scales, dtype), dequantize(values, value_scales, dtype)


class Int4Layer(PlainLayer):
    """Values in 4 bit and keys in 5, mixed first, with a 16-bit scale for each head and token.

    Mixing spreads the few large numbers of a row; it is undone by the transposed matrix, or put
    on the one query instead. Nothing is shared between tokens, so nothing is ever packed anew.
    Measured with the demo model: keys in 4 bit cost five times as much in perplexity as values.
    """

    def _found(self, query: torch.Tensor, scaling: float) -> torch.Tensor:
        # What is mixed alike has the same products.
        matrix = _mixing(query)
        keys, key_scales, values, value_scales = (rows.held[0] for rows in self.rows)
        found = _attend_packed(
            query.float() @ matrix,
            scaling,
            (unpack_bits(keys, KEY_BITS), key_scales),
            (unpack_bits(values, VALUE_BITS), value_scales),
        )
        return (found @ matrix.T).to(query.dtype)

    def _stored(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            *pack_bits(keys.float() @ _mixing(keys), KEY_BITS),
            *pack_bits(values.float() @ _mixing(values), VALUE_BITS),
        )

    def _restored(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        keys, key_scales, values, value_scales = (rows.held for rows in self.rows)
        return (
            _unmixed(dequantize(unpack_bits(keys, KEY_BITS), key_scales), dtype),
            _unmixed(dequantize(unpack_bits(values, VALUE_BITS), value_scales), dtype),
        )


def _sixteen_bit(states: torch.Tensor) -> torch.Tensor:
    """As they are when they have 16 bits; 32-bit numbers with fewer digits, no other range."""
    if states.element_size() <= 2:
        return states
    largest = torch.finfo(torch.float16).max
    return states.clamp(-largest, largest).to(torch.float16)


def _attend(
    query: torch.Tensor, scaling: float, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """`attend` on float rows (1, heads, tokens, width), in their type."""
    found = torch.nn.functional.scaled_dot_product_attention(
        query[None].to(keys.dtype), keys, values, scale=scaling
    )
    return found[0].to(query.dtype)


def _attend_packed(
    query: torch.Tensor,
    scaling: float,
    keys: tuple[torch.Tensor, torch.Tensor],
    values: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """`attend` on 8-bit rows (heads, tokens, width) with their scales (heads, tokens, 1)."""
    scores = times_rows(query.float(), keys[0], keys[1].float().mT * scaling)
    weights = scores.softmax(dim=-1).mul_(values[1].float().mT)
    return weighted_rows(weights, values[0]).to(query.dtype)


def _mixing(like: torch.Tensor) -> torch.Tensor:
    return mixing(like.shape[-1]).to(like.device)


def _unmixed(states: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (states @ _mixing(states).T).to(dtype)
