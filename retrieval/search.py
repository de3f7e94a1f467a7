"""A query to ranked passages: keywords and vectors, fused. Knows no chat and no token budget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate

from retrieval.chunk_store import SearchedStore, WindowHit
from retrieval.embed import Embedder, Vectors
from retrieval.ranking import QueryTerms, fuse, score_texts, weigh
from retrieval.sentences import Span, sentence_cells
from retrieval.tables import sentence_terms
from retrieval.types import Passage
from retrieval.words import content_terms, folded, hangul_share, lexical_terms

N_LEXICAL, N_DENSE = 40, 40
"""Chunks that each side brings to be ranked."""
N_WINDOWS = 400
N_NAMING = 3
"""Best passages whose text may name other documents."""
NAMED_SHARE = 0.25
"""What a document gains by being named, of the score of the passage that names it."""
MAX_TERMS = 400
"""Terms of a longer query are cut to its first ones and its last ones."""
MAX_POSTINGS = 8_000
"""Entries of the keyword index that one query may read: some 6 ms."""
HANGUL_QUERY = 0.2
"""Above this share of Hangul, the vector of an English-only model says nothing."""


@dataclass(frozen=True, slots=True)
class SearchWeights:
    """How much the vectors count against the keywords, and when a cosine alone is relevant."""

    dense_english_only: float = 0.4
    dense_multilingual: float = 0.6
    relevant_cosine: float = 0.35


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage with its score, its sentences, and the windows of it that the vectors found.

    `cells` are offsets in the passage's text that join up without gaps, `terms` their terms.
    """

    passage: Passage
    terms: tuple[tuple[str, ...], ...] = ()
    hits: tuple[WindowHit, ...] = ()
    lexical: float = 0.0

    @property
    def cells(self) -> tuple[Span, ...]:
        return _cells(self.passage.text)

    @property
    def score(self) -> float:
        return self.passage.score

    @property
    def cosine(self) -> float:
        return max((hit.cosine for hit in self.hits), default=-1.0)

    def scored(self, score: float) -> Ranked:
        return replace(self, passage=replace(self.passage, score=min(1.0, max(0.0, score))))


@dataclass(frozen=True, slots=True)
class Found:
    """All that a query found, best first, and what its terms are worth."""

    ranked: tuple[Ranked, ...] = ()
    query: QueryTerms = field(default_factory=lambda: QueryTerms({}))
    dense: bool = False
    """Whether the vectors had a say."""


def search(
    index: SearchedStore,
    embedder: Embedder | None,
    query: str,
    *,
    document_ids: Sequence[str] | None = None,
    weights: SearchWeights = SearchWeights(),
) -> Found:
    """The passages for a query, best first, with scores in [0, 1].

    Passages that share no word of meaning with the query and are not near it in meaning are left
    out, so there may be none. Of texts that contain each other, the longer one stays.
    `document_ids` None searches everything; an empty list finds nothing.
    """
    if not query.strip() or (document_ids is not None and not document_ids):
        return Found()
    terms = _cut(lexical_terms(query))
    dense_weight = _dense_weight(embedder, query, weights)
    hits: list[WindowHit] = []
    with ThreadPoolExecutor(1) as aside:  # the model and the keywords share nothing
        vector: Future[Vectors] | None = None
        if embedder is not None and dense_weight > 0 and index.has_vectors():
            vector = aside.submit(embedder.embed_query, query)
        total, frequencies = index.term_frequencies(terms)
        chunk_ids = index.lexical(_telling(frequencies), N_LEXICAL, document_ids)
        if vector is not None:
            hits = index.dense(vector.result(), N_WINDOWS, document_ids)
    weighed = weigh(query, frequencies, total)
    candidates = _candidates(index, weighed, chunk_ids, hits)
    wanted = content_terms(query)
    relevant = [c for c in candidates if c.cosine >= weights.relevant_cosine or _shares(c, wanted)]
    ranked = _fused(relevant, dense_weight if hits else 0.0)
    ranked = _with_named(index, ranked, document_ids)
    return Found(tuple(drop_contained(ranked)), weighed, bool(hits))


def drop_contained(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Leave out passages whose words stand, in the same order, in another passage.

    Only that rule: texts that differ in one number or a negation are near by every measure, and
    are just what a reader must see. The longer text takes the better rank of the two.
    """
    kept: list[Ranked] = []
    texts: list[str] = []
    for item in ranked:
        words = folded(item.passage.text)
        if any(words in other for other in texts):
            continue
        inside = [i for i, other in enumerate(texts) if len(other) <= len(words) and other in words]
        if inside:
            best = inside[0]
            kept[best], texts[best] = item.scored(kept[best].score), words
            for i in reversed(inside[1:]):
                del kept[i], texts[i]
        else:
            kept.append(item)
            texts.append(words)
    return kept


def _cut(terms: Sequence[str]) -> list[str]:
    once = list(dict.fromkeys(terms))
    half = MAX_TERMS // 2
    return once if len(once) <= MAX_TERMS else once[:half] + once[-half:]


def _telling(frequencies: Mapping[str, int]) -> list[str]:
    """The terms to look up, the rarest first: as many as stand in `MAX_POSTINGS` places.

    In a large library `the` stands everywhere and tells nothing, but costs most of the time. All
    terms count when what was found is ranked.
    """
    order = sorted(frequencies, key=lambda term: (frequencies[term], term))
    total = list(accumulate(frequencies[term] for term in order))
    return order[: max(1, bisect_right(total, MAX_POSTINGS))]


def _dense_weight(embedder: Embedder | None, query: str, weights: SearchWeights) -> float:
    if embedder is None:
        return 0.0
    if hangul_share(query) > HANGUL_QUERY and embedder.english_only:
        return 0.0
    return weights.dense_english_only if embedder.english_only else weights.dense_multilingual


def _candidates(
    index: SearchedStore, query: QueryTerms, chunk_ids: Sequence[int], hits: Sequence[WindowHit]
) -> list[Ranked]:
    by_chunk: dict[int, list[WindowHit]] = {}
    for hit in hits:  # nearest first
        by_chunk.setdefault(hit.chunk_id, []).append(hit)
    near = list(by_chunk)[:N_DENSE]
    wanted = list(dict.fromkeys([*chunk_ids, *near]))
    stored = index.terms_of(wanted)
    items = [
        Ranked(passage, _terms(passage, stored[number]), tuple(by_chunk.get(number, ())))
        for number, passage in index.passages_by_id(wanted).items()
        if number in stored  # deleted between the two
    ]
    scores = score_texts(
        query,
        [(lexical_terms(item.passage.context), *item.terms) for item in items],
    )
    return [replace(item, lexical=score) for item, score in zip(items, scores, strict=True)]


def _terms(passage: Passage, stored: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Those stored, unless the sentences were not told apart then or there is only one."""
    if len(stored) > 1:
        return stored
    return tuple(tuple(terms) for terms in sentence_terms(passage.text))


@lru_cache(maxsize=256)
def _cells(text: str) -> tuple[Span, ...]:
    return tuple(sentence_cells(text))


def _shares(item: Ranked, wanted: set[str]) -> bool:
    if any(not wanted.isdisjoint(terms) for terms in item.terms):
        return True
    return not wanted.isdisjoint(lexical_terms(item.passage.context))


def _fused(items: Sequence[Ranked], dense_weight: float) -> list[Ranked]:
    """With scores, best first; what the vectors did not find counts as the farthest found."""
    farthest = min((item.cosine for item in items if item.hits), default=0.0)
    cosines = [item.cosine if item.hits else farthest for item in items]
    scores = fuse([item.lexical for item in items], cosines, dense_weight)
    scored = [item.scored(score) for item, score in zip(items, scores, strict=True)]
    return sorted(scored, key=_order)


def _with_named(
    index: SearchedStore, ranked: Sequence[Ranked], document_ids: Sequence[str] | None
) -> list[Ranked]:
    """Lift the documents that the best passages name by their title.

    The second half of an answer often stands in a document that shares no word with the question.
    None is lifted above the passage that names it.
    """
    made = {item.passage.chunk_id: item for item in ranked}
    for naming in ranked[:N_NAMING]:
        for chunk_id in index.named_in(naming.passage.text, document_ids):
            own = made.get(chunk_id)
            if own is None:
                passage = index.passages_by_id([chunk_id]).get(chunk_id)
                if passage is None:
                    continue
                own = Ranked(passage, _terms(passage, ()))
            lifted = min(own.score + NAMED_SHARE * naming.score, 0.999 * naming.score)
            made[chunk_id] = own.scored(max(own.score, lifted))
    return sorted(made.values(), key=_order)


def _order(item: Ranked) -> tuple[float, str, int]:
    """Best first; equals by name and place, so that the order does not tell of the past."""
    return -item.score, item.passage.document, item.passage.start
