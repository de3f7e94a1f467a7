"""The documents of a library with chunks and vectors in Milvus. Knows no queries, no files.

What is where, so that several app processes see one library:

- SQL (a file of the data folder, or the team's PostgreSQL by `--database-url`): which documents
  there are, their texts, pages and titles, in how many chunks each term stands, and which batches
  of rows in Milvus count. A document is written, replaced and deleted by one transaction there.
- Milvus: the chunks with their terms, a sparse vector of BM25 weights each, and the vectors of
  their windows. Rows are written before the transaction that makes them count, and removed after
  the one that makes them count no more; every search looks past those that do not count.
- The folder of the library: copies of the original files. On several machines it is a shared one.

Words are searched by sparse vectors of our own terms, not by a local FTS5 of each process: an FTS5
would have to follow all documents in every process, and grows with the library where a cluster is
to carry it. The ranking is kept by asking for some more than wanted and ordering these by exact
BM25 (see `bm25`). Milvus' own analysers would not find `서울` in `서울에서`.

What a cluster needs: Milvus 2.4 or later (sparse vectors), reachable from all app processes, its
volume backed up together with the SQL database, and `--database-url`. Collections are made at the
first use; their names have a number of the SQL database, so that installations may share a cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from retrieval.catalogue import CHUNKS, Catalogue, Started
from retrieval.catalogue_tables import Written
from retrieval.chunk_store import Entry, Window
from retrieval.milvus_collections import ROWS_AT_ONCE
from retrieval.milvus_place import MilvusPlace
from retrieval.milvus_search import MilvusSearch
from retrieval.milvus_tables import (
    chunk_rows,
    counted,
    window_rows,
    windows_collection,
    with_weights,
)
from retrieval.types import CleanDocument, DocumentInfo, PageSpan, RetrievalError

_LOG = logging.getLogger(__name__)


def open_milvus_index(
    url: str, catalogue: Path | str, *, embedder: str = "", owner: str = ""
) -> MilvusIndex:
    """The documents of one owner. A server may be away; a file must be free."""
    return MilvusIndex(MilvusPlace(url, catalogue), embedder=embedder, owner=owner)


class MilvusIndex(MilvusSearch):
    """A `ChunkStore` in Milvus, for the model `embedder`. Thread-safe; many processes may use one
    server."""

    def __init__(self, place: MilvusPlace, *, embedder: str = "", owner: str = "") -> None:
        self._place = place
        self._closed = False
        place.hold()
        try:
            self._catalogue = Catalogue(place.database, owner)
            super().__init__(self._catalogue, place.collections, embedder)
            self._begin()
        except BaseException:
            self.close()
            raise

    def for_owner(self, owner: str) -> MilvusIndex:
        """The documents of another owner, over the same connections; to be closed as well."""
        return MilvusIndex(self._place, embedder=self._embedder, owner=owner)

    def _begin(self) -> None:
        try:
            self._collections.prepare()
        except RetrievalError as error:
            missing = isinstance(error.__cause__, ImportError)  # which no waiting brings
            if missing or self._place.link.address.is_file:
                raise
            _LOG.warning("%s", error)
        else:
            self._clean()

    def put(
        self,
        info: DocumentInfo,
        document: CleanDocument,
        entries: Sequence[Entry],
        *,
        also: Callable[[str], None] | None = None,
    ) -> DocumentInfo:
        """Store a document in the place of the one with its name, whose id it takes over."""
        windows = [window for entry in entries for window in entry.windows]
        name = self._collection_for(windows)
        started = self._catalogue.begin(len(entries), len(windows), name)
        known = self._catalogue.by_name(info.name)
        info = replace(info, id=known.id) if known else info
        try:
            written = self.write(info, entries, started)
            stored = self._catalogue.publish(info, document, written, self._embedder, also=also)
        except BaseException:
            self._give_up(started)
            raise
        self._clean()
        return stored

    def write(self, info: DocumentInfo, entries: Sequence[Entry], started: Started) -> Written:
        """Fill the batches; nobody sees their rows yet."""
        rows = chunk_rows(
            entries,
            info.name,
            owner=self._owner,
            batch=started.batch.number,
            first=started.first_chunk,
            document=info.id,
        )
        counts, n_terms = counted(rows)
        _, known_chunks, known_terms = self._catalogue.totals()
        mean = (known_terms + n_terms) / max(1, known_chunks + len(rows))
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = with_weights(rows[begin : begin + ROWS_AT_ONCE], mean)
            self._collections.insert(CHUNKS, some)
            self._catalogue.touch(started.batch)
        numbered = [
            (started.first_chunk + at, window)
            for at, entry in enumerate(entries)
            for window in entry.windows
        ]
        self._write_windows(numbered, started)
        places = (started.batch, started.windows, started.first_chunk, started.first_window)
        return Written(*places, len(numbered), n_terms, counts)

    def put_windows(self, document_id: str, windows: Mapping[int, Sequence[Window]]) -> None:
        """Replace the vectors of a document's chunks by the present embedder's."""
        place = self._catalogue.place(document_id)
        if place is None:
            return
        last = place.first_chunk + place.n_chunks
        numbered = [
            (chunk_id, window)
            for chunk_id, some in windows.items()
            if place.first_chunk <= chunk_id < last
            for window in some
        ]
        name = self._collection_for(window for _, window in numbered)
        started = self._catalogue.begin(0, len(numbered), name)
        try:
            self._write_windows(numbered, started)
            self._catalogue.publish_windows(place, started, len(numbered), self._embedder)
        except BaseException:
            self._give_up(started)
            raise
        self._clean()

    def _write_windows(self, numbered: Sequence[tuple[int, Window]], started: Started) -> None:
        batch = started.windows
        for begin in range(0, len(numbered), ROWS_AT_ONCE):
            some = numbered[begin : begin + ROWS_AT_ONCE]
            first = started.first_window + begin
            rows = window_rows(some, owner=self._owner, batch=batch.number, first=first)
            dimensions = len(some[0][1].vector)
            self._collections.insert(batch.collection, rows, dimensions=dimensions)
            self._catalogue.touch(batch)

    def _collection_for(self, windows: Iterable[Window]) -> str:
        """Where these windows belong; "" if there are none."""
        for window in windows:
            return windows_collection(self._embedder, len(window.vector))
        return ""

    def delete(self, document_id: str) -> bool:
        """Remove a document with all that was made of it; False if there is none."""
        found = self._catalogue.remove(document_id)
        self._clean()
        return found

    def exclusive(self, action: Callable[[set[str]], None]) -> None:
        """Run `action` on the ids of all documents while no process can write."""
        self._catalogue.exclusive(action)

    def close(self) -> None:
        """Let go of the place. Later calls raise RetrievalError."""
        closed, self._closed = self._closed, True
        if not closed:
            self._place.release()

    # Reading

    def documents(self) -> list[DocumentInfo]:
        """All documents, oldest first."""
        return self._catalogue.documents()

    def by_name(self, name: str) -> DocumentInfo | None:
        """The document of that name, however its characters are composed."""
        return self._catalogue.by_name(name)

    def document(self, document_id: str) -> CleanDocument | None:
        """The cleaned text with its pages; None for an unknown id."""
        return self._catalogue.document(document_id)

    def page_spans(self, document_id: str) -> tuple[PageSpan, ...]:
        """Where the pages of a document lie; () for an unknown id."""
        return self._catalogue.page_spans(document_id)

    def removed_lines(self, document_id: str) -> tuple[tuple[str, int], ...]:
        """Running lines that cleaning took out: one of each kind, and how many there were."""
        return self._catalogue.removed_lines(document_id)

    def stale(self) -> list[str]:
        """Ids of the documents whose vectors are another embedder's."""
        return self._catalogue.stale(self._embedder)

    def counts(self) -> dict[str, int]:
        """Rows of each kind, also those in Milvus that count for nobody; vectors of this model."""
        windows = {name: self._count(name) for name in self._collections.of_windows()}
        mine = {
            place.collection
            for place in self._catalogue.places()
            if place.embedder == self._embedder
        }
        return {
            **self._catalogue.counts(),
            "chunks": self._count(CHUNKS),
            "windows": sum(windows.values()),
            "vectors": sum(windows.get(name, 0) for name in mine),
        }

    def _count(self, name: str) -> int:
        return self._collections.count(name, self._owner)

    # Removing

    def _clean(self) -> None:
        """Remove from Milvus what counts for nobody. What fails now is done at the next change."""
        try:
            for batch in self._catalogue.waste():
                if batch.collection:
                    self._collections.delete_batch(batch.collection, batch.number, self._owner)
                self._catalogue.forget(batch)
        except RetrievalError as error:
            _LOG.warning("Deleted text is still in Milvus and will be removed later: %s", error)

    def _give_up(self, started: Started) -> None:
        try:
            self._catalogue.abandon(started.batch, started.windows)
        except RetrievalError as error:  # found by its age, later
            _LOG.warning("A batch that was not finished stays listed: %s", error)
        self._clean()
