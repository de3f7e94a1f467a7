"""How well numbered texts match a query, by their own words and by those around them. Arithmetic.

The texts stand in reading order, as the parts of a conversation do. Knows no message and no role.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import intern

import numpy as np
from numpy.typing import NDArray

from retrieval.ranking import query_factors
from retrieval.words import STOP_TERMS, content_terms, is_glued, lexical_runs, lexical_terms

Scores = NDArray[np.float64]

K1, B = 0.6, 0.9
"""BM25 of short texts: repeats say little, and of two texts with a word the shorter is about it."""
NEAR_K1 = 3.0
"""Around a place, repeats do count: they tell a subject from a mention."""
REACH_TOKENS = 300
"""How far a word lends its weight to the texts around it; it falls by e over this distance."""
BUCKET_TOKENS = 50
FEEDBACK_TOKENS, FEEDBACK_TERMS, FEEDBACK_WEIGHT = 800, 20, 0.4
"""From how much of the best text how many terms are added, and their weight in all against the
query's."""
SPARE_TEXTS = 1000
"""So many more texts than half of them may have been taken out before their ids are given up."""
SYLLABLE_FACTOR = 0.3
"""A syllable alone is a word (`집`), or a word before its particle (`집은`), or neither."""


@dataclass(frozen=True, slots=True)
class _Arrays:
    """What is known of the texts, in the order of their ids, and which id stands where."""

    order: NDArray[np.int64]
    """The ids in reading order, shape (texts,)."""
    lengths: Scores
    tokens: Scores
    places: NDArray[np.int64]
    """By id, the bucket of tokens in which the middle of a text lies; 0 for texts taken out."""


class TermIndex:
    """Which terms stand in which text. Texts are added and taken out anywhere.

    A text keeps its id; that others before it come and go changes no list of occurrences.
    """

    def __init__(self) -> None:
        self._postings: dict[str, tuple[list[int], list[int]]] = {}
        self._lengths: list[int] = []
        self._tokens: list[int] = []
        self._terms: list[tuple[str, ...]] = []
        # Each once. Hundreds of people have an index each: a set would take six times the room.
        self._order: list[int] = []
        self._known: _Arrays | None = None

    def __len__(self) -> int:
        return len(self._order)

    def add(self, terms: Sequence[str], tokens: int) -> None:
        """Append a text that has these terms and takes so many tokens to read."""
        self.splice(len(self), len(self), [(terms, tokens)])

    def truncate(self, size: int) -> None:
        """Keep the first `size` texts only."""
        self.splice(size, len(self), ())

    def splice(self, start: int, end: int, texts: Sequence[tuple[Sequence[str], int]]) -> None:
        """Put texts, each with its terms and tokens, in the place of those from start to end."""
        for number in self._order[start:end]:
            self._take_out(number)
        self._order[start:end] = [self._put(terms, tokens) for terms, tokens in texts]
        self._known = None
        if len(self._lengths) > 2 * len(self) + SPARE_TEXTS:
            self._compact()

    def _compact(self) -> None:
        """Forget the ids of texts that were taken out."""
        live = sorted(self._order)
        new = {number: place for place, number in enumerate(live)}
        self._lengths = [self._lengths[number] for number in live]
        self._tokens = [self._tokens[number] for number in live]
        self._terms = [self._terms[number] for number in live]
        self._order = [new[number] for number in self._order]
        for numbers, _ in self._postings.values():
            numbers[:] = [new[number] for number in numbers]

    def _put(self, terms: Sequence[str], tokens: int) -> int:
        number = len(self._lengths)
        counted = Counter(map(intern, terms))
        for term, count in counted.items():
            numbers, counts = self._postings.setdefault(term, ([], []))
            numbers.append(number)
            counts.append(count)
        self._lengths.append(len(terms))
        self._tokens.append(tokens)
        self._terms.append(tuple(counted))
        return number

    def _take_out(self, number: int) -> None:
        for term in self._terms[number]:
            numbers, counts = self._postings[term]
            at = bisect_left(numbers, number)
            del numbers[at], counts[at]
            if not numbers:
                del self._postings[term]
        self._terms[number] = ()

    def weights(self, query: str) -> dict[str, float]:
        """What a match of each of the query's terms is worth; terms in no text are left out."""
        return {
            term: factor * self._rarity(term)
            for term, factor in _factors(query).items()
            if term in self._postings
        }

    def own(self, weights: Mapping[str, float]) -> Scores:
        """BM25 of each text by itself, shape (texts,)."""
        known = self._arrays()
        scores = np.zeros(len(known.lengths))
        mean = known.lengths[known.order].mean() if len(self) else 0.0
        norms = K1 * (1 - B + B * known.lengths / max(mean, 1.0))
        for term, weight in weights.items():
            numbers, counts = self._posting(term)
            scores[numbers] += weight * counts * (K1 + 1) / (counts + norms[numbers])
        return scores[known.order]

    def near(self, weights: Mapping[str, float]) -> Scores:
        """How much the talk around the middle of each text is about the query, shape (texts,).

        Each term's occurrences are spread over the tokens around them and then saturate, so that
        a place where many of the terms come up beats one that repeats a single term.
        """
        known = self._arrays()
        spread = np.zeros(int(known.places.max(initial=-1)) + 1)
        for term, weight in weights.items():
            numbers, counts = self._posting(term)
            found = np.bincount(known.places[numbers], weights=counts, minlength=len(spread))
            density = _spread(found.astype(np.float64))
            spread += weight * density * (NEAR_K1 + 1) / (density + NEAR_K1)
        return spread[known.places[known.order]]

    def coverage(self, query: str) -> Scores:
        """The share of the query's words, by weight, that each text holds, shape (texts,).

        Words that no text holds count as the rarest, so a text that has all the others of them
        still does not hold the whole query.
        """
        known = self._arrays()
        held, total = np.zeros(len(known.lengths)), 0.0
        for term, factor in _factors(query).items():
            if term in self._postings:
                weight = factor * self._rarity(term)
                held[self._posting(term)[0]] += weight
            else:
                weight = factor * math.log(1 + (len(self) + 0.5) / 0.5)
            total += weight
        shares = held[known.order]
        return shares / total if total else shares

    def spread(self, values: Scores) -> Scores:
        """Values of the texts lent to the talk around them, by the tokens of each."""
        known = self._arrays()
        places = known.places[known.order]
        weights = values * known.tokens[known.order]
        size = int(places.max(initial=-1)) + 1
        found = np.bincount(places, weights=weights, minlength=size)
        return _spread(found.astype(np.float64))[places]

    def expanded(self, weights: Mapping[str, float], scores: Scores) -> dict[str, float]:
        """The weights with those of terms that the best scored texts share among themselves.

        Pseudo relevance feedback: talk about a subject uses words that the question does not.
        """
        shared: Counter[str] = Counter()
        tokens = 0
        for place in np.argsort(-scores, kind="stable").tolist():
            number = self._order[place]
            tokens += self._tokens[number]
            if tokens > FEEDBACK_TOKENS or scores[place] <= 0:
                break
            shared.update(self._terms[number])
        found = {
            term: count * self._rarity(term)
            for term, count in shared.items()
            if count > 1 and term not in weights and _carries_meaning(term)
        }
        best = sorted(found, key=lambda term: (-found[term], term))[:FEEDBACK_TERMS]
        total = sum(found[term] for term in best)
        unit = FEEDBACK_WEIGHT * sum(weights.values()) / total if total else 0.0
        return {**weights, **{term: unit * found[term] for term in best}}

    def _rarity(self, term: str) -> float:
        n = len(self._postings[term][0])
        return math.log(1 + (len(self) - n + 0.5) / (n + 0.5))

    def _posting(self, term: str) -> tuple[NDArray[np.int64], Scores]:
        numbers, counts = self._postings[term]
        return np.asarray(numbers, dtype=np.int64), np.asarray(counts, dtype=np.float64)

    def _arrays(self) -> _Arrays:
        if self._known is None:
            order = np.asarray(self._order, dtype=np.int64)
            tokens = np.asarray(self._tokens, dtype=np.float64)
            places = np.zeros(len(tokens), dtype=np.int64)
            middles = np.cumsum(tokens[order]) - tokens[order] / 2
            places[order] = (middles // BUCKET_TOKENS).astype(np.int64)
            lengths = np.asarray(self._lengths, dtype=np.float64)
            self._known = _Arrays(order, lengths, tokens, places)
        return self._known


def _carries_meaning(term: str) -> bool:
    return term not in STOP_TERMS and len(term) >= (2 if is_glued(term) else 3)


def _factors(query: str) -> dict[str, float]:
    """The query's terms with their share of the full weight, words of mere form left out."""
    factors = query_factors(query)
    content = content_terms(query)
    if not content:
        return {term: factors[term] for term in lexical_terms(query)}
    chosen = {term: factors[term] for term in content}
    for run in lexical_runs(query):
        if is_glued(run[0]) and len(run) <= 3 and run[-1] not in STOP_TERMS:
            chosen.setdefault(run[0], SYLLABLE_FACTOR)
    return chosen


def _spread(found: Scores) -> Scores:
    reach = math.ceil(4 * REACH_TOKENS / BUCKET_TOKENS)
    steps = np.abs(np.arange(-reach, reach + 1)) * BUCKET_TOKENS / REACH_TOKENS
    return np.convolve(found, np.exp(-steps))[reach : reach + len(found)]
