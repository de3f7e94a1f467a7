"""Passages cut out of documents to fit a token budget, and grown to fill it. Knows no query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from retrieval.chunk import pages_of
from retrieval.search import Ranked
from retrieval.sentences import trim_span
from retrieval.structure import context_at
from retrieval.types import CleanDocument, CountTokens, Passage, passage_body, passage_in_prompt
from retrieval.units import MAX_GAP, NEIGHBOUR_SHARE, TYPICAL_LABEL, Piece, Unit

MAX_JOINED_GAP = 200
"""Characters of white space that passages may be joined over."""
MIN_USEFUL_TOKENS = 12
"""A rest of the budget below this is left."""

ReadDocument = Callable[[str], CleanDocument | None]


@dataclass(frozen=True, slots=True)
class _Sentence:
    """[start, end) in a document, and the chunk that it stands in."""

    start: int
    end: int
    chunk: Passage


class Passages:
    """Passages made of stretches, within a budget that counts them as a prompt shows them."""

    def __init__(
        self, budget_tokens: int, count_tokens: CountTokens, document: ReadDocument
    ) -> None:
        self.rest = budget_tokens
        self._count = count_tokens
        self._document = cache(document)
        self.made: list[Passage] = []
        self._chunks: list[Passage] = []
        """Of each passage the chunk in which it begins."""
        self._changed: set[str] = set()
        """Documents that were deleted or replaced since the search."""

    def hold(self, chunk: Passage) -> bool:
        """Whether some of a chunk is in already, or none of it may be."""
        return chunk.document_id in self._changed or any(
            p.document_id == chunk.document_id and p.start < chunk.end and chunk.start < p.end
            for p in self.made
        )

    def take(self, runs: Sequence[Sequence[Unit]]) -> None:
        """One passage for each run, best first; what the exact count does not let in is dropped."""
        cut = [(self._of_run(run), run[0].item.passage) for run in runs]
        made = [(passage, chunk) for passage, chunk in cut if passage is not None]
        for passage, chunk in sorted(made, key=lambda pair: (-pair[0].score, pair[0].start)):
            cost = self._cost(passage)
            if cost <= self.rest:
                self.made.append(passage)
                self._chunks.append(chunk)
                self.rest -= cost

    def fill(self, ranked: Sequence[Ranked], pieces: Callable[[Ranked], Sequence[Piece]]) -> None:
        """Use the rest for the sentences after and before the best passages."""
        sentences: dict[str, list[_Sentence]] = {p.document_id: [] for p in self.made}
        for item in ranked:
            chunk = item.passage
            if self.rest < MIN_USEFUL_TOKENS or chunk.document_id not in sentences:
                continue
            cells = [trim_span(chunk.text, piece.start, piece.end) for piece in pieces(item)]
            sentences[chunk.document_id] += [
                _Sentence(chunk.start + a, chunk.start + b, chunk) for a, b in cells if a < b
            ]
        for number in range(len(self.made)):
            ends = [True, False]
            while ends and self.rest >= MIN_USEFUL_TOKENS:
                ends = [after for after in ends if self._grown(number, sentences, after=after)]
        self._join()

    def best_first(self) -> list[Passage]:
        """All that were made, without those of documents that have changed meanwhile."""
        self._join()
        return [p for p in self.made if p.document_id not in self._changed]

    def _join(self) -> None:
        """Make one passage of those that have grown up to each other. Best first."""
        order = sorted(
            zip(self.made, self._chunks, strict=True),
            key=lambda pair: (pair[0].document_id, pair[0].start),
        )
        joined: list[tuple[Passage, Passage]] = []
        for passage, chunk in order:
            both = self._both(*joined[-1], passage) if joined else None
            if both is None:
                joined.append((passage, chunk))
            else:
                joined[-1] = both, joined[-1][1]
        joined.sort(key=lambda pair: (-pair[0].score, pair[0].start))
        self.made = [passage for passage, _ in joined]
        self._chunks = [chunk for _, chunk in joined]

    def _both(self, before: Passage, chunk: Passage, after: Passage) -> Passage | None:
        """Two passages as one, if they touch and the budget allows for what lies between."""
        if not self._touch(before, after.document_id, after.start):
            return None
        both = self._cut(chunk, before.start, after.end)
        if both is None:
            return None
        more = self._cost(both) - self._cost(before) - self._cost(after)
        if more > self.rest:
            return None
        self.rest -= more
        return replace(both, score=max(before.score, after.score))

    def _touch(self, before: Passage, document_id: str, place: int) -> bool:
        if before.document_id != document_id or place < before.end:
            return False
        if place - before.end <= MAX_GAP:
            return True
        source = self._document(document_id) if place - before.end <= MAX_JOINED_GAP else None
        return source is not None and source.text[before.end : place].isspace()

    def _grown(
        self, number: int, sentences: Mapping[str, Sequence[_Sentence]], *, after: bool
    ) -> bool:
        """Whether the passage has one sentence more on that side now."""
        old = self.made[number]
        found = _beside(old, sentences[old.document_id], after=after)
        others = [p for p in self.made if p.document_id == old.document_id and p is not old]
        if found is None or any(p.start < found.end and found.start < p.end for p in others):
            return False
        chunk = self._chunks[number] if after else found.chunk
        new = self._cut(chunk, min(old.start, found.start), max(old.end, found.end))
        if new is None or self._source(found.chunk) is None:
            return False
        more = self._cost(new) - self._cost(old)
        if more > self.rest:
            return False
        self.made[number] = replace(new, score=old.score)
        self._chunks[number] = chunk
        self.rest -= more
        return True

    def _of_run(self, run: Sequence[Unit]) -> Passage | None:
        score = min(1.0, max(unit.score for unit in run) / (1 + 2 * NEIGHBOUR_SHARE))
        end = max(unit.end for unit in run)
        made = self._cut(run[0].item.passage, run[0].start, end)
        if made is None or len(run) == 1:
            return replace(made, score=score) if made else None
        same = all(self._source(unit.item.passage) is not None for unit in run)
        return replace(made, score=score) if same else None

    def _source(self, chunk: Passage) -> CleanDocument | None:
        """The document of a chunk, None if it does not hold the chunk any more."""
        source = self._document(chunk.document_id)
        if source is None or source.text[chunk.start : chunk.end] != chunk.text:
            self._changed.add(chunk.document_id)
            return None
        return source

    def _cut(self, chunk: Passage, start: int, end: int) -> Passage | None:
        """These characters, which begin in `chunk`, with the context that holds there."""
        if (start, end) == (chunk.start, chunk.end):
            return chunk
        source = self._source(chunk)
        if source is None:
            return None
        text = source.text[start:end]
        page, page_end = pages_of(source.pages, [p.start for p in source.pages], start, end)
        context = context_at(chunk, start, source)
        tokens = self._count(passage_body(context, text))
        return replace(
            chunk,
            text=text,
            start=start,
            end=end,
            tokens=tokens,
            page=page,
            page_end=page_end,
            context=context,
        )

    def _cost(self, passage: Passage) -> int:
        return self._count(passage_in_prompt(TYPICAL_LABEL, passage))


def _beside(passage: Passage, sentences: Sequence[_Sentence], *, after: bool) -> _Sentence | None:
    """The sentence just after or before a passage, with nothing but white space between."""
    for sentence in sentences:
        gap = sentence.start - passage.end if after else passage.start - sentence.end
        if 0 <= gap <= MAX_GAP:
            return sentence
    return None
