"""Which of the code pages of Russian and its kin bytes are of: their letters tell. Pure.

All of them give the same bytes letters, of other sounds or in the other case.
"""

from __future__ import annotations

import re
from collections import Counter

_CODE_PAGES = ("cp1251", "koi8_r", "koi8_u", "iso8859_5", "cp866")
_WORD = re.compile("[А-яЁёІіЇїЄєҐґЎў]+")
_FREQUENT = frozenset("оеаинтсрвлі")
"""Two thirds of all letters of Russian, and nearly so many of Ukrainian and Bulgarian."""
MIN_FREQUENT, MIN_OF_CAPITALS = 0.48, 0.58
"""Hebrew looks like Cyrillic capitals, half of which are frequent letters."""
MIN_LETTERS = 5
SAMPLE_BYTES = 200_000


def cyrillic_encoding(data: bytes) -> str | None:
    """The code page that makes these bytes words with the usual letters and capitals, if any."""
    sample = data[:SAMPLE_BYTES]
    shares = {page: _share(sample, page) for page in _CODE_PAGES}
    best = max(_CODE_PAGES, key=lambda page: shares[page])
    return best if shares[best] >= MIN_FREQUENT else None


def _share(data: bytes, page: str) -> float:
    """The share of frequent letters; 0 where other signs are many or capitals stand in words."""
    try:
        text = data.decode(page)
    except UnicodeDecodeError:
        return 0.0
    words = Counter(_WORD.findall(text))
    letters = Counter("".join(words.elements()).lower())
    n_letters, n_words = letters.total(), words.total()
    n_signs = sum(n for sign, n in Counter(text).items() if not sign.isascii()) - n_letters
    n_odd = sum(n for word, n in words.items() if not _is_usual(word))
    if n_letters < MIN_LETTERS or n_signs * 10 > n_letters or n_odd * 10 > n_words:
        return 0.0
    share = sum(letters[letter] for letter in _FREQUENT) / n_letters
    n_capitals = sum(len(word) * n for word, n in words.items() if word.isupper())
    return 0.0 if n_capitals * 2 > n_letters and share < MIN_OF_CAPITALS else share


def _is_usual(word: str) -> bool:
    return word[1:].islower() or word.isupper() or len(word) == 1
