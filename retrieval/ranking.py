"""Scores of texts for a query's terms, and how two kinds of scores become one. Pure arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

K1, B = 1.2, 0.6
"""BM25: how soon repeats stop to count, and how much length counts against a text."""


def term_weights(
    terms: Iterable[str], frequencies: Mapping[str, int], total: int
) -> dict[str, float]:
    """What a match of each term is worth: rare terms most. Positive also in the smallest set.

    `frequencies` says in how many of `total` texts a term stands; terms in none are left out.
    """
    return {
        term: math.log(1 + (total - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        for term in dict.fromkeys(terms)
        if frequencies.get(term)
    }


def bm25(weights: Mapping[str, float], texts: Sequence[Sequence[str]]) -> list[float]:
    """BM25 of each text, given as its terms. Lengths are compared among these texts."""
    mean = sum(len(terms) for terms in texts) / max(1, len(texts)) or 1.0
    scores = []
    for terms in texts:
        counts = Counter(term for term in terms if term in weights)
        norm = K1 * (1 - B + B * len(terms) / mean)
        scores.append(sum(weights[t] * n * (K1 + 1) / (n + norm) for t, n in counts.items()))
    return scores


def min_max(scores: Sequence[float]) -> list[float]:
    """Scores moved and stretched to [0, 1]; all equal scores become 1 if positive, else 0."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if high - low < 1e-9:
        return [1.0 if high > 0 else 0.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def fuse(lexical: Sequence[float], dense: Sequence[float], dense_weight: float) -> list[float]:
    """A convex combination of both after `min_max`. Rank fusion would let the weaker arm drag."""
    pairs = zip(min_max(lexical), min_max(dense), strict=True)
    return [(1 - dense_weight) * a + dense_weight * b for a, b in pairs]
