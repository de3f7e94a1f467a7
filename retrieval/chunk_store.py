"""What a library needs of the place that keeps its documents, chunks and vectors: a protocol, and
what travels over it. Knows no database and no query language.

A second place for them is one class with the methods of `ChunkStore`, given to `Library(store=)`.
`retrieval.index.Index` is the local one, and the tests of both are the same. What must hold:

- Who searches sees all of a document or nothing of it, also while it is written, replaced or
  deleted, and whatever kills the process: `put` and `delete` are one step for all readers.
- A document keeps its id when it is replaced; ids of chunks are never used again. Where a chunk
  is found by its id, it is the same chunk as ever.
- Vectors of another embedding model than the one in use are never searched (`stale` names their
  documents), whatever their width.
- Words are compared by the terms that `retrieval.words.lexical_terms` makes, here and there:
  `tables.sentence_terms` of the text, and the same of file name and context. An analyser of the
  place's own would not find `서울` in `서울에서`.
- `lexical` and `dense` order equals by chunk id and bring exactly what exists, without padding.
- Failures are `RetrievalError` with a sentence that says what to do. All methods may be called
  from many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from retrieval.embed import Vectors
from retrieval.types import Chunk, CleanDocument, DocumentInfo, Lost, PageSpan, Passage


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a chunk's text, [start, end) in it, with its vector of shape (dimensions,)."""

    start: int
    end: int
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk with its windows, as it is stored."""

    chunk: Chunk
    windows: tuple[Window, ...] = ()


class WindowHit(NamedTuple):
    """A window near a query: where it lies in its chunk's text, and its cosine. Hundreds are made
    at each search, in half of the time that a dataclass takes."""

    chunk_id: int
    start: int
    end: int
    cosine: float


class SearchedStore(Protocol):
    """What `retrieval.search` asks for. `document_ids` None means all documents."""

    def term_frequencies(self, terms: Sequence[str]) -> tuple[int, dict[str, int]]:
        """The number of chunks, and for each known term in how many of them it stands."""

    def lexical(
        self, terms: Sequence[str], n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[int]:
        """Ids of chunks that hold any of the terms, best BM25 first."""

    def has_vectors(self) -> bool:
        """Whether there is anything for `dense` to find, so that a query needs a vector."""

    def dense(
        self, query: Vectors, n_results: int, document_ids: Sequence[str] | None = None
    ) -> list[WindowHit]:
        """The windows nearest to a query vector by cosine, best first."""

    def terms_of(self, chunk_ids: Sequence[int]) -> dict[int, str]:
        """The terms of those of the chunks that exist, as `terms_in_lines` writes them."""

    def passages_by_id(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Those of the chunks that exist, with score 0."""

    def named_in(self, text: str, document_ids: Sequence[str] | None = None) -> list[int]:
        """First chunks of the documents whose title stands in `text`, longest titles first.
        Titles that several documents share name none of them."""


class ChunkStore(SearchedStore, Protocol):
    """The same with what the library and the ingestion need: all that a place must do."""

    def put(
        self,
        info: DocumentInfo,
        document: CleanDocument,
        entries: Sequence[Entry],
        *,
        also: Callable[[str], None] | None = None,
    ) -> DocumentInfo:
        """Store a document in the place of the one with its name, whose id it takes over.

        `also` is called with the id that counts before anybody sees the document; if it raises,
        nothing has changed.
        """

    def put_windows(self, document_id: str, windows: Mapping[int, Sequence[Window]]) -> None:
        """Replace the vectors of a document's chunks by the present embedder's."""

    def delete(self, document_id: str) -> bool:
        """Remove a document with all that was made of it; False if there is none."""

    def exclusive(self, action: Callable[[set[str]], None]) -> None:
        """Run `action` on the ids of all documents while no process can write."""

    def documents(self) -> list[DocumentInfo]:
        """All documents, oldest first."""

    def by_name(self, name: str) -> DocumentInfo | None:
        """The document of that name, however its characters are composed."""

    def document(self, document_id: str) -> CleanDocument | None:
        """The cleaned text with its pages; None for an unknown id."""

    def page_spans(self, document_id: str) -> tuple[PageSpan, ...]:
        """Where the pages of a document lie; () for an unknown id."""

    def removed_lines(self, document_id: str) -> tuple[tuple[str, int], ...]:
        """Running lines that cleaning took out: one of each kind, and how many there were."""

    def passages(self, document_id: str) -> list[Passage]:
        """All chunks of a document, in order, with score 0."""

    def lost(self, document_ids: Sequence[str] | None = None) -> Lost:
        """Which documents (None: of all) are listed here, but cannot be searched."""

    def stale(self) -> list[str]:
        """Ids of the documents whose vectors are another embedder's."""

    def counts(self) -> dict[str, int]:
        """Rows of each kind, vectors among them: what deleting must bring back to 0."""

    def close(self) -> None:
        """Let go of the place. Later calls raise RetrievalError."""
