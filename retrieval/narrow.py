"""Ranked passages cut down to what serves a token budget best. Knows no template and no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from retrieval.chunk import pages_of
from retrieval.search import Found, Ranked
from retrieval.sentences import trim_span
from retrieval.types import (
    CleanDocument,
    CountTokens,
    Passage,
    passage_body,
    passage_in_prompt,
)
from retrieval.units import (
    MAX_GAP,
    NEIGHBOUR_SHARE,
    TYPICAL_LABEL,
    Unit,
    UnitMaker,
    adjacent,
    context_at,
    is_rows,
    scored,
)

UNIT_BYTES = 480
"""Stretches that are taken or left are about this long in UTF-8: 100 English or Korean tokens."""
MIN_UNIT_BYTES, UNIT_BYTES_PER_BUDGET_TOKEN = 120, 1.5
"""In small budgets they are shorter, so that some fit."""
SHORT_DOCUMENT_CHUNKS = 3
"""Chunks of documents up to this long are taken whole if they fit, all of them together or each."""
MIN_USEFUL_TOKENS = 12
"""A rest of the budget below this is left."""
MIN_PART_TOKENS, N_PARTED = 48, 4
"""A larger one that no whole passage fits takes parts of the next best chunks, so many of them."""

ReadDocument = Callable[[str], CleanDocument | None]


@dataclass(frozen=True, slots=True)
class _Sentence:
    """[start, end) in a document, and the chunk that it stands in."""

    start: int
    end: int
    chunk: Passage


def narrow(
    found: Found,
    budget_tokens: int,
    *,
    count_tokens: CountTokens,
    document: ReadDocument,
    chunks: Callable[[str], Sequence[Passage]],
) -> list[Passage]:
    """Passages cut down to the stretches of whole sentences that serve a budget best.

    Chunks of long documents are cut at sentences into stretches; the best of these are taken
    until the budget is full, neighbours are joined, also across chunks, and single sentences
    beside them fill the rest. Nothing is cut when all fits. Short documents come whole, and only
    what is left then goes to stretches of the next ones; CSV rows are cut only when not even one
    chunk fits; rows of other tables keep their header. Best first; as `passage_in_prompt` shows
    them, they are within the budget together.
    """
    maker = UnitMaker(found.query, count_tokens)
    whole = [maker.whole(item, [item.passage]) for item in found.ranked]
    if sum(unit.tokens + unit.header_tokens for unit in whole) <= budget_tokens:
        return [item.passage for item in found.ranked]
    units = scored(_units(found, budget_tokens, maker, chunks), found.query, dense=found.dense)
    passages = _Passages(budget_tokens, count_tokens, document)
    passages.take(_runs(_chosen(units, budget_tokens)))
    passages.fill(found.ranked)
    if passages.rest >= MIN_PART_TOKENS:
        passages.take(_runs(_parts(found, passages, maker)))
    return passages.made


def _parts(found: Found, passages: _Passages, maker: UnitMaker) -> list[Unit]:
    """Stretches for the rest of the budget, of the best chunks that were too long for it whole."""
    out = (item for item in found.ranked if not passages.hold(item.passage))
    items = [item for item in out if not is_rows(item.passage)][:N_PARTED]
    unit_bytes = max(MIN_UNIT_BYTES, int(UNIT_BYTES_PER_BUDGET_TOKEN * passages.rest))
    units = [unit for item in items for unit in maker.stretches(item, unit_bytes)]
    return _chosen(scored(units, found.query, dense=found.dense), passages.rest)


def _units(
    found: Found,
    budget_tokens: int,
    maker: UnitMaker,
    chunks: Callable[[str], Sequence[Passage]],
) -> list[Unit]:
    wanted = int(UNIT_BYTES_PER_BUDGET_TOKEN * budget_tokens)
    unit_bytes = min(UNIT_BYTES, max(MIN_UNIT_BYTES, wanted))
    units: list[Unit] = []
    siblings: dict[str, Sequence[Passage]] = {}
    for item in found.ranked:
        name = item.passage.document_id
        first_seen = name not in siblings
        if first_seen:
            siblings[name] = chunks(name)
        whole = maker.whole(item, [item.passage])
        long = len(siblings[name]) > SHORT_DOCUMENT_CHUNKS and not is_rows(item.passage)
        if long or whole.tokens + whole.header_tokens > budget_tokens:
            units.extend(maker.stretches(item, unit_bytes))
        elif sum(p.tokens for p in siblings[name]) > budget_tokens:
            units.append(whole)
        elif first_seen:
            units.append(maker.whole(item, siblings[name]))
    return units


def _chosen(units: Sequence[Unit], budget_tokens: int) -> list[Unit]:
    """The best units that fit, in document order. One beside a chosen one needs no header."""
    chosen: set[int] = set()
    used = 0
    for i in sorted(range(len(units)), key=lambda i: -units[i].score):
        joined = any(
            j in chosen and adjacent(units[min(i, j)], units[max(i, j)]) for j in (i - 1, i + 1)
        )
        cost = units[i].tokens + (0 if joined else units[i].header_tokens)
        if used + cost <= budget_tokens:
            chosen.add(i)
            used += cost
        if budget_tokens - used < MIN_USEFUL_TOKENS:
            break
    return [units[i] for i in sorted(chosen)]


def _runs(units: Sequence[Unit]) -> list[list[Unit]]:
    runs: list[list[Unit]] = []
    for unit in units:
        if runs and adjacent(runs[-1][-1], unit):
            runs[-1].append(unit)
        else:
            runs.append([unit])
    return runs


class _Passages:
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

    def hold(self, chunk: Passage) -> bool:
        """Whether some of a chunk is in already."""
        return any(
            p.document_id == chunk.document_id and p.start < chunk.end and chunk.start < p.end
            for p in self.made
        )

    def take(self, runs: Sequence[Sequence[Unit]]) -> None:
        """One passage for each run, best first; what the exact count does not let in is dropped."""
        made = [(self._of_run(run), run[0].item.passage) for run in runs]
        for passage, chunk in sorted(made, key=lambda pair: (-pair[0].score, pair[0].start)):
            cost = self._cost(passage)
            if cost <= self.rest:
                self.made.append(passage)
                self._chunks.append(chunk)
                self.rest -= cost

    def fill(self, ranked: Sequence[Ranked]) -> None:
        """Use the rest for the sentences after and before the best passages."""
        sentences: dict[str, list[_Sentence]] = {}
        for item in ranked:
            start = item.passage.start
            cells = [trim_span(item.passage.text, *cell) for cell in item.cells]
            spans = sentences.setdefault(item.passage.document_id, [])
            spans += [_Sentence(start + a, start + b, item.passage) for a, b in cells if a < b]
        for number in range(len(self.made)):
            ends = [True, False]
            while ends and self.rest >= MIN_USEFUL_TOKENS:
                ends = [after for after in ends if self._grown(number, sentences, after=after)]
        self._join()

    def _join(self) -> None:
        """Make one passage of those that have grown up to each other."""
        order = sorted(
            zip(self.made, self._chunks, strict=True),
            key=lambda pair: (pair[0].document_id, pair[0].start),
        )
        joined: list[tuple[Passage, Passage]] = []
        for passage, chunk in order:
            last, its_chunk = joined[-1] if joined else (None, chunk)
            if last is not None and _touch(last, passage):
                both = self._cut(its_chunk, last.start, passage.end)
                joined[-1] = replace(both, score=max(last.score, passage.score)), its_chunk
            else:
                joined.append((passage, chunk))
        joined.sort(key=lambda pair: (-pair[0].score, pair[0].start))
        self.made = [passage for passage, _ in joined]

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
        more = self._cost(new) - self._cost(old)
        if more > self.rest:
            return False
        self.made[number] = replace(new, score=old.score)
        self._chunks[number] = chunk
        self.rest -= more
        return True

    def _of_run(self, run: Sequence[Unit]) -> Passage:
        score = min(1.0, max(unit.score for unit in run) / (1 + 2 * NEIGHBOUR_SHARE))
        end = max(unit.end for unit in run)
        return replace(self._cut(run[0].item.passage, run[0].start, end), score=score)

    def _cut(self, chunk: Passage, start: int, end: int) -> Passage:
        """These characters, which begin in `chunk`, with the context that holds there."""
        if (start, end) == (chunk.start, chunk.end):
            return chunk
        source = self._document(chunk.document_id)
        if source is None:  # deleted meanwhile
            return chunk
        text = source.text[start:end]
        page, page_end = pages_of(source.pages, [p.start for p in source.pages], start, end)
        context = context_at(chunk, start)
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


def _touch(before: Passage, after: Passage) -> bool:
    same = before.document_id == after.document_id
    return same and 0 <= after.start - before.end <= MAX_GAP


def _beside(passage: Passage, sentences: Sequence[_Sentence], *, after: bool) -> _Sentence | None:
    """The sentence just after or before a passage, with nothing but white space between."""
    for sentence in sentences:
        gap = sentence.start - passage.end if after else passage.start - sentence.end
        if 0 <= gap <= MAX_GAP:
            return sentence
    return None
