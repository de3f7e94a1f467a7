"""The library: files in, passages out. Knows the order of the stages, and nothing of the chat."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from retrieval.chunk import chunk
from retrieval.clean import clean
from retrieval.embed import Embedder, window_spans
from retrieval.index import Entry, Index, Window
from retrieval.load import SUPPORTED_SUFFIXES, LoadLimits, load_file
from retrieval.search import search
from retrieval.types import (
    Chunk,
    CleanDocument,
    CountTokens,
    DocumentInfo,
    IngestReport,
    IngestStatus,
    LoadError,
    Passage,
    RetrievalError,
    passage_body,
)

DEFAULT_LIMITS = LoadLimits(
    max_bytes=50 << 20, timeout_s=60.0, memory_bytes=2 << 30, max_pages=5_000
)
BATCH_WINDOWS = 256
"""Windows that are embedded in one call when many small files come together."""
BATCH_FILES = 64


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far one file is. `done` of `total` is in files' steps: windows for "embed", else 0-1."""

    file: str
    stage: str
    """load, chunk, embed or store."""
    done: int
    total: int


Report = Callable[[IngestProgress], None]


class _Cancelled(Exception):
    """The user cancelled an ingest."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A file that is read and chunked, and waits for its vectors."""

    path: Path
    info: DocumentInfo
    document: CleanDocument
    chunks: tuple[Chunk, ...]
    windows: tuple[tuple[int, int, int], ...]
    """(chunk number, start, end in the chunk's text)."""


class Library:
    """The documents of one folder. Thread-safe; searching works while files come in.

    The folder holds `index.db` and a copy of each original under `files/`. What a killed process
    left half-done is not visible and is removed at the next start.
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
    ) -> None:
        self._files = folder / "files"
        self._files.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._count_tokens = count_tokens
        self._chunk_tokens = (chunk_min_tokens, chunk_max_tokens)
        self._limits = limits or DEFAULT_LIMITS
        self._index = Index(folder / "index.db", embedder=embedder.name if embedder else "")
        self._ingest_lock = threading.Lock()
        self._index.exclusive(self._remove_orphans)

    # Ingesting

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
        place of the old version under its id, in one step; other names are other documents.
        """
        return next(self._ingest_all([(path, name or path.name)], progress, cancel))

    def ingest_tree(
        self,
        paths: Sequence[Path],
        *,
        progress: Report | None = None,
        cancel: threading.Event | None = None,
    ) -> Iterator[IngestReport]:
        """Ingest files and folders, and report each file as it is done.

        Files of a folder are named by their path in it, with its own name in front; those of
        unknown formats and hidden ones are passed over. Many small files are embedded together.
        """
        return self._ingest_all(walk(paths), progress, cancel)

    def _ingest_all(
        self,
        files: Sequence[tuple[Path, str]],
        progress: Report | None,
        cancel: threading.Event | None,
    ) -> Iterator[IngestReport]:
        waiting: list[_Prepared] = []
        for position, (path, name) in enumerate(files):
            prepared = self._prepare(path, name, progress, cancel)
            if isinstance(prepared, IngestReport):
                # Reports keep the order of the files.
                yield from self._finish(waiting, progress, cancel)
                waiting = []
                yield prepared
                continue
            waiting.append(prepared)
            full = sum(len(item.windows) for item in waiting) >= BATCH_WINDOWS
            if full or len(waiting) >= BATCH_FILES or position == len(files) - 1:
                yield from self._finish(waiting, progress, cancel)
                waiting = []
        yield from self._finish(waiting, progress, cancel)

    def _prepare(
        self,
        path: Path,
        name: str,
        progress: Report | None,
        cancel: threading.Event | None,
    ) -> _Prepared | IngestReport:
        try:
            _step(progress, cancel, IngestProgress(name, "load", 0, 1))
            sha256, n_bytes = _digest(path)
            known = self._index.by_name(name)
            if known and known.sha256 == sha256:
                return _report(known, "unchanged", "This file is already in the library.")
            loaded = load_file(path, self._limits)
            document = clean(replace(loaded, name=name))
            _step(progress, cancel, IngestProgress(name, "chunk", 0, 1))
            minimum, maximum = self._chunk_tokens
            chunks = chunk(
                document, count_tokens=self._count_tokens, min_tokens=minimum, max_tokens=maximum
            )
        except _Cancelled:
            return IngestReport(name, "error", message="Adding this file was cancelled.")
        except LoadError as error:
            return IngestReport(name, "error", message=str(error))
        except OSError as error:
            message = f"This file cannot be read ({error.strerror}); check that it is still there."
            return IngestReport(name, "error", message=message)
        info = DocumentInfo(
            id=known.id if known else secrets.token_hex(8),
            name=name,
            media=document.media,
            pages=sum(page.number is not None for page in document.pages),
            chunks=len(chunks),
            tokens=sum(item.tokens for item in chunks),
            bytes=n_bytes,
            sha256=sha256,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            removed_lines=document.removed_lines,
            warnings=document.warnings,
        )
        if not chunks:
            return _report(replace(info, id=""), "empty", _empty_message(document))
        return _Prepared(path, info, document, tuple(chunks), self._windows(chunks))

    def _windows(self, chunks: Sequence[Chunk]) -> tuple[tuple[int, int, int], ...]:
        if self._embedder is None:
            return ()
        return tuple(
            (number, start, end)
            for number, item in enumerate(chunks)
            for start, end in window_spans(item.text, self._embedder)
        )

    def _finish(
        self,
        waiting: Sequence[_Prepared],
        progress: Report | None,
        cancel: threading.Event | None,
    ) -> Iterator[IngestReport]:
        """Embed the windows of all files together and store each file by itself."""
        try:
            windows = iter(self._embed(waiting, progress, cancel))
        except _Cancelled:
            for item in waiting:
                yield IngestReport(
                    item.info.name, "error", message="Adding this file was cancelled."
                )
            return
        except RetrievalError as error:
            for item in waiting:
                yield IngestReport(item.info.name, "error", message=str(error))
            return
        for item in waiting:
            vectors = [next(windows) for _ in item.windows]
            yield self._store(item, vectors, progress)

    def _embed(
        self,
        waiting: Sequence[_Prepared],
        progress: Report | None,
        cancel: threading.Event | None,
    ) -> list[Window]:
        todo = [
            (item, start, end, _window_text(item.chunks[number], start, end))
            for item in waiting
            for number, start, end in item.windows
        ]
        made: list[Window] = []
        for begin in range(0, len(todo), BATCH_WINDOWS // 4):
            part = todo[begin : begin + BATCH_WINDOWS // 4]
            name = part[0][0].info.name
            _step(progress, cancel, IngestProgress(name, "embed", begin, len(todo)))
            assert self._embedder is not None
            vectors = self._embedder.embed_documents([text for *_, text in part])
            made.extend(
                Window(start, end, vector)
                for (_, start, end, _), vector in zip(part, vectors, strict=True)
            )
        return made

    def _store(
        self, item: _Prepared, windows: Sequence[Window], progress: Report | None
    ) -> IngestReport:
        by_chunk: dict[int, list[Window]] = {}
        for (number, _, _), window in zip(item.windows, windows, strict=True):
            by_chunk.setdefault(number, []).append(window)
        entries = [
            Entry(part, tuple(by_chunk.get(number, ()))) for number, part in enumerate(item.chunks)
        ]
        target = self._files / f"{item.info.id}{item.path.suffix.lower()}"
        self._index.put(
            item.info, item.document, entries, also=lambda: _copy_file(item.path, target)
        )
        _step(progress, None, IngestProgress(item.info.name, "store", 1, 1))
        return _report(item.info, "indexed", " ".join(item.info.warnings))

    # Reading

    def documents(self) -> list[DocumentInfo]:
        """All documents, oldest first."""
        return self._index.documents()

    def document_text(self, document_id: str) -> str:
        """The text that all offsets refer to. Raises RetrievalError for an unknown id."""
        document = self._index.document(document_id)
        if document is None:
            message = "This document is not in the library; it may have been deleted."
            raise RetrievalError(message)
        return document.text

    def original_file(self, document_id: str) -> Path | None:
        """The kept copy of the uploaded file, to show its pages."""
        return next(iter(self._files.glob(f"{document_id}.*")), None)

    def search(
        self, query: str, *, document_ids: Sequence[str] | None = None, top_k: int = 20
    ) -> list[Passage]:
        """Passages for a query, best first; see `retrieval.search.search`."""
        return search(self._index, self._embedder, query, document_ids=document_ids, top_k=top_k)

    def chunks(self, document_id: str) -> list[Passage]:
        """All passages of a document, in order, for prompts that hold it whole."""
        return self._index.passages(document_id)

    def delete(self, document_id: str) -> None:
        """Remove a document with its chunks, keywords, vectors and file, if it is there."""
        self._index.delete(document_id)
        for path in self._files.glob(f"{document_id}.*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the index. Later calls raise RetrievalError."""
        self._index.close()

    def _remove_orphans(self, document_ids: set[str]) -> None:
        for path in self._files.iterdir():
            if path.name.partition(".")[0] not in document_ids:
                path.unlink(missing_ok=True)


def walk(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Files with the names they get: those in folders by their path from the folder's parent."""
    found: list[tuple[Path, str]] = []
    for path in paths:
        if not path.is_dir():
            found.append((path, path.name))
            continue
        root = path.resolve()
        for file in sorted(root.rglob("*")):
            inside = file.relative_to(root)
            hidden = any(part.startswith(".") for part in inside.parts)
            if file.is_file() and not hidden and file.suffix.lower() in SUPPORTED_SUFFIXES:
                found.append((file, inside.as_posix()))
    return _distinct(found)


def _distinct(files: Sequence[tuple[Path, str]]) -> list[tuple[Path, str]]:
    """Each file once, under a name of its own: of two that are called alike, none may take the
    other's place, so both get the name of their folder, or else their whole path."""
    once: dict[str, tuple[Path, str]] = {}
    for path, name in files:
        # Not resolve(): a link is a document of its own.
        once.setdefault(os.path.abspath(path), (path, name))  # noqa: PTH100
    named = list(once.values())
    for longer in (lambda path: f"{path.parent.name}/{path.name}", Path.as_posix):
        counts = Counter(name for _, name in named)
        named = [
            (path, name if counts[name] == 1 else longer(path.absolute())) for path, name in named
        ]
    return named


def _window_text(part: Chunk, start: int, end: int) -> str:
    return passage_body(part.context, part.text[start:end])


def _step(progress: Report | None, cancel: threading.Event | None, state: IngestProgress) -> None:
    if cancel is not None and cancel.is_set():
        raise _Cancelled
    if progress is not None:
        progress(state)


def _digest(path: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    n_bytes = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            n_bytes += len(block)
    return digest.hexdigest(), n_bytes


def _copy_file(source: Path, target: Path) -> None:
    """Copy in one step: a killed process leaves either the old file or the new one."""
    partial = target.with_name(f"{secrets.token_hex(8)}.part")
    try:
        shutil.copyfile(source, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _report(info: DocumentInfo, status: IngestStatus, message: str) -> IngestReport:
    return IngestReport(
        file=info.name,
        status=status,
        pages=info.pages,
        chunks=info.chunks,
        removed_lines=info.removed_lines,
        message=message,
        document_id=info.id or None,
        tokens=info.tokens,
        warnings=info.warnings,
    )


def _empty_message(document: CleanDocument) -> str:
    reasons = " ".join(document.warnings)
    return reasons or "No text was found in this file, so there is nothing to search."
