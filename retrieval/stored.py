"""Documents, pages and chunks as the database holds them. Knows no keywords and no vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence

from retrieval.database import Database
from retrieval.load import document_name
from retrieval.tables import SELECT_INFO, SELECT_PASSAGE, info_of, passage_of
from retrieval.types import CleanDocument, DocumentInfo, Lost, PageSpan, Passage


class StoredDocuments:
    """Reads by name, by id and in order. Each call sees one committed state."""

    def __init__(self, database: Database, embedder: str) -> None:
        self._database = database
        self._embedder = embedder

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

    def lost(self, document_ids: Sequence[str] | None = None) -> Lost:
        """None ever: documents and passages are in one file."""
        return Lost()

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
