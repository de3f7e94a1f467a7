"""Reading without any cache: slow, and it takes no memory beyond one pass; knows ids and a model.

Each token reads the whole prompt again, so this is for the moment when nothing else fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from chatbot.engine.decode import decoder_layers
from chatbot.messages import Notice

PIECE_TOKENS = 512
"""Of the feed-forward, unless told otherwise."""


class UncachedReader:
    """See the module and `decode.TokenReader`."""

    dropped_tokens = 0

    def __init__(self, model: Any) -> None:
        self._model = model
        self._piece_tokens = PIECE_TOKENS
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
        """All at once, since there is nothing to keep a first piece in; what looks at each token
        by itself is still computed in pieces."""
        self._piece_tokens = piece_tokens
        logits = self.read(prompt_ids[len(self._ids) :])
        yield len(self._ids), logits

    def read(self, token_ids: Sequence[int]) -> torch.Tensor:
        """See `TokenReader.read`."""
        ids = [*self._ids, *token_ids]
        logits = read_rows(self._model, [ids], piece_tokens=self._piece_tokens)[0]
        self._ids = ids
        return logits


@torch.inference_mode()
def read_rows(
    model: Any, rows: Sequence[Sequence[int]], *, piece_tokens: int = PIECE_TOKENS
) -> torch.Tensor:
    """Logits after each of several rows of tokens, all of one length: (rows, vocabulary)."""
    ids = torch.tensor([list(row) for row in rows], dtype=torch.long, device=model.device)
    with feed_forward_in_pieces(model, max(1, piece_tokens // len(rows))):
        output = model(input_ids=ids, use_cache=False, logits_to_keep=1)
    logits: torch.Tensor = output.logits[:, -1]
    return logits


@contextmanager
def feed_forward_in_pieces(model: Any, piece_tokens: int) -> Iterator[None]:
    """Let the feed-forward of each layer see at most so many tokens of a row at once.

    It looks at each token by itself and is several times as wide as what goes in, so that in one
    piece it would take most of the memory of a long pass.
    """
    parts = [layer.mlp for layer in decoder_layers(model) if hasattr(layer, "mlp")]
    whole = [part.forward for part in parts]

    def in_pieces(forward: Any) -> Any:
        return lambda states: torch.cat([forward(s) for s in states.split(piece_tokens, 1)], 1)

    try:
        for part, forward in zip(parts, whole, strict=True):
            part.forward = in_pieces(forward)
        yield
    finally:
        for part, forward in zip(parts, whole, strict=True):
            part.forward = forward
