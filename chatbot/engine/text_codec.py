"""What all tokenizers share: text made sound, short results cached; knows no vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

# Texts up to here are cached: questions, system texts, chunks. 1,024 of them take some 40 MB.
CACHED_CHARS = 4096
CACHED_TEXTS = 1024

Encode = Callable[[str], tuple[int, ...]]


def sound(text: str) -> str:
    """`text` as valid Unicode: surrogate pairs joined, lone surrogates become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cached(encode: Encode) -> Encode:
    """`encode` for any str, with a bounded cache for short texts."""
    short = lru_cache(maxsize=CACHED_TEXTS)(encode)

    def encode_any(text: str) -> tuple[int, ...]:
        text = sound(text)
        return short(text) if len(text) <= CACHED_CHARS else encode(text)

    return encode_any
