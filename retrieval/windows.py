"""Texts cut into windows that an embedding model reads whole. Knows no index."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.embed import Embedder
from retrieval.sentences import Span, sentence_cells, trim_span
from retrieval.types import Chunk, CountTokens, Passage, passage_body
from retrieval.words import hangul_share

MIN_WINDOW_TOKENS, MAX_WINDOW_TOKENS = 60, 120
"""Word pieces of a window. One vector for a longer text loses what stands in it only once."""
MOSTLY_HANGUL = 0.5
"""An English-only model gets no window with more of it."""


def window_spans(text: str, embedder: Embedder) -> list[Span]:
    """Cut a text at sentences into windows that the embedder reads whole, as offsets.

    Windows have `MIN_WINDOW_TOKENS` to `MAX_WINDOW_TOKENS` of the embedder's tokens where the
    sentences allow; none is above `embedder.max_tokens`. For an English-only embedder, windows
    that are mostly Hangul are left out.
    """
    limit = min(MAX_WINDOW_TOKENS, embedder.max_tokens)
    count = embedder.count_tokens
    cells = [part for cell in sentence_cells(text) for part in _pieces(text, cell, limit, count)]
    spans = (trim_span(text, *span) for span in _packed(cells, limit))
    return [
        (start, end)
        for start, end in spans
        if start < end
        and not (embedder.english_only and hangul_share(text[start:end]) > MOSTLY_HANGUL)
    ]


def split_windows(text: str, embedder: Embedder) -> list[str]:
    """The texts of `window_spans`."""
    return [text[start:end] for start, end in window_spans(text, embedder)]


def windows_of(
    chunks: Sequence[Chunk | Passage], embedder: Embedder | None
) -> tuple[tuple[int, int, int], ...]:
    """The windows of all chunks, as (chunk number, start, end in its text)."""
    if embedder is None:
        return ()
    return tuple(
        (number, start, end)
        for number, item in enumerate(chunks)
        for start, end in window_spans(item.text, embedder)
    )


def window_text(part: Chunk | Passage, start: int, end: int) -> str:
    """What is embedded for a window: without its headings it would often be about nothing."""
    return passage_body(part.context, part.text[start:end])


def _pieces(text: str, cell: Span, limit: int, count: CountTokens) -> list[tuple[Span, int]]:
    """A sentence, or halves of it, and halves of these, until each is within the limit."""
    start, end = cell
    tokens = count(text[start:end]) if end - start <= limit * 40 else limit + 1
    if end - start <= 1 or tokens <= limit:
        return [(cell, tokens)]
    middle = (start + end) // 2
    space = text.find(" ", middle, end - 1)
    cut = space + 1 if 0 < space - middle < (end - start) // 4 else middle
    return _pieces(text, (start, cut), limit, count) + _pieces(text, (cut, end), limit, count)


def _packed(cells: list[tuple[Span, int]], limit: int) -> list[Span]:
    """Join neighbours to windows of even length: as few as possible, all within the limit."""
    total = sum(cost for _, cost in cells)
    n_windows = max(1, -(-total // limit))
    aim = max(min(MIN_WINDOW_TOKENS, limit), total / n_windows)
    windows: list[Span] = []
    tokens = 0
    for (start, end), cost in cells:
        if windows and tokens < aim and tokens + cost <= limit:
            windows[-1] = (windows[-1][0], end)
            tokens += cost
        else:
            windows.append((start, end))
            tokens = cost
    return windows
