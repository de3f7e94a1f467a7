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
from retrieval.ranking import QueryTerms, TextMatch, fuse, match_text, score_matches, weigh
from retrieval.sentences import Span, sentence_cells
from retrieval.tables import terms_in_lines
from retrieval.types import Passage
from retrieval.words import caseless, content_terms, folded, hangul_share, lexical_terms, some_words

N_LEXICAL, N_DENSE = 40, 40
"""Chunks that each side brings to be ranked."""
N_PASSAGES = 20
N_WINDOWS = 400
N_NAMING = 3
"""Best passages whose text may name other documents."""
NAMED_SHARE = 0.25
"""What a document gains by being named, of the score of the passage that names it."""
N_COMPARED_FIRST = 4
"""Words of a passage that are looked for in others before its whole text is."""
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

    `cells` are offsets in the passage's text that join up without gaps, `terms` their terms, as
    they stand in `lines`.
    """

    passage: Passage
    lines: str = ""
    hits: tuple[WindowHit, ...] = ()
    lexical: float = 0.0

    @property
    def cells(self) -> tuple[Span, ...]:
        return _cells(self.passage.text)

    @property
    def terms(self) -> tuple[tuple[str, ...], ...]:
        return _split(self.lines)

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
    n_passages: int = N_PASSAGES,
    weights: SearchWeights = SearchWeights(),
) -> Found:
    """The `n_passages` best passages for a query, best first, with scores in [0, 1].

    Passages that share no word of meaning with the query and are not near it in meaning are left
    out, so there may be none. Of texts that contain each other, the longer one stays.
    `document_ids` None searches everything; an empty list finds nothing.
    """
    if not query.strip() or (document_ids is not None and not document_ids):
        return Found()
    terms = _cut(lexical_terms(query))
    dense_weight = _dense_weight(embedder, query, weights)
    with ThreadPoolExecutor(1) as aside:  # the vectors and the keywords share nothing
        vector: Future[Vectors] | None = None
        if embedder is not None and dense_weight > 0 and index.has_vectors():
            vector = aside.submit(embedder.embed_query, query)
        total, frequencies = index.term_frequencies(terms)
        weighed = weigh(query, frequencies, total)
        chunk_ids = index.lexical(_telling(frequencies), N_LEXICAL, document_ids)
        near: Future[list[WindowHit]] | None = None
        if vector is not None:
            # The model is held up by what Python does beside it, a search of vectors is not.
            near = aside.submit(index.dense, vector.result(), N_WINDOWS, document_ids)
        matched = _matched(index, weighed, chunk_ids)
        hits = near.result() if near is not None else []
    candidates = _candidates(index, weighed, matched, hits)
    wanted = content_terms(query)
    relevant = [
        item
        for item, match in candidates
        if item.cosine >= weights.relevant_cosine or not wanted.isdisjoint(match.counts)
    ]
    ranked = _fused(relevant, dense_weight if hits else 0.0)
    ranked = _with_named(index, ranked, document_ids)
    return Found(tuple(drop_contained(ranked, n_passages)), weighed, bool(hits))


def drop_contained(ranked: Sequence[Ranked], n_passages: int) -> list[Ranked]:
    """The first `n_passages` without those whose words stand, in the same order, in another one.

    Only that rule: texts that differ in one number or a negation are near by every measure, and
    are just what a reader must see. The longest text takes the best rank of those in it.
    """
    texts = _Texts([item.passage.text for item in ranked])
    kept: list[Ranked] = []
    places: list[int] = []  # of their texts
    for here, item in enumerate(ranked):
        if len(kept) == n_passages:
            break
        if any(texts.holds(place, here) for place in places):
            continue
        place = here
        while (holder := texts.holder(place)) is not None:
            place = holder
        kept.append(ranked[place].scored(item.score))
        places.append(place)
    return kept


class _Texts:
    """Texts by their place, to ask which of them stands in which."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._caseless = [caseless(text) for text in texts]
        self._few: dict[int, list[str]] = {}
        self._folded: dict[int, str] = {}

    def holder(self, inner: int) -> int | None:
        """The first text that holds more than this one and all of it."""
        places = [place for place in range(len(self._texts)) if place != inner]
        # Mostly a word is missing in each of them, so that whole texts need not be compared.
        for word in self._some(inner):
            places = [place for place in places if word in self._caseless[place]]
        longer = (p for p in places if len(self._words(p)) > len(self._words(inner)))
        return next((place for place in longer if self.holds(place, inner)), None)

    def holds(self, outer: int, inner: int) -> bool:
        """Whether all words of `inner` stand together in `outer`, which may be the same text."""
        text = self._caseless[outer]
        for word in self._some(inner):
            if word not in text:
                return False
        return self._words(inner) in self._words(outer)

    def _some(self, place: int) -> list[str]:
        if place not in self._few:
            self._few[place] = some_words(self._caseless[place], N_COMPARED_FIRST)
        return self._few[place]

    def _words(self, place: int) -> str:
        if place not in self._folded:
            self._folded[place] = folded(self._texts[place])
        return self._folded[place]


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


@dataclass(frozen=True, slots=True)
class _Matched:
    item: Ranked
    match: TextMatch


def _matched(
    index: SearchedStore, query: QueryTerms, chunk_ids: Sequence[int]
) -> dict[int, _Matched]:
    """Those of the chunks that exist, by number, with what they have of the query's terms."""
    if not chunk_ids:
        return {}
    stored = index.terms_of(chunk_ids)
    found = {}
    for number, passage in index.passages_by_id(chunk_ids).items():
        if number not in stored:  # deleted between the two
            continue
        lines = _lines(passage, stored[number])
        match = match_text(query, f"{_context_terms(passage.context)}\n{lines}")
        found[number] = _Matched(Ranked(passage, lines), match)
    return found


def _candidates(
    index: SearchedStore,
    query: QueryTerms,
    matched: Mapping[int, _Matched],
    hits: Sequence[WindowHit],
) -> list[tuple[Ranked, TextMatch]]:
    """Those `matched`, which the keywords brought, and those of the `hits`, with their scores."""
    by_chunk: dict[int, list[WindowHit]] = {}
    for hit in hits:  # nearest first
        by_chunk.setdefault(hit.chunk_id, []).append(hit)
    near = [number for number in list(by_chunk)[:N_DENSE] if number not in matched]
    both = {**matched, **_matched(index, query, near)}
    scores = score_matches(query, [found.match for found in both.values()])
    return [
        (replace(found.item, hits=tuple(by_chunk.get(number, ())), lexical=score), found.match)
        for (number, found), score in zip(both.items(), scores, strict=True)
    ]


def _lines(passage: Passage, stored: str) -> str:
    """Those stored, unless the sentences were not told apart then or there is only one."""
    return stored if "\n" in stored else terms_in_lines(passage.text)


@lru_cache(maxsize=256)
def _split(lines: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in lines.split("\n")) if lines else ()


@lru_cache(maxsize=256)
def _cells(text: str) -> tuple[Span, ...]:
    return tuple(sentence_cells(text))


@lru_cache(maxsize=1024)
def _context_terms(context: str) -> str:
    return " ".join(lexical_terms(context))


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
                own = Ranked(passage, terms_in_lines(passage.text))
            lifted = min(own.score + NAMED_SHARE * naming.score, 0.999 * naming.score)
            made[chunk_id] = own.scored(max(own.score, lifted))
    return sorted(made.values(), key=_order)


def _order(item: Ranked) -> tuple[float, str, int]:
    """Best first; equals by name and place, so that the order does not tell of the past."""
    return -item.score, item.passage.document, item.passage.start
