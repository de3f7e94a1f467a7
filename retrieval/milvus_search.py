"""What is asked of a library in Milvus: terms, vectors, chunks. Writes nothing.

Each search is of one moment: it asks the catalogue which batches count, searches past all others,
and asks again whether anything has changed meanwhile; if so, it is done once more.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from retrieval import bm25
from retrieval.catalogue import CHUNKS, ids_of
from retrieval.catalogue_reading import CatalogueReading, Place
from retrieval.chunk_store import WindowHit
from retrieval.embed import Vectors
from retrieval.keywords import MAX_KNOWN_TERMS
from retrieval.milvus_collections import MilvusCollections
from retrieval.milvus_presence import Presence
from retrieval.milvus_tables import (
    CHUNK_FIELDS,
    WINDOW_FIELDS,
    ChunkRow,
    Row,
    chunk_of,
    counting,
    hit_of,
    key_of,
    windows_collection,
)
from retrieval.types import Lost, Passage, RetrievalError

MORE_THAN_WANTED = 1.5
"""So many times the chunks that are wanted are asked for, to order them exactly."""
MAX_CACHED = 4_000
"""Chunks in memory until documents change: those of one query are asked for three times."""
TRIES = 3
Found = list[tuple[Row, float]]


@dataclass(frozen=True, slots=True)
class _Frequencies:
    """In how many of `total` chunks a term stands, for the terms asked for so far."""

    generation: int
    total: int
    n_terms: int
    counts: dict[str, int]


class MilvusSearch:
    """A `SearchedStore` over the collections of a library and the catalogue of an owner."""

    def __init__(
        self, catalogue: CatalogueReading, collections: MilvusCollections, embedder: str
    ) -> None:
        self._reading = catalogue
        self._collections = collections
        self._embedder = embedder
        self._owner = catalogue.owner
        self._frequencies = _Frequencies(-1, 0, 0, {})
        self._presence = Presence(catalogue, collections)
        self._cache = _Cache()

    def term_frequencies(self, terms: Sequence[str]) -> tuple[int, dict[str, int]]:
        """The number of chunks, and for each known term in how many of them it stands."""
        known = self._known(terms)
        return known.total, {t: known.counts[t] for t in terms if known.counts[t]}

    def lexical(
        self, terms: Sequence[str], n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[int]:
        """Ids of chunks that hold any of the terms, best BM25 first."""
        known = self._known(terms)
        idfs = {t: bm25.idf(known.counts[t], known.total) for t in terms if known.counts[t]}
        if not idfs or n_results < 1:
            return []
        found = self._found(
            document_ids,
            lambda chosen: self._collections.nearest(
                CHUNKS,
                bm25.query_vector(idfs),
                int(n_results * MORE_THAN_WANTED) + 10,
                field="words",
                chosen=chosen,
                fields=CHUNK_FIELDS,
            ),
        )
        rows = [chunk_of(row) for row, _ in found]
        self._cache.add(rows)
        mean = known.n_terms / max(1, known.total)
        scores: dict[int, float] = {}
        for row in rows:
            if row.text is None:  # too long for Milvus
                row = next((whole for whole, _, _ in self._rows([row.id])), row)
            counts = Counter(row.all_terms())
            met = {term: counts[term] for term in idfs if counts[term]}
            if met:  # else only its hash is the same
                scores[row.id] = bm25.score(met, counts.total(), mean, idfs)
        return sorted(scores, key=lambda i: (-scores[i], i))[:n_results]

    def has_vectors(self) -> bool:
        """Whether there is anything for `dense` to find, so that a query needs a vector."""
        return self._reading.has_windows(self._embedder)

    def dense(
        self, query: Vectors, n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[WindowHit]:
        """The windows nearest to a query vector by cosine, best first."""
        name = windows_collection(self._embedder, query.shape[0])
        found = self._found(
            document_ids,
            lambda chosen: self._collections.nearest(
                name, query, n_results, field="vector", chosen=chosen, fields=WINDOW_FIELDS
            ),
            windows=name,
        )
        hits = [hit_of(row, cosine) for row, cosine in found]
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.chunk_id, hit.start))

    def terms_of(self, chunk_ids: Sequence[int]) -> dict[int, str]:
        """The terms of those of the chunks that exist, as `terms_in_lines` writes them."""
        return {row.id: row.terms for row, _, _ in self._rows(chunk_ids)}

    def passages_by_id(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Those of the chunks that exist, with score 0."""
        return {row.id: row.passage(*document) for row, *document in self._rows(chunk_ids)}

    def passages(self, document_id: str) -> list[Passage]:
        """All chunks of a document, in order, with score 0."""
        lacking: list[Place] = []
        for _ in range(TRIES):
            place = self._reading.place(document_id)
            if place is None:
                return []
            rows = self._rows_of(place)
            if len(rows) == place.n_chunks:
                return [row.passage(place.id, place.name) for row in rows]
            lacking = [place]
        raise RetrievalError(self._presence.sentence(lacking))

    def lost(self, document_ids: Sequence[str] | None = None) -> Lost:
        """Which documents (None: of all) have passages that this Milvus does not hold."""
        return self._presence.lost(document_ids)

    def answers(self) -> bool:
        """Whether Milvus is there now. Takes some milliseconds, or seconds when it is not."""
        try:
            self._collections.of_windows()
        except RetrievalError:
            return False
        return True

    def named_in(self, text: str, document_ids: Sequence[str] | None = None) -> list[int]:
        """First chunks of the documents whose title stands in `text`, longest titles first."""
        return self._reading.named_in(text, document_ids)

    def _found(
        self,
        document_ids: Sequence[str] | None,
        search: Callable[[str], Found],
        *,
        windows: str | None = None,
    ) -> Found:
        found: Found = []
        for _ in range(TRIES):
            view = self._reading.view(document_ids, windows=windows)
            if view.only == ():
                return []
            found = search(counting(view, self._owner))
            batches = {row["batch"] for row, _ in found}
            generation, live = self._reading.live(batches, windows=windows is not None)
            found = [item for item in found if item[0]["batch"] in live]
            self._cache.follow(generation)
            if generation == view.generation:
                break
        return found

    def _rows(self, chunk_ids: Sequence[int]) -> list[tuple[ChunkRow, str, str]]:
        """Those of the chunks that count, with id and name of their documents."""
        rows = self._cache.get(chunk_ids)
        missing = [key_of(self._owner, i) for i in chunk_ids if i not in rows]
        new = [chunk_of(row) for row in self._collections.rows(CHUNKS, missing, CHUNK_FIELDS)]
        rows.update((row.id, row) for row in new)
        generation, live = self._reading.live(row.batch for row in rows.values())
        self._cache.follow(generation)
        self._cache.add(new)
        found = [
            (rows[i], *live[rows[i].batch]) for i in chunk_ids if i in rows if rows[i].batch in live
        ]
        return [(self._whole(row, document), document, name) for row, document, name in found]

    def _rows_of(self, place: Place) -> list[ChunkRow]:
        keys = [key_of(self._owner, i) for i in ids_of(place)]
        rows = (chunk_of(row) for row in self._collections.rows(CHUNKS, keys, CHUNK_FIELDS))
        mine = [self._whole(row, place.id) for row in rows if row.batch == place.batch]
        return sorted(mine, key=lambda row: row.chunk.start)

    def _whole(self, row: ChunkRow, document_id: str) -> ChunkRow:
        """With the text of a chunk that is too long for Milvus."""
        if row.text is not None:
            return row
        document = self._reading.document(document_id)
        text = document.text[row.chunk.start : row.chunk.end] if document else ""
        return replace(row, text=text, chunk=replace(row.chunk, text=text))

    def _known(self, terms: Iterable[str]) -> _Frequencies:
        known = self._frequencies
        if known.generation != self._reading.generation() or len(known.counts) > MAX_KNOWN_TERMS:
            known = self._frequencies = _Frequencies(*self._reading.totals(), {})
        unknown = [term for term in terms if term not in known.counts]
        if unknown:
            found = self._reading.term_counts(unknown)
            known.counts.update({**dict.fromkeys(unknown, 0), **found})
        return known


class _Cache:
    """Chunks by their id, of one generation of the documents. A chunk never changes, but text
    that was deleted is not to stay in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._rows: dict[int, ChunkRow] = {}

    def get(self, chunk_ids: Sequence[int]) -> dict[int, ChunkRow]:
        with self._lock:
            return {i: self._rows[i] for i in chunk_ids if i in self._rows}

    def add(self, rows: Iterable[ChunkRow]) -> None:
        with self._lock:
            if len(self._rows) > MAX_CACHED:
                self._rows.clear()
            self._rows.update((row.id, row) for row in rows)

    def follow(self, generation: int) -> None:
        with self._lock:
            if generation != self._generation:
                self._generation = generation
                self._rows.clear()
