"""The documents of a library in one SQLite file, with keywords and vectors. Knows no queries.

SQLite is the truth; the vector index in memory follows it. A document is written, replaced and
deleted in one transaction, so that a reader sees all of it or nothing. Reading is in `stored.py`,
keyword search in `keywords.py`; what another place for documents must do is said in
`chunk_store.py`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from retrieval.chunk_store import Entry, Window, WindowHit
from retrieval.database import Database
from retrieval.embed import Vectors
from retrieval.frequencies import NOTHING_TO_COUNT, count_all, count_document, is_counted
from retrieval.index_exchange import IndexExchange
from retrieval.keywords import Keywords
from retrieval.stored import StoredDocuments
from retrieval.tables import (
    SCHEMA,
    among,
    delete_document,
    generation_of,
    insert_chunk,
    insert_document,
    insert_windows,
    load_vectors,
    scope,
    touch,
)
from retrieval.term_renewal import NOTHING_TO_RENEW, are_current, renew_terms
from retrieval.types import CleanDocument, DocumentInfo, RetrievalError
from retrieval.vectors import Ids, VectorIndex

__all__ = ["Entry", "Index", "Window", "WindowHit"]

LOADED_EARLY_FROM = 10_000
"""Vectors from which on they are loaded in the background at opening, and not by whoever searches
first: 100,000 take some seconds."""


class Index(StoredDocuments, Keywords, IndexExchange):
    """All documents of one folder. Thread-safe; several processes may open the same file.

    `embedder` is the name of the model in use: vectors of other models are never searched.
    """

    def __init__(self, path: Path, *, embedder: str = "") -> None:
        database = Database(path, SCHEMA, new=NOTHING_TO_COUNT + NOTHING_TO_RENEW)
        StoredDocuments.__init__(self, database, embedder)
        Keywords.__init__(self, database)
        self._vectors = VectorIndex()
        self._generation = -1
        self._following = threading.Lock()
        self._closing = threading.Event()
        self._loader: threading.Thread | None = None
        try:
            self._count_terms()
            self._load_early()
        except RetrievalError:
            database.close()
            raise

    def put(
        self,
        info: DocumentInfo,
        document: CleanDocument,
        entries: Sequence[Entry],
        *,
        also: Callable[[str], None] | None = None,
    ) -> DocumentInfo:
        """Store a document, replacing the one with the same name, in one transaction.

        It takes over the id of the one that it replaces; what is returned has the id that counts.
        `also` is called with it after all rows are written; if it raises, nothing is stored.
        """
        with self._database.write() as connection:
            old = connection.execute("SELECT id FROM documents WHERE name = ?", (info.name,))
            info = replace(info, id=(old.fetchone() or (info.id,))[0])
            delete_document(connection, info.id)
            insert_document(connection, info, document, self._embedder)
            for entry in entries:
                insert_chunk(connection, info, entry)
            count_document(connection, info.id)
            touch(connection)
            if also:
                also(info.id)
        return info

    def put_windows(self, document_id: str, windows: Mapping[int, Sequence[Window]]) -> None:
        """Replace the vectors of a document's chunks by the present embedder's."""
        with self._database.write() as connection:
            for chunk_id, chunk_windows in windows.items():
                connection.execute("DELETE FROM windows WHERE chunk_id = ?", (chunk_id,))
                known = connection.execute("SELECT 1 FROM chunks WHERE id = ?", (chunk_id,))
                if known.fetchone():
                    insert_windows(connection, chunk_id, chunk_windows)
            connection.execute(
                "UPDATE documents SET embedder = ? WHERE id = ?", (self._embedder, document_id)
            )
            touch(connection)

    def delete(self, document_id: str) -> bool:
        """Remove a document with all that was made of it; False if there is none."""
        with self._database.write() as connection:
            found = delete_document(connection, document_id)
            if found:
                # Keywords of deleted rows stay in the index file until its parts are merged.
                connection.execute("INSERT INTO terms(terms) VALUES ('optimize')")
                touch(connection)
        if found:
            self._database.checkpoint()
        return found

    def exclusive(self, action: Callable[[set[str]], None]) -> None:
        """Run `action` on the ids of all documents while no process can write."""
        with self._database.write() as connection:
            action({row[0] for row in connection.execute("SELECT id FROM documents")})

    def counts(self) -> dict[str, int]:
        """Rows of each table, and vectors in memory: what deleting must bring back to 0."""
        with self._database.read() as connection:
            counts = {
                table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
                for table in (
                    "documents",
                    "chunks",
                    "windows",
                    "terms",
                    "term_counts",
                    "frequencies",
                )
            }
        self._follow()
        return {**counts, "vectors": len(self._vectors)}

    def dense(
        self, query: Vectors, n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[WindowHit]:
        """The windows nearest to a query vector, best first."""
        self._follow()
        asked = self._windows_of(document_ids)
        hits = dict(self._vectors.search(query, n_results, asked))
        # Asked again here: a document may have come since all were found to be asked for.
        where, values = among(document_ids)
        join = "JOIN chunks c ON c.id = w.chunk_id" if where else ""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT w.id, w.chunk_id, w.start, w.end FROM windows w {join}"
                f" WHERE w.id IN (SELECT value FROM json_each(?)) {where}",
                (json.dumps(list(hits)), *values),
            )
            found = [WindowHit(row[1], row[2], row[3], hits[row[0]]) for row in rows]
        return sorted(found, key=lambda hit: (-hit.cosine, hit.chunk_id, hit.start))

    def has_vectors(self) -> bool:
        """Whether there is anything for `dense` to find, so that a query needs a vector."""
        with self._database.read() as connection:
            return connection.execute("SELECT 1 FROM windows LIMIT 1").fetchone() is not None

    def rest(self) -> None:
        """Let go of what is opened again at need; nothing that is in use."""
        self._database.rest()

    def close(self) -> None:
        """Close the file. Later calls raise RetrievalError."""
        self._closing.set()
        if self._loader is not None:
            self._loader.join()
        self._database.close()

    def _load_early(self) -> None:
        with self._database.read() as connection:
            (last,) = connection.execute("SELECT max(id) FROM windows").fetchone()
        if self._embedder and (last or 0) >= LOADED_EARLY_FROM:
            self._loader = threading.Thread(target=self._load, daemon=True)
            self._loader.start()

    def _load(self) -> None:
        with suppress(RetrievalError):  # whoever searches meets it again, and is told
            self._follow()

    def _count_terms(self) -> None:
        """Once for a file that was made before terms were counted, or were what they are."""
        with self._database.read() as connection:
            done = is_counted(connection) and are_current(connection)
        while not done:
            with self._database.write() as connection:
                count_all(connection)
                done = renew_terms(connection)

    def _windows_of(self, document_ids: Sequence[str] | None) -> list[int] | None:
        """None for all windows."""
        with self._database.read() as connection:
            if (document_ids := scope(connection, document_ids)) is None:
                return None
            rows = connection.execute(
                "SELECT w.id FROM windows w JOIN chunks c ON c.id = w.chunk_id WHERE"
                " c.document_id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(document_ids)),),
            )
            return [row[0] for row in rows]

    def _follow(self) -> None:
        """Bring the vectors in memory to the committed state, whoever committed it."""
        with self._following, self._database.read() as connection:
            generation = generation_of(connection)
            if generation == self._generation:
                return
            rows = connection.execute(
                "SELECT w.id FROM windows w JOIN chunks c ON c.id = w.chunk_id"
                " JOIN documents d ON d.id = c.document_id WHERE d.embedder = ? ORDER BY w.id",
                (self._embedder,),
            )
            wanted = np.fromiter((row[0] for row in rows), dtype=np.int64)
            self._vectors.follow(wanted, lambda ids: self._loaded(connection, ids))
            self._generation = generation

    def _loaded(self, connection: sqlite3.Connection, ids: Ids) -> Vectors:
        if self._closing.is_set():
            raise RetrievalError("The document library is closed.")
        return load_vectors(connection, ids)
