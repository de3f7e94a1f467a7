"""The documents of a library, their chunks, keywords and vectors. Knows no queries, no files.

SQLite is the truth; the vector index in memory follows it. A document is written, replaced and
deleted in one transaction, so that a reader sees all of it or nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retrieval.database import Database
from retrieval.embed import Vectors
from retrieval.load import document_name
from retrieval.tables import (
    HEAD_WEIGHT,
    MAX_NAMED,
    SCHEMA,
    SELECT_INFO,
    SELECT_PASSAGE,
    Entry,
    Window,
    among,
    delete_document,
    info_of,
    insert_chunk,
    insert_document,
    insert_windows,
    load_vectors,
    passage_of,
    stored_terms,
    touch,
)
from retrieval.types import CleanDocument, DocumentInfo, PageSpan, Passage
from retrieval.vectors import VectorIndex
from retrieval.words import folded

__all__ = ["Entry", "Index", "Window", "WindowHit"]

MAX_KNOWN_TERMS = 50_000
"""Terms whose frequency is remembered until documents change."""


@dataclass(frozen=True, slots=True)
class WindowHit:
    """A window near a query: where it lies in its chunk's text, and its cosine."""

    chunk_id: int
    start: int
    end: int
    cosine: float


@dataclass(frozen=True, slots=True)
class _Frequencies:
    """In how many of `total` chunks a term stands, for the terms asked for so far."""

    generation: int
    total: int
    counts: dict[str, int]


class Index:
    """All documents of one folder. Thread-safe; several processes may open the same file.

    `embedder` is the name of the model in use: vectors of other models are never searched.
    """

    def __init__(self, path: Path, *, embedder: str = "") -> None:
        self._database = Database(path, SCHEMA)
        self._embedder = embedder
        self._vectors = VectorIndex()
        self._generation = -1
        self._frequencies = _Frequencies(-1, 0, {})

    # Writing

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

    # Reading

    def documents(self) -> list[DocumentInfo]:
        """All documents, oldest first."""
        with self._database.read() as connection:
            return [
                info_of(row)
                for row in connection.execute(f"{SELECT_INFO} ORDER BY d.created, d.name")
            ]

    def by_name(self, name: str) -> DocumentInfo | None:
        """The document of that name, however its characters are composed."""
        name = document_name(name)
        with self._database.read() as connection:
            row = connection.execute(f"{SELECT_INFO} WHERE d.name = ?", (name,)).fetchone()
        return info_of(row) if row else None

    def document(self, document_id: str) -> CleanDocument | None:
        """The cleaned text with its pages; None for an unknown id."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT name, media, text, spans, removed_lines, warnings FROM documents"
                " WHERE id = ?",
                (document_id,),
            ).fetchone()
        if row is None:
            return None
        spans = tuple(PageSpan(*span) for span in json.loads(row[3]))
        return CleanDocument(row[0], row[1], row[2], spans, row[4], tuple(json.loads(row[5])))

    def page_spans(self, document_id: str) -> tuple[PageSpan, ...]:
        """Where the pages of a document lie, without reading its text; () for an unknown id."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT spans FROM documents WHERE id = ?", (document_id,)
            ).fetchone()
        return tuple(PageSpan(*span) for span in json.loads(row[0])) if row else ()

    def removed_lines(self, document_id: str) -> tuple[tuple[str, int], ...]:
        """Running lines that cleaning took out: one of each kind, and how many there were."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT lines FROM removed WHERE document_id = ?", (document_id,)
            ).fetchone()
        return tuple((line, count) for line, count in json.loads(row[0])) if row else ()

    def stale(self) -> list[str]:
        """Ids of the documents whose vectors are another embedder's."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id FROM documents WHERE embedder != ?", (self._embedder,)
            )
            return [row[0] for row in rows]

    def passages(self, document_id: str) -> list[Passage]:
        """All chunks of a document, in order, with score 0."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"{SELECT_PASSAGE} WHERE c.document_id = ? ORDER BY c.start", (document_id,)
            )
            return [passage_of(row) for row in rows]

    def passages_by_id(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Those of the chunks that exist."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"{SELECT_PASSAGE} WHERE c.id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(chunk_ids)),),
            )
            return {row[0]: passage_of(row) for row in rows}

    def counts(self) -> dict[str, int]:
        """Rows of each table, and vectors in memory: what deleting must bring back to 0."""
        with self._database.read() as connection:
            counts = {
                table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
                for table in ("documents", "chunks", "windows", "terms", "term_counts")
            }
        self._follow()
        return {**counts, "vectors": len(self._vectors)}

    # Searching

    def named_in(self, text: str, document_ids: Sequence[str] | None = None) -> list[int]:
        """First chunks of the documents whose title stands in `text`, longest titles first.

        Titles that several documents share name none of them.
        """
        where, values = among(document_ids)
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT min(c.id) FROM titles t JOIN chunks c USING (document_id)"
                f" WHERE instr(?, t.title) {where} GROUP BY t.title"
                " HAVING count(DISTINCT t.document_id) = 1 ORDER BY length(t.title) DESC LIMIT ?",
                (folded(text), *values, MAX_NAMED),
            )
            return [row[0] for row in rows]

    def lexical(
        self, terms: Sequence[str], n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[int]:
        """Ids of chunks that hold any of the terms, best BM25 first."""
        if not terms:
            return []
        match = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        where, values = among(document_ids)
        chosen = f"AND rowid IN (SELECT id FROM chunks c WHERE true {where})" if where else ""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT rowid FROM terms WHERE terms MATCH ? {chosen}"
                f" ORDER BY bm25(terms, {HEAD_WEIGHT}, 1.0), rowid LIMIT ?",
                (match, *values, n_results),
            )
            return [row[0] for row in rows]

    def terms_of(self, chunk_ids: Sequence[int]) -> dict[int, tuple[tuple[str, ...], ...]]:
        """The stored terms of those of the chunks that exist, sentence by sentence."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT rowid, body FROM terms WHERE rowid IN (SELECT value FROM json_each(?))",
                (json.dumps(list(chunk_ids)),),
            )
            return {row[0]: stored_terms(row[1]) for row in rows}

    def term_frequencies(self, terms: Sequence[str]) -> tuple[int, dict[str, int]]:
        """The number of chunks, and for each known term in how many of them it stands."""
        with self._database.read() as connection:
            known = self._frequencies
            generation = _generation(connection)
            if known.generation != generation or len(known.counts) > MAX_KNOWN_TERMS:
                total = int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
                known = self._frequencies = _Frequencies(generation, total, {})
            unknown = [term for term in terms if term not in known.counts]
            # Counting a common term takes milliseconds in a large library.
            rows = connection.execute(
                "SELECT term, doc FROM term_counts WHERE term IN (SELECT value FROM json_each(?))",
                (json.dumps(unknown),),
            )
            known.counts.update({**dict.fromkeys(unknown, 0), **dict(rows)})
        return known.total, {t: known.counts[t] for t in terms if known.counts[t]}

    def dense(
        self, query: Vectors, n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[WindowHit]:
        """The windows nearest to a query vector, best first."""
        self._follow()
        among = None if document_ids is None else self._windows_of(document_ids)
        hits = dict(self._vectors.search(query, n_results, among))
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id, chunk_id, start, end FROM windows"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(hits)),),
            )
            found = [WindowHit(row[1], row[2], row[3], hits[row[0]]) for row in rows]
        return sorted(found, key=lambda hit: (-hit.cosine, hit.chunk_id, hit.start))

    def has_vectors(self) -> bool:
        """Whether there is anything for `dense` to find, so that a query needs a vector."""
        with self._database.read() as connection:
            return connection.execute("SELECT 1 FROM windows LIMIT 1").fetchone() is not None

    def close(self) -> None:
        """Close the file. Later calls raise RetrievalError."""
        self._database.close()

    def _windows_of(self, document_ids: Sequence[str]) -> list[int]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT w.id FROM windows w JOIN chunks c ON c.id = w.chunk_id WHERE"
                " c.document_id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(document_ids)),),
            )
            return [row[0] for row in rows]

    def _follow(self) -> None:
        """Bring the vectors in memory to the committed state, whoever committed it."""
        with self._database.read() as connection:
            generation = _generation(connection)
            if generation == self._generation:
                return
            rows = connection.execute(
                "SELECT w.id FROM windows w JOIN chunks c ON c.id = w.chunk_id"
                " JOIN documents d ON d.id = c.document_id WHERE d.embedder = ? ORDER BY w.id",
                (self._embedder,),
            )
            wanted = np.fromiter((row[0] for row in rows), dtype=np.int64)
            self._vectors.follow(wanted, lambda ids: load_vectors(connection, ids))
            self._generation = generation


def _generation(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return int(row[0])
