"""Excerpts that do not fit a prompt whole, cut down to what matched in them. Knows no budget.

Only for room that would stay empty otherwise: what fits whole comes whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from chatbot.excerpts import Excerpt
from retrieval.sentences import sentence_cells
from retrieval.words import lexical_terms

LEAST_TOKENS = 60
"""Less room than this is left empty: a few words without their sentence say nothing."""
LONG_NOTE_TOKENS = 30
"""A longer note is left out where the prompt holds what it says in another place."""
MARK = "…"
_WORD = re.compile(r"\S+")
Fits = Callable[[Excerpt], bool]
Span = tuple[int, int]


def shortened(excerpt: Excerpt, query: str, fits: Fits) -> Excerpt | None:
    """The part of an excerpt around what matched, as long as `fits` allows; None if nothing does.

    The best sentence with those beside it, or if not even that one fits, words of it. What was
    cut off is marked.
    """
    text = excerpt.message.content
    asked = set(lexical_terms(query))
    cells = _cells(text, excerpt.start, excerpt.end)
    if not cells:
        return None
    best = max(range(len(cells)), key=lambda n: (_hits(text, cells[n], asked), -n))
    if fits(_part(excerpt, cells[best])):
        return _part(excerpt, _grown(cells, best, best, lambda s: fits(_part(excerpt, s))))
    words = [(m.start(), m.end()) for m in _WORD.finditer(text, *cells[best])]
    found = _window(words, asked, excerpt, fits)
    return None if found is None else _part(excerpt, found)


def _cells(text: str, start: int, end: int) -> list[Span]:
    """The sentences of a part of a message, without the space around them."""
    found = []
    for begin, stop in sentence_cells(text[start:end]):
        sentence = text[start + begin : start + stop]
        if stripped := sentence.strip():
            first = start + begin + sentence.index(stripped)
            found.append((first, first + len(stripped)))
    return found


def _hits(text: str, span: Span, asked: set[str]) -> int:
    return len(asked & set(lexical_terms(text[span[0] : span[1]])))


def _window(words: list[Span], asked: set[str], excerpt: Excerpt, fits: Fits) -> Span | None:
    """The stretch of words with the most of what was asked for, grown as far as it fits."""
    text = excerpt.message.content
    best: tuple[int, int, int] | None = None
    for first in _starts([bool(_hits(text, word, asked)) for word in words]):
        if not fits(_part(excerpt, words[first])):
            continue
        last = first
        while last + 1 < len(words) and fits(_part(excerpt, (words[first][0], words[last + 1][1]))):
            last += 1
        count = _hits(text, (words[first][0], words[last][1]), asked)
        if best is None or count > best[0]:
            best = count, first, last
    if best is None:
        return None
    return _grown(words, best[1], best[2], lambda span: fits(_part(excerpt, span)))


def _starts(matched: list[bool]) -> Iterator[int]:
    """Where a stretch may begin: at each word that matches, or at the first one."""
    if any(matched):
        yield from (n for n, is_match in enumerate(matched) if is_match)
    elif matched:
        yield 0


def _grown(spans: list[Span], first: int, last: int, fits: Callable[[Span], bool]) -> Span:
    """With the spans behind, then with those before, as long as that fits."""
    while last + 1 < len(spans) and fits((spans[first][0], spans[last + 1][1])):
        last += 1
    while first > 0 and fits((spans[first - 1][0], spans[last][1])):
        first -= 1
    return spans[first][0], spans[last][1]


def _part(excerpt: Excerpt, span: Span) -> Excerpt:
    """That part of it, marked where something is cut off."""
    text = excerpt.message.content
    before = f"{MARK} " if text[excerpt.start : span[0]].strip() else ""
    behind = f" {MARK}" if text[span[1] : excerpt.end].strip() else ""
    return replace(excerpt, start=span[0], end=span[1], marks=(before, behind))
