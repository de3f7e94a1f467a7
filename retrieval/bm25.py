"""BM25 as SQLite's FTS5 computes it, and the same as sparse vectors for a place that multiplies
them. Pure arithmetic; knows no text and no place.

A document vector times a query vector is BM25 with the mean length of the time of writing. The
difference to the present one is small, so the place brings some more than wanted, and these are
ordered by `score`, which is exact. So the order is that of the local index, whatever the place.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache

K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
"""FTS5 gives this to terms that stand in more than half of the rows."""
_DIMENSIONS = (1 << 32) - 2
NO_TERM = 0
"""A dimension that no term has: vectors must not be empty."""


@lru_cache(maxsize=200_000)
def dimension(term: str) -> int:
    """The place of a term in the vectors: a hash, since the set of terms has no end."""
    digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest) % _DIMENSIONS


def document_vector(counts: Mapping[str, int], mean_length: float) -> dict[int, float]:
    """What each term of a chunk counts; `counts` holds those of file name and context, too."""
    norm = _norm(sum(counts.values()), mean_length)
    vector: dict[int, float] = {NO_TERM: LEAST_IDF}
    for term, count in counts.items():
        place = dimension(term)
        vector[place] = vector.get(place, 0.0) + count * (K1 + 1) / (count + norm)
    return vector


def query_vector(idfs: Mapping[str, float]) -> dict[int, float]:
    """What each term is worth, at its place."""
    return {dimension(term): value for term, value in idfs.items()}


def score(
    counts: Mapping[str, int], length: int, mean_length: float, idfs: Mapping[str, float]
) -> float:
    """BM25 of a chunk of `length` terms, of which `counts` are those of the query."""
    norm = _norm(length, mean_length)
    return sum(
        idfs[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items() if count
    )


def idf(frequency: int, total: int) -> float:
    """How telling a term is that stands in `frequency` of `total` chunks."""
    return max(LEAST_IDF, math.log((total - frequency + 0.5) / (frequency + 0.5)))


def _norm(length: int, mean_length: float) -> float:
    return K1 * (1 - B + B * length / max(mean_length, 1.0))
