"""How well a model foretells a text with a certain kind of cache; teacher-forced, in pieces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatbot.engine.kv_cache import new_cache
from chatbot.engine.kv_score import read_scored
from chatbot.engine.memory import CacheKind

WINDOW_TOKENS = 2048
PIECE_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Score:
    """The mean surprise of a text's tokens in nats, and the token that was likeliest each time."""

    surprise: float
    likeliest: tuple[int, ...]

    @property
    def perplexity(self) -> float:
        return math.exp(self.surprise)

    def agreement(self, other: Score) -> float:
        """The share of places where both found the same token likeliest."""
        pairs = zip(self.likeliest, other.likeliest, strict=True)
        return sum(ours == theirs for ours, theirs in pairs) / len(self.likeliest)


def score(model: Any, ids: Sequence[int], cache: CacheKind) -> Score:
    """Read a text in windows, each with an empty cache; the first token of each is not counted.

    A piece looks at what is in the cache in the cache's own bits, as a reply does.
    """
    total, likeliest = 0.0, list[int]()
    for start in range(0, len(ids) - 1, WINDOW_TOKENS):
        window = ids[start : start + WINDOW_TOKENS + 1]
        kept = new_cache(model, cache)
        for place in range(0, len(window) - 1, PIECE_TOKENS):
            piece = window[place : min(place + PIECE_TOKENS, len(window) - 1)]
            following = window[place + 1 : place + 1 + len(piece)]
            surprise, tokens = read_scored(model, kept, piece, following)
            total += surprise
            likeliest += tokens
    return Score(total / len(likeliest), tuple(likeliest))
