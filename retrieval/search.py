"""A query to ranked passages: keywords and vectors, fused. Knows no chat and no token budget."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.embed import Embedder
from retrieval.index import Index, WindowHit
from retrieval.ranking import fuse, score_texts, weigh
from retrieval.sentences import sentence_cells
from retrieval.types import Passage, passage_body
from retrieval.words import content_terms, hangul_share, lexical_terms

N_LEXICAL = 100
N_WINDOWS = 400
MAX_TERMS = 400
"""Terms of a longer query are cut to its first ones and its last ones."""
HANGUL_QUERY = 0.2
"""Above this share of Hangul, the vector of an English-only model says nothing."""


@dataclass(frozen=True, slots=True)
class SearchWeights:
    """How much the vectors count against the keywords, and when a cosine alone is relevant."""

    dense_english_only: float = 0.5
    dense_multilingual: float = 0.6
    relevant_cosine: float = 0.35


@dataclass(frozen=True, slots=True)
class _Candidate:
    passage: Passage
    lexical: float
    cosine: float
    overlap: bool


def search(
    index: Index,
    embedder: Embedder | None,
    query: str,
    *,
    document_ids: Sequence[str] | None = None,
    top_k: int = 20,
    weights: SearchWeights = SearchWeights(),
) -> list[Passage]:
    """The passages for a query, best first, with scores in [0, 1]; at most `top_k`.

    Passages that share no word of meaning with the query and are not near it in meaning are left
    out, so the list may be empty. Of texts that contain each other, the longer one stays.
    `document_ids` None searches everything; an empty list finds nothing.
    """
    if top_k < 1 or not query.strip() or (document_ids is not None and not document_ids):
        return []
    terms = _query_terms(query)
    dense_weight = _dense_weight(embedder, query, weights)
    chunk_ids = index.lexical(terms, N_LEXICAL, document_ids)
    hits: list[WindowHit] = []
    if embedder is not None and dense_weight > 0 and index.has_vectors():
        hits = index.dense(embedder.embed_query(query), N_WINDOWS, document_ids)
    candidates = _candidates(index, query, terms, chunk_ids, hits)
    relevant = [c for c in candidates if c.overlap or c.cosine >= weights.relevant_cosine]
    if not hits:
        dense_weight = 0.0
    scores = fuse([c.lexical for c in relevant], [c.cosine for c in relevant], dense_weight)
    ranked = sorted(
        (replace(c.passage, score=score) for c, score in zip(relevant, scores, strict=True)),
        key=lambda passage: (-passage.score, passage.chunk_id),
    )
    return drop_contained(ranked)[:top_k]


def drop_contained(passages: Sequence[Passage]) -> list[Passage]:
    """Leave out passages whose words stand, in the same order, in another passage.

    Only that rule: texts that differ in one number or a negation are near by every measure, and
    are just what a reader must see. The longer text takes the better rank of the two.
    """
    kept: list[Passage] = []
    folded: list[str] = []
    for passage in passages:
        words = _folded(passage.text)
        if any(words in other for other in folded):
            continue
        inside = [i for i, other in enumerate(folded) if other in words]
        if inside:
            best = inside[0]
            kept[best] = replace(passage, score=kept[best].score)
            folded[best] = words
            for i in reversed(inside[1:]):
                del kept[i], folded[i]
        else:
            kept.append(passage)
            folded.append(words)
    return kept


def _folded(text: str) -> str:
    words = re.findall(r"\w+", unicodedata.normalize("NFC", text).casefold())
    return f" {' '.join(words)} "


def _query_terms(query: str) -> list[str]:
    terms = list(dict.fromkeys(lexical_terms(query)))
    half = MAX_TERMS // 2
    return terms if len(terms) <= MAX_TERMS else terms[:half] + terms[-half:]


def _dense_weight(embedder: Embedder | None, query: str, weights: SearchWeights) -> float:
    if embedder is None:
        return 0.0
    if not embedder.english_only:
        return weights.dense_multilingual
    return 0.0 if hangul_share(query) > HANGUL_QUERY else weights.dense_english_only


def _candidates(
    index: Index,
    query: str,
    terms: Sequence[str],
    chunk_ids: Sequence[int],
    hits: Sequence[WindowHit],
) -> list[_Candidate]:
    cosines: dict[int, float] = {}
    for hit in hits:
        cosines[hit.chunk_id] = max(hit.cosine, cosines.get(hit.chunk_id, -1.0))
    near = sorted(cosines, key=lambda chunk_id: -cosines[chunk_id])[:N_LEXICAL]
    found = index.passages_by_id(list(dict.fromkeys([*chunk_ids, *near])))
    passages = list(found.values())
    total, frequencies = index.term_frequencies(terms)
    texts = [_sentences(passage) for passage in passages]
    scores = score_texts(weigh(query, frequencies, total), texts)
    wanted = content_terms(query)
    lowest = min(cosines.values(), default=0.0)
    return [
        _Candidate(
            passage,
            score,
            cosines.get(passage.chunk_id, lowest),
            any(term in wanted for sentence in text for term in sentence),
        )
        for passage, score, text in zip(passages, scores, texts, strict=True)
    ]


def _sentences(passage: Passage) -> list[list[str]]:
    body = passage_body(passage.context, passage.text)
    return [lexical_terms(body[start:end]) for start, end in sentence_cells(body)]
