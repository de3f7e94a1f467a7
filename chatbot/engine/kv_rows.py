"""Rows of numbers that grow at their end and are cut there; knows nothing of attention."""

from __future__ import annotations

import torch

from chatbot.engine.kv_policy import capacity_tokens


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

    def append(self, new: torch.Tensor, room_tokens: int = 0) -> None:
        """Add the rows of `new`, of shape (1, heads, new tokens, width).

        Storage that must grow grows to `room_tokens` at least, so that it need not grow again:
        what is left behind by many small steps cannot be used for the next, larger ones.
        """
        end = self.tokens + new.shape[2]
        if end > self._storage.shape[2]:
            self._resize(max(end, room_tokens))
        self._storage[:, :, self.tokens : end] = new
        self.tokens = end

    def cut(self, keep_tokens: int) -> None:
        """Drop all rows behind the first `keep_tokens`; the storage stays, see `fit`."""
        self.tokens = min(self.tokens, keep_tokens)

    def fit(self) -> None:
        """Give back storage that is not used. A chat in use would soon fill it again."""
        if capacity_tokens(self.tokens) < self._storage.shape[2]:
            self._resize(self.tokens)

    def move(self, device: torch.device) -> None:
        """Hold the same in the memory of another device, without storage that is not used."""
        used = self._storage[:, :, : capacity_tokens(self.tokens)]
        self._storage = used.to(device, copy=True)

    def _resize(self, tokens: int) -> None:
        batch, heads, _, width = self._storage.shape
        larger = self._storage.new_empty((batch, heads, capacity_tokens(tokens), width))
        larger[:, :, : self.tokens] = self.held
        # The system gives memory when it is first written to: what is asked for is had now, or
        # missing now, not in the middle of a reply.
        larger[:, :, self.tokens :].zero_()
        self._storage = larger
