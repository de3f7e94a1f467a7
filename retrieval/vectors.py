"""Window vectors in memory, by id. Knows no text; the database is the truth that it follows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import faiss
import numpy as np
from numpy.typing import NDArray

from retrieval.embed import Vectors
from retrieval.sketches import Sketches

Ids = NDArray[np.int64]
LOADED_AT_ONCE = 4096
"""Rows that are in memory twice while they are loaded."""
SKETCHED_FROM = 100_000
"""Vectors from which on a search looks at sketches first: all of fewer take some 8 ms."""
SKETCHED_PER_RESULT = 15
"""Rows that are compared exactly for each result wanted: with vectors that have nothing in common,
the worst case, these hold 0.99 of the nearest rows."""


class VectorIndex:
    """An inner-product index that is brought up to a set of ids before it is searched.

    It holds float16, as the database does: half the memory, and no less exact than what is stored.
    Up to `sketched_from` rows a search compares all of them; in more, those whose sketches are
    nearest. The cosines are the same. It is never saved: loading the vectors from the database
    takes about as long as reading an index file, and what is not there cannot be stale or damaged.
    """

    def __init__(self, *, sketched_from: int = SKETCHED_FROM) -> None:
        self._index: faiss.IndexIDMap | None = None
        self._sketches: Sketches | None = None
        """Of all rows in their order, or None while there are few."""
        self._held: Ids = np.zeros(0, dtype=np.int64)
        """The id of each row."""
        self._sketched_from = sketched_from
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def follow(self, wanted: Ids, load: Callable[[Ids], Vectors]) -> None:
        """Hold exactly the ids `wanted`; `load` gives the rows of those that are missing."""
        with self._lock:
            held = self._held
            gone = np.setdiff1d(held, wanted)
            missing = np.setdiff1d(wanted, held)
            if self._index is not None and len(gone):
                if self._sketches is not None:
                    self._sketches.remove(np.flatnonzero(np.isin(held, gone)))
                self._index.remove_ids(faiss.IDSelectorBatch(gone))
            try:
                for begin in range(0, len(missing), LOADED_AT_ONCE):
                    ids = missing[begin : begin + LOADED_AT_ONCE]
                    self._add(load(ids), ids)
            finally:  # what came before a fault is not to come twice
                self._held = self._ids()
            self._sketch()

    def search(
        self, query: Vectors, n_results: int, among: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Ids and cosines of the nearest rows, best first; `among` limits the search to these."""
        with self._lock:
            n_results = min(n_results, len(self))
            if self._index is None or n_results < 1 or self._index.d != query.shape[0]:
                return []
            if among is None and self._sketches is not None:
                scores, ids = self._sketched(self._sketches, query, n_results)
            else:
                options = None
                if among is not None:
                    selector = faiss.IDSelectorBatch(np.asarray(among, dtype=np.int64))
                    options = faiss.SearchParameters()
                    options.sel = selector
                scores, ids = self._index.search(query[None, :], n_results, params=options)
        # Missing results are padded with the id -1.
        return [
            (i, score)
            for i, score in zip(ids[0].tolist(), scores[0].tolist(), strict=True)
            if i >= 0
        ]

    def _sketched(self, sketches: Sketches, query: Vectors, n_results: int) -> tuple[Vectors, Ids]:
        """As faiss does it, but among those rows only whose sketches are nearest."""
        chosen = np.zeros(len(self), dtype=np.bool_)
        chosen[sketches.nearest(query, SKETCHED_PER_RESULT * n_results)] = True
        bits = np.packbits(chosen, bitorder="little")
        selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        options = faiss.SearchParameters()
        options.sel = selector
        assert self._index is not None
        scores, rows = self._index.index.search(query[None, :], n_results, params=options)
        return scores, np.where(rows >= 0, self._held[rows], -1)

    def _add(self, rows: Vectors, ids: Ids) -> None:
        if self._index is None or self._index.d != rows.shape[1]:
            # A first vector, or another model's width after all old ones have gone.
            self._index = faiss.IndexIDMap(_empty(rows.shape[1]))
            self._sketches = None
        self._index.add_with_ids(rows, ids)
        if self._sketches is not None:
            self._sketches.add(rows)

    def _sketch(self) -> None:
        """Make the sketches when rows have become many, drop them when few are left."""
        if self._index is None or len(self) < self._sketched_from:
            self._sketches = None
        elif self._sketches is None and self._index.d % 2 == 0:
            self._sketches = Sketches(self._index.d)
            stored = faiss.downcast_index(self._index.index)
            for begin in range(0, len(self), LOADED_AT_ONCE):
                count = min(LOADED_AT_ONCE, len(self) - begin)
                self._sketches.add(stored.reconstruct_n(begin, count))

    def _ids(self) -> Ids:
        if self._index is None:
            return np.zeros(0, dtype=np.int64)
        return np.asarray(faiss.vector_to_array(self._index.id_map), dtype=np.int64)


def _empty(dimensions: int) -> faiss.IndexScalarQuantizer:
    kind = faiss.ScalarQuantizer.QT_fp16
    return faiss.IndexScalarQuantizer(dimensions, kind, faiss.METRIC_INNER_PRODUCT)
