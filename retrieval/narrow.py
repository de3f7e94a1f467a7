"""Ranked passages cut down to what serves a token budget best. Knows no template and no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from retrieval.chunk import pages_of
from retrieval.ranking import QueryTerms, min_max, sentence_score
from retrieval.search import Found, Ranked
from retrieval.sentences import trim_span
from retrieval.types import CleanDocument, CountTokens, Passage, passage_body

UNIT_BYTES = 480
"""Stretches that are taken or left are about this long in UTF-8: 100 English or Korean tokens."""
MIN_UNIT_BYTES, UNIT_BYTES_PER_BUDGET_TOKEN = 120, 1.5
"""In small budgets they are shorter, so that some fit."""
SHORT_DOCUMENT_CHUNKS = 3
"""Chunks of documents up to this long are taken whole or not at all,"""
WHOLE_DOCUMENT_SHARE = 0.75
"""and all of them together, if they take no more than this of the budget."""
HEADER_TOKENS = 16
"""What a label and a file name cost, about; the prompt counts exactly."""
CHUNK_SHARE = 0.5
"""How much a stretch is worth by its chunk's score, against by its own."""
NEIGHBOUR_SHARE = 0.4
"""What a good stretch lends to the one before and after it."""
WHOLE_BONUS = 0.3
"""What a chunk that is taken whole gets in place of that."""
MIN_USEFUL_TOKENS = 48
_ROWS_AS_LINES = (".csv", ".tsv")
# A header row, its rule and rows up to the end of the text.
_TABLE_HEAD = re.compile(
    r"^(\|.*\|)[ \t]*\n\|[ \t:|-]+\|[ \t]*\n(?:\|.*\|[ \t]*\n)*\Z", re.MULTILINE
)
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A stretch of whole sentences, [start, end) in its document."""

    item: Ranked
    start: int
    end: int
    tokens: int
    lexical: float
    cosine: float
    score: float = 0.0
    header_tokens: int = HEADER_TOKENS
    """Paid when it begins a passage: its label, file name, headings and table header."""

    @property
    def document_id(self) -> str:
        return self.item.passage.document_id


def narrow(
    found: Found,
    budget_tokens: int,
    *,
    count_tokens: CountTokens,
    document: Callable[[str], CleanDocument | None],
    chunks: Callable[[str], Sequence[Passage]],
) -> list[Passage]:
    """Passages cut down to the stretches of whole sentences that serve a budget best.

    Chunks of long documents are cut at sentences into stretches; the best of these are taken
    until the budget is full, and neighbours are joined, also across chunks. Nothing is cut when
    all fits; CSV rows and short documents never are; rows of other tables keep their header.
    Best first; together, with `HEADER_TOKENS` for each, they are within the budget.
    """
    whole = [item.passage for item in found.ranked]
    if sum(p.tokens + HEADER_TOKENS for p in whole) <= budget_tokens:
        return whole
    wanted = int(UNIT_BYTES_PER_BUDGET_TOKEN * budget_tokens)
    unit_bytes = min(UNIT_BYTES, max(MIN_UNIT_BYTES, wanted))
    units: list[_Unit] = []
    siblings: dict[str, Sequence[Passage]] = {}
    for item in found.ranked:
        name = item.passage.document_id
        first_seen = name not in siblings
        if first_seen:
            siblings[name] = chunks(name)
        if len(siblings[name]) > SHORT_DOCUMENT_CHUNKS:
            units.extend(_units(item, found.query, count_tokens, unit_bytes))
        elif sum(p.tokens for p in siblings[name]) > WHOLE_DOCUMENT_SHARE * budget_tokens:
            units.append(_whole(item, [item.passage], found.query))
        elif first_seen:
            units.append(_whole(item, siblings[name], found.query))
    units = _scored(units, found.dense)
    chosen = _chosen(units, budget_tokens)
    passages = [_passage(run, document, count_tokens) for run in _runs(chosen)]
    return _within(sorted(passages, key=lambda p: (-p.score, p.start)), budget_tokens)


def _whole(item: Ranked, passages: Sequence[Passage], query: QueryTerms) -> _Unit:
    tokens = sum(passage.tokens for passage in passages)
    start, end = passages[0].start, passages[-1].end
    lexical = sentence_score(query, [term for terms in item.terms for term in terms])
    return _Unit(item, start, end, tokens, lexical, item.cosine)


def _units(
    item: Ranked, query: QueryTerms, count_tokens: CountTokens, unit_bytes: int
) -> list[_Unit]:
    passage = item.passage
    if not item.cells or passage.document.lower().endswith(_ROWS_AS_LINES):
        return [_whole(item, [passage], query)]
    n_bytes = [len(passage.text[start:end].encode()) for start, end in item.cells]
    aim = sum(n_bytes) / max(1, -(-sum(n_bytes) // unit_bytes))
    groups: list[list[int]] = []
    filled = 0.0
    for number, size in enumerate(n_bytes):
        if not groups or filled >= aim:
            groups.append([])
            filled = 0.0
        groups[-1].append(number)
        filled += size
    return [_unit(item, group, query, count_tokens) for group in groups]


def _unit(item: Ranked, group: list[int], query: QueryTerms, count_tokens: CountTokens) -> _Unit:
    text = item.passage.text
    start, end = trim_span(text, item.cells[group[0]][0], item.cells[group[-1]][1])
    overlaps = [
        (min(end, hit.end) - max(start, hit.start), hit.cosine)
        for hit in item.hits
        if hit.start < end and start < hit.end
    ]
    return _Unit(
        item,
        item.passage.start + start,
        item.passage.start + end,
        count_tokens(text[start:end]) + 1,
        sentence_score(query, [term for number in group for term in item.terms[number]]),
        max(overlaps)[1] if overlaps else -1.0,
        header_tokens=HEADER_TOKENS
        + count_tokens(_context_at(item.passage, item.passage.start + start)),
    )


def _scored(units: Sequence[_Unit], dense: bool) -> list[_Unit]:
    """In document order, each with its chunk's score, its own, and some of its neighbours'."""
    farthest = min((unit.cosine for unit in units if unit.cosine > -1.0), default=0.0)
    lexical = min_max([unit.lexical for unit in units])
    cosines = min_max([max(unit.cosine, farthest) for unit in units])
    own = [(a + b) / 2 if dense else a for a, b in zip(lexical, cosines, strict=True)]
    scored = []
    for unit, value in zip(units, own, strict=True):
        passage = unit.item.passage
        whole = unit.start <= passage.start and unit.end >= passage.end
        score = CHUNK_SHARE * unit.item.score + (1 - CHUNK_SHARE) * value
        if whole:
            # It has no neighbours of its own that could lend it something.
            score = (1 + WHOLE_BONUS) * unit.item.score
        scored.append(replace(unit, score=score))
    ordered = sorted(scored, key=lambda unit: (unit.document_id, unit.start))
    lent = [0.0] * len(ordered)
    for i, (before, after) in enumerate(pairwise(ordered)):
        if _adjacent(before, after):
            lent[i] += NEIGHBOUR_SHARE * after.score
            lent[i + 1] += NEIGHBOUR_SHARE * before.score
    return [replace(u, score=u.score + extra) for u, extra in zip(ordered, lent, strict=True)]


def _adjacent(before: _Unit, after: _Unit) -> bool:
    """Whether nothing but white space lies between; chunks leave nothing else out."""
    near = before.end <= after.start <= before.end + 8
    return before.document_id == after.document_id and near


def _chosen(units: Sequence[_Unit], budget_tokens: int) -> list[_Unit]:
    """The best units that fit, in document order. One beside a chosen one needs no header."""
    chosen: set[int] = set()
    used = 0
    for i in sorted(range(len(units)), key=lambda i: -units[i].score):
        joined = any(
            j in chosen and _adjacent(units[min(i, j)], units[max(i, j)]) for j in (i - 1, i + 1)
        )
        header = 0 if joined else units[i].header_tokens
        if used + units[i].tokens + header <= budget_tokens:
            chosen.add(i)
            used += units[i].tokens + header
        if budget_tokens - used < MIN_USEFUL_TOKENS:
            break
    return [units[i] for i in sorted(chosen)]


def _runs(units: Sequence[_Unit]) -> list[list[_Unit]]:
    runs: list[list[_Unit]] = []
    for unit in units:
        if runs and _adjacent(runs[-1][-1], unit):
            runs[-1].append(unit)
        else:
            runs.append([unit])
    return runs


def _passage(
    run: Sequence[_Unit],
    document: Callable[[str], CleanDocument | None],
    count_tokens: CountTokens,
) -> Passage:
    """One passage of neighbouring units, with the context that holds where it begins."""
    first = run[0].item.passage
    start, end = run[0].start, max(unit.end for unit in run)
    score = min(1.0, max(unit.score for unit in run) / (1 + 2 * NEIGHBOUR_SHARE))
    if (start, end) == (first.start, first.end):
        return replace(first, score=score)
    source = document(first.document_id)
    if source is None:  # deleted meanwhile
        return replace(first, score=score)
    text = source.text[start:end]
    page, page_end = pages_of(source.pages, [p.start for p in source.pages], start, end)
    context = _context_at(first, start)
    tokens = count_tokens(passage_body(context, text))
    return Passage(
        chunk_id=first.chunk_id,
        document_id=first.document_id,
        document=first.document,
        text=text,
        start=start,
        end=end,
        tokens=tokens,
        score=score,
        page=page,
        page_end=page_end,
        context=context,
    )


def _context_at(chunk: Passage, start: int) -> str:
    """Heading and table header that hold at a place in a chunk; none for one before it."""
    before = chunk.text[: max(0, start - chunk.start)]
    context = chunk.context if start >= chunk.start else ""
    if headings := _HEADING.findall(before):
        context = headings[-1]
    head = _TABLE_HEAD.search(before)
    return "\n".join(filter(None, (context, head[1] if head else "")))


def _within(passages: list[Passage], budget_tokens: int) -> list[Passage]:
    """Drop from the end what the exact count puts above the budget."""
    taken: list[Passage] = []
    used = 0
    for passage in passages:
        cost = passage.tokens + HEADER_TOKENS
        if used + cost <= budget_tokens:
            taken.append(passage)
            used += cost
    return taken
