"""What all tokenizers share: sound text in, short counts cached, ids to bytes to text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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


def pieces(text: str, max_run: int) -> Iterator[str]:
    """Split `text` inside runs of more than `max_run` equal-kind characters, else not at all.

    A kind is space, or not space. Tokenizers need more than linear time for such runs; real
    text has none, so its ids do not change.
    """
    if len(text) <= max_run:
        yield text
        return
    start = 0
    for match in re.finditer(rf"\s{{{max_run}}}|\S{{{max_run}}}", text):
        if match.end() < len(text):
            yield text[start : match.end()]
            start = match.end()
    if start < len(text) or not text:
        yield text[start:]
