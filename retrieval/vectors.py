"""Window vectors in memory, by id. Knows no text; the database is the truth that it follows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import faiss
import numpy as np
from numpy.typing import NDArray

from retrieval.embed import Vectors

Ids = NDArray[np.int64]
LOADED_AT_ONCE = 4096
"""Rows that are in memory twice while they are loaded."""


class VectorIndex:
    """An exact inner-product index that is brought up to a set of ids before it is searched.

    It holds float16, as the database does: half the memory, and no less exact than what is stored.
    It is never saved: loading the vectors from the database takes about as long as reading an
    index file, and what is not there cannot be stale or damaged.
    """

    def __init__(self) -> None:
        self._index: faiss.IndexIDMap | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def follow(self, wanted: Ids, load: Callable[[Ids], Vectors]) -> None:
        """Hold exactly the ids `wanted`; `load` gives the rows of those that are missing."""
        with self._lock:
            held = self._ids()
            gone = np.setdiff1d(held, wanted)
            missing = np.setdiff1d(wanted, held)
            if self._index is not None and len(gone):
                self._index.remove_ids(faiss.IDSelectorBatch(gone))
            for begin in range(0, len(missing), LOADED_AT_ONCE):
                ids = missing[begin : begin + LOADED_AT_ONCE]
                rows = load(ids)
                if self._index is None or self._index.d != rows.shape[1]:
                    # A first vector, or another model's width after all old ones have gone.
                    self._index = faiss.IndexIDMap(_empty(rows.shape[1]))
                self._index.add_with_ids(rows, ids)

    def search(
        self, query: Vectors, n_results: int, among: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Ids and cosines of the nearest rows, best first; `among` limits the search to these."""
        with self._lock:
            n_results = min(n_results, len(self))
            if self._index is None or n_results < 1 or self._index.d != query.shape[0]:
                return []
            options = None
            if among is not None:
                selector = faiss.IDSelectorBatch(np.asarray(among, dtype=np.int64))
                options = faiss.SearchParameters()
                options.sel = selector
            scores, ids = self._index.search(query[None, :], n_results, params=options)
        # Missing results are padded with the id -1.
        return [
            (int(i), float(score)) for i, score in zip(ids[0], scores[0], strict=True) if i >= 0
        ]

    def _ids(self) -> Ids:
        if self._index is None:
            return np.zeros(0, dtype=np.int64)
        return np.asarray(faiss.vector_to_array(self._index.id_map), dtype=np.int64)


def _empty(dimensions: int) -> faiss.IndexScalarQuantizer:
    kind = faiss.ScalarQuantizer.QT_fp16
    return faiss.IndexScalarQuantizer(dimensions, kind, faiss.METRIC_INNER_PRODUCT)
