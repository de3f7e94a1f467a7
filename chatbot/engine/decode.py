"""One model call after another: prefill in pieces, then a token at a time.

Knows token ids, a cache and a model; knows nothing of text, conversations or locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from chatbot.engine.kv_layer import truncate


class Reader:
    """Feeds tokens to a model and keeps count of what its cache holds.

    `token_ids` are exactly the tokens in the cache, so a caller can keep both for later.
    """

    def __init__(self, model: Any, cache: Any, held_ids: Sequence[int]) -> None:
        self._model = model
        self.cache = cache
        self.token_ids: list[int] = list(held_ids)

    def prefill(
        self, prompt_ids: Sequence[int], *, piece_tokens: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Read the rest of a prompt in pieces; yield tokens done and logits after each piece.

        Logits have shape (vocabulary,). Pieces bound the memory that one call takes.
        """
        while len(self.token_ids) < len(prompt_ids):
            start = len(self.token_ids)
            logits = self.read(prompt_ids[start : start + piece_tokens])
            yield len(self.token_ids), logits

    @torch.inference_mode()
    def read(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Read tokens into the cache; logits of shape (vocabulary,) after the last of them.

        Raises Stopped when the gate on the model says so; the cache is then as before.
        """
        ids = torch.tensor([list(token_ids)], dtype=torch.long, device=self._model.device)
        try:
            # One row of logits: all rows of a long prompt would take gigabytes.
            output = self._model(input_ids=ids, cache=self.cache, use_cache=True, logits_to_keep=1)
        except Stopped:
            truncate(self.cache, len(self.token_ids))
            raise
        self.token_ids.extend(token_ids)
        logits: torch.Tensor = output.logits[0, -1]
        return logits


class Stopped(Exception):
    """A model call was given up because the reply was stopped."""


class StopGate:
    """Lets a model call be stopped between two layers, so that no piece has to be waited for.

    One piece of a long prompt takes seconds on a CPU, one layer of it a fraction.
    """

    def __init__(self, model: Any) -> None:
        self._stopped: Callable[[], bool] = _never
        for layer in decoder_layers(model):
            layer.register_forward_pre_hook(self._check)

    def watch(self, stopped: Callable[[], bool]) -> None:
        """Ask `stopped` before each layer from now on."""
        self._stopped = stopped

    def unwatch(self) -> None:
        """Ask nobody any more."""
        self._stopped = _never

    def _check(self, module: Any, arguments: Any) -> None:
        if self._stopped():
            raise Stopped


def decoder_layers(model: Any) -> Sequence[Any]:
    """The layers of a model; empty for a layout that is not known, which only stops later."""
    layers = getattr(model.get_decoder(), "layers", None)
    return list(layers) if layers is not None else []


def _never() -> bool:
    return False
