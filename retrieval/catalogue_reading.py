"""What can be asked of a catalogue about documents and terms, for one owner. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from retrieval.catalogue_database import CatalogueDatabase
from retrieval.catalogue_tables import (
    BATCHES,
    COUNTERS,
    DOCUMENTS,
    OWNERS,
    TERMS,
    clean_of,
    info_of,
    removed_of,
    spans_of,
)
from retrieval.load import document_name
from retrieval.tables import MAX_NAMED
from retrieval.types import CleanDocument, DocumentInfo, PageSpan
from retrieval.words import folded


@dataclass(frozen=True, slots=True)
class View:
    """Which batches count at one moment: all up to `newest` but the hidden ones, or just `only`."""

    generation: int
    newest: int
    hidden: tuple[int, ...]
    only: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of a document are in Milvus."""

    id: str
    name: str
    batch: int
    windows: int
    collection: str
    first_chunk: int
    n_chunks: int
    embedder: str
    first_window: int
    n_windows: int


class CatalogueReading:
    """Reads of the documents of `owner`. Each call sees one moment."""

    def __init__(self, database: CatalogueDatabase, owner: int) -> None:
        self._database = database
        self.owner = owner

    def documents(self) -> list[DocumentInfo]:
        """All documents, oldest first."""
        query = self._mine(DOCUMENTS.c.info).order_by(DOCUMENTS.c.created, DOCUMENTS.c.name)
        return [info_of(row[0]) for row in self._all(query)]

    def by_name(self, name: str) -> DocumentInfo | None:
        """The document of that name, however its characters are composed."""
        query = self._mine(DOCUMENTS.c.info).where(DOCUMENTS.c.name == document_name(name))
        rows = self._all(query)
        return info_of(rows[0][0]) if rows else None

    def document(self, document_id: str) -> CleanDocument | None:
        """The cleaned text with its pages; None for an unknown id."""
        query = self._mine(DOCUMENTS.c.info, DOCUMENTS.c.text)
        rows = self._all(query.where(DOCUMENTS.c.id == document_id))
        return clean_of(*rows[0]) if rows else None

    def page_spans(self, document_id: str) -> tuple[PageSpan, ...]:
        """Where the pages of a document lie; () for an unknown id."""
        rows = self._all(self._mine(DOCUMENTS.c.info).where(DOCUMENTS.c.id == document_id))
        return spans_of(rows[0][0]) if rows else ()

    def removed_lines(self, document_id: str) -> tuple[tuple[str, int], ...]:
        """Running lines that cleaning took out: one of each kind, and how many there were."""
        rows = self._all(self._mine(DOCUMENTS.c.info).where(DOCUMENTS.c.id == document_id))
        return removed_of(rows[0][0]) if rows else ()

    def stale(self, embedder: str) -> list[str]:
        """Ids of the documents whose vectors are another embedder's."""
        query = self._mine(DOCUMENTS.c.id).where(DOCUMENTS.c.embedder != embedder)
        return [row[0] for row in self._all(query)]

    def has_windows(self, embedder: str) -> bool:
        """Whether any document has vectors of this embedder."""
        wanted = sa.and_(DOCUMENTS.c.embedder == embedder, DOCUMENTS.c.n_windows > 0)
        return bool(self._all(self._mine(DOCUMENTS.c.id).where(wanted).limit(1)))

    def place(self, document_id: str) -> Place | None:
        """Where the rows of a document are; None for an unknown id."""
        columns = [DOCUMENTS.c[name] for name in Place.__slots__]
        rows = self._all(self._mine(*columns).where(DOCUMENTS.c.id == document_id))
        return Place(*rows[0]) if rows else None

    def places(self, document_ids: Sequence[str] | None = None) -> list[Place]:
        """Where the rows of all documents are, or of those of them."""
        query = self._mine(*(DOCUMENTS.c[name] for name in Place.__slots__))
        if document_ids is not None:
            query = query.where(DOCUMENTS.c.id.in_(document_ids))
        return [Place(*row) for row in self._all(query.order_by(DOCUMENTS.c.first_chunk))]

    def generation(self) -> int:
        """A number that is another one after each change of this owner's documents."""
        with self._database.read() as connection:
            return self._generation(connection)

    def view(self, document_ids: Sequence[str] | None, *, windows: str | None = None) -> View:
        """Which batches of chunks count now, or those of windows in the collection `windows`."""
        with self._database.read() as connection:
            generation = self._generation(connection)
            if document_ids is not None:
                column = DOCUMENTS.c.batch if windows is None else DOCUMENTS.c.windows
                query = self._mine(column).where(DOCUMENTS.c.id.in_(document_ids))
                if windows is not None:
                    query = query.where(DOCUMENTS.c.collection == windows)
                only = tuple(connection.execute(query).scalars())
                return View(generation, 0, (), only)
            newest = sa.select(COUNTERS.c.value).where(COUNTERS.c.key == "batch")
            hidden = sa.select(BATCHES.c.number).where(BATCHES.c.owner == self.owner)
            return View(
                generation,
                connection.execute(newest).scalar_one(),
                tuple(sorted(connection.execute(hidden).scalars())),
            )

    def live(
        self, batches: Iterable[int], *, windows: bool = False
    ) -> tuple[int, dict[int, tuple[str, str]]]:
        """The generation, and of those batches that count, id and name of the document."""
        column = DOCUMENTS.c.windows if windows else DOCUMENTS.c.batch
        query = self._mine(column, DOCUMENTS.c.id, DOCUMENTS.c.name)
        with self._database.read() as connection:
            rows = connection.execute(query.where(column.in_(sorted(set(batches)))))
            return self._generation(connection), {row[0]: (row[1], row[2]) for row in rows}

    def totals(self) -> tuple[int, int, int]:
        """The generation, the number of chunks, and that of all terms in them."""
        sums = sa.select(sa.func.sum(DOCUMENTS.c.n_chunks), sa.func.sum(DOCUMENTS.c.n_terms))
        with self._database.read() as connection:
            row = connection.execute(sums.where(DOCUMENTS.c.owner == self.owner)).one()
            return self._generation(connection), int(row[0] or 0), int(row[1] or 0)

    def term_counts(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many chunks those of the terms stand that stand in any."""
        query = sa.select(TERMS.c.term, TERMS.c.chunks).where(
            TERMS.c.owner == self.owner, TERMS.c.term.in_(terms), TERMS.c.chunks > 0
        )
        return {row[0]: row[1] for row in self._all(query)}

    def named_in(self, text: str, document_ids: Sequence[str] | None) -> list[int]:
        """First chunks of the documents whose title stands in `text`, longest titles first;
        none for a title that several documents share."""
        place = sa.func.instr if self._database.dialect == "sqlite" else sa.func.strpos
        first, title = sa.func.min(DOCUMENTS.c.first_chunk), DOCUMENTS.c.title
        query = self._mine(first).where(title != "", place(folded(text), title) > 0)
        if document_ids is not None:
            query = query.where(DOCUMENTS.c.id.in_(document_ids))
        query = query.group_by(title).having(sa.func.count() == 1)
        query = query.order_by(sa.func.length(title).desc(), first).limit(MAX_NAMED)
        return [row[0] for row in self._all(query)]

    def counts(self) -> dict[str, int]:
        """Rows of each kind that this owner has here."""
        tables = {"documents": DOCUMENTS, "term_counts": TERMS, "batches": BATCHES}
        with self._database.read() as connection:
            return {
                name: connection.execute(
                    sa.select(sa.func.count()).select_from(table).where(table.c.owner == self.owner)
                ).scalar_one()
                for name, table in tables.items()
            }

    def _mine(self, *columns: Any) -> sa.Select[Any]:
        return sa.select(*columns).where(DOCUMENTS.c.owner == self.owner)

    def _all(self, query: sa.Select[Any]) -> list[Any]:
        with self._database.read() as connection:
            return list(connection.execute(query).all())

    def _generation(self, connection: sa.Connection) -> int:
        query = sa.select(OWNERS.c.generation).where(OWNERS.c.number == self.owner)
        return int(connection.execute(query).scalar_one())
