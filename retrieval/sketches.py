"""Vectors in two bits a dimension, to see in a few milliseconds which of many may be near a query.
Knows no ids and no truth: what it finds must be compared again."""

from __future__ import annotations

import faiss
import numpy as np
from numpy.typing import NDArray

from retrieval.embed import Vectors

LEVELS = (-1.510, -0.4528, 0.4528, 1.510)
"""The four values that lose least of a normal distribution (Max, Quantizing for minimum
distortion, 1960, table I), in standard deviations."""


class Sketches:
    """Rows of unit length by their number from 0; after removals, numbers move up.

    The levels are fixed instead of learned, so a row's sketch does not depend on other rows or on
    the order in which they came. `dimensions` must be even: two make one code of four bits, which
    faiss compares 32 at once.
    """

    def __init__(self, dimensions: int) -> None:
        self._index = faiss.IndexPQFastScan(
            dimensions, dimensions // 2, 4, faiss.METRIC_INNER_PRODUCT
        )
        values = np.array(LEVELS, dtype=np.float32) / np.sqrt(np.float32(dimensions))
        pairs = np.array([(a, b) for b in values for a in values], dtype=np.float32)
        codes = np.tile(pairs[None], (dimensions // 2, 1, 1)).ravel()
        faiss.copy_array_to_vector(codes, self._index.pq.centroids)
        self._index.is_trained = True

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, rows: Vectors) -> None:
        """Append rows of shape (count, dimensions)."""
        self._index.add(rows)

    def remove(self, numbers: NDArray[np.int64]) -> None:
        """Take out the rows of these numbers; those after them move up."""
        self._index.remove_ids(faiss.IDSelectorBatch(numbers))
        # Removing leaves old bits in a last block that is not full, which would be mixed with
        # those of rows added next. So that block is written anew; a sketch's own sketch is itself.
        rest = len(self) % self._index.bbs
        if rest:
            rows = self._index.reconstruct_n(len(self) - rest, rest)
            last = np.arange(len(self) - rest, len(self))
            self._index.remove_ids(faiss.IDSelectorBatch(last))
            self._index.add(rows)

    def nearest(self, query: Vectors, count: int) -> NDArray[np.int64]:
        """Numbers of the rows whose sketches are nearest to a query of shape (dimensions,)."""
        _, numbers = self._index.search(query[None, :], min(count, len(self)))
        found: NDArray[np.int64] = numbers[0][numbers[0] >= 0]
        return found
