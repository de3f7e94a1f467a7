"""A document as one place gives it to another, with all ids and vectors. Knows no place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from retrieval.chunk_store import ChunkStore, Entry
from retrieval.types import CleanDocument, DocumentInfo


@dataclass(frozen=True, slots=True)
class Exported:
    """All that a place keeps of a document. Its chunks have ids from `first_chunk` on, in order.

    `embedder` is the model that made the vectors, which need not be the one in use.
    """

    info: DocumentInfo
    document: CleanDocument
    embedder: str
    first_chunk: int
    entries: tuple[Entry, ...]


class ExchangeStore(ChunkStore, Protocol):
    """A place that can be moved from and to."""

    def sweep(self) -> None:
        """Remove what is stored under no document and would be in the way of one."""

    def export(self, document_id: str) -> Exported | None:
        """A document with everything; None if there is none."""

    def adopt(self, exported: Exported) -> None:
        """Store a document under the ids that it has. Raises RetrievalError if these are taken."""
