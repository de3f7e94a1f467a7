"""Chooses the next token from one row of logits; knows nothing of models or text.

The order is the one of the transformers library: repetition penalty, temperature, top-p.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from chatbot.engine.base import SamplingParams
from chatbot.errors import EngineError


class TokenChooser:
    """The sampling state of one reply: which tokens were seen, and its own random numbers."""

    def __init__(
        self, params: SamplingParams, prompt_ids: Sequence[int], device: torch.device
    ) -> None:
        self._params = params
        self._seen: torch.Tensor | None = None
        if params.repetition_penalty != 1.0:
            # As in the library, the penalty covers prompt and reply.
            self._seen = torch.tensor(sorted(set(prompt_ids)), dtype=torch.long, device=device)
        # Private, so that other users of the process's generator change nothing.
        self._generator = torch.Generator(device=device)
        if params.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(params.seed)

    @torch.inference_mode()
    def choose(self, logits: torch.Tensor, forbidden: Collection[int] = ()) -> int:
        """The next token id, none of `forbidden`, given logits of shape (vocabulary,).

        Raises EngineError when the logits are no numbers.
        """
        scores = self._penalised(logits.float())
        if forbidden:
            ids = torch.tensor(sorted(forbidden), device=scores.device)
            scores = scores.index_fill(0, ids, float("-inf"))
        best, token = torch.max(scores, dim=-1)
        if not torch.isfinite(best):  # NaN wins every maximum, so this one look is enough
            raise EngineError(BROKEN_LOGITS)
        if self._params.temperature > 0.0 and self._params.top_p > 0.0:
            token = self._drawn(scores / self._params.temperature)
        chosen = int(token)
        self._remember(chosen)
        return chosen

    def _penalised(self, scores: torch.Tensor) -> torch.Tensor:
        if self._seen is None:
            return scores
        penalty = self._params.repetition_penalty
        seen = scores[self._seen]
        return scores.index_copy(
            0, self._seen, torch.where(seen < 0, seen * penalty, seen / penalty)
        )

    def _drawn(self, scores: torch.Tensor) -> torch.Tensor:
        if self._params.top_p < 1.0:
            scores = _keep_likeliest(scores, self._params.top_p)
        shares = torch.softmax(scores, dim=-1)
        return torch.multinomial(shares, 1, generator=self._generator)[0]

    def _remember(self, token: int) -> None:
        if self._seen is not None and not bool((self._seen == token).any()):
            new = torch.tensor([token], dtype=torch.long, device=self._seen.device)
            self._seen = torch.cat((self._seen, new))


BROKEN_LOGITS = (
    "The model computed values that are no numbers, so the reply was stopped; ask again, and if "
    "it happens often choose another quantization."
)


def _keep_likeliest(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Set to -inf all but the likeliest tokens whose shares reach `top_p`; at least one stays."""
    ordered, order = torch.sort(scores, descending=False)
    below = torch.softmax(ordered, dim=-1).cumsum(dim=-1) <= 1.0 - top_p
    below[-1] = False
    return scores.index_fill(0, order[below], float("-inf"))
