"""What is lost of a text when a cache keeps only part of a long prompt; knows readers, no chat.

Each policy reads the same prompts and then, token by token, what really follows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatbot.engine.decode import Reader, TokenReader
from chatbot.engine.kv_cache import cache_bytes, new_cache
from chatbot.engine.kv_snap import OBSERVED_TOKENS, SnapReader

STRETCHES = 4
"""Places of the text that are tried."""
PROMPT_TOKENS, FOLLOWING_TOKENS = 1500, 64
KEPT_SHARES = (0.5, 0.25)

MakeReader = Callable[[Any, Any, int], TokenReader]
"""A reader for a model and an empty cache, which keeps so many tokens of a prompt."""


@dataclass(slots=True)
class Loss:
    """Of one policy: surprise in nats, and the likeliest token in each place."""

    surprise: float = 0.0
    likeliest: tuple[int, ...] = ()
    n_bytes: int = 0

    @property
    def perplexity(self) -> float:
        return math.exp(self.surprise / len(self.likeliest))


def _sink(model: Any, cache: Any, kept: int) -> TokenReader:
    return Reader(model, cache, (), limit_tokens=kept)


def _snapkv(model: Any, cache: Any, kept: int) -> TokenReader:
    limit = PROMPT_TOKENS + FOLLOWING_TOKENS
    return SnapReader(model, cache, (), limit_tokens=limit, keep_tokens=kept)


POLICIES: Mapping[str, MakeReader] = {"snapkv": _snapkv, "sink": _sink}


def long_prompts(model: Any, token_ids: Sequence[int], piece_tokens: int) -> dict[str, Any]:
    """Policy and kept share -> bytes, perplexity and agreement against the whole prompt."""
    places = list(_stretches(token_ids))
    whole = _read(model, places, lambda m, c, kept: Reader(m, c, ()), 1.0, piece_tokens)
    found = {"whole": _figures(whole, whole)}
    for name, make in POLICIES.items():
        for share in KEPT_SHARES:
            loss = _read(model, places, make, share, piece_tokens)
            found[f"{name} {share:.0%}"] = _figures(loss, whole)
    return found


def _stretches(ids: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Prompts and what follows them, from all over the text; shorter ones of a short text."""
    following = min(FOLLOWING_TOKENS, len(ids) // 4)
    prompt = min(PROMPT_TOKENS, len(ids) - following)
    number = max(1, min(STRETCHES, len(ids) // (prompt + following)))
    for n in range(number):
        start = n * (len(ids) - prompt - following) // max(1, number - 1)
        middle = start + prompt
        yield tuple(ids[start:middle]), tuple(ids[middle : middle + following])


def _read(
    model: Any,
    places: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    make: MakeReader,
    share: float,
    piece_tokens: int,
) -> Loss:
    loss, likeliest = Loss(), []
    for prompt, following in places:
        cache = new_cache(model)
        kept = max(int(share * len(prompt)), 2 * OBSERVED_TOKENS)
        reader = make(model, cache, kept)
        *_, (_, logits) = reader.prefill(prompt, piece_tokens=min(piece_tokens, kept // 4))
        loss.n_bytes = cache_bytes(cache)
        for token in following:
            scores = logits.float().log_softmax(-1)
            loss.surprise -= float(scores[token])
            likeliest.append(int(scores.argmax()))
            logits = reader.read((token,))
    loss.likeliest = tuple(likeliest)
    return loss


def _figures(loss: Loss, whole: Loss) -> dict[str, float]:
    same = sum(a == b for a, b in zip(loss.likeliest, whole.likeliest, strict=True))
    return {
        "bytes_ratio": round(loss.n_bytes / whole.n_bytes, 4),
        "perplexity": round(loss.perplexity, 4),
        "perplexity_change": round(loss.perplexity / whole.perplexity - 1, 5),
        "top1_agreement": round(same / len(whole.likeliest), 4),
    }
