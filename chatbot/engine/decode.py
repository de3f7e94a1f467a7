"""One model call after another: prefill in pieces, then a token at a time.

Knows token ids, a cache and a model; knows nothing of text, conversations or locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch


class Reader:
    """Feeds tokens to a model and keeps count of what its cache holds.

    `token_ids` are exactly the tokens in the cache, so a caller can keep both for later.
    """

    def __init__(self, model: Any, cache: Any, held_ids: Sequence[int]) -> None:
        self._model = model
        self.cache = cache
        self.token_ids: list[int] = list(held_ids)

    def prefill(
        self, prompt_ids: Sequence[int], *, piece_tokens: int, stopped: Callable[[], bool]
    ) -> Iterator[tuple[int, torch.Tensor | None]]:
        """Read the rest of a prompt in pieces; yield tokens done, and at the end the logits.

        The last item carries logits of shape (vocabulary,) of the last token. When `stopped`
        says so between two pieces, the iterator ends without them.
        """
        while len(self.token_ids) < len(prompt_ids):
            if stopped():
                return
            start = len(self.token_ids)
            piece = prompt_ids[start : start + piece_tokens]
            logits = self.read(piece)
            done = start + len(piece)
            yield done, logits if done == len(prompt_ids) else None

    @torch.inference_mode()
    def read(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Read tokens into the cache; logits of shape (vocabulary,) after the last of them."""
        ids = torch.tensor([list(token_ids)], dtype=torch.long, device=self._model.device)
        # One row of logits: all rows of a long prompt would take gigabytes.
        output = self._model(input_ids=ids, cache=self.cache, use_cache=True, logits_to_keep=1)
        self.token_ids.extend(token_ids)
        logits: torch.Tensor = output.logits[0, -1]
        return logits
