"""Reading without any cache: slow, and it takes no memory beyond one pass; knows ids and a model.

Each token reads the whole prompt again, so this is for the moment when nothing else fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from chatbot.messages import Notice


class UncachedReader:
    """See the module and `decode.TokenReader`."""

    dropped_tokens = 0

    def __init__(self, model: Any) -> None:
        self._model = model
        self._ids: list[int] = []

    @property
    def read_tokens(self) -> int:
        return len(self._ids)

    @property
    def held_ids(self) -> tuple[int, ...] | None:
        return None

    def notices(self) -> tuple[Notice, ...]:
        return ()

    def prefill(
        self, prompt_ids: Sequence[int], *, piece_tokens: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """One piece, whatever `piece_tokens` is: there is nothing to keep a first piece in."""
        logits = self.read(prompt_ids[len(self._ids) :])
        yield len(self._ids), logits

    def read(self, token_ids: Sequence[int]) -> torch.Tensor:
        """See `TokenReader.read`."""
        ids = [*self._ids, *token_ids]
        logits = read_rows(self._model, [ids])[0]
        self._ids = ids
        return logits


@torch.inference_mode()
def read_rows(model: Any, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Logits after each of several rows of tokens, all of one length: (rows, vocabulary)."""
    ids = torch.tensor([list(row) for row in rows], dtype=torch.long, device=model.device)
    logits: torch.Tensor = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[:, -1]
    return logits
