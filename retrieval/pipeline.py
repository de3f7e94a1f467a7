"""The library: files in, passages out. Knows the order of the stages, and nothing of the chat."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from retrieval.chunk import pages_of
from retrieval.chunk_store import ChunkStore
from retrieval.claims import Claim
from retrieval.embed import Embedder
from retrieval.files import Originals, walk
from retrieval.index import Index
from retrieval.ingest import Ingestor
from retrieval.ingest_archive import ingest_archive
from retrieval.ingest_rules import IngestProgress, IngestRules, Report
from retrieval.load import LoadLimits
from retrieval.narrow import narrow
from retrieval.picture import page_picture
from retrieval.renewal import Renewal
from retrieval.rerank import N_RERANKED, Reranker, rerank
from retrieval.search import search
from retrieval.types import (
    CountTokens,
    DocumentInfo,
    IngestReport,
    PageSpan,
    Passage,
    RetrievalError,
)
from retrieval.unpack import is_archive

__all__ = ["DEFAULT_LIMITS", "IngestProgress", "Library", "walk"]

DEFAULT_LIMITS = LoadLimits(
    max_bytes=50 << 20, timeout_s=60.0, memory_bytes=2 << 30, max_pages=5_000
)
RENEW_WAIT_S = 20.0
"""How long a search waits for the vectors of a new embedding model before it goes on without."""
CLOSE_WAIT_S = 5.0
"""How long closing waits for the document that is being given new vectors."""


class Library:
    """The documents of one folder. Thread-safe; searching works while files come in.

    The folder holds `index.db` and a copy of each original under `files/`. What a killed process
    left half-done is not visible and is removed at the next start. Documents whose vectors are of
    another embedding model than `embedder` are embedded anew in the background, one after the
    other; until its turn, a document is found by its words. `store`, made for the same embedder,
    takes the place of `index.db`; the library closes it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        embedder: Embedder | None,
        count_tokens: CountTokens,
        chunk_min_tokens: int = 300,
        chunk_max_tokens: int = 500,
        limits: LoadLimits | None = None,
        remove_running_lines: bool = True,
        reranker: Reranker | None = None,
        store: ChunkStore | None = None,
        claim: Claim | None = None,
    ) -> None:
        """`claim` lets one process at a time take in a file of a name, where several share the
        library; without it, each does all that it is given, and the last one counts."""
        self._claim = claim
        self._reranker = reranker
        self._originals = Originals(folder / "files")
        self._embedder = embedder
        self._rules = IngestRules(
            count_tokens,
            chunk_min_tokens,
            chunk_max_tokens,
            limits or DEFAULT_LIMITS,
            remove_running_lines,
        )
        name = embedder.name if embedder else ""
        self._index: ChunkStore = store or Index(folder / "index.db", embedder=name)
        self._index.exclusive(self._originals.remove_all_but)
        self._renewal = None if embedder is None else Renewal(self._index, embedder)

    def ingest(
        self,
        path: Path,
        *,
        name: str | None = None,
        progress: Report | None = None,
        cancel: threading.Event | None = None,
    ) -> IngestReport:
        """Make a file searchable. Never raises for a bad file: the report says what is wrong.

        The same name and bytes again change nothing; the same name with other bytes takes the
        place of the old version under its id, in one step; another name is another document.
        """
        return next(self._ingestor(progress, cancel).run([(path, name or path.name)]))

    def ingest_tree(
        self,
        paths: Sequence[Path],
        *,
        progress: Report | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[IngestReport]:
        """Ingest files and folders, and report each file as it is done.

        Files of a folder are named by their path in it; see `retrieval.files.walk`. Those of a
        ZIP archive are named by the archive and their path in it. Many small files are embedded
        together.
        """
        return self._ingest_all(walk(paths), self._ingestor(progress, cancel))

    def ingest_archive(
        self,
        path: Path,
        *,
        name: str,
        progress: Report | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[IngestReport]:
        """Ingest the files of one ZIP archive, which is called `name`."""
        return ingest_archive(path, name, self._ingestor(progress, cancel), self._rules.limits)

    def _ingest_all(
        self, files: Sequence[tuple[Path, str]], ingestor: Ingestor
    ) -> Iterator[IngestReport]:
        plain = [file for file in files if not is_archive(file[0])]
        yield from ingestor.run(plain)
        for path, name in files:
            if is_archive(path):
                yield from ingest_archive(path, name, ingestor, self._rules.limits)

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors; others may use it too."""
        return self._embedder

    @property
    def store(self) -> ChunkStore:
        """Where documents, chunks and vectors are kept."""
        return self._index

    def documents(self) -> list[DocumentInfo]:
        """All documents, oldest first."""
        return self._index.documents()

    def document_text(self, document_id: str) -> str:
        """The text that all offsets refer to. Raises RetrievalError for an unknown id."""
        document = self._index.document(document_id)
        if document is None:
            raise RetrievalError("This document is not in the library; it may have been deleted.")
        return document.text

    def original_file(self, document_id: str) -> Path | None:
        """The kept copy of the uploaded file, to show its pages."""
        return self._originals.find(document_id)

    def page_picture(self, document_id: str, page: int, quote: str = "") -> bytes | None:
        """A page (from 1) of a PDF as PNG, `quote` marked on it; None for other formats, pages
        that are not there, and files that cannot be drawn. Takes half a second."""
        path = self._originals.find(document_id)
        return None if path is None else page_picture(path, page, quote, self._rules.limits)

    def search(
        self,
        query: str,
        *,
        document_ids: Sequence[str] | None = None,
        top_k: int = 20,
        budget_tokens: int | None = None,
        by_words: bool = False,
    ) -> list[Passage]:
        """The `top_k` passages for a query, best first; see `retrieval.search.search`.

        Raises ModelUnusableError where a model that is to be asked cannot be had; `by_words`
        asks none.

        With `budget_tokens`, chunks of long documents are cut down to their best stretches of
        whole sentences, so that more of what matters fits; see `retrieval.narrow.narrow`.
        """
        embedder, reranker = (None, None) if by_words else (self._embedder, self._reranker)
        if embedder is not None and self._renewal is not None:
            self._renewal.check(RENEW_WAIT_S)
        n_passages = top_k if reranker is None else max(top_k, N_RERANKED)
        found = search(
            self._index, embedder, query, document_ids=document_ids, n_passages=max(0, n_passages)
        )
        if reranker is not None:
            found = rerank(found, query, reranker)
        found = replace(found, ranked=found.ranked[: max(0, top_k)])
        if budget_tokens is None:
            return [item.passage for item in found.ranked]
        return narrow(
            found,
            budget_tokens,
            count_tokens=self._rules.count_tokens,
            document=self._index.document,
            chunks=self._index.passages,
        )

    def chunks(self, document_id: str) -> list[Passage]:
        """All passages of a document, in order, for prompts that hold it whole."""
        return self._index.passages(document_id)

    def pages(self, document_id: str, start: int, end: int) -> tuple[int | None, int | None]:
        """First and last page of these characters; None, None without pages or document."""
        spans = self._index.page_spans(document_id)
        return pages_of(spans, [page.start for page in spans], start, end)

    def page_spans(self, document_id: str) -> tuple[PageSpan, ...]:
        """Where its pages lie in the text of a document; () without pages or document."""
        return self._index.page_spans(document_id)

    def removed_lines(self, document_id: str) -> tuple[tuple[str, int], ...]:
        """What cleaning took for running headers and footers: a line of each kind, how many."""
        return self._index.removed_lines(document_id)

    def waiting_for_vectors(self) -> int:
        """Documents that still have vectors of another embedding model, or none, and are found by
        their words until it is their turn."""
        return len(self._index.stale()) if self._embedder is not None else 0

    def delete(self, document_id: str) -> None:
        """Remove a document with its chunks, keywords, vectors and file, if it is there."""
        self._index.delete(document_id)
        self._originals.remove(document_id)

    def wait_until_embedded(self, timeout_s: float | None = None) -> bool:
        """Wait until all documents have vectors of the present embedding model."""
        return self._renewal is None or self._renewal.wait(timeout_s)

    def close(self) -> None:
        """Stop background work and close the index. Later calls raise RetrievalError."""
        if self._renewal is not None:
            self._renewal.close(CLOSE_WAIT_S)
        self._index.close()

    def _ingestor(self, progress: Report | None, cancel: threading.Event | None) -> Ingestor:
        return Ingestor(
            self._index,
            self._originals,
            self._embedder,
            self._rules,
            progress=progress,
            cancel=cancel,
            claim=self._claim,
        )
