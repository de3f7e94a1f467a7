"""Documents out of and into the local index with their ids. Knows no other place."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from retrieval.chunk_store import Entry, Window
from retrieval.database import Database
from retrieval.exchange import Exported
from retrieval.frequencies import count_document
from retrieval.tables import (
    SELECT_INFO,
    info_of,
    insert_chunk,
    insert_document,
    touch,
)
from retrieval.types import Chunk, CleanDocument, PageSpan, RetrievalError


class IndexExchange:
    """The two halves of a move, each one transaction."""

    _database: Database

    def sweep(self) -> None:
        """Nothing to do: what belongs to a document goes with it in one transaction."""

    def export(self, document_id: str) -> Exported | None:
        """A document with everything; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(f"{SELECT_INFO} WHERE d.id = ?", (document_id,)).fetchone()
            if row is None:
                return None
            info = info_of(row)
            text, spans, embedder, lines = connection.execute(
                "SELECT d.text, d.spans, d.embedder, r.lines FROM documents d"
                " LEFT JOIN removed r ON r.document_id = d.id WHERE d.id = ?",
                (document_id,),
            ).fetchone()
            chunks = connection.execute(
                "SELECT id, text, start, end, tokens, page, page_end, context FROM chunks"
                " WHERE document_id = ? ORDER BY id",
                (document_id,),
            ).fetchall()
            windows = connection.execute(
                "SELECT w.chunk_id, w.start, w.end, w.vector FROM windows w"
                " JOIN chunks c ON c.id = w.chunk_id WHERE c.document_id = ? ORDER BY w.id",
                (document_id,),
            ).fetchall()
        by_chunk: dict[int, list[Window]] = {row[0]: [] for row in chunks}
        for chunk_id, start, end, vector in windows:
            values = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
            by_chunk[chunk_id].append(Window(start, end, values))
        entries = tuple(Entry(Chunk(*row[1:]), tuple(by_chunk[row[0]])) for row in chunks)
        pages = tuple(PageSpan(*span) for span in json.loads(spans))
        removed = tuple((line, count) for line, count in json.loads(lines or "[]"))
        document = CleanDocument(
            info.name, info.media, text, pages, info.removed_lines, info.warnings, removed
        )
        _follow_each_other([row[0] for row in chunks], info.name)
        return Exported(info, document, embedder, chunks[0][0], entries)

    def adopt(self, exported: Exported) -> None:
        """Store a document under the ids that it has. Raises RetrievalError if these are taken."""
        info = exported.info
        first, n_chunks = exported.first_chunk, len(exported.entries)
        with self._database.write() as connection:
            taken = connection.execute(
                "SELECT 1 FROM documents WHERE id = ? OR name = ?"
                " UNION SELECT 1 FROM chunks WHERE id BETWEEN ? AND ?",
                (info.id, info.name, first, first + n_chunks - 1),
            )
            if taken.fetchone():
                message = f"Another document has the name or the ids of “{info.name}” here already."
                raise RetrievalError(message)
            insert_document(connection, info, exported.document, exported.embedder)
            for at, entry in enumerate(exported.entries):
                insert_chunk(connection, info, entry, chunk_id=first + at)
            count_document(connection, info.id)
            touch(connection)


def _follow_each_other(ids: Sequence[int], name: str) -> None:
    """They are given out in one transaction, so they always do."""
    if not ids or list(ids) != list(range(ids[0], ids[0] + len(ids))):
        message = f"“{name}” has chunks that are out of order; add the document again."
        raise RetrievalError(message)
