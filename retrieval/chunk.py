"""A clean document to chunks of a bounded number of tokens. Knows no index and no query."""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from retrieval.sentences import trim_span
from retrieval.structure import SENTENCE, Atom, atoms
from retrieval.types import Chunk, CleanDocument, CountTokens, PageSpan, passage_body

NEAR_EMPTY_TOKENS = 30
"""A chunk below this is joined to its neighbour when the limit allows."""
MAX_CONTEXT_SHARE = 0.4
"""Heading path and table header may take this much of the limit; what is longer is left out."""


def chunk(
    document: CleanDocument, *, count_tokens: CountTokens, min_tokens: int, max_tokens: int
) -> list[Chunk]:
    """Cut a document at headings, sentences and table rows into chunks of `min_tokens` to
    `max_tokens` tokens, its context counted.

    No chunk is above `max_tokens`, whatever the text (a single character that costs more is the
    one exception). Chunks may be below `min_tokens`: a short document, the last one, or before a
    part that does not fit. Only white space lies between chunks. Raises ValueError for impossible
    limits.
    """
    if not 1 <= min_tokens <= max_tokens:
        message = f"chunk limits must be 1 <= min <= max, not {min_tokens} and {max_tokens}"
        raise ValueError(message)
    packer = _Packer(document, count_tokens, min_tokens, max_tokens)
    return packer.chunks()


@dataclass(frozen=True, slots=True)
class _Part:
    """An atom, or a piece of one that is over the limit by itself, with its own tokens."""

    atom: Atom
    tokens: int


class _Packer:
    def __init__(
        self, document: CleanDocument, count_tokens: CountTokens, min_tokens: int, max_tokens: int
    ) -> None:
        self._document = document
        self._text = document.text
        self._count = count_tokens
        self._min = min_tokens
        self._max = max_tokens
        self._page_starts = [span.start for span in document.pages]
        self._context_tokens: dict[str, int] = {}

    def chunks(self) -> list[Chunk]:
        start, end = trim_span(self._text, 0, len(self._text))
        if start == end:
            return []
        # A character is at least one byte and no token is longer than a few hundred characters,
        # so a long text need not be counted to know that it is above the limit.
        if end - start <= self._max * 200:
            whole = self._make(start, end, "")
            if whole.tokens <= self._max:
                return [whole]
        parts = list(self._parts())
        return self._join_small(list(self._pack(parts)))

    def _parts(self) -> Iterator[_Part]:
        for atom in atoms(self._document):
            room = self._max - self._context_cost(atom)
            start = atom.start
            if (atom.end - start) <= room * 4:  # most are small: counted once, and not copied
                tokens = self._count(self._text[start : atom.end])
                if tokens <= room:
                    yield _Part(atom, tokens)
                    continue
            while start < atom.end:
                end = self._prefix_end(start, atom.end, room)
                strength = atom.strength if start == atom.start else SENTENCE
                piece = replace(atom, start=start, end=end, strength=strength)
                yield _Part(piece, self._count(self._text[start:end]))
                start = end

    def _prefix_end(self, start: int, limit: int, room: int) -> int:
        """The furthest good place up to `limit` so that the text from `start` costs <= `room`."""
        fits, fails = start, limit + 1
        guess = min(limit, start + room * 4)
        while fails - fits > max(1, (fits - start) // 16):
            tokens = self._count(self._text[start:guess].strip())
            fits, fails = (guess, fails) if tokens <= room else (fits, guess)
            if fits == limit:
                return limit
            # Aim where this rate reaches the limit, but take an eighth off the interval at least.
            aim = start + (guess - start) * room // max(1, tokens)
            margin = (fails - fits) // 8 if fails <= limit else 0
            guess = min(max(aim, fits + 1, fits + margin), limit, fails - 1 - margin)
            guess = max(guess, fits + 1)
        return self._nice_end(start, fits) if fits > start else start + 1

    def _nice_end(self, start: int, end: int) -> int:
        """Move an end back to a space if one is near, else off the middle of a character."""
        for place in range(end, max(start + (end - start) * 3 // 4, start + 1), -1):
            if self._text[place - 1].isspace():
                return place
        place = end
        while place > start + 1 and _joins(self._text, place):
            place -= 1
        return place if place > start + 1 or not _joins(self._text, place) else end

    def _context_cost(self, atom: Atom) -> int:
        context = self._context(atom)
        return self._context_tokens[context] if context else 0

    def _context(self, atom: Atom) -> str:
        """Heading path and table header, as much as its share of the limit allows."""
        path = " > ".join(atom.path)
        for context in ("\n".join(filter(None, (path, atom.header))), atom.header, path):
            if not context:
                continue
            if context not in self._context_tokens:
                self._context_tokens[context] = self._count(passage_body(context, ""))
            if self._context_tokens[context] <= self._max * MAX_CONTEXT_SHARE:
                return context
        return ""

    def _pack(self, parts: list[_Part]) -> Iterator[Chunk]:
        index = 0
        while index < len(parts):
            stop = self._best_stop(parts, index)
            made = self._of(parts, index, stop)
            while made.tokens > self._max and stop > index + 1:
                stop -= 1
                made = self._of(parts, index, stop)
            if made.text:
                yield from self._within(made)
            index = stop

    def _best_stop(self, parts: list[_Part], index: int) -> int:
        """Where the chunk that begins at `index` ends: the strongest cut in the wanted range."""
        tokens = self._context_cost(parts[index].atom)
        best, best_strength = index + 1, -1
        stop = index
        while stop < len(parts) and (tokens + parts[stop].tokens <= self._max or stop == index):
            tokens += parts[stop].tokens
            stop += 1
            if stop == len(parts):
                return stop
            strength = parts[stop].atom.strength
            if tokens >= self._min and strength >= best_strength:
                best, best_strength = stop, strength
        return best if best_strength >= 0 else stop

    def _of(self, parts: list[_Part], index: int, stop: int) -> Chunk:
        first = parts[index].atom
        return self._make(first.start, parts[stop - 1].atom.end, self._context(first))

    def _make(self, start: int, end: int, context: str) -> Chunk:
        start, end = trim_span(self._text, start, end)
        text = self._text[start:end]
        page, page_end = pages_of(self._document.pages, self._page_starts, start, end)
        tokens = self._count(passage_body(context, text)) if text else 0
        return Chunk(text, start, end, tokens, page, page_end, context)

    def _within(self, made: Chunk) -> Iterator[Chunk]:
        """The chunk itself, or, should its joined text cost more than its parts, pieces of it."""
        if made.tokens <= self._max:
            yield made
            return
        bare = replace(made, context="", tokens=self._count(made.text))
        if bare.tokens <= self._max:
            yield bare
            return
        start = made.start
        while start < made.end:
            end = self._prefix_end(start, made.end, self._max)
            piece = self._make(start, end, "")
            if piece.text:
                yield piece
            start = end

    def _join_small(self, made: list[Chunk]) -> list[Chunk]:
        joined: list[Chunk] = []
        for item in made:
            previous = joined[-1] if joined else None
            if previous and min(previous.tokens, item.tokens) < NEAR_EMPTY_TOKENS:
                both = self._make(previous.start, item.end, previous.context)
                if both.tokens <= self._max:
                    joined[-1] = both
                    continue
            joined.append(item)
        return joined


def pages_of(
    pages: tuple[PageSpan, ...], starts: list[int], start: int, end: int
) -> tuple[int | None, int | None]:
    """First and last page number of a text range; None, None for a document without pages.

    `starts` are the starts of `pages`, kept by the caller so that each look-up is a bisection.
    """
    if not pages:
        return None, None
    first = pages[max(0, bisect.bisect_right(starts, start) - 1)]
    last = pages[max(0, bisect.bisect_left(starts, max(end, start + 1)) - 1)]
    return first.number, last.number


def _joins(text: str, place: int) -> bool:
    """Whether the characters before and after `place` make one visible character."""
    if not 0 < place < len(text):
        return False
    following, before = text[place], text[place - 1]
    return (
        unicodedata.combining(following) > 0
        or following in "\u200d\ufe0e\ufe0f"
        or before == "\u200d"
        or "\U0001f3fb" <= following <= "\U0001f3ff"
        or "\u1160" <= following <= "\u11ff"
    )
