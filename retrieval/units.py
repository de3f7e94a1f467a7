"""The stretches of whole sentences that passages may be cut down to, with what each is worth.
Knows no budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log

from retrieval.ranking import QueryTerms, min_max
from retrieval.search import Ranked
from retrieval.sentences import byte_cells, is_row, line_cells, trim_span, whole_rows
from retrieval.structure import context_at
from retrieval.types import CountTokens, Passage, passage_body, passage_line
from retrieval.words import lexical_terms

CHUNK_SHARE = 0.4
"""How much a stretch is worth by its chunk's score, against by its own."""
COSINE_SHARE = 0.6
"""And of its own by its vector, against by its words."""
NEIGHBOUR_SHARE = 0.45
"""What a good stretch lends to the one before and after it."""
WHOLE_BONUS = 0.3
"""What a chunk that is taken whole gets in place of that, whatever lies beside it: with both, each
chunk of a long document would stand before better documents."""
TYPICAL_LABEL = "20"
MAX_GAP = 8
"""Characters of white space that may lie between neighbours; chunks leave nothing else out."""
MIN_PIECE_BYTES = 40
_ROWS_AS_LINES = (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of whole sentences, [start, end) in its document."""

    item: Ranked
    start: int
    end: int
    tokens: int
    matches: frozenset[str]
    """The query's terms in it."""
    cosine: float
    header_tokens: int
    """Paid when it begins a passage: its label, file name, headings and table header."""
    score: float = 0.0

    @property
    def document_id(self) -> str:
        return self.item.passage.document_id

    @property
    def says_something(self) -> bool:
        """Whether it is more than white space and the rules of tables."""
        passage = self.item.passage
        text = passage.text[self.start - passage.start : self.end - passage.start]
        return any(map(str.isalnum, text))


@dataclass(frozen=True, slots=True)
class Piece:
    """[start, end) in a passage's text that is never cut, and the cells that it is made of; None
    for a part of a cell, or where no terms are stored for each cell."""

    start: int
    end: int
    cells: range | None


class UnitMaker:
    """Cuts passages into units for one query. Remembers what their headers cost."""

    def __init__(self, query: QueryTerms, count_tokens: CountTokens) -> None:
        self._query = query
        self._count = count_tokens
        self._headers: dict[str, int] = {}

    def whole(self, item: Ranked, passages: Sequence[Passage]) -> Unit:
        """All of these neighbouring passages as one unit; `item` is the best of them."""
        terms = [term for sentence in item.terms for term in sentence]
        # The context of the first is counted in its tokens already.
        header = self.header_tokens(replace(item.passage, context=""))
        return Unit(
            item,
            passages[0].start,
            passages[-1].end,
            sum(passage.tokens for passage in passages),
            self._matches(terms),
            item.cosine,
            header,
        )

    def stretches(
        self, item: Ranked, unit_bytes: int, room_tokens: int, *, alone: bool = False
    ) -> list[Unit]:
        """A passage in stretches of about `unit_bytes` in UTF-8; or each piece `alone`."""
        pieces = self.pieces(item, unit_bytes, room_tokens, cut_rows=alone)
        n_bytes = [len(item.passage.text[p.start : p.end].encode()) for p in pieces]
        aim = 0 if alone else sum(n_bytes) / max(1, -(-sum(n_bytes) // unit_bytes))
        groups: list[list[Piece]] = []
        filled = 0.0
        for piece, size in zip(pieces, n_bytes, strict=True):
            if not groups or filled >= aim:
                groups.append([])
                filled = 0.0
            groups[-1].append(piece)
            filled += size
        units = [self._stretch(item, group) for group in groups]
        return [unit for unit in units if unit.says_something]

    def pieces(
        self, item: Ranked, unit_bytes: int, room_tokens: int, *, cut_rows: bool = False
    ) -> list[Piece]:
        """The sentences and table rows of a passage, without gaps between them.

        Sentences that do not fit into `room_tokens` alone, or of twice `unit_bytes`, are cut: at
        line ends, longer lines at spaces, what has none anywhere. So are rows with `cut_rows`.
        """
        text = item.passage.text
        room = room_tokens - self.header_tokens(item.passage)
        rows = is_rows(item.passage)

        def too_long(start: int, end: int) -> bool:
            part = text[start:end]
            n_bytes = len(part.encode())
            if n_bytes <= max(MIN_PIECE_BYTES, min(room, 2 * unit_bytes)):
                return False
            row = rows or all(is_row(line) for line in part.split("\n") if line)
            long = n_bytes > 2 * unit_bytes and not row
            return (cut_rows or not row) and (long or self._count(part) > room)

        stored = len(item.terms) == len(item.cells)
        pieces: list[Piece] = []
        for group in whole_rows(text, item.cells, all_rows=rows):
            span = item.cells[group[0]][0], item.cells[group[-1]][1]
            if not too_long(*span):
                pieces.append(Piece(*span, group if stored else None))
                continue
            for line in line_cells(text, *span):
                parts = [line]
                if too_long(*line):
                    n_bytes = min(unit_bytes, max(MIN_PIECE_BYTES, 2 * room))
                    parts = byte_cells(text, *line, n_bytes)
                pieces.extend(Piece(*part, None) for part in parts)
        return pieces

    def header_tokens(self, passage: Passage) -> int:
        """Tokens of a passage's line and context in a prompt."""
        text = f"{passage_line(TYPICAL_LABEL, passage)}\n{passage_body(passage.context, '')}\n\n"
        if text not in self._headers:
            self._headers[text] = self._count(text)
        return self._headers[text]

    def _matches(self, terms: Sequence[str]) -> frozenset[str]:
        return frozenset(term for term in terms if term in self._query.weights)

    def _terms(self, item: Ranked, piece: Piece) -> Sequence[str]:
        if piece.cells is None:
            return lexical_terms(item.passage.text[piece.start : piece.end])
        return [term for number in piece.cells for term in item.terms[number]]

    def _stretch(self, item: Ranked, group: Sequence[Piece]) -> Unit:
        text = item.passage.text
        start, end = trim_span(text, group[0].start, group[-1].end)
        overlaps = [
            (min(end, hit.end) - max(start, hit.start), hit.cosine)
            for hit in item.hits
            if hit.start < end and start < hit.end
        ]
        begin = item.passage.start + start
        return Unit(
            item,
            begin,
            item.passage.start + end,
            self._count(text[start:end]) + 1,
            self._matches([term for piece in group for term in self._terms(item, piece)]),
            max(overlaps)[1] if overlaps else -1.0,
            self.header_tokens(replace(item.passage, context=context_at(item.passage, begin))),
        )


def scored(units: Sequence[Unit], query: QueryTerms, *, dense: bool) -> list[Unit]:
    """In document order, each with its chunk's score, its own, and some of its neighbours'.

    One that is a whole chunk has its chunk's score with a bonus in place of all that.
    """
    farthest = min((unit.cosine for unit in units if unit.cosine > -1.0), default=0.0)
    lexical = min_max(_lexical(units, query))
    cosines = min_max([max(unit.cosine, farthest) for unit in units])
    own = [
        COSINE_SHARE * b + (1 - COSINE_SHARE) * a if dense else a
        for a, b in zip(lexical, cosines, strict=True)
    ]
    mixed = [
        replace(unit, score=_score(unit, value)) for unit, value in zip(units, own, strict=True)
    ]
    ordered = sorted(mixed, key=lambda unit: (unit.document_id, unit.start))
    lent = [0.0] * len(ordered)
    for i, (before, after) in enumerate(pairwise(ordered)):
        if adjacent(before, after):
            lent[i] += NEIGHBOUR_SHARE * after.score
            lent[i + 1] += NEIGHBOUR_SHARE * before.score
    return [
        unit if _is_whole(unit) else replace(unit, score=unit.score + extra)
        for unit, extra in zip(ordered, lent, strict=True)
    ]


def _score(unit: Unit, own: float) -> float:
    if _is_whole(unit):
        return (1 + WHOLE_BONUS) * unit.item.score
    return CHUNK_SHARE * unit.item.score + (1 - CHUNK_SHARE) * own


def _is_whole(unit: Unit) -> bool:
    passage = unit.item.passage
    return unit.start <= passage.start and unit.end >= passage.end


def _lexical(units: Sequence[Unit], query: QueryTerms) -> list[float]:
    """What their terms are worth. A term that stands in most units, such as the name of what
    they all are about, does not tell them apart."""
    frequencies = Counter(term for unit in units for term in unit.matches)
    total = log(1 + len(units))
    worth = {
        term: query.weights[term] * log(1 + len(units) / count) / total
        for term, count in frequencies.items()
    }
    return [sum(worth[term] for term in unit.matches) for unit in units]


def adjacent(before: Unit, after: Unit) -> bool:
    """Whether nothing but white space lies between."""
    chunk = before.item.passage
    if chunk.chunk_id == after.item.passage.chunk_id and before.end <= after.start <= chunk.end:
        return not chunk.text[before.end - chunk.start : after.start - chunk.start].strip()
    near = before.end <= after.start <= before.end + MAX_GAP
    return before.document_id == after.document_id and near


def is_rows(passage: Passage) -> bool:
    """Whether a passage is rows of CSV, which stay together."""
    return passage.document.lower().endswith(_ROWS_AS_LINES)
