"""Ranked passages cut down to what serves a token budget best. Knows no template and no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from retrieval.cutting import MIN_USEFUL_TOKENS, Passages, ReadDocument
from retrieval.search import Found
from retrieval.types import CountTokens, Passage
from retrieval.units import WHOLE_BONUS, Unit, UnitMaker, adjacent, is_rows, scored

UNIT_BYTES = 480
"""Stretches that are taken or left are about this long in UTF-8: 100 English or Korean tokens."""
MIN_UNIT_BYTES, UNIT_BYTES_PER_BUDGET_TOKEN = 120, 1.5
"""In small budgets they are shorter, so that some fit."""
SHORT_DOCUMENT_CHUNKS = 3
"""Chunks of documents up to this long are taken whole if they fit, all of them together or each."""
MIN_PART_TOKENS, N_PARTED = 48, 4
"""A larger one that no whole passage fits takes parts of the next best chunks, so many of them."""


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
    what is left then goes to stretches of the next ones; chunks of CSV are cut between rows, and
    only when not even one chunk fits; rows of tables keep their header. What is too long for the
    budget by itself is cut wherever it must be. Documents that were deleted or replaced since the
    search are left out. Best first; as `passage_in_prompt` shows them, they are within the budget
    together.
    """
    maker = UnitMaker(found.query, count_tokens)
    whole = [maker.whole(item, [item.passage]) for item in found.ranked]
    if sum(unit.tokens + unit.header_tokens for unit in whole) <= budget_tokens:
        return [item.passage for item in found.ranked]
    chunks = cache(chunks)
    found = replace(found, ranked=tuple(i for i in found.ranked if _is_there(i.passage, chunks)))
    wanted = int(UNIT_BYTES_PER_BUDGET_TOKEN * budget_tokens)
    unit_bytes = min(UNIT_BYTES, max(MIN_UNIT_BYTES, wanted))
    units = scored(
        _units(found, budget_tokens, unit_bytes, maker, chunks), found.query, dense=found.dense
    )
    passages = Passages(budget_tokens, count_tokens, document)
    passages.take(_runs(_chosen(units, budget_tokens)))
    passages.fill(found.ranked, lambda item: maker.pieces(item, unit_bytes, budget_tokens))
    if passages.rest >= (MIN_PART_TOKENS if passages.made else MIN_USEFUL_TOKENS):
        passages.take(_runs(_parts(found, passages, maker)))
    return passages.best_first()


def _parts(found: Found, passages: Passages, maker: UnitMaker) -> list[Unit]:
    """Stretches for the rest of the budget, of the best chunks that were too long for it whole.

    Where nothing at all did fit, of single sentences and rows.
    """
    out = (item for item in found.ranked if not passages.hold(item.passage))
    alone = not passages.made
    items = [item for item in out if alone or not is_rows(item.passage)][:N_PARTED]
    unit_bytes = max(MIN_UNIT_BYTES, int(UNIT_BYTES_PER_BUDGET_TOKEN * passages.rest))
    units = [
        unit
        for item in items
        for unit in maker.stretches(item, unit_bytes, passages.rest, alone=alone)
    ]
    ranked = scored(units, found.query, dense=found.dense)
    return _below_whole(_chosen(ranked, passages.rest))


def _below_whole(units: Sequence[Unit]) -> list[Unit]:
    """Units compared with each other only, with scores that whole chunks can be compared with:
    of none above what its chunk would have."""
    best: dict[int, float] = {}
    for unit in units:
        number = unit.item.passage.chunk_id
        best[number] = max(best.get(number, 0.0), unit.score)
    scored_anew = []
    for unit in units:
        highest = best[unit.item.passage.chunk_id]
        limit = (1 + WHOLE_BONUS) * unit.item.score
        share = min(1.0, limit / highest) if highest > 0 else 1.0
        scored_anew.append(replace(unit, score=share * unit.score))
    return scored_anew


def _units(
    found: Found,
    budget_tokens: int,
    unit_bytes: int,
    maker: UnitMaker,
    chunks: Callable[[str], Sequence[Passage]],
) -> list[Unit]:
    units: list[Unit] = []
    seen: set[str] = set()
    for item in found.ranked:
        name = item.passage.document_id
        siblings = chunks(name)
        whole = maker.whole(item, [item.passage])
        long = len(siblings) > SHORT_DOCUMENT_CHUNKS and not is_rows(item.passage)
        if long or whole.tokens + whole.header_tokens > budget_tokens:
            units.extend(maker.stretches(item, unit_bytes, budget_tokens))
        elif sum(p.tokens for p in siblings) > budget_tokens:
            units.append(whole)
        elif name not in seen:
            units.append(maker.whole(item, siblings))
        seen.add(name)
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


def _is_there(chunk: Passage, chunks: Callable[[str], Sequence[Passage]]) -> bool:
    """Whether a chunk's document has not been deleted or replaced meanwhile."""
    same = (chunk.chunk_id, chunk.text)
    return any(same == (item.chunk_id, item.text) for item in chunks(chunk.document_id))
