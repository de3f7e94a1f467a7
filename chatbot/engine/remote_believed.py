"""How many tokens a text can have at all, in any vocabulary. Pure.

So that a count is not believed which cannot be, whoever tells it.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_WORDS_A_TOKEN, _LETTERS_A_TOKEN = 3, 128
"""The most, on the average of a text: few vocabularies have tokens of several words at all."""
_BESIDE_TOKENS = 8
"""Of marks that a vocabulary puts before a text."""


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
