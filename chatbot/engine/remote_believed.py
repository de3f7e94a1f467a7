"""How many tokens a text or a prompt can have at all, in any vocabulary. Pure.

So that a count is not believed which cannot be, whoever tells it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chatbot.engine.remote_requests import Way, prompt_fields

_WORD = re.compile(r"\w+")
_WORDS_A_TOKEN, _LETTERS_A_TOKEN = 3, 128
"""The most, on the average of a text: few vocabularies have tokens of several words at all."""
_BESIDE_TOKENS = 8
"""Of marks that a vocabulary puts before a text, or a server before ids."""
_TEMPLATE_TOKENS = 4096
"""Of what a server writes around messages, such as a system text of its own."""
_FACTOR = 4
"""By which another vocabulary, put in the place of one that counted as we do, differs at most."""


def least_tokens(text: str) -> int:
    """The fewest that a vocabulary can take for a text."""
    n_words = sum(1 for _ in _WORD.finditer(text))
    return max(n_words // _WORDS_A_TOKEN, len(text) // _LETTERS_A_TOKEN)


def most_tokens(text: str) -> int:
    """The most: no vocabulary has a token for less than a byte."""
    return len(text.encode(errors="replace")) + _BESIDE_TOKENS


def may_have(text: str, n_tokens: int) -> bool:
    """Whether a text can have so many tokens."""
    return least_tokens(text) <= n_tokens <= most_tokens(text)


def is_believable(
    told: int, prompt_ids: Sequence[int], way: Way, *, window_tokens: int = 0
) -> bool:
    """Whether a prompt can have as many tokens as a server says.

    `window_tokens`: a server takes not much more, whatever it counts; 0 where that is not known.
    """
    counted = len(prompt_ids)
    if way.sends == "token ids":
        return abs(told - counted) <= _BESIDE_TOKENS
    texts = _texts(way, prompt_ids)
    # Each text has a mark of whose it is, at least.
    least = sum(map(least_tokens, texts)) + len(texts)
    most = sum(map(most_tokens, texts)) + _TEMPLATE_TOKENS
    if not way.estimated:
        least = max(least, counted // _FACTOR)
        most = min(most, counted * _FACTOR + _TEMPLATE_TOKENS)
    if window_tokens:
        most = min(most, max(window_tokens, 2 * counted))
    return least <= told <= most


def _texts(way: Way, prompt_ids: Sequence[int]) -> list[str]:
    fields = prompt_fields(way, prompt_ids)
    if way.is_chat:
        return [message["content"] for message in fields["messages"]]
    return [fields["prompt"]]
